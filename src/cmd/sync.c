/*
 * pawl sync: loads the module for a board (pawl-sync-NAME.so), runs it and shows its counts. It distinguishes an unknown kind
 * of board from a module that is not installed.
 */
#include "sync/sync.h"

#include "base/module.h"
#include "base/text.h"
#include "cmd/command.h"

struct sync_args {
	struct args args;
	struct str board;
	int64_t watch, check, add_options, every;
};

static const struct param params[] = {
	LOCAL(sync, board, "BOARD", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED | P_FILLED,
	      .value = "BOARD",
	      .help = "notion:DATABASE, where DATABASE is an id or an address; notion: is NOTION_TASKS_DB_ID"),
	LOCAL(sync, watch, "watch", P_FLAG, .letter = 'w', .help = "repeat until Ctrl-C"),
	LOCAL(sync, every, "every", P_DURATION, .def = "10s",
	      .help = "with --watch: the pause between two rounds"),
	LOCAL(sync, check, "check", P_FLAG, .help = "show what would change, but change nothing"),
	LOCAL(sync, add_options, "add-options", P_FLAG,
	      .help = "add the properties and options that the database lacks"),
	{ 0 }
};

static enum result sync_run(struct session *s, struct args *args, struct reply *out);
static void sync_show(const struct reply *r, struct view *v);

const struct command cmd_sync = {
	.name = "sync",
	.group = "data",
	.summary = "keep a Notion database and the queue in step",
	.detail =
		"The queue stays the truth: agents claim tasks in it, and people see and edit them as pages in Notion. New pages "
		"become tasks. Title, text, priority, class, due date and parent follow whichever side changed; if both did, the "
		"page wins. Moves on the board are operations: Review to Done approves, Review to In Progress asks for rework, "
		"Canceled cancels. An edit that the queue refuses is taken back, and a comment on the page says why. The state of "
		"a held task is pawl's. A page that another program has locked is not offered.\n\n"
		"NOTION_TOKEN is the token of the integration, or NOTION_TOKEN_FILE names a file that has it. A sync that was "
		"killed is completed by the next one. --check also says what the database lacks.",
	.example = "pawl sync notion:0123456789abcdef0123456789abcdef --check\n"
		   "pawl sync notion:0123456789abcdef0123456789abcdef --add-options\n"
		   "pawl sync notion: --watch",
	.see = "import, export, board",
	.params = params,
	.args_size = sizeof(struct sync_args),
	.flags = C_WRITE | C_SHELL,
	.fails = FAILS(CONFLICT),
	.run = sync_run,
	.show = sync_show,
};

#define EVERY_MS 10000

/* --- the module --------------------------------------------------------------------------------- */

static const struct sync_ops *sync_load(struct session *s, struct str kind, struct reply *out)
{
	const struct module *m = NULL;
	char why[300];
	int r = module_load("sync", kind, &m, why, sizeof(why));

	if (!r && m->sync)
		return m->sync;
	if (!str_is(kind, "notion"))
		(void)run_fail(USAGE,
			       arena_printf(s->arena, "'%s:' is not a board that pawl knows",
					    arena_cstr(s->arena, text_line(s->arena, kind))),
			       STR("use notion:DATABASE"), out);
	else
		(void)run_fail(
			MISCONFIGURED,
			arena_printf(
				s->arena, "this command needs the module pawl-sync-notion.so: %s%s",
				r < 0 ? why : "it is not installed in ", r < 0 ? "" : module_dir()),
			STR("to install it: make install; PAWL_MODULE_DIR names another folder of modules"),
			out);
	return NULL;
}

static void sync_progress(void *ctx, struct str line)
{
	struct session *s = ctx;

	if (s->progress)
		s->progress(s, line);
}

static void sync_note(void *ctx, struct str line)
{
	struct session *s = ctx;
	struct arena a = { 0 };

	if (s->note)
		s->note(s, text_line(&a, line));
	arena_free(&a);
}

static bool sync_listening(void *ctx)
{
	struct session *s = ctx;

	return !s->listening || s->listening(s);
}

/* --- the answer ----------------------------------------------------------------------------------- */

static json_t *sync_strings(struct strs list)
{
	json_t *out = json_array();

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(out, json_str(list.v[i]));
	return out;
}

static void sync_fill(const struct sync_done *d, bool check, struct reply *out)
{
	json_t *o = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:o}", "pages",
			      (json_int_t)d->pages, "tasks_created", (json_int_t)d->tasks_made,
			      "tasks_updated", (json_int_t)d->tasks_changed, "pages_created",
			      (json_int_t)d->pages_made, "pages_updated",
			      (json_int_t)d->pages_changed, "comments", (json_int_t)d->comments,
			      "refused", (json_int_t)d->refused, "held_elsewhere",
			      (json_int_t)d->foreign, "requests", (json_int_t)d->requests, "check",
			      check, "changes", sync_strings(d->changes));

	json_object_set_new(reply_more(out), "sync", o);
}

static enum result sync_run(struct session *s, struct args *args, struct reply *out)
{
	const struct sync_args *a = (const struct sync_args *)args;
	struct str place = a->board, kind = str_cut(&place, ':');
	struct sync_job job = { .client = &s->client,
				.place = place,
				.check = a->check,
				.add_options = a->add_options,
				.watch = a->watch,
				.every_ms = a->every ? a->every : EVERY_MS,
				.progress = sync_progress,
				.note = sync_note,
				.listening = sync_listening,
				.ctx = s };
	struct sync_done done = { 0 };
	struct answer ans = { 0 };
	const struct sync_ops *ops;
	enum result code;

	if (a->watch && a->check)
		return run_fail(USAGE, STR("sync takes either --watch or --check"),
				STR("run `pawl help sync`"), out);
	ops = sync_load(s, kind, out);
	if (!ops)
		return out->ans.code;
	code = ops->run(&job, &done, &ans, s->arena);
	for (size_t i = 0; i < done.warnings.n; i++)
		reply_warn(out, done.warnings.v[i], s->arena);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	sync_fill(&done, a->check, out);
	return SUCCESS;
}

static void sync_count(struct view *v, const json_t *o, const char *key, const char *what)
{
	if (!view_int(o, key))
		return;
	view_text(v, PLAIN, ", ");
	view_count(v, PLAIN, view_int(o, key), what);
}

static void sync_show(const struct reply *r, struct view *v)
{
	const json_t *o = json_object_get(r->more, "sync"), *line;
	bool check = json_is_true(json_object_get(o, "check"));
	size_t i;

	if (v->quiet)
		return;
	json_array_foreach(json_object_get(o, "changes"), i, line) {
		if (check) {
			view_data(v, PLAIN, json_text(line));
			view_text(v, PLAIN, "\n");
		}
	}
	view_count(v, GREEN, view_int(o, "pages"), "page");
	view_text(v, GREEN, " read");
	sync_count(v, o, "tasks_created", "new task");
	sync_count(v, o, "tasks_updated", "changed task");
	sync_count(v, o, "pages_created", "new page");
	sync_count(v, o, "pages_updated", "changed page");
	sync_count(v, o, "comments", "comment");
	sync_count(v, o, "refused", "refused edit");
	view_text(v, PLAIN, check ? " (nothing was changed)\n" : "\n");
}
