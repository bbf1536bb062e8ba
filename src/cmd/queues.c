/*
 * pawl queues: lists the queues of the store. A caller that is bound to one queue sees only that
 * queue.
 */
#include <stdlib.h>

#include "client/redact.h"
#include "cmd/command.h"

static enum result queues_run(struct session *s, struct args *a, struct reply *out);
static void queues_show(const struct reply *r, struct view *v);

const struct command cmd_queues = {
	.name = "queues",
	.group = "look",
	.summary = "list the queues of the store",
	.detail =
		"An asterisk marks the queue that commands use here. --queue, PAWL_QUEUE or the setting queue chooses "
		"another one; `pawl init --queue NAME` makes one.",
	.example = "pawl queues\n"
		   "pawl queues --store git:origin",
	.see = "init, status, config set",
	.flags = C_IDEMPOTENT,
	.run = queues_run,
	.show = queues_show,
};

struct names {
	struct arena *arena;
	struct str only; /* empty: all */
	struct strs list;
};

static void add_name(void *ctx, struct str name)
{
	struct names *x = ctx;

	if (!x->only.n || str_eq(name, x->only))
		x->list = arena_append(x->arena, x->list, arena_str(x->arena, name));
}

static int queues_compare(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum result queues_run(struct session *s, struct args *a, struct reply *out)
{
	struct names x = { .arena = s->arena, .only = s->client.self.only_queue };
	struct answer ans = { 0 };
	struct str current = client_queue_name(&s->client);
	json_t *list;

	(void)a;
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS ||
	    queue_names(s->client.conn.queue, add_name, &x, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	if (x.list.n)
		qsort(x.list.v, x.list.n, sizeof(*x.list.v), queues_compare);
	list = json_array();
	for (size_t i = 0; i < x.list.n; i++)
		json_array_append_new(list, json_pack("{s:o, s:b}", "name", json_str(x.list.v[i]),
						      "current", str_eq(x.list.v[i], current)));
	json_object_set_new(reply_more(out), "store", json_str(redact_store(&s->client, s->arena)));
	json_object_set_new(reply_more(out), "queues", list);
	return SUCCESS;
}

static void queues_show(const struct reply *r, struct view *v)
{
	const json_t *list = json_object_get(r->more, "queues");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *q = json_array_get(list, i);
		bool current = json_is_true(json_object_get(q, "current"));

		if (!v->quiet)
			view_text(v, GREEN, current ? "* " : "  ");
		view_data(v, current ? BOLD : PLAIN, json_get(q, "name"));
		view_text(v, PLAIN, "\n");
	}
	if (!v->quiet && !json_array_size(list))
		view_text(v, DIM, "this store cannot list its queues\n");
}
