#include "transfer/backup.h"
#include "cmd/data.h"

static const struct param params[] = {
	LOCAL(words, "FILE", P_WORDS, .flags = P_POSITIONAL, .value = "FILE",
	      .help = "where to; default: .pawl/backups, under the time"),
	{ 0 }
};

static enum result run(struct session *s, struct args *a, json_t **out)
{
	struct answer ans = { 0 };
	struct backup b;
	char *path;

	if (a->words.n > 1)
		return run_fail(s, USAGE, STR("one file at most"), STR("run `pawl help backup`"),
				out);
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, s->arena, out);
	path = a->words.n ? data_path(s, a->words.v[0])
			  : backup_name(&s->client, queue_now(s->client.queue));
	if (backup_write(s->client.queue, path, &b, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, s->arena, out);
	*out = run_success();
	json_object_set_new(*out, "file", json_str(str_c(path)));
	json_object_set_new(*out, "tasks", json_integer(b.tasks));
	json_object_set_new(*out, "lines", json_integer((json_int_t)b.lines));
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	if (v->quiet) {
		view_data(v, PLAIN, view_get(o, "file"));
		view_text(v, PLAIN, "\n");
		return;
	}
	view_count(v, GREEN, view_int(o, "tasks"), "task");
	view_text(v, PLAIN, " and %lld lines of the log in ", (long long)view_int(o, "lines"));
	view_data(v, BOLD, view_get(o, "file"));
	view_text(v, PLAIN, "\n");
}

const struct command cmd_backup = {
	.name = "backup",
	.group = "data",
	.summary = "keep all of the queue in one file",
	.detail =
		"Tasks with their locks, fences, the counter of ids and the whole log, of one state, with a checksum. "
		"Nobody waits for it. Tokens are in it only as hashes.",
	.example = "pawl backup\n"
		   "pawl backup /srv/backups/today.pawl",
	.see = "restore, migrate, export",
	.params = params,
	.run = run,
	.show = show,
};
