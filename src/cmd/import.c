/*
 * pawl import: brings tasks from a file or from another program into the queue. It reads and checks
 * all files before it opens the queue for the change, and then imports all tasks in one commit, or
 * none.
 */
#include "base/fs.h"
#include "cmd/cmd.h"
#include "transfer/foreign.h"

struct import_args {
	struct args args;
	struct strs files;
	struct str format, from;
	int64_t skip, update, check, strict, all, ordered;
};

static const struct param params[] = {
	LOCAL(import, files, "FILE", P_WORDS, .flags = P_POSITIONAL, .value = "FILE",
	      .help = "file, or folder of Markdown files; - reads standard input"),
	PARAM_FORMAT(import),
	LOCAL(import, from, "from", P_CHOICE, .choices = foreign_choices, .value = "PROGRAM",
	      .help = "the program that wrote the tasks; without a FILE, pawl looks where it usually keeps them"),
	LOCAL(import, skip, "skip", P_FLAG, .help = "leave tasks that exist already unchanged"),
	LOCAL(import, update, "update", P_FLAG,
	      .help = "update tasks that exist already with the file's fields; with --from, only with fields that changed there"),
	LOCAL(import, check, "check", P_FLAG,
	      .help = "make every check of the import, but change nothing"),
	LOCAL(import, strict, "strict", P_FLAG,
	      .help = "with --from: refuse links to tasks that do not exist, instead of a warning"),
	LOCAL(import, all, "all", P_FLAG,
	      .help = "with --from beads: also ephemeral issues, and those of agents, messages, events and gates"),
	LOCAL(import, ordered, "ordered", P_FLAG,
	      .help = "with --from markdown: each item waits for the item before it"),
	{ 0 }
};

static enum result import_run(struct session *s, struct args *args, struct reply *out);
static void import_show_result(const struct reply *r, struct view *v);

const struct command cmd_import = {
	.name = "import",
	.group = "data",
	.summary = "read tasks from a file or a folder",
	.detail =
		"Reads JSON, JSON Lines, CSV, or a folder of Markdown files with YAML front matter, with its subfolders. "
		"In a folder, pawl skips links and files of other kinds, and lists them. It skips hidden files, "
		"too, and reports only their number. It first reads and checks everything; then it imports all "
		"tasks in one commit, or none. A task that exists already is a "
		"CONFLICT unless you give --skip or --update. Locks are not imported, and no fence goes back.\n\n"
		"With --from it reads another program's tasks; pawl also recognises most such files without "
		"--from. pawl keeps unknown keys in `extra`, and the task's origin in extra.source. A later "
		"--update imports only the fields that have changed in the other program, and keeps changes "
		"made in pawl. A link to a task that "
		"does not exist is a warning. --check shows the tasks that would be imported, or all reasons "
		"why the import would be refused.",
	.example = "pawl import tasks.json\n"
		   "pawl import tasks/\n"
		   "pawl import other.csv --update\n"
		   "pawl import --from beads --check\n"
		   "task export | pawl import --from taskwarrior -",
	.see = "export, batch add, restore",
	.params = params,
	.args_size = sizeof(struct import_args),
	.flags = C_WRITE,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = import_run,
	.show = import_show_result,
};

/* Without a FILE: finds the folder in which the program keeps its tasks, here or above, up to the
 * repository's root. */
static struct str usual_place(struct session *s, const struct foreign *from)
{
	const char *here = data_path(s, STR("."));
	char *real = fs_real(s->arena, here);
	struct str dir = real ? str_c(real) : STR("");
	bool inside = false;

	for (struct str d = dir; d.n > 1 && !inside; d = fs_dirname(d))
		inside = fs_exists(fs_join(s->arena, d, STR(".git")));
	if (strcmp(foreign_path(from, here, s->arena), here))
		return str_c(here);
	for (; inside && dir.n > 1; dir = fs_dirname(dir)) {
		char *folder = arena_cstr(s->arena, dir);

		if (strcmp(foreign_path(from, folder, s->arena), folder))
			return str_c(folder);
		inside = !fs_exists(fs_join(s->arena, dir, STR(".git")));
	}
	return STR("");
}

static enum result read_all(struct session *s, const struct import_args *a, struct port_in *in)
{
	struct str usual = a->files.n ? STR("") : usual_place(s, in->foreign->from);
	struct strs files = a->files.n ? a->files : (struct strs){ &usual, 1 };
	enum result code = SUCCESS;

