/*
 * pawl values: prints the words that a completion offers. If the queue cannot be read there are
 * none: an error would end up in the command line that the user is typing.
 */
#include "cmd/completion.h"

#include "base/text.h"

struct values_args {
	struct args args;
	struct str kind;
	struct strs words;
};

static const struct param params[] = {
	LOCAL(values, kind, "KIND", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED, .value = "KIND",
	      .choices = "ids labels holders queues line",
	      .help = "ids, labels, holders, queues, or line: what can follow the words"),
	LOCAL(values, words, "WORD", P_WORDS, .flags = P_POSITIONAL | P_REST, .value = "WORD",
	      .help = "with line: the words of a command line after pawl, up to the cursor"),
	{ 0 }
};

static enum result values_run(struct session *s, struct args *args, struct reply *out);
static void values_show(const struct reply *r, struct view *v);

const struct command cmd_values = {
	.name = "values",
	.group = "setup",
	.summary = "print the words that a shell's completion offers",
	.example = "pawl values labels\n"
		   "pawl values line -- claim --t",
	.see = "completion",
	.params = params,
	.args_size = sizeof(struct values_args),
	.flags = C_IDEMPOTENT | C_HIDDEN | C_SHELL | C_LOCAL,
	.run = values_run,
	.show = values_show,
};

#define IDS_MAX 500
#define VALUES_MAX 2000

struct collecting {
	struct strs list;
	struct arena *arena;
};

/* A shell reads one value per line, so a value with a newline would become two. */
static bool on_one_line(struct str value, struct arena *a)
{
	return str_eq(text_line(a, value), value);
}

static void values_collect(void *ctx, struct str value)
{
	struct collecting *c = ctx;

	if (value.n && c->list.n < VALUES_MAX && on_one_line(value, c->arena) &&
	    !strs_have(c->list, value))
		c->list = arena_append(c->arena, c->list, arena_str(c->arena, value));
}

static void collect_task(struct collecting *c, const struct task *t, struct str kind)
{
	if (str_is(kind, "ids"))
		values_collect(c, t->id);
	for (size_t i = 0; str_is(kind, "labels") && i < t->labels.n; i++)
		values_collect(c, t->labels.v[i]);
	if (!str_is(kind, "holders"))
		return;
	values_collect(c, t->lock.holder);
	values_collect(c, t->assignee);
	values_collect(c, t->last_holder);
}

static void collect_all(struct collecting *c, struct client *client, struct str kind)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };

	if (str_is(kind, "queues")) {
		if (client_open(client, STORE_READ, &ans) == SUCCESS)
			(void)queue_names(client->conn.queue, values_collect, c, &ans, c->arena);
		return;
	}
	GIVE(&rq, limit, str_is(kind, "ids") ? IDS_MAX : 0);
	client_call(client, &rq, &ans);
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_tasks; i++)
		collect_task(c, &ans.tasks[i], kind);
}

struct strs values_of(void *client_options, const char *kind, struct arena *a)
{
	struct collecting c = { .arena = a };
	struct answer ans = { 0 };
	struct client client;

	if (client_init(&client, client_options, &ans, a) != SUCCESS)
		return c.list;
	collect_all(&c, &client, str_c(kind));
	client_close(&client);
	return c.list;
}

static json_t *list_json(struct strs list)
{
	json_t *out = json_array();

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(out, json_str(list.v[i]));
	return out;
}

static enum result values_run(struct session *s, struct args *args, struct reply *out)
{
	const struct values_args *a = (const struct values_args *)args;
	struct client_options *said = &s->client.said;
	struct candidates c;

	if (!str_is(a->kind, "line")) {
		json_object_set_new(
			reply_more(out), "values",
			list_json(values_of(said, arena_cstr(s->arena, a->kind), s->arena)));
		return SUCCESS;
	}
	c = complete_words(a->words, values_of, said, s->arena);
	json_object_set_new(reply_more(out), "values", list_json(c.words));
	json_object_set_new(reply_more(out), "about", list_json(c.about));
	json_object_set_new(reply_more(out), "folders", json_boolean(c.folders));
	return SUCCESS;
}

static void values_show(const struct reply *r, struct view *v)
{
	const json_t *list = json_object_get(r->more, "values"),
		     *about = json_object_get(r->more, "about");

	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str meaning = json_text(json_array_get(about, i));

		view_data(v, PLAIN, json_text(json_array_get(list, i)));
		view_text(v, PLAIN, "%s%.*s\n", meaning.n ? "\t" : "", STRF(meaning));
	}
	if (json_is_true(json_object_get(r->more, "folders")))
		view_text(v, PLAIN, "\tfolders\n"); /* the shell offers its own folders */
}
