#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task to remove"),
				       PARAM(force, "force", P_FLAG, .letter = 'f',
					     .help = "even if it is held, or others depend on it"),
				       PARAM_REASON(0, "why, for the log"),
				       { 0 } };

static void show(const struct reply *r, struct view *v)
{
	show_did(r, v, "removed");
}

const struct command cmd_remove = {
	.name = "remove",
	.group = "plan",
	.summary = "take a task out of the queue",
	.detail =
		"What is held, has sub-tasks or is depended on is refused (40) without --force; tasks that depend "
		"on it then go to Needs Help. The log and the fence stay. `pawl cancel` is mostly the better way. A "
		"record that cannot be used (`pawl doctor` names it) is removed by its id or by its handle bad:HASH, "
		"with --force.",
	.example = "pawl remove t1",
	.see = "cancel, update",
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_REMOVE,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show,
};
