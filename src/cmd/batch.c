/*
 * pawl batch add, update and remove: changes many tasks in one commit. If one item is refused,
 * nothing changes. With --keep-going each item is a commit of its own, and the answer lists them
 * all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/args_json.h"
#include "cmd/cmd.h"

/* words: titles or ids; file: a file with more of them. */
struct batch_args {
	struct args args; /* the fields that apply to every item */
	struct strs words;
	struct str file;
	int64_t keep_going, yes;
};

#define PARAM_WORDS(word, text) \
	LOCAL(batch, words, word, P_WORDS, .flags = P_POSITIONAL, .value = word, .help = (text))
#define PARAM_FILE                                                                              \
	LOCAL(batch, file, "file", P_NAME, .letter = 'F', .value = "FILE", .flags = P_HERE,     \
	      .help = "read the items from FILE, one per line, plain or as JSON objects; - is " \
		      "standard input")
#define PARAM_KEEP_GOING                                              \
	LOCAL(batch, keep_going, "keep-going", P_FLAG, .letter = 'k', \
	      .help = "commit each item by itself (default: all of them or none)")

static const struct param add_params[] = {
	PARAM_WORDS("TITLE", "title of a task"),
	PARAM_FILE,
	PARAM_KEEP_GOING,
	PARAM(status, "status", P_STATUS, .def = "Ready", .choices = "ready backlog",
	      .help = "Ready, or Backlog (not offered yet)"),
#define FIELD_CLEAR 0
#include "cmd/fields.def"
	PARAM(depends, "depends", P_IDS, .letter = 'D',
	      .help = "task that must be Done first (a dependency)"),
	{ 0 }
};

static const struct param update_params[] = {
	PARAM_WORDS("ID", "task to change"),
	PARAM_FILE,
	PARAM_KEEP_GOING,
	PARAM(title, "title", P_TITLE, .help = "title: one line"),
	PARAM(status, "status", P_STATUS, .choices = "ready backlog", .help = "Backlog or Ready"),
#define FIELD_CLEAR P_EMPTY
#include "cmd/fields.def"
	PARAM(append, "append", P_TEXT, .flags = P_FILLED,
	      .help = "text to add to the description as a paragraph"),
	PARAM(add_labels, "add-label", P_NAMES, .help = "label to add to the present ones"),
	PARAM(remove_labels, "remove-label", P_NAMES, .help = "label to remove"),
	{ 0 }
};

static const struct param remove_params[] = {
	PARAM_WORDS("ID", "task to remove"),
	PARAM_FILE,
	PARAM_KEEP_GOING,
	PARAM_FORCE(
		"remove a task even if other tasks depend on it, or another agent holds it (with --reason)"),
	PARAM_REASON(0, "reason, for the log"),
	LOCAL(batch, yes, "yes", P_FLAG, .letter = 'y', .flags = P_TERMINAL | P_HERE,
	      .help = "do not ask at a terminal"),
	{ 0 }
};

#define DETAIL(item)                                                                            \
	"The items are arguments, or lines of a file or of standard input (-). A line is " item \
	", or a JSON "                                                                          \
	"object with the options of `pawl "
#define DETAIL_END                                                                                                    \
	"`. pawl commits all items at once, or none. With --keep-going it commits each item by itself, and the exit " \
	"code is that of the first item that failed."

static enum result run_add(struct session *s, struct args *a, struct reply *out);
static enum result run_update(struct session *s, struct args *a, struct reply *out);
static enum result run_remove(struct session *s, struct args *a, struct reply *out);
static void batch_show_removed(const struct reply *r, struct view *v);

const struct command cmd_batch_add = {
	.name = "batch add",
	.group = "data",
	.summary = "create several tasks at once",
	.detail = DETAIL(
		"a title") "create" DETAIL_END
			   " pawl prints the id of each new task; with -q it prints only the ids, one per line.",
	.example = "pawl batch add \"Fix the parser\" \"Write the docs\" --label docs\n"
		   "pawl batch add --file titles.txt --priority high",
	.see = "create, import, batch update",
	.params = add_params,
	.args_size = sizeof(struct batch_args),
	.flags = C_WRITE | C_REPORT,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run_add,
	.show = data_show_items,
};

