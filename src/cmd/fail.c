/*
 * pawl fail: reports that the work failed (In Progress to Failed). The lock ends, and the task is
 * not offered again before `pawl retry`.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that you hold"),
				       PARAM_REASON(P_REQUIRED, "why the task cannot be done"),
				       { 0 } };

const struct command cmd_fail = {
	.name = "fail",
	.group = "work",
	.summary = "report a failure: In Progress → Failed",
	.detail =
		"The lock ends. `pawl next` does not offer a Failed task; an agent can claim it by its id, or retry offers "
		"it again.",
	.example = "pawl fail t1 --reason \"terraform validate has 3 errors\"",
	.see = "retry, release, escalate",
	.model =
		"Report that your task failed: it is Failed and not offered again until retry. Then call next. " MODEL_LOST
			MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task changed",
	.params = params,
	.flags = C_WRITE,
	.op = OP_FAIL,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
