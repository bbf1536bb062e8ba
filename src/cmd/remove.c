/*
 * pawl remove: removes a task. Its log and its fence stay, so a new task with the same id continues
 * the fence. At a terminal a person must agree first; a script is not asked.
 */
#include "cmd/cmd.h"

struct remove_args {
	struct args args;
	int64_t yes;
};

static const struct param params[] = {
	PARAM_ID("task to remove"),
	PARAM_FORCE(
		"remove it even if other tasks depend on it, or another agent holds it (with --reason)"),
	PARAM_REASON(0, "reason, for the log"),
	LOCAL(remove, yes, "yes", P_FLAG, .letter = 'y', .flags = P_TERMINAL | P_HERE,
	      .help = "do not ask at a terminal"),
	{ 0 }
};

static enum result remove_ask(struct session *s, struct args *a, struct reply *out);
static void remove_show(const struct reply *r, struct view *v);

const struct command cmd_remove = {
	.name = "remove",
	.group = "plan",
	.summary = "remove a task from the queue",
	.detail =
		"pawl refuses (40) to remove a task that has sub-tasks or is a dependency of others. --force removes it; tasks "
		"that depend on it go to Needs Help. pawl refuses (20) to remove a task that another agent holds. --force "
		"--reason TEXT ends that lock, and the log records who overrode whom. The log and the fence stay, and `pawl undo` brings the task back. `pawl "
		"cancel` is usually the better choice. With --force you can remove a damaged record, which `pawl doctor` "
		"names, by its id or its handle bad:HASH.",
	.example = "pawl remove t1",
	.see = "cancel, update",
	.model =
		"Remove a task from the queue; cancel is usually better. MISCONFIGURED: it has sub-tasks, or "
		"others depend on it; use cancel. undo takes it back. " MODEL_HELD MODEL_LOST
			MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.args_size = sizeof(struct remove_args),
	.flags = C_WRITE | C_DESTRUCTIVE,
	.op = OP_REMOVE,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.ask = remove_ask,
	.show = remove_show,
};

bool remove_agreed(struct session *s, const struct command *c, struct strs ids)
{
	struct reply preview = { 0 };
	int said = -1;

	if (s->confirm) {
		struct str names = STR("");

		for (size_t i = 0; i < ids.n; i++)
			names = arena_printf(s->arena, "%.*s%s%.*s", STRF(names), i ? " " : "",
					     STRF(ids.v[i]));
		json_object_set_new(reply_more(&preview), "would_remove", json_str(names));
		said = s->confirm(s, c, &preview);
	}
	reply_free(&preview);
	return said;
}

enum result remove_refuse(struct reply *out)
{
	return run_fail(USAGE, STR("you did not agree; nothing was changed"),
			STR("--yes removes without asking"), out);
}

static enum result remove_ask(struct session *s, struct args *a, struct reply *out)
{
	struct strs one = { &a->rq.id, 1 };

	if (((struct remove_args *)a)->yes || a->rq.force || remove_agreed(s, &cmd_remove, one))
		return SUCCESS;
	return remove_refuse(out);
}

bool remove_preview(const struct reply *r, struct view *v)
{
	struct str ids = json_get(r->more, "would_remove");

	if (!ids.n)
		return false;
	view_text(v, YELLOW, "this removes ");
	view_data(v, BOLD, ids);
	view_text(v, DIM, "; to take it back: pawl undo ID\n");
	return true;
}

static void remove_show(const struct reply *r, struct view *v)
{
	if (remove_preview(r, v))
		return;
	show_did(r, v, "removed");
	if (v->quiet || !r->ans.task->title.n) /* a record that could not be used is gone */
		return;
	view_text(v, DIM, "to take it back: pawl undo ");
	view_data(v, DIM, r->ans.task->id);
	view_text(v, DIM, "\n");
}
