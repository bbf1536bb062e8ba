#include "transfer/port.h"
#include "cmd/data.h"

struct import_args {
	struct args args;
	struct strs files;
	struct str format;
	int64_t skip, update, check;
};

static const struct param params[] = {
	LOCAL(import, files, "FILE", P_WORDS, .flags = P_POSITIONAL | P_REQUIRED, .value = "FILE",
	      .help = "file, or folder of Markdown files; - reads standard input"),
	PARAM_FORMAT(import),
	LOCAL(import, skip, "skip", P_FLAG, .help = "leave tasks that exist already unchanged"),
	LOCAL(import, update, "update", P_FLAG,
	      .help = "update tasks that exist already with the file's fields"),
	LOCAL(import, check, "check", P_FLAG,
	      .help = "make every check of the import, but change nothing"),
	{ 0 }
};

static enum result read_all(struct session *s, const struct import_args *a, struct port_in *in)
{
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < a->files.n; i++) {
		in->path = data_path(s, a->files.v[i]);
		code = port_read(in, port_format(a->format, in->path));
	}
	return code;
}

static enum result put_all(struct session *s, const struct import_args *a, struct spool *spool,
			   struct import *im, struct answer *ans)
{
	struct data_progress progress = { .session = s,
					  .doing = a->check ? "checking" : "importing",
					  .total = spool->n };
	enum result code = data_open(s, OP_HEAVY, ans);

	*im = (struct import){
		.n = spool->n,
		.next = spool_next,
		.rewind = spool_rewind,
		.ctx = spool,
		.progress = data_progress,
		.progress_ctx = &progress,
		.clash = a->update ? CLASH_UPDATE
			 : a->skip ? CLASH_SKIP
				   : CLASH_REFUSE,
		.check = a->check,
		.agent = s->client.agent,
		.run = s->client.run,
	};
	if (code == SUCCESS)
		code = queue_import(s->client.queue, im, ans, s->arena);
	data_progress_end(&progress);
	return code;
}

static json_t *left_out_json(const struct port_in *in)
{
	json_t *list = json_array();
	struct str more = arena_printf(in->arena, "%zu more files",
				       in->n_left_out - in->left_out.n);

	for (size_t i = 0; i < in->left_out.n; i++)
		json_array_append_new(list, json_str(in->left_out.v[i]));
	if (in->n_left_out > in->left_out.n)
		json_array_append_new(list, json_str(more));
	if (in->hidden)
		json_array_append_new(
			list, json_str(arena_printf(in->arena, "%zu hidden name%s", in->hidden,
						    in->hidden == 1 ? "" : "s")));
	return list;
}

static enum result run(struct session *s, struct args *args, struct reply *out)
{
	const struct import_args *a = (const struct import_args *)args;
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

	if (a->skip && a->update)
		return run_fail(
			USAGE, STR("--skip and --update cannot be used together: give one of them"),
			STR("run `pawl help import`"), out);
	code = read_all(s, a, &in);
	data_progress_end(&progress);
	if (code == SUCCESS)
		code = put_all(s, a, &spool, &im, &ans);
	if (a->check)
		im = (struct import){ 0 }; /* nothing was imported */
	spool_close(&spool);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	json_object_set_new(reply_more(out), "read", json_integer((json_int_t)spool.n));
	json_object_set_new(reply_more(out), "created", json_integer(im.created));
	json_object_set_new(reply_more(out), "updated", json_integer(im.updated));
	json_object_set_new(reply_more(out), "skipped", json_integer(im.skipped));
	json_object_set_new(reply_more(out), "comments", json_integer(im.comments));
	if (in.n_left_out || in.hidden)
		json_object_set_new(reply_more(out), "left_out", left_out_json(&in));
	return SUCCESS;
}

/* "FILE: why". The last entries stand for further files, too many to name, and for hidden names. */
static void show_left_out(const json_t *list, struct view *v)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		view_text(v, PLAIN, "left out: ");
		view_data(v, PLAIN, json_text(json_array_get(list, i)));
		view_text(v, PLAIN, "\n");
	}
}

static void show(const struct reply *r, struct view *v)
{
	static const char *const parts[] = { "created", "updated", "skipped" };
	const json_t *o = r->more;

	if (v->quiet)
		return;
	view_count(v, GREEN, view_int(o, "read"), "task");
	view_text(v, GREEN, " read");
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (view_int(o, parts[i]))
			view_text(v, PLAIN, ", %lld %s", (long long)view_int(o, parts[i]),
				  parts[i]);
	if (view_int(o, "comments")) {
		view_text(v, PLAIN, ", ");
		view_count(v, PLAIN, view_int(o, "comments"), "comment");
	}
	view_text(v, PLAIN, "\n");
	show_left_out(json_object_get(o, "left_out"), v);
}

const struct command cmd_import = {
	.name = "import",
	.group = "data",
	.summary = "read tasks from a file or a folder",
	.detail =
		"Reads JSON, JSON Lines, CSV, or a folder of Markdown files with YAML front matter, with its subfolders. "
		"In a folder, pawl leaves out links and files of other kinds and names them; it counts hidden names. It first reads "
		"and checks everything; then it imports all tasks in one commit, or none. A task that exists already is a "
		"CONFLICT unless you give --skip or --update. Locks are not imported, and no fence goes back.",
	.example = "pawl import tasks.json\n"
		   "pawl import tasks/\n"
		   "pawl import other.csv --update",
	.see = "export, batch add, restore",
	.params = params,
	.args_size = sizeof(struct import_args),
	.flags = C_WRITE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run,
	.show = show,
};
