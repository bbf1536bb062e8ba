/*
 * pawl unblock: lets the work continue (Blocked or Needs Help to In Progress). The lock ends, and
 * `pawl next` offers the task.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that is Blocked or Needs Help"),
				       PARAM_REASON(0, "what has changed, for the log"),
				       { 0 } };

const struct command cmd_unblock = {
	.name = "unblock",
	.group = "review",
	.summary = "let the work continue: Blocked, Needs Help → In Progress",
	.detail =
		"The lock ends; the task keeps its reason and action. `pawl next` offers the task to every agent at once, at "
		"its old place in the order. The setting handback reserves the task first for its last agent.",
	.example = "pawl unblock t1 --reason \"key added\"",
	.see = "block, escalate, claim",
	.model =
		"Let work on a Blocked or Needs Help task continue, once the obstacle is gone: next offers the "
		"task at once. "
		"MISCONFIGURED: it is neither; show has its status. " MODEL_HELD MODEL_LOST
			MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_UNBLOCK,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
