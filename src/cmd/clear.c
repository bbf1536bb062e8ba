/*
 * pawl clear: removes all tasks. Without --yes or --force a person must agree first. The backup is complete before the
 * first task goes, and an error there changes nothing. Saved tokens are deleted only after the commit.
 */
#include "cmd/cmd.h"
#include "queue/transfer.h"

struct clear_args {
	struct args args;
	int64_t yes, force, no_backup;
};

static const struct param params[] = {
	LOCAL(clear, yes, "yes", P_FLAG, .letter = 'y', .help = "remove the tasks without asking"),
	LOCAL(clear, force, "force", P_FLAG, .letter = 'f',
	      .help = "remove the tasks without asking, held tasks included"),
	LOCAL(clear, no_backup, "no-backup", P_FLAG, .help = "do not make a backup first"),
	{ 0 }
};

static enum result clear_run(struct session *s, struct args *args, struct reply *out);
static void clear_show(const struct reply *r, struct view *v);

const struct command cmd_clear = {
	.name = "clear",
	.group = "data",
	.summary = "remove all tasks",
	.detail =
		"pawl asks first, unless you give --yes, and makes a backup, which it names; `pawl restore` loads it. If an agent holds one of the tasks, nothing is removed (40) "
		"without --force. The log and the fences stay: a new task with an old id continues its fence.",
	.example = "pawl clear --yes",
	.see = "backup, restore, remove, archive",
	.params = params,
	.args_size = sizeof(struct clear_args),
	.flags = C_WRITE | C_DESTRUCTIVE | C_IDEMPOTENT,
	.run = clear_run,
	.show = clear_show,
};

static enum result clear_overview(struct session *s, struct answer *ans)
{
	struct request rq = { .op = OP_OVERVIEW };

	client_call(&s->client, &rq, ans);
	return ans->code;
}

static bool clear_agreed(struct session *s, const struct clear_args *a, int64_t total)
{
	struct reply preview = { 0 };
	int said;

	if (a->yes || a->force || !total)
		return true;
	json_object_set_new(reply_more(&preview), "would_remove", json_integer(total));
	said = s->confirm ? s->confirm(s, &cmd_clear, &preview) : -1;
	reply_free(&preview);
	return said > 0;
}

/* An earlier backup is never replaced. */
static enum result clear_backup(struct session *s, char **path, struct answer *ans)
{
	struct client *c = &s->client;
	enum result code = data_free_name(c, path, ans);
	struct backup b;

	if (code == SUCCESS)
		code = backup_write(c->conn.queue, *path, &b, ans, s->arena);
	if (code != SUCCESS)
		ans->hint =
			STR("nothing was changed; --no-backup clears the queue without a backup");
	return code;
}

static enum result clear_run(struct session *s, struct args *args, struct reply *out)
{
	const struct clear_args *a = (const struct clear_args *)args;
	struct answer ans = { 0 }, locks;
	enum result code = clear_overview(s, &ans);
	int64_t n = 0, total = ans.total;
	char *path = NULL;

	if (code != SUCCESS)
		return run_answer(&ans, out);
	if (!clear_agreed(s, a, total))
		return run_fail(
			USAGE,
			arena_printf(s->arena,
				     "pawl clear would remove %lld task%s; nothing was changed",
				     (long long)total, total == 1 ? "" : "s"),
			STR("to remove them: pawl clear --yes, which makes a backup first"), out);
	locks = data_locks(s);
	code = data_open(s, OP_HEAVY, &ans);
	if (code == SUCCESS && total && !a->no_backup)
		code = clear_backup(s, &path, &ans);
	if (code == SUCCESS)
		code = queue_clear(s->client.conn.queue, a->force, s->client.self.agent,
				   s->client.self.run, &n, &ans, s->arena);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	data_forget(s, &locks);
	json_object_set_new(reply_more(out), "removed", json_integer(n));
	if (path)
		json_object_set_new(reply_more(out), "backup", json_str(str_c(path)));
	return SUCCESS;
}

static void clear_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	if (v->quiet)
		return;
	if (json_object_get(o, "would_remove")) {
		view_text(v, YELLOW, "this removes all tasks: %lld\n",
			  (long long)view_int(o, "would_remove"));
		return;
	}
	view_count(v, GREEN, view_int(o, "removed"), "task");
	view_text(v, GREEN, " removed\n");
	if (!json_get(o, "backup").n)
		return;
	view_text(v, PLAIN, "backup: ");
	view_data(v, PLAIN, json_get(o, "backup"));
	view_text(v, DIM, "\nto take it back: pawl restore FILE --force\n");
}
