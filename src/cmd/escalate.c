/* pawl escalate: asks a person for help (In Progress to Needs Help). The lock ends. */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task that you hold"),
	PARAM_REASON(P_REQUIRED, "the decision or action that a person must take"),
	{ 0 }
};

const struct command cmd_escalate = {
	.name = "escalate",
	.group = "work",
	.summary = "ask a person for help: In Progress → Needs Help",
	.detail = "The lock ends. The task waits until a person unblocks, updates or cancels it.",
	.example = "pawl escalate t1 --reason \"two specs contradict each other\"",
	.see = "block, unblock, cancel",
	.model =
		"Ask a person for help: your task is in Needs Help, and its lock ends. Then call next. " MODEL_LOST
			MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task changed",
	.params = params,
	.flags = C_WRITE,
	.op = OP_ESCALATE,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
