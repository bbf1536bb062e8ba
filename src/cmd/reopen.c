/* pawl reopen: makes a Done or Canceled task Ready again. Tasks that depend on it wait again. */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that is Done or Canceled"),
				       PARAM_REASON(P_REQUIRED, "why the task is not finished"),
				       { 0 } };

const struct command cmd_reopen = {
	.name = "reopen",
	.group = "review",
	.summary = "open a task again: Done, Canceled → Ready",
	.detail = "Tasks that depend on it wait for it again.",
	.example = "pawl reopen t1 --reason \"the bug is back\"",
	.see = "approve, cancel, retry",
	.model =
		"Open a Done or Canceled task again: it is Ready, and tasks that depend on it wait again. "
		"MISCONFIGURED: it has not ended; show has its status. " MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_REOPEN,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
