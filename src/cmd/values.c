#include "cmd/values.h"

#include "base/text.h"
#include "cmd/command.h"

#define IDS_MAX 500
#define VALUES_MAX 2000

struct values_args {
	struct args args;
	struct str kind;
};

static const struct param params[] = {
	LOCAL(values, kind, "KIND", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED, .value = "KIND",
	      .choices = "ids labels holders queues", .help = "ids, labels, holders or queues"),
	{ 0 }
};

struct collecting {
	struct strs list;
	struct arena *arena;
};

/* A shell reads one value from each line, so a value with a newline would become two. */
static bool on_one_line(struct str value, struct arena *a)
{
	return str_eq(text_line(a, value), value);
}

static void collect(void *ctx, struct str value)
{
	struct collecting *c = ctx;

	if (value.n && c->list.n < VALUES_MAX && on_one_line(value, c->arena) &&
	    !strs_have(c->list, value))
		c->list = arena_append(c->arena, c->list, arena_str(c->arena, value));
}

static void collect_task(struct collecting *c, const struct task *t, struct str kind)
{
	if (str_is(kind, "ids"))
		collect(c, t->id);
	for (size_t i = 0; str_is(kind, "labels") && i < t->labels.n; i++)
		collect(c, t->labels.v[i]);
	if (!str_is(kind, "holders"))
		return;
	collect(c, t->lock.holder);
	collect(c, t->assignee);
	collect(c, t->last_holder);
}

struct strs values_of(struct client *client, struct str kind, struct arena *a)
{
	struct collecting c = { .arena = a };
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };

	if (str_is(kind, "queues")) {
		if (client_open(client, STORE_READ, &ans) == SUCCESS)
			(void)queue_names(client->queue, collect, &c, &ans, a);
		return c.list;
	}
	GIVE(&rq, limit, str_is(kind, "ids") ? IDS_MAX : 0);
	client_call(client, &rq, &ans);
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_tasks; i++)
		collect_task(&c, &ans.tasks[i], kind);
	return c.list;
}

static enum result run(struct session *s, struct args *args, struct reply *out)
{
	const struct values_args *a = (const struct values_args *)args;
	struct strs list = values_of(&s->client, a->kind, s->arena);
	json_t *values = json_array();

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(values, json_str(list.v[i]));
	json_object_set_new(reply_more(out), "values", values);
	return SUCCESS;
}

static void show(const struct reply *r, struct view *v)
{
	const json_t *list = json_object_get(r->more, "values");

	for (size_t i = 0; i < json_array_size(list); i++) {
		view_data(v, PLAIN, json_text(json_array_get(list, i)));
		view_text(v, PLAIN, "\n");
	}
}

const struct command cmd_values = {
	.name = "values",
	.group = "setup",
	.summary = "print the ids, labels, holders or queues for a shell's completion",
	.example = "pawl values labels",
	.see = "completion",
	.params = params,
	.args_size = sizeof(struct values_args),
	.flags = C_IDEMPOTENT | C_HIDDEN | C_SHELL,
	.run = run,
	.show = show,
};
