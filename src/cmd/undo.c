/*
 * pawl undo: takes back the caller's last change of a task. The queue decides; without ID it also finds the task.
 */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "task whose last change is taken back (default: the task that you changed last)"),
	PARAM_FORCE("even if somebody else holds it; needs --reason, and the log records it"),
	PARAM_REASON(0, "reason, for the log"),
	{ 0 }
};

static void undo_show(const struct reply *r, struct view *v);

const struct command cmd_undo = {
	.name = "undo",
	.group = "plan",
	.summary = "take back your last change of a task",
	.detail =
		"Takes back update, edit, depend, undepend, cancel, archive, approve, rework, unblock, retry, reopen and remove. "
		"A removed task comes back with its log and its links, and its fence continues. You must have made the last "
		"change of the task, under the same agent name; if another agent has changed the task since, pawl refuses (20) "
		"and names it. pawl keeps one step for each task, for 30 days. An undo cannot be undone. An approval stays "
		"(20) once a task that waited for it was claimed. A lock that the change ended does not come back. "
		"For other calls pawl names the command to use instead (40): release after claim, reopen after done, rework after review.",
	.example = "pawl undo\n"
		   "pawl undo t1",
	.see = "log, reopen, restore",
	.model =
		"Take back your last change of a task (update, depend, cancel, archive, approve, rework, unblock, retry, "
		"reopen, remove), if nobody has changed it since. CONFLICT: another agent has changed it; message names the agent. "
		"MISCONFIGURED: the change cannot be undone; hint names the command to use instead. INCOMPLETE_SUBTASKS: end its sub-tasks first. " MODEL_LOST
			MODEL_NOT_FOUND,
	.gives = "task undone",
	.params = params,
	.flags = C_WRITE,
	.op = OP_UNDO,
	.fails = FAILS(CONFLICT, LOST_LOCK, INCOMPLETE_SUBTASKS, NOT_FOUND),
	.show = undo_show,
};

static void undo_show(const struct reply *r, struct view *v)
{
	const struct notice *n = r->ans.undone;
	const char *what = n ? arena_cstr(v->arena, n->reason) : "change";
	const char *when = n ? arena_cstr(v->arena, view_when(v, n->at)) : "";

	show_did(r, v, arena_printf(v->arena, "is as it was before your %s %s", what, when).p);
	show_task(r, v);
}