const struct command cmd_batch_update = {
	.name = "batch update",
	.group = "data",
	.summary = "change several tasks at once",
	.detail = DETAIL("an id") "update" DETAIL_END,
	.example = "pawl batch update t1 t2 t3 --priority high --add-label urgent\n"
		   "pawl batch update --file changes.jsonl",
	.see = "update, batch add, list",
	.params = update_params,
	.args_size = sizeof(struct batch_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE | C_REPORT,
	.fails = FAILS(CONFLICT, NOT_FOUND),
	.run = run_update,
	.show = data_show_items,
};

const struct command cmd_batch_remove = {
	.name = "batch remove",
	.group = "data",
	.summary = "remove several tasks at once",
	.detail = DETAIL("an id") "remove" DETAIL_END " `pawl undo ID` brings a removed task back.",
	.example = "pawl batch remove t1 t2 t3\n"
		   "pawl batch remove --file ids.txt --keep-going",
	.see = "remove, clear, archive",
	.params = remove_params,
	.args_size = sizeof(struct batch_args),
	.flags = C_WRITE | C_DESTRUCTIVE | C_REPORT,
	.fails = FAILS(NOT_FOUND),
	.run = run_remove,
	.show = batch_show_removed,
};

#define ITEMS_MAX 10000
/* A server limits batches, because its other callers wait while it commits one. */
#define SERVED_MAX 1000
#define SERVED_EACH_MAX 100 /* commits, one after the other */

struct batch {
	struct session *s;
	const struct args *common;
	const struct command *each;
	struct request *rqs;
	size_t n;
	struct str where; /* the item's title or id, for messages */
};

/* --- reading the items ---------------------------------------------------------------------------- */

static struct str fault_at(struct batch *b, const char *fault)
{
	return arena_printf(b->s->arena, "%.*s: %s", STRF(b->where), fault);
}

/* Returns NULL, or the reason for a refusal. */
static const char *add_request(struct batch *b, const struct request *rq)
{
	if (b->n == ITEMS_MAX)
		return "a batch has at most 10,000 items; pawl import takes any number";
	if (b->s->remote && b->n == SERVED_MAX)
		return "a server takes at most 1,000 items in a batch";
	b->rqs = arena_grow(b->s->arena, b->rqs, b->n, sizeof(*rq));
	b->rqs[b->n] = *rq;
	GIVE(&b->rqs[b->n], part_of, TYPED_BATCH);
	b->n++;
	return NULL;
}

/* word: a title for `batch add`, an id for the others. */
static const char *add_word(struct batch *b, struct str word)
{
	bool title = b->each == &cmd_create;
	struct args one = *b->common;
	const char *fault = param_set(&one,
				      param_find(b->each->params, title ? STR("title") : STR("id")),
				      word, b->s->arena);

	one.rq.op = b->each->op;
	return fault ? fault : add_request(b, &one.rq);
}

/* Refuses an argument outside the request, such as create --file: an item cannot use it, and struct
 * args has no room for it. */
static const char *own_argument(struct batch *b, const json_t *o)
{
	const char *key;
	const json_t *v;

	json_object_foreach((json_t *)o, key, v) {
		const struct param *p = param_find(b->each->params, str_c(key));

		if (p && !p->arg)
			return arena_printf(b->s->arena, "an item cannot have the argument '%s'",
					    p->name)
				.p;
	}
	return NULL;
}

static const char *add_object(struct batch *b, struct str text)
{
	json_error_t err;
	json_t *o = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &err);
	struct args one = *b->common;
	const char *fault;

	if (!o)
		return arena_cstr(b->s->arena, str_c(err.text));
	one.rq.op = b->each->op;
	fault = own_argument(b, o);
	if (!fault)
		fault = args_from_json(&one, b->each, o, b->s->remote ? ARGS_REMOTE : ARGS_PROGRAM,
				       b->s->arena);
	json_decref(o);
	return fault ? fault : add_request(b, &one.rq);
}

static const char *add_line(struct batch *b, struct str line)
{
	line = str_trim(line);
	if (!line.n)
		return NULL;
	return line.p[0] == '{' ? add_object(b, line) : add_word(b, line);
}

static enum result read_file(struct batch *b, struct str file, struct reply *out)
{
	char *path = data_path(b->s, file);
	struct str rest;
	int r = data_read(b->s, path, &rest);

	if (r)
		return run_fail(API_ERROR, arena_printf(b->s->arena, "%s: %s", path, strerror(-r)),
				STR(""), out);
	for (size_t line = 1; rest.n; line++) {
		const char *fault;

		b->where = arena_printf(b->s->arena, "%s:%zu", path, line);
		fault = add_line(b, str_cut(&rest, '\n'));
		if (fault)
			return run_fail(USAGE, fault_at(b, fault), STR("nothing was changed"), out);
	}
	return SUCCESS;
}

static enum result batch_collect(struct batch *b, const struct batch_args *a, struct reply *out)
{
	for (size_t i = 0; i < a->words.n; i++) {
		const char *fault;

		if (str_is(a->words.v[i], "-") && !b->s->remote) {
			if (read_file(b, STR("-"), out) != SUCCESS)
				return USAGE;
			continue;
		}
		b->where = text_line(b->s->arena, a->words.v[i]);
		fault = add_word(b, a->words.v[i]);
		if (fault)
			return run_fail(USAGE, fault_at(b, fault), STR("nothing was changed"), out);
	}
	if (a->file.n)
		return read_file(b, a->file, out);
	return SUCCESS;
}

