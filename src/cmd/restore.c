#include "transfer/backup.h"
#include "cmd/data.h"

static const struct param params[] = {
	LOCAL(words, "FILE", P_WORDS, .flags = P_POSITIONAL | P_REQUIRED, .value = "FILE",
	      .help = "what `pawl backup` made"),
	LOCAL(data.force, "force", P_FLAG, .letter = 'f',
	      .help = "in the place of the tasks that are there, even if some are held"),
	{ 0 }
};

static enum result load(struct session *s, const struct args *a, struct backup *b,
			struct answer *ans)
{
	struct data_progress progress = { .session = s,
					  .doing = "restoring",
					  .total = b->records + b->lines };
	struct load l = { .records = b->records,
			  .lines = b->lines,
			  .made_at = b->made_at,
			  .next = backup_next,
			  .rewind = backup_rewind,
			  .ctx = b,
			  .progress = data_progress,
			  .progress_ctx = &progress,
			  .restore = true,
			  .force = a->data.force,
			  .agent = s->client.agent,
			  .run = s->client.run };
	int64_t tasks = 0, others = 0, lines = 0;
	enum result code = data_open(s, OP_HEAVY, ans);

	if (code == SUCCESS)
		code = queue_extent(s->client.queue, &tasks, &others, &lines, ans, s->arena);
	if (code == SUCCESS && tasks && !a->data.force)
		return answer_fail(
			ans, CONFLICT,
			arena_printf(s->arena, "there are %lld tasks in the queue",
				     (long long)tasks),
			STR("pawl backup keeps them; --force puts the backup in their place"));
	if (code == SUCCESS)
		code = queue_load(s->client.queue, &l, ans, s->arena);
	data_progress_end(&progress);
	return code;
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	struct answer ans = { 0 }, locks = { 0 };
	struct backup b;
	enum result code;

	if (a->words.n > 1)
		return run_fail(s, USAGE, STR("one file only"), STR("run `pawl help restore`"),
				out);
	code = backup_open(&b, data_path(s, a->words.v[0]), &ans, s->arena);
	if (code == SUCCESS) {
		locks = data_locks(s);
		code = load(s, a, &b, &ans);
	}
	backup_close(&b);
	if (code != SUCCESS)
		return run_answer(&ans, s->arena, out);
	data_forget(s, &locks);
	*out = run_success();
	json_object_set_new(*out, "tasks", json_integer(b.tasks));
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	if (v->quiet)
		return;
	view_count(v, GREEN, view_int(o, "tasks"), "task");
	view_text(v, GREEN, " restored\n");
}

const struct command cmd_restore = {
	.name = "restore",
	.group = "data",
	.summary = "go back to a backup",
	.detail =
		"The file is read to its end and checked first; then the queue becomes what it was, in one commit. "
		"Locks of that time end: tokens get LOST_LOCK, and who works claims again. No fence goes back: "
		"each goes up by more than can have been given out since. The log goes on. A queue with tasks in it "
		"needs --force.",
	.example = "pawl restore /srv/backups/today.pawl\n"
		   "pawl restore .pawl/backups/2026-02-06T10-30-00.000Z.pawl --force",
	.see = "backup, import, clear",
	.params = params,
	.flags = C_WRITE | C_DESTRUCTIVE,
	.fails = FAILS(CONFLICT),
	.run = run,
	.show = show,
};
