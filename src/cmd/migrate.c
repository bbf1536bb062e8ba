/*
 * pawl migrate: copies a queue with its log, locks and fences to another store. The source is only
 * read. The copy is verified against the source, also in a repeated call.
 */
#include "cmd/cmd.h"

struct migrate_args {
	struct args args;
	struct str from, to;
};

static const struct param params[] = {
	LOCAL(migrate, from, "FROM", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED | P_FILLED,
	      .value = "URI", .help = "store that has the queue"),
	LOCAL(migrate, to, "TO", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED | P_FILLED,
	      .value = "URI",
	      .help = "store that gets the queue; its queue must be empty or not exist yet"),
	{ 0 }
};

static enum result migrate_run(struct session *s, struct args *args, struct reply *out);
static void migrate_show(const struct reply *r, struct view *v);

const struct command cmd_migrate = {
	.name = "migrate",
	.group = "data",
	.summary = "copy a queue to another store",
	.detail =
		"Copies tasks, comments, log, counter, and locks with their tokens and fences, so every holder "
		"can continue in the new store. The copy is one commit; pawl compares it with the source record "
		"by record, and only "
		"reads the source. You can repeat an interrupted call. Do not change the source during the "
		"copy: later changes are not copied.",
	.example = "pawl migrate sqlite:.pawl/queue.db files:tasks\n"
		   "pawl config set store files:tasks",
	.see = "backup, export, init",
	.params = params,
	.args_size = sizeof(struct migrate_args),
	.flags = C_WRITE | C_IDEMPOTENT,
	.fails = FAILS(CONFLICT),
	.run = migrate_run,
	.show = migrate_show,
};

static enum result open_store(struct session *s, struct str uri, enum store_mode mode,
			      struct client *c, struct answer *ans)
{
	struct client_options said = s->client.said;
	enum result code;

	said.store = uri;
	code = client_init(c, &said, ans, s->arena);
	return code == SUCCESS ? client_open(c, mode, ans) : code;
}

static enum result migrate_taken(struct session *s, struct str to, struct answer *ans)
{
	return answer_fail(
		ans, CONFLICT,
		arena_printf(s->arena, "the queue of %.*s is not empty and differs from the source",
			     STRF(to)),
		STR("name an empty queue, or another --queue in that store"));
}

/* A repeated call finds the result of the earlier one, and only verifies it. */
static enum result migrate_copy(struct session *s, struct str to, struct client *target,
				struct backup *b, bool *there, struct answer *ans)
{
	struct data_progress progress = { .session = s,
					  .doing = "migrating",
					  .total = b->records + b->lines };
	struct load l = data_load(s, b, &progress);
	int64_t tasks = 0, others = 0, lines = 0;
	enum result code = queue_extent(target->conn.queue, &tasks, &others, &lines, ans, s->arena);

	if (code != SUCCESS)
		return code;
	*there = tasks || others || lines;
	queue_patience(target->conn.queue, client_timeout(target, OP_HEAVY));
	if (!*there)
		code = queue_load(target->conn.queue, &l, ans, s->arena);
	data_progress_end(&progress);
	if (code == SUCCESS)
		code = queue_verify(target->conn.queue, &l, ans, s->arena);
	return *there && code == MISCONFIGURED ? migrate_taken(s, to, ans) : code;
}

/* A failure is only a warning, because the copy is complete without the tokens. */
static void copy_tokens(struct session *s, struct client *from, struct client *to,
			struct reply *out)
{
	int r = client_copy_tokens(from, to);

	if (r)
		reply_warn(out,
			   arena_printf(s->arena,
					"the saved tokens could not be copied for the new store "
					"(%s): holders pass theirs with --token",
					strerror(-r)),
			   s->arena);
}

static enum result migrate_run(struct session *s, struct args *args, struct reply *out)
{
	const struct migrate_args *a = (const struct migrate_args *)args;
	struct client from = { 0 }, to = { 0 };
	struct answer ans = { 0 };
	struct backup b = { 0 };
	bool there = false;
	enum result code = open_store(s, a->from, STORE_READ, &from, &ans);

	if (code == SUCCESS)
		code = open_store(s, a->to, STORE_CREATE, &to, &ans);
	if (code == SUCCESS && str_eq(from.keyring.queue, to.keyring.queue))
		code = answer_fail(&ans, USAGE, STR("source and target are the same queue"),
				   STR("run `pawl help migrate`"));
	if (code == SUCCESS)
		code = backup_write(from.conn.queue, NULL, &b, &ans, s->arena);
	if (code == SUCCESS)
		code = migrate_copy(s, to.conn.config.uri, &to, &b, &there, &ans);
	if (code == SUCCESS)
		copy_tokens(s, &from, &to, out);
	backup_close(&b);
	client_close(&from);
	client_close(&to);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	json_object_set_new(reply_more(out), "tasks", json_integer(b.tasks));
	json_object_set_new(reply_more(out), "lines", json_integer((json_int_t)b.lines));
	json_object_set_new(reply_more(out), "existed", json_boolean(there));
	json_object_set_new(reply_more(out), "store",
			    json_str(uri_shown(s->arena, to.conn.config.uri)));
	return SUCCESS;
}

static void migrate_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	bool existed = json_is_true(json_object_get(o, "existed"));

	if (v->quiet)
		return;
	view_count(v, GREEN, view_int(o, "tasks"), "task");
	view_text(v, PLAIN, " and ");
	view_count(v, PLAIN, view_int(o, "lines"), "event");
	view_text(v, PLAIN, " of the log %s ", existed ? "were already in" : "are now in");
	view_data(v, BOLD, json_get(o, "store"));
	view_text(v, DIM,
		  "\nnext: pawl config set store URI, in every folder that uses the queue\n");
}
