#include "cmd/fields.h"

static const struct param params[] = {
	PARAM(title, "TITLE", P_TITLE, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "one line that says what it is"),
	PARAM(title, "title", P_TITLE, .help = "the same, as an option"),
	PARAM(id, "id", P_ID, .letter = 'i', .help = "its id; default: the next of t1, t2, …"),
	PARAM(status, "status", P_STATUS, .def = "Ready", .choices = "ready backlog",
	      .help = "Ready, or Backlog: not to be offered yet"),
	FIELD_PARAMS(0),
	PARAM(depends, "depends", P_IDS, .letter = 'D',
	      .help = "task that must be Done first; may be repeated",
	      .model = "tasks that must be Done first"),
	PARAM(if_absent, "if-absent", P_FLAG,
	      .help = "with --id: the task that is there already is fine"),
	{ 0 }
};

/* A new task that is not what was asked for: a dependency of it was canceled. */
static void warn(struct session *s, json_t *o)
{
	const json_t *t = json_object_get(o, "task");
	const char *status = view_get(t, "status"), *reason = view_get(t, "blocker_reason");
	json_t *warnings = json_object_get(o, "warnings");

	if (!status || strcmp(status, "Needs Help") != 0 ||
	    json_is_true(json_object_get(o, "existed")))
		return;
	if (!warnings) {
		warnings = json_array();
		json_object_set_new(o, "warnings", warnings);
	}
	json_array_append_new(
		warnings, json_str(arena_printf(s->arena, "%s needs help: %s", view_get(t, "id"),
						reason ? reason : "no reason known")));
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	const char *fault = fields_fault(&a->rq);
	enum result code;

	if (!fault && a->rq.if_absent && !HAS(&a->rq, id))
		fault = "--if-absent needs --id: without it, every task gets an id of its own";
	if (!fault && HAS(&a->rq, status) && a->rq.status != READY && a->rq.status != BACKLOG)
		fault = "--status: a new task is Ready or Backlog";
	if (fault)
		return run_fail(s, USAGE, str_c(fault), STR("run `pawl help create`"), out);
	code = run_op(s, a, out);
	if (code == SUCCESS)
		warn(s, *out);
	return code;
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
	.model =
		"Add a task: new work that you found, or a part of yours (parent). It is Ready, held by nobody, and offered once what "
		"it depends on is Done. CONFLICT: the id exists. Each call adds one.",
	.gives = "task existed",
	.params = params,
	.flags = C_WRITE,
	.op = OP_CREATE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run,
	.show = show,
};
