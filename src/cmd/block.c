#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task that you hold"),
	PARAM_REASON(P_REQUIRED, "what is in the way"),
	PARAM(unblock_action, "unblock-action", P_TEXT, .letter = 'u', .flags = P_REQUIRED,
	      .help = "what somebody has to do about it"),
	PARAM(next_check, "next-check", P_TIME, .help = "when to look again"),
	{ 0 }
};

const struct command cmd_block = {
	.name = "block",
	.group = "work",
	.summary = "something is in the way: In Progress → Blocked",
	.detail =
		"The lock stays until it runs out by itself. A person unblocks the task when the way is clear.",
	.example =
		"pawl block t1 --reason \"no access to the registry\" --unblock-action \"add a key\"",
	.see = "unblock, escalate, release",
	.model =
		"Use it when you cannot go on without somebody else. In Progress to Blocked; the lock is left to run out. LOST_LOCK: "
		"the task is no longer yours, nothing changed.",
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_BLOCK,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
