/*
 * pawl create: makes a task in one call. With --file, or without a title at a terminal, create_run() does
 * the work instead of create_ask() and create_tell().
 */
#include "cmd/cmd.h"

struct create_args {
	struct args args;
	struct str file;
};

static const struct param params[] = {
	PARAM(title, "TITLE", P_TITLE, .flags = P_POSITIONAL | P_REQUIRED | P_ELSEWHERE,
	      .help = "title: one line", .model = "one line"),
	PARAM(title, "title", P_TITLE, .help = "the same as TITLE, as an option"),
	PARAM(id, "id", P_ID, .letter = 'i', .flags = P_SELDOM,
	      .help = "id of the task (default: the next of t1, t2, …)"),
	PARAM(status, "status", P_STATUS, .def = "Ready", .choices = "ready backlog",
	      .flags = P_SELDOM, .help = "Ready, or Backlog (not offered yet)"),
#define FIELD_CLEAR 0
#include "cmd/fields.def"
	PARAM(depends, "depends", P_IDS, .letter = 'D',
	      .help = "task that must be Done first (a dependency); may be repeated",
	      .model = "tasks that must be Done first"),
	PARAM(if_absent, "if-absent", P_FLAG, .flags = P_SELDOM,
	      .help = "with --id: succeed if the task exists already"),
	LOCAL(create, file, "file", P_NAME, .letter = 'F', .flags = P_FILLED | P_TERMINAL | P_HERE,
	      .value = "FILE",
	      .help = "create a task for each item of the Markdown list in FILE; - is standard "
		      "input"),
	{ 0 }
};

static enum result create_ask(struct session *s, struct args *a, struct reply *out);
static void create_tell(struct session *s, const struct args *a, struct reply *out);
static enum result create_run(struct session *s, struct args *a, struct reply *out);
static bool create_runs(const struct session *s, const struct args *a);
static void create_show(const struct reply *r, struct view *v);

const struct command cmd_create = {
	.name = "create",
	.group = "plan",
	.summary = "create a task",
	.detail =
		"The task gets its id from an atomic counter of the store, unless you give --id. `pawl next` offers the "
		"task once all its dependencies are Done and its time has come. Without a title, your editor opens a form if this is a terminal. With -q pawl prints only the id. --file makes several tasks "
		"in one commit: each item of a Markdown list is a task, an item inside another is its sub-task, and the "
		"text below an item is its description. Items marked with [x] are skipped.",
	.example =
		"pawl create \"Fix the parser\" --priority high --label bug\n"
		"pawl create \"Write the docs\" --depends t1 --acceptance \"make doc has no warnings\"\n"
		"id=$(pawl create -q \"Measure it\")\n"
		"pawl create --file plan.md --label release",
	.see = "update, depend, next, show",
	.model =
		"Add new work, or a part of your task (parent). First look for a duplicate: list text=WORD. Each "
		"call adds one. CONFLICT: the id exists; leave it out. NOT_FOUND: parent or depends does not "
		"exist; list finds the id.",
	.gives = "task existed",
	.params = params,
	.args_size = sizeof(struct create_args),
	.flags = C_WRITE,
	.op = OP_CREATE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.ask = create_ask,
	.tell = create_tell,
	.run = create_run,
	.runs = create_runs,
	.show = create_show,
};

/* A list in a file needs several calls, and an editor needs a terminal. */
static bool create_runs(const struct session *s, const struct args *a)
{
	return ((const struct create_args *)a)->file.n || (!HAS(&a->rq, title) && edit_can(s));
}

/* Warns if the new task differs from the request, because one of its dependencies was canceled. */
static void create_tell(struct session *s, const struct args *a, struct reply *out)
{
	const struct task *t = out->ans.task;

	(void)a;
	if (out->ans.code != SUCCESS || t->status != NEEDS_HELP || out->ans.existed)
		return;
	reply_warn(out,
		   arena_printf(s->arena, "%.*s needs help: %s", STRF(t->id),
				arena_cstr(s->arena, t->blocker_reason.n ? t->blocker_reason
									 : STR("no reason known"))),
		   s->arena);
}

static enum result create_ask(struct session *s, struct args *a, struct reply *out)
{
	const char *fault = fields_fault(&a->rq);

	if (!fault && a->rq.if_absent && !HAS(&a->rq, id))
		fault = "--if-absent needs --id: without --id, every call creates a new task";
	if (!fault && HAS(&a->rq, status) && a->rq.status != READY && a->rq.status != BACKLOG)
		fault = "--status: a new task is Ready or Backlog";
	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help create`"), out);
	if (!HAS(&a->rq, title) && !create_runs(s, a))
		return run_fail(
			USAGE, STR("create needs TITLE: title: one line"),
			STR("e.g. pawl create \"Fix the parser\" --priority high --label bug"),
			out);
	return SUCCESS;
}

static enum result create_run(struct session *s, struct args *a, struct reply *out)
{
	struct str file = ((const struct create_args *)a)->file;
	enum result code = create_ask(s, a, out);

	if (code != SUCCESS)
		return code;
	if (file.n)
		return plan_create(s, &a->rq, file, out);
	code = edit_create(s, a, out);
	create_tell(s, a, out);
	return code;
}

static void create_show(const struct reply *r, struct view *v)
{
	const struct task *t = r->ans.task;

	if (!t) {
		data_show_items(r, v);
		return;
	}
	view_text(v, GREEN, v->quiet ? "" : r->ans.existed ? "exists " : "created ");
	view_data(v, BOLD, t->id);
	if (!v->quiet) {
		view_text(v, PLAIN, "  ");
		view_data(v, PLAIN, t->title);
		if (r->ans.repeated)
			view_text(v, DIM, "  (done before; nothing changed)");
	}
	view_text(v, PLAIN, "\n");
}