	for (size_t i = 0; code == SUCCESS && i < files.n; i++) {
		in->path = data_path(s, files.v[i]);
		if (in->foreign)
			in->path = foreign_path(in->foreign->from, in->path, s->arena);
		if (!strncmp(in->path, "./", 2))
			in->path += 2;
		code = port_read(in, port_format(a->format, in->path));
		if (in->check && in->n_refusals && code == MISCONFIGURED) {
			/* in->refused has the refusal; the next file, or the queue, may refuse
			 * more */
			*in->ans = (struct answer){ 0 };
			code = SUCCESS;
		}
	}
	return code;
}

/* The program that wrote the tasks: the one in --from, or recognised by the first file. NULL: pawl,
 * or unknown. */
static const struct foreign *import_writer(struct session *s, const struct import_args *a)
{
	const char *path = a->files.n ? data_path(s, a->files.v[0]) : ".";

	if (a->from.n)
		return foreign_find(a->from);
	return a->format.n || !strcmp(path, "-") ? NULL : foreign_recognise(path);
}

static enum result is_in_queue(void *ctx, struct str id, struct answer *ans)
{
	struct session *s = ctx;
	struct request rq = { .op = OP_SHOW };
	struct answer said = { 0 };

	GIVE(&rq, id, id);
	client_call(&s->client, &rq, &said);
	if (said.code == USAGE) /* no task can have this id */
		return NOT_FOUND;
	if (said.code != SUCCESS && said.code != NOT_FOUND)
		*ans = said;
	return said.code;
}

/* Replaces the spool by one without links to tasks that do not exist. */
static enum result repair_links(struct session *s, const struct import_args *a, struct port_in *in)
{
	struct spool repaired = { 0 };
	enum result code = foreign_links(in, &repaired, a->strict, is_in_queue, s);

	spool_close(in->spool);
	*in->spool = repaired;
	return code;
}

static enum clash import_clash(const struct import_args *a, bool foreign)
{
	if (a->update)
		return foreign ? CLASH_MERGE : CLASH_UPDATE;
	return a->skip ? CLASH_SKIP : CLASH_REFUSE;
}

static enum result put_all(struct session *s, const struct import_args *a, struct port_in *in,
			   struct import *im)
{
	struct spool *spool = in->spool;
	struct data_progress progress = { .session = s,
					  .doing = a->check ? "checking" : "importing",
					  .total = spool->n };
	enum result code;

	*im = (struct import){
		.n = spool->n,
		.next = spool_next,
		.rewind = spool_rewind,
		.ctx = spool,
		.progress = data_progress,
		.progress_ctx = &progress,
		.clash = import_clash(a, in->foreign),
		.check = a->check,
		.agent = s->client.self.agent,
		.run = s->client.self.run,
	};
	code = queue_import(s->client.conn.queue, im, in->ans, s->arena);
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

/* --- the report of an import from another program --------------------------------------------------- */

static json_t *strs_json(struct strs list)
{
	json_t *out = json_array();

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(out, json_str(list.v[i]));
	return out;
}

static json_t *preview_json(const struct foreign_in *f)
{
	json_t *out = json_array();

	for (size_t i = 0; i < f->n_first; i++) {
		const struct task *t = &f->first[i];
		json_t *o = json_object();

		json_object_set_new(o, "id", json_str(t->id));
		json_object_set_new(o, "status", json_string(status_name(t->status)));
		json_object_set_new(o, "priority", json_integer(t->priority));
		json_object_set_new(o, "title", json_str(t->title));
		if (t->parent.n)
			json_object_set_new(o, "parent", json_str(t->parent));
		if (t->depends.n)
			json_object_set_new(o, "depends", strs_json(t->depends));
		json_array_append_new(out, o);
	}
	return out;
}

static void import_warn(const struct foreign_in *f, struct arena *a, struct reply *out)
{
	for (size_t i = 0; i < f->warnings.n; i++)
		reply_warn(out, f->warnings.v[i], a);
	if (f->n_warnings > f->warnings.n)
		reply_warn(out, arena_printf(a, "%zu more warnings", f->n_warnings - f->warnings.n),
			   a);
}

/* Answers with all refusals, first those of the files, then those of the queue. The first is the
 * error, and the others are warnings. */
static enum result import_refuse(struct port_in *in, enum result code, struct reply *out)
{
	struct answer ans = in->n_refusals ? in->refused : *in->ans;
	struct strs all = in->refusals;
	json_t *list = json_array();
	struct arena *a = in->arena;

