#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that is Blocked or Needs Help"),
				       PARAM_REASON(0, "what has changed, for the log"),
				       { 0 } };

const struct command cmd_unblock = {
	.name = "unblock",
	.group = "review",
	.summary = "the way is clear: Blocked, Needs Help → In Progress",
	.detail =
		"The lock is cleared; reason and action are kept. Who knows the task claims it again to resume; "
		"after the length of its last lease `pawl next` offers it to everybody.",
	.example = "pawl unblock t1 --reason \"key added\"",
	.see = "block, escalate, claim",
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_UNBLOCK,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
