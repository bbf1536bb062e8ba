#include "transfer/port.h"
#include "cmd/data.h"

static const struct param params[] = {
	LOCAL(words, "FILE", P_WORDS, .flags = P_POSITIONAL | P_REQUIRED, .value = "FILE",
	      .help = "file, or folder of Markdown files; - reads standard input"),
	PARAM_FORMAT,
	LOCAL(data.skip, "skip", P_FLAG, .help = "leave tasks that are there already as they are"),
	LOCAL(data.update, "update", P_FLAG,
	      .help = "give tasks that are there already the file's fields"),
	LOCAL(data.check, "check", P_FLAG, .help = "only read it and say what is wrong"),
	{ 0 }
};

static enum result read_all(struct session *s, const struct args *a, struct port_in *in)
{
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < a->words.n; i++) {
		in->path = data_path(s, a->words.v[i]);
		code = port_read(in, port_format(a->data.format, in->path));
	}
	return code;
}

static enum result put_all(struct session *s, const struct args *a, struct spool *spool,
			   struct import *im, struct answer *ans)
{
	struct data_progress progress = { .session = s, .doing = "importing", .total = spool->n };
	enum result code = data_open(s, OP_HEAVY, ans);

	*im = (struct import){
		.n = spool->n,
		.next = spool_next,
		.rewind = spool_rewind,
		.ctx = spool,
		.progress = data_progress,
		.progress_ctx = &progress,
		.clash = a->data.update ? CLASH_UPDATE
			 : a->data.skip ? CLASH_SKIP
					: CLASH_REFUSE,
		.agent = s->client.agent,
		.run = s->client.run,
	};
	if (code == SUCCESS)
		code = queue_import(s->client.queue, im, ans, s->arena);
	data_progress_end(&progress);
	return code;
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	struct data_progress progress = { .session = s, .doing = "reading" };
	struct answer ans = { 0 };
	struct spool spool = { 0 };
	struct port_in in = { .spool = &spool,
			      .ans = &ans,
			      .arena = s->arena,
			      .progress = data_progress,
			      .ctx = &progress };
	struct import im = { 0 };
	enum result code;

	if (a->data.skip && a->data.update)
		return run_fail(s, USAGE, STR("--skip and --update do not go together"),
				STR("run `pawl help import`"), out);
	code = read_all(s, a, &in);
	data_progress_end(&progress);
	if (code == SUCCESS && !a->data.check)
		code = put_all(s, a, &spool, &im, &ans);
	spool_close(&spool);
	if (code != SUCCESS)
		return run_answer(&ans, s->arena, out);
	*out = run_success();
	json_object_set_new(*out, "read", json_integer((json_int_t)spool.n));
	json_object_set_new(*out, "created", json_integer(im.created));
	json_object_set_new(*out, "updated", json_integer(im.updated));
	json_object_set_new(*out, "skipped", json_integer(im.skipped));
	json_object_set_new(*out, "comments", json_integer(im.comments));
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	static const char *const parts[] = { "created", "updated", "skipped", "comments" };

	if (v->quiet)
		return;
	view_count(v, GREEN, view_int(o, "read"), "task");
	view_text(v, GREEN, " read");
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (view_int(o, parts[i]))
			view_text(v, PLAIN, ", %lld %s", (long long)view_int(o, parts[i]),
				  parts[i]);
	view_text(v, PLAIN, "\n");
}

const struct command cmd_import = {
	.name = "import",
	.group = "data",
	.summary = "read tasks from a file or a folder",
	.detail =
		"JSON, JSON Lines, CSV, or a folder of Markdown files with YAML front matter. All of it is read and "
		"checked first; then all of it comes in, in one commit, or nothing. A task that is there already is a "
		"CONFLICT unless --skip or --update says what to do. Locks do not come in, and no fence goes back.",
	.example = "pawl import tasks.json\n"
		   "pawl import tasks/\n"
		   "pawl import other.csv --update",
	.see = "export, batch add, restore",
	.params = params,
	.flags = C_WRITE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run,
	.show = show,
};