	if (code != SUCCESS && !(in->n_refusals && str_eq(ans.message, in->ans->message)))
		all = arena_append(a, all, in->ans->message);
	for (size_t i = 0; i < in->ans->warnings.n; i++)
		all = arena_append(a, all, in->ans->warnings.v[i]);
	if (in->n_refusals > in->refusals.n)
		all = arena_append(a, all,
				   arena_printf(a, "%zu more refusals of the files",
						in->n_refusals - in->refusals.n));
	ans.warnings = (struct strs){ 0 };
	run_answer(&ans, out);
	for (size_t i = 0; i < all.n; i++) {
		json_array_append_new(list, json_str(all.v[i]));
		if (i)
			reply_warn(out, all.v[i], a);
	}
	json_object_set_new(reply_more(out), "refusals", list);
	return ans.code;
}

static void import_report(const struct foreign_in *f, bool preview, struct arena *a, json_t *more)
{
	json_t *statuses = json_object(), *dropped = json_object();

	for (size_t i = 0; i < STATUS_END; i++)
		if (f->by_status[i])
			json_object_set_new(statuses, status_name((int64_t)i),
					    json_integer((json_int_t)f->by_status[i]));
	for (size_t i = 0; i < f->dropped.n; i++)
		json_object_set_new(dropped, arena_cstr(a, f->dropped.v[i]),
				    json_integer((json_int_t)f->n_dropped[i]));
	json_object_set_new(more, "from", json_string(f->from->name));
	json_object_set_new(more, "by_status", statuses);
	json_object_set_new(more, "dropped", dropped);
	if (preview)
		json_object_set_new(more, "preview", preview_json(f));
}

static void show_preview(const json_t *list, int64_t all, struct view *v)
{
	static const char *const heads[] = { "ID", "STATUS", "PRIORITY", "TITLE" };
	size_t n = json_array_size(list);
	struct cell *cells = arena_array(v->arena, struct cell, n * 4);

	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);

		cells[i * 4] = view_cell(v, BOLD, json_get(o, "id"));
		cells[i * 4 + 1] = view_cell(v, PLAIN, json_get(o, "status"));
		cells[i * 4 + 2] = view_cell(
			v, PLAIN,
			arena_printf(v->arena, "%lld", (long long)view_int(o, "priority")));
		cells[i * 4 + 3] = view_cell(v, PLAIN, json_get(o, "title"));
	}
	view_table(v, heads, 4, cells, n);
	if (all > (int64_t)n)
		view_text(v, DIM, "and %lld more\n", (long long)(all - (int64_t)n));
	view_text(v, PLAIN, "\n");
}

static void show_report(const json_t *o, struct view *v)
{
	const char *key;
	json_t *n;
	bool first = true;

	json_object_foreach(json_object_get(o, "by_status"), key, n) {
		view_text(v, PLAIN, "%s%s %lld", first ? "" : ", ", key,
			  (long long)json_integer_value(n));
		first = false;
	}
	view_text(v, PLAIN, first ? "" : "\n");
	json_object_foreach(json_object_get(o, "dropped"), key, n)
		view_text(v, PLAIN, "left out: %lld (%s)\n", (long long)json_integer_value(n), key);
}

/* Refuses the call if there is nothing to read. SUCCESS: there is. */
static enum result find_files(struct session *s, const struct import_args *a,
			      const struct foreign *from, struct reply *out)
{
	if (a->files.n)
		return SUCCESS;
	if (!from || !from->place)
		return run_fail(
			USAGE, STR("FILE is missing"),
			STR("name a file or a folder; some programs keep their tasks in the "
			    "project: pawl import --from beads"),
			out);
	if (usual_place(s, from).n)
		return SUCCESS;
	return run_fail(
		NOT_FOUND,
		arena_printf(s->arena, "there is no %s in this folder or its repository",
			     from->place),
		arena_printf(s->arena, "name the place: pawl import --from %s FILE", from->name),
		out);
}

static void import_tell(struct session *s, const struct port_in *in, const struct import *im,
			struct reply *out)
{
	json_t *more = reply_more(out);