/* --- changing the queue ----------------------------------------------------------------------------- */

/* Commits all items at once. */
static enum result run_whole(struct batch *b, json_t *results, struct answer *ans)
{
	struct answer *answers = arena_array(b->s->arena, struct answer, b->n);
	size_t bad = client_call_all(&b->s->client, b->rqs, NULL, answers, b->n);

	for (size_t i = 0; bad == b->n && i < b->n; i++)
		json_array_append_new(results, data_item(&b->rqs[i], &answers[i]));
	if (bad == b->n)
		return SUCCESS;
	*ans = answers[bad];
	ans->task = NULL;
	json_array_append_new(results, data_item(&b->rqs[bad], &answers[bad]));
	if (ans->code != API_ERROR)
		ans->message = arena_printf(b->s->arena,
					    "item %zu of %zu: %.*s; nothing was changed", bad + 1,
					    b->n, STRF(ans->message));
	return ans->code;
}

/* Commits the items one by one; the code is that of the first item that failed. If another agent
 * holds a lock of the whole queue, the remaining items fail at once. Each of them would wait for
 * that lock otherwise. */
static enum result run_each(struct batch *b, json_t *results, struct answer *first)
{
	struct data_progress progress = { .session = b->s, .doing = "working", .total = b->n };
	struct answer ans = { 0 };
	size_t failed = 0;

	for (size_t i = 0; i < b->n; i++) {
		if (!ans.barred)
			client_call(&b->s->client, &b->rqs[i], &ans);
		json_array_append_new(results, data_item(&b->rqs[i], &ans));
		if (ans.code != SUCCESS && !failed++)
			*first = ans;
		data_progress(&progress, i + 1);
	}
	data_progress_end(&progress);
	first->task = NULL;
	if (failed < b->n)
		first->barred = 0; /* a caller that retries would repeat the items that succeeded */
	if (failed)
		first->message = arena_printf(b->s->arena,
					      "%zu of %zu items failed, the first: %.*s", failed,
					      b->n, STRF(first->message));
	return first->code;
}

/* A person at a terminal agrees to a removal first. */
static bool batch_agreed(struct batch *b, const struct batch_args *a)
{
	struct strs ids = { arena_array(b->s->arena, struct str, b->n), b->n };

	for (size_t i = 0; i < b->n; i++)
		ids.v[i] = b->rqs[i].id;
	return a->yes || b->common->rq.force || remove_agreed(b->s, &cmd_batch_remove, ids);
}

static enum result batch_run_each(struct session *s, struct args *args, const struct command *each,
				  struct reply *out)
{
	const struct batch_args *a = (const struct batch_args *)args;
	struct batch b = { .s = s, .common = args, .each = each };
	json_t *results = json_array();
	struct answer ans = { 0 };
	enum result code = batch_collect(&b, a, out);

	if (code == SUCCESS && s->remote && a->keep_going && b.n > SERVED_EACH_MAX)
		code = run_fail(USAGE, STR("a server takes at most 100 items with keep_going"),
				STR("nothing was changed"), out);
	if (code == SUCCESS && !b.n)
		code = run_fail(USAGE, STR("there are no items: give arguments, or --file FILE"),
				STR("--file - reads them from standard input"), out);
	if (code == SUCCESS && each == &cmd_remove && !batch_agreed(&b, a))
		code = remove_refuse(out);
	if (code != SUCCESS) {
		json_decref(results);
		return code;
	}
	code = a->keep_going ? run_each(&b, results, &ans) : run_whole(&b, results, &ans);
	(void)run_answer(&ans, out);
	json_object_set_new(reply_more(out), "results", results);
	return code;
}

static enum result run_add(struct session *s, struct args *a, struct reply *out)
{
	const char *fault = fields_fault(&a->rq);

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help batch add`"), out);
	return batch_run_each(s, a, &cmd_create, out);
}

static enum result run_update(struct session *s, struct args *a, struct reply *out)
{
	const char *fault = fields_fault(&a->rq);

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help batch update`"), out);
	return batch_run_each(s, a, &cmd_update, out);
}

static enum result run_remove(struct session *s, struct args *a, struct reply *out)
{
	return batch_run_each(s, a, &cmd_remove, out);
}

static void batch_show_removed(const struct reply *r, struct view *v)
{
	if (remove_preview(r, v))
		return;
	data_show_items(r, v);
	if (!v->quiet && r->ans.code == SUCCESS)
		view_text(v, DIM, "to take one back: pawl undo ID\n");
}
