#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that shall not be done"),
				       PARAM_REASON(P_REQUIRED, "why not"),
				       { 0 } };

const struct command cmd_cancel = {
	.name = "cancel",
	.group = "review",
	.summary = "call it off: any but Done → Canceled",
	.detail =
		"A task that somebody works on can be canceled by its holder only; `pawl lock break` comes first "
		"otherwise. Ready tasks that depend on it go to Needs Help.",
	.example = "pawl cancel t1 --reason \"no longer needed\"",
	.see = "reopen, remove, lock break",
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_CANCEL,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