	json_object_set_new(more, "read", json_integer((json_int_t)in->spool->n));
	json_object_set_new(more, "created", json_integer(im->created));
	json_object_set_new(more, "updated", json_integer(im->updated));
	json_object_set_new(more, "skipped", json_integer(im->skipped));
	json_object_set_new(more, "comments", json_integer(im->comments));
	if (in->foreign) {
		import_report(in->foreign, in->check, s->arena, more);
		import_warn(in->foreign, s->arena, out);
	}
	if (in->n_left_out || in->hidden)
		json_object_set_new(more, "left_out", left_out_json(in));
}

static enum result import_run(struct session *s, struct args *args, struct reply *out)
{
	const struct import_args *a = (const struct import_args *)args;
	struct data_progress progress = { .session = s, .doing = "reading" };
	struct answer ans = { 0 };
	struct spool spool = { 0 };
	struct port_in in = { .spool = &spool,
			      .ans = &ans,
			      .arena = s->arena,
			      .check = a->check,
			      .progress = data_progress,
			      .ctx = &progress };
	struct foreign_in foreign = { .from = import_writer(s, a),
				      .all = a->all,
				      .ordered = a->ordered };
	struct import im = { 0 };
	enum result code;

	code = find_files(s, a, a->from.n ? foreign.from : NULL, out);
	if (code != SUCCESS)
		return code;
	in.foreign = foreign.from ? &foreign : NULL;
	if (a->skip && a->update)
		return run_fail(
			USAGE, STR("--skip and --update cannot be used together: give one of them"),
			STR("run `pawl help import`"), out);
	code = read_all(s, a, &in);
	data_progress_end(&progress);
	if (code == SUCCESS)
		code = data_open(s, OP_HEAVY, &ans);
	if (code == SUCCESS && in.foreign)
		code = repair_links(s, a, &in);
	foreign_end(&foreign);
	if (code == SUCCESS)
		code = put_all(s, a, &in, &im);
	if (a->check)
		im = (struct import){ 0 }; /* nothing was imported */
	arena_free(&in.piece);
	spool_close(&spool);
	if (a->check && (in.n_refusals || (code != SUCCESS && ans.warnings.n))) {
		code = import_refuse(&in, code, out);
		import_warn(&foreign, s->arena, out);
		return code;
	}
	if (code != SUCCESS)
		return run_answer(&ans, out);
	import_tell(s, &in, &im, out);
	return SUCCESS;
}

enum result import_from(struct session *s, struct str program, struct reply *out)
{
	struct import_args a = { .from = program };
	enum result code = import_run(s, &a.args, out);

	if (code == SUCCESS)
		json_object_set_new(
			reply_more(out), "go_back",
			json_str(arena_printf(s->arena, "pawl export --to %.*s --output FILE",
					      STRF(program))));
	return code;
}

/* "FILE: why". The last entries count the files that are too many to name, and hidden names. */
static void show_left_out(const json_t *list, struct view *v)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		view_text(v, PLAIN, "left out: ");
		view_data(v, PLAIN, json_text(json_array_get(list, i)));
		view_text(v, PLAIN, "\n");
	}
}

static void import_show_result(const struct reply *r, struct view *v)
{
	static const char *const parts[] = { "created", "updated", "skipped" };
	const json_t *o = r->more;

	if (v->quiet)
		return;
	if (json_array_size(json_object_get(o, "preview")))
		show_preview(json_object_get(o, "preview"), view_int(o, "read"), v);
	view_count(v, GREEN, view_int(o, "read"), "task");
	view_text(v, GREEN, " read");
	if (json_object_get(o, "from"))
		view_text(v, PLAIN, " from %s", json_string_value(json_object_get(o, "from")));
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (view_int(o, parts[i]))
			view_text(v, PLAIN, ", %lld %s", (long long)view_int(o, parts[i]),
				  parts[i]);
	if (view_int(o, "comments")) {
		view_text(v, PLAIN, ", ");
		view_count(v, PLAIN, view_int(o, "comments"), "comment");
	}
	view_text(v, PLAIN, "\n");
	if (json_object_get(o, "from"))
		show_report(o, v);
	show_left_out(json_object_get(o, "left_out"), v);
	if (json_object_get(o, "go_back")) {
		view_text(v, PLAIN,
			  "The files of %s are as they were. To go back with what changed here: ",
			  json_string_value(json_object_get(o, "from")));
		view_data(v, BOLD, json_get(o, "go_back"));
		view_text(v, PLAIN, "\n");
	}
}

void import_show(const struct reply *r, struct view *v)
{
	import_show_result(r, v);
}
