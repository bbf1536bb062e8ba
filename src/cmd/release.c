#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that you hold"),
				       PARAM_REASON(0, "reason, for the log"),
				       PARAM_WRITE_STATUS,
				       { 0 } };

const struct command cmd_release = {
	.name = "release",
	.group = "work",
	.summary = "give a task back: In Progress → Ready",
	.detail = "The lock ends, and other agents can claim the task at once.",
	.example = "pawl release t1 --reason \"needs a Mac\"",
	.see = "claim, block, fail",
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_RELEASE,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
};
