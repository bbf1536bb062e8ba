#include "cmd/fields.h"

static const struct param params[] = {
	PARAM(title, "TITLE", P_TITLE, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "one line that says what it is"),
	PARAM(title, "title", P_TITLE, .help = "the same, as an option"),
	PARAM(id, "id", P_ID, .letter = 'i', .help = "its id; default: the next of t1, t2, …"),
	PARAM(status, "status", P_STATUS, .def = "Ready",
	      .help = "Ready, or Backlog: not to be offered yet"),
	FIELD_PARAMS(0),
	PARAM(depends, "depends", P_IDS, .letter = 'D',
	      .help = "task that must be Done first; may be repeated"),
	PARAM(if_absent, "if-absent", P_FLAG,
	      .help = "with --id: the task that is there already is fine"),
	{ 0 }
};

static enum result run(struct session *s, struct args *a, json_t **out)
{
	const char *fault = fields_fault(&a->rq);

	if (!fault && a->rq.if_absent && !HAS(&a->rq, id))
		fault = "--if-absent needs --id: without it, every task gets an id of its own";
	if (!fault && HAS(&a->rq, status) && a->rq.status != READY && a->rq.status != BACKLOG)
		fault = "--status: a new task is Ready or Backlog";
	if (fault)
		return run_fail(s, USAGE, str_c(fault), STR("run `pawl help create`"), out);
	return run_op(s, a, out);
}

static void show(const json_t *o, struct view *v)
{
	const json_t *t = json_object_get(o, "task");
	bool existed = json_is_true(json_object_get(o, "existed"));

	view_text(v, GREEN, v->quiet ? "" : existed ? "exists " : "created ");
	view_data(v, BOLD, view_get(t, "id"));
	if (!v->quiet) {
		view_text(v, PLAIN, "  ");
		view_data(v, PLAIN, view_get(t, "title"));
		if (json_is_true(json_object_get(o, "repeated")))
			view_text(v, DIM, "  (done before; nothing changed)");
	}
	view_text(v, PLAIN, "\n");
}

const struct command cmd_create = {
	.name = "create",
	.group = "plan",
	.summary = "add a task",
	.detail =
		"The task gets an id from a counter that is atomic in the store, unless one is given. It is "
		"offered by `pawl next` once every task that it depends on is Done and its time has come. With "
		"-q only the id is printed.",
	.example =
		"pawl create \"Fix the parser\" --priority high --label bug\n"
		"pawl create \"Write the docs\" --depends t1 --acceptance \"make doc has no warnings\"\n"
		"id=$(pawl create -q \"Measure it\")",
	.see = "update, depend, next, show",
	.params = params,
	.flags = C_WRITE,
	.op = OP_CREATE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run,
	.show = show,
};
