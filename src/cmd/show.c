/*
 * pawl show: everything about one task. Comments, attempts and related tasks come with the same
 * call, so they belong to the same state of the task.
 */
#include "base/when.h"
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task to show"), PARAM_CACHED, { 0 } };

static enum result show_ask(struct session *s, struct args *a, struct reply *out);
static void show_tell(struct session *s, const struct args *a, struct reply *out);

const struct command cmd_show = {
	.name = "show",
	.group = "look",
	.summary = "show everything about one task",
	.detail =
		"With its sub-tasks, the tasks that it depends on and those that depend on it (up to 50 of each), its "
		"last 20 attempts with their outcomes, and all comments.",
	.example = "pawl show t1",
	.see = "list, tree, log, status",
	.model = "One task with its comments and its holder. Changes nothing. " MODEL_NOT_FOUND,
	.gives =
		"task comments came_back subtasks depends_on dependents attempts as_of cached_age_ms",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_SHOW,
	.fails = FAILS(NOT_FOUND),
	.ask = show_ask,
	.tell = show_tell,
	.show = show_details,
};

static void add_text(json_t *o, const char *key, struct str text)
{
	if (text.n)
		json_object_set_new(o, key, json_str(text));
}

static json_t *link_json(const struct task_link *l)
{
	json_t *o = json_object();

	add_text(o, "id", l->id);
	add_text(o, "title", l->title);
	if (l->status)
		json_object_set_new(o, "status", json_string(status_name(l->status)));
	add_text(o, "holder", l->holder);
	return o;
}

static json_t *attempt_json(const struct task_attempt *t, struct arena *a)
{
	json_t *o = json_object();

	add_text(o, "agent", t->agent);
	json_object_set_new(o, "fence", json_integer(t->fence));
	add_text(o, "at", when_text(a, t->at));
	if (t->ended_at)
		add_text(o, "ended_at", when_text(a, t->ended_at));
	add_text(o, "outcome", t->outcome);
	add_text(o, "text", t->text);
	return o;
}

/* Leaves out empty lists, because most tasks have none of these. */
static void add_related(json_t *o, const struct related *r, struct arena *a)
{
	static const char *const names[] = { [LINK_SUB] = "subtasks",
					     [LINK_DEPENDS] = "depends_on",
					     [LINK_DEPENDENT] = "dependents" };
	json_t *attempts = json_array();

	for (size_t i = 0; i < r->n_links; i++) {
		const char *name = names[r->links[i].kind];

		if (!json_object_get(o, name))
			json_object_set_new(o, name, json_array());
		json_array_append_new(json_object_get(o, name), link_json(&r->links[i]));
	}
	for (size_t i = 0; i < r->n_attempts; i++)
		json_array_append_new(attempts, attempt_json(&r->attempts[i], a));
	if (r->n_attempts)
		json_object_set(o, "attempts", attempts);
	json_decref(attempts);
}

/* The comments come with the task, so the caller needs no second call. */
static enum result show_ask(struct session *s, struct args *a, struct reply *out)
{
	(void)out;
	GIVE(&a->rq, view, VIEW_RELATED | (s->decisions ? VIEW_CAN : 0));
	return SUCCESS;
}

static void show_tell(struct session *s, const struct args *a, struct reply *out)
{
	(void)a;
	if (out->ans.code != SUCCESS)
		return;
	if (out->ans.related)
		add_related(reply_more(out), out->ans.related, s->arena);
	if (!out->ans.n_events)
		json_object_set_new(reply_more(out), "comments", json_array());
}
