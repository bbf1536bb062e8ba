/*
 * pawl restore: replaces the queue by a backup, in one commit. The locks in the backup end, and no
 * fence goes back, so an old token never works again.
 */
#include "cmd/cmd.h"

struct restore_args {
	struct args args;
	struct strs files;
	int64_t force;
};

static const struct param params[] = {
	LOCAL(restore, files, "FILE", P_WORDS, .flags = P_POSITIONAL | P_REQUIRED, .value = "FILE",
	      .help = "file that `pawl backup` wrote"),
	LOCAL(restore, force, "force", P_FLAG, .letter = 'f',
	      .help = "replace the tasks of the queue, even if some are held"),
	{ 0 }
};

static enum result restore_run(struct session *s, struct args *args, struct reply *out);
static void restore_show(const struct reply *r, struct view *v);

const struct command cmd_restore = {
	.name = "restore",
	.group = "data",
	.summary = "replace the queue by a backup",
	.detail =
		"pawl first reads and checks the whole file; then one commit restores the queue. Locks in the backup end: "
		"their tokens get LOST_LOCK, and agents must claim again. No fence goes back: each rises above every "
		"fence that pawl can have granted since the backup. The log continues. A queue with tasks needs --force.",
	.example = "pawl restore /srv/backups/today.pawl\n"
		   "pawl restore .pawl/backups/2026-02-06T10-30-00.000Z.pawl --force",
	.see = "backup, import, clear",
	.params = params,
	.args_size = sizeof(struct restore_args),
	.flags = C_WRITE | C_DESTRUCTIVE,
	.fails = FAILS(CONFLICT),
	.run = restore_run,
	.show = restore_show,
};

static enum result restore_load(struct session *s, bool force, struct backup *b, size_t *tasks,
				size_t *left_out, struct answer *ans)
{
	struct data_progress progress = { .session = s,
					  .doing = "restoring",
					  .total = b->records + b->lines };
	struct load l = data_load(s, b, &progress);
	int64_t there = 0, others = 0, lines = 0;
	enum result code = data_open(s, OP_HEAVY, ans);

	l.restore = true;
	l.force = force;
	if (code == SUCCESS)
		code = queue_extent(s->client.conn.queue, &there, &others, &lines, ans, s->arena);
	if (code == SUCCESS && there && !force)
		return answer_fail(ans, CONFLICT,
				   arena_printf(s->arena,
						"the queue is not empty: it has %lld task%s",
						(long long)there, there == 1 ? "" : "s"),
				   STR("to save them: pawl backup; to replace them: --force"));
	if (code == SUCCESS)
		code = queue_load(s->client.conn.queue, &l, ans, s->arena);
	*tasks = l.tasks;
	*left_out = l.left_out;
	data_progress_end(&progress);
	return code;
}

static enum result restore_run(struct session *s, struct args *args, struct reply *out)
{
	const struct restore_args *a = (const struct restore_args *)args;
	struct answer ans = { 0 }, locks = { 0 };
	struct backup b;
	size_t tasks = 0, left_out = 0;
	enum result code;

	if (a->files.n > 1)
		return run_fail(USAGE, STR("restore reads exactly one file"),
				STR("run `pawl help restore`"), out);
	code = backup_open(&b, data_path(s, a->files.v[0]), &ans, s->arena);
	if (code == SUCCESS) {
		locks = data_locks(s);
		code = restore_load(s, a->force, &b, &tasks, &left_out, &ans);
	}
	backup_close(&b);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	data_forget(s, &locks);
	json_object_set_new(reply_more(out), "tasks", json_integer((json_int_t)tasks));
	if (left_out)
		reply_warn(out,
			   arena_printf(s->arena,
					"%zu damaged records and lines of the backup were left out",
					left_out),
			   s->arena);
	return SUCCESS;
}

static void restore_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	if (v->quiet)
		return;
	view_count(v, GREEN, view_int(o, "tasks"), "task");
	view_text(v, GREEN, " restored\n");
}
