/*
 * pawl cancel: ends a task that will not be done (any status but Done). A task that another agent
 * holds needs --force, and the log records the override.
 */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task to cancel"),
	PARAM_REASON(P_REQUIRED, "why the task is canceled, e.g. \"duplicate of t7\""),
	PARAM_FORCE("cancel it even if another agent holds it; ends that lock"),
	{ 0 }
};

const struct command cmd_cancel = {
	.name = "cancel",
	.group = "review",
	.summary = "cancel a task: any status but Done → Canceled",
	.detail =
		"Only the holder can cancel a task that is held (else 20), or an operator with --force: the lock ends, and "
		"the log records who overrode whom. Ready tasks that depend on it go to Needs Help.",
	.example = "pawl cancel t1 --reason \"no longer needed\"\n"
		   "pawl cancel t1 --force --reason \"duplicate of t7\"",
	.see = "reopen, remove, lock break",
	.model =
		"Cancel a task that is not Done. Ready tasks that depend on it go to Needs Help. " MODEL_HELD
			MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_CANCEL,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
