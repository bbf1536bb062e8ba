/*
 * pawl backup: saves the whole queue in one file. Without --force it replaces only an earlier
 * backup (backup_check()), never another file.
 */
#include "cmd/cmd.h"

struct backup_args {
	struct args args;
	struct strs files;
	int64_t force;
};

static const struct param params[] = {
	LOCAL(backup, files, "FILE", P_WORDS, .flags = P_POSITIONAL, .value = "FILE",
	      .help = "file to write (default: a file in .pawl/backups, named by the time)"),
	LOCAL(backup, force, "force", P_FLAG, .letter = 'f',
	      .help = "replace a link, or a file that is not a backup"),
	{ 0 }
};

static enum result backup_run(struct session *s, struct args *args, struct reply *out);
static void backup_show(const struct reply *r, struct view *v);

const struct command cmd_backup = {
	.name = "backup",
	.group = "data",
	.summary = "save the whole queue in one file",
	.detail =
		"The file holds the tasks with their locks and fences, the counter of ids and the whole log. It is a "
		"snapshot with a checksum. Other agents do not wait while pawl makes it. Tokens are in it only as hashes. "
		"An earlier backup is replaced; any other file needs --force.",
	.example = "pawl backup\n"
		   "pawl backup /srv/backups/today.pawl",
	.see = "restore, migrate, export",
	.params = params,
	.args_size = sizeof(struct backup_args),
	.fails = FAILS(CONFLICT),
	.run = backup_run,
	.show = backup_show,
};

static enum result backup_run(struct session *s, struct args *args, struct reply *out)
{
	const struct backup_args *a = (const struct backup_args *)args;
	struct answer ans = { 0 };
	struct backup b;
	char *path;

	if (a->files.n > 1)
		return run_fail(USAGE, STR("backup writes one file at most"),
				STR("run `pawl help backup`"), out);
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	if (a->files.n)
		path = data_path(s, a->files.v[0]);
	else if (backup_name(&s->client, queue_now(s->client.conn.queue), &path, &ans) != SUCCESS)
		return run_answer(&ans, out);
	if (backup_check(path, a->files.n && a->force, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	if (backup_write(s->client.conn.queue, path, &b, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	json_object_set_new(reply_more(out), "file", json_str(str_c(path)));
	json_object_set_new(reply_more(out), "tasks", json_integer(b.tasks));
	json_object_set_new(reply_more(out), "lines", json_integer((json_int_t)b.lines));
	return SUCCESS;
}

static void backup_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	if (v->quiet) {
		view_data(v, PLAIN, json_get(o, "file"));
		view_text(v, PLAIN, "\n");
		return;
	}
	view_count(v, GREEN, view_int(o, "tasks"), "task");
	view_text(v, PLAIN, " and ");
	view_count(v, PLAIN, view_int(o, "lines"), "event");
	view_text(v, PLAIN, " of the log in ");
	view_data(v, BOLD, json_get(o, "file"));
	view_text(v, PLAIN, "\n");
}
