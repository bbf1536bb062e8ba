/*
 * pawl remove: removes a task. Its log and its fence stay, so a new task with the same id continues
 * the fence.
 */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task to remove"),
	PARAM_FORCE(
		"remove it even if other tasks depend on it, or another agent holds it (with --reason)"),
	PARAM_REASON(0, "reason, for the log"),
	{ 0 }
};

static void remove_show(const struct reply *r, struct view *v);

const struct command cmd_remove = {
	.name = "remove",
	.group = "plan",
	.summary = "remove a task from the queue",
	.detail =
		"pawl refuses (40) to remove a task that has sub-tasks or is a dependency of others. --force removes it; tasks "
		"that depend on it go to Needs Help. pawl refuses (20) to remove a task that another agent holds. --force "
		"--reason TEXT ends that lock, and the log records who overrode whom. The log and the fence stay. `pawl "
		"cancel` is usually the better choice. With --force you can remove a damaged record, which `pawl doctor` "
		"names, by its id or its handle bad:HASH.",
	.example = "pawl remove t1",
	.see = "cancel, update",
	.model =
		"Remove a task from the queue; cancel is usually better. MISCONFIGURED: it has sub-tasks, or "
		"others depend on it; use cancel. " MODEL_HELD MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_REMOVE,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.show = remove_show,
};

static void remove_show(const struct reply *r, struct view *v)
{
	show_did(r, v, "removed");
}
