#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that you hold"),
				       PARAM_REASON(P_REQUIRED, "why it cannot be done"),
				       { 0 } };

const struct command cmd_fail = {
	.name = "fail",
	.group = "work",
	.summary = "give it up: In Progress → Failed",
	.detail =
		"The lock is cleared. A Failed task is not offered; it can be claimed directly or retried.",
	.example = "pawl fail t1 --reason \"terraform validate has 3 errors\"",
	.see = "retry, release, escalate",
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_FAIL,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
