/*
 * pawl block: reports an obstacle (In Progress to Blocked). The holder must name the action that a
 * person has to take.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that you hold"),
				       PARAM_REASON(P_REQUIRED, "the obstacle"),
				       PARAM(unblock_action, "unblock-action", P_TEXT,
					     .letter = 'u', .flags = P_REQUIRED,
					     .help = "the action that a person must take"),
				       PARAM(next_check, "next-check", P_TIME, .flags = P_SELDOM,
					     .help = "time to check the task again"),
				       { 0 } };

const struct command cmd_block = {
	.name = "block",
	.group = "work",
	.summary = "report an obstacle: In Progress → Blocked",
	.detail =
		"The lock stays until its lease expires. A person unblocks the task when the obstacle is gone.",
	.example =
		"pawl block t1 --reason \"no access to the registry\" --unblock-action \"add a key\"",
	.see = "unblock, escalate, release",
	.model =
		"You cannot continue: your task is Blocked until a person unblocks it. Then call next. " MODEL_LOST
			MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task changed",
	.params = params,
	.flags = C_WRITE,
	.op = OP_BLOCK,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
