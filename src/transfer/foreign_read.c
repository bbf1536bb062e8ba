/* Reads the syntax of foreign files, and tasks inside tasks. Each reader passes its records to foreign_found(). Input is
 * limited before it is kept in memory: lines to LINE_MOST, checklists to LIST_MAX. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "format/json.h"
#include "format/markdown.h"
#include "format/markdown_plan.h"
#include "transfer/foreign.h"

#define LINE_MOST (1u << 20)
#define LIST_MAX (64u << 20)

void foreign_warn_at(struct port_in *in, struct str where, struct str text)
{
	struct foreign_in *f = in->foreign;

	if (f->warnings.n < FOREIGN_WARNINGS)
		f->warnings = arena_append(
			in->arena, f->warnings,
			arena_printf(in->arena, "%.*s: %.*s", STRF(where), STRF(text)));
	f->n_warnings++;
}

void foreign_warn(struct port_in *in, size_t line, struct str text)
{
	foreign_warn_at(in, arena_printf(&in->piece, "%s:%zu", in->path, line), text);
}

void foreign_drop(struct port_in *in, const char *why)
{
	struct foreign_in *f = in->foreign;
	size_t i = 0;

	while (i < f->dropped.n && !str_is(f->dropped.v[i], why))
		i++;
	if (i == sizeof(f->n_dropped) / sizeof(*f->n_dropped))
		return;
	if (i == f->dropped.n)
		f->dropped = arena_append(in->arena, f->dropped, str_c(why));
	f->n_dropped[i]++;
}

enum result foreign_object(struct port_in *in, json_t *o, struct str text, size_t line)
{
	if (!strcmp(in->foreign->from->name, "task-master"))
		return foreign_master_read(in, o, text, line);
	return foreign_found(in, o, line);
}

/* --- Markdown files ---------------------------------------------------------------------------------- */

struct front {
	json_t *o, *lines;
};

static int take_key(void *ctx, struct str key, json_t *v, size_t line)
{
	struct front *f = ctx;
	char name[YAML_KEY_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", STRF(key));
	json_object_set(f->o, name, v);
	json_object_set_new(f->lines, name, json_integer((json_int_t)line));
	return 0;
}

/* aitasks: t10_2_words.md is the sub-task t10_2 of t10. */
static void name_by_file(json_t *o, struct str name)
{
	struct str id = task_md_id(name), parent = id;

	json_object_set_new(o, "id", json_str(id));
	while (parent.n && parent.p[parent.n - 1] != '_')
		parent.n--;
	if (parent.n > 1 && !json_object_get(o, "parent"))
		json_object_set_new(o, "parent", json_str(str_n(parent.p, parent.n - 1)));
}

static enum result take_front(struct port_in *in, struct front *front, struct str text,
			      struct str name)
{
	const char *program = in->foreign->from->name;
	struct yaml_fault fault = { .line = 1 };
	struct str body;
	enum result code;

	if (!text_valid(text))
		return port_refuse(in, 1, STR("not valid UTF-8"));
	if (task_md_split(text, &body, take_key, front, &fault, &in->piece)) {
		(void)port_refuse(in, fault.line, fault.text);
		return foreign_stub(in,
				    json_get(front->o, "id").n ? json_get(front->o, "id")
							       : task_md_id(name),
				    1);
	}
	if (!strcmp(program, "backlog"))
		foreign_backlog_body(front->o, body);
	else
		json_object_set_new(front->o, "body", json_str(str_trim(body)));
	if (!strcmp(program, "aitasks") || !json_object_get(front->o, "id"))
		name_by_file(front->o, name);
	in->foreign->key_lines = front->lines;
	code = foreign_found(in, front->o, 1);
	in->foreign->key_lines = NULL;
	return code;
}

enum result foreign_md(struct port_in *in, struct str text, struct str name)
{
	const char *why = strcmp(in->foreign->from->name, "backlog")
				  ? NULL
				  : foreign_backlog_left_out(str_c(in->path));
	struct front front;
	enum result code;

	if (why) {
		foreign_drop(in, why);
		return SUCCESS;
	}
	front = (struct front){ json_object(), json_object() };
	code = take_front(in, &front, text, name);
	json_decref(front.o);
	json_decref(front.lines);
	return code;
}

/* --- todo.txt ----------------------------------------------------------------------------------------- */

static bool is_date(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (i == 4 || i == 7 ? s.p[i] != '-' : s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n == strlen("2026-11-16");
}

static void foreign_read_append(json_t *o, const char *key, struct str s)
{
	json_t *list = json_object_get(o, key);

	if (!list) {
		list = json_array();
		json_object_set_new(o, key, list);
	}
	json_array_append_new(list, json_str(s));
}

/* due:2026-12-01, t:2026-11-20, id:7, pri:A; other pairs stay in the title, since a URL has this form, too. */
static bool take_pair(json_t *o, struct str word)
{
	static const char *const keys[] = { "due", "t", "id", "pri" };
	struct str value = word, key = str_cut(&value, ':');

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (value.n && str_is(key, keys[i])) {
			json_object_set_new(o, strcmp(keys[i], "pri") ? keys[i] : "priority",
					    json_str(value));
			return true;
		}
	return false;
}

static void take_word(json_t *o, struct buf *title, struct str word)
{
	if (word.n > 1 && word.p[0] == '+')
		foreign_read_append(o, "project", str_n(word.p + 1, word.n - 1));
	else if (word.n > 1 && word.p[0] == '@')
		foreign_read_append(o, "context", str_n(word.p + 1, word.n - 1));
	else if (!take_pair(o, word))
		buf_addf(title, "%s%.*s", title->n ? " " : "", STRF(word));
}

/* "x 2026-11-17 2026-11-16 words" or "(A) 2026-11-16 words": the dates of completion and creation. */
static void take_head(json_t *o, struct str *rest)
{
	bool done = str_cut_prefix(rest, STR("x "));
	struct str dates[2] = { STR(""), STR("") };

	json_object_set_new(o, "done", json_string(done ? "x" : ""));
	if (rest->n > 3 && rest->p[0] == '(' && rest->p[2] == ')' && rest->p[3] == ' ') {
		json_object_set_new(o, "priority", json_stringn(rest->p + 1, 1));
		*rest = str_n(rest->p + 4, rest->n - 4);
	}
	for (size_t i = 0; i < (done ? 2 : 1); i++) {
		struct str after = *rest, word = str_cut(&after, ' ');

		if (!is_date(word))
			break;
		dates[i] = word;
		*rest = after;
	}
	if (done && dates[0].n)
		json_object_set_new(o, "completed", json_str(dates[0]));
	if (dates[done].n)
		json_object_set_new(o, "created", json_str(dates[done]));
}

static enum result take_line(struct port_in *in, struct str line, size_t number)
{
	json_t *o = json_object();
	struct buf title = BUF_MAX(SIZE_MAX / 4);
	enum result code;

	take_head(o, &line);
	while (line.n) {
		struct str word = str_cut(&line, ' ');

		if (word.n)
			take_word(o, &title, word);
	}
	json_object_set_new(o, "title", json_str(buf_str(&title)));
	in->foreign->by_place = !json_object_get(o, "id");
	if (in->foreign->by_place)
		json_object_set_new(o, "id", json_integer((json_int_t)number));
	code = foreign_found(in, o, number);
	buf_free(&title);
	json_decref(o);
	return code;
}

/* Reads a line without its end; false: there is none. A line that exceeds the buffer's limit is not kept: out->full. */
static bool get_line(struct port_in *in, struct buf *out)
{
	char piece[512]; /* calling buf_add() for each byte would cost too much */
	size_t n = 0;
	int c;

	out->n = 0;
	out->full = false;
	while ((c = getc_unlocked(in->file)) != EOF && c != '\n') {
		piece[n++] = (char)c;
		if (n == sizeof(piece)) {
			buf_add(out, piece, n);
			n = 0;
		}
	}
	buf_add(out, piece, n);
	return c != EOF || out->n || out->full;
}

enum result foreign_lines(struct port_in *in)
{
	struct buf b = BUF_MAX(LINE_MOST);
	enum result code = SUCCESS;

	for (in->line = 1; code == SUCCESS && get_line(in, &b); in->line++) {
		struct str line = str_trim(buf_str(&b));

		if (b.full)
			code = port_refuse(in, in->line, STR("this line is longer than 1 MiB"));
		else if (!text_valid(line))
			code = port_refuse(in, in->line, STR("not valid UTF-8"));
		else if (line.n)
			code = take_line(in, line, in->line);
	}
	buf_free(&b);
	return code;
}

/* --- a Markdown checklist ------------------------------------------------------------------------------ */

/* before: the number of the previous item under the same parent; 0: none */
static json_t *item_json(const struct plan_item *item, size_t i, size_t before)
{
	json_t *o = json_pack("{s:I, s:o, s:s}", "id", (json_int_t)i + 1, "title",
			      json_str(item->title), "done", item->done ? "x" : "");

	if (item->description.n)
		json_object_set_new(o, "description", json_str(item->description));
	if (item->under)
		json_object_set_new(o, "parent", json_integer((json_int_t)item->under));
	if (before)
		json_object_set_new(o, "depends", json_pack("[I]", (json_int_t)before));
	return o;
}

static enum result take_plan(struct port_in *in, struct str text)
{
	struct arena a = { 0 };
	struct yaml_fault fault = { 0 };
	struct plan plan = { 0 };
	enum result code = SUCCESS;
	size_t *last; /* by parent item: the number of its last item so far */

	in->foreign->by_place = true;
	if (plan_read(text, &plan, &fault, &a)) {
		code = port_refuse_rest(in, fault.line, fault.text);
		plan.n = 0;
	}
	last = arena_array(&a, size_t, plan.n + 1);
	for (size_t i = 0; code == SUCCESS && i < plan.n; i++) {
		const struct plan_item *item = &plan.items[i];
		json_t *o = item_json(item, i, in->foreign->ordered ? last[item->under] : 0);

		last[item->under] = i + 1;
		code = foreign_found(in, o, item->line);
		json_decref(o);
	}
	arena_free(&a);
	return code;
}

enum result foreign_checklist(struct port_in *in)
{
	struct buf b = BUF_MAX(LIST_MAX);
	char piece[65536];
	enum result code;
	size_t n;

	while (!b.full && (n = fread(piece, 1, sizeof(piece), in->file)) > 0)
		buf_adds(&b, str_n(piece, n));
	code = b.full ? port_refuse_rest(in, 1, STR("this file is larger than 64 MiB"))
		      : take_plan(in, buf_str(&b));
	buf_free(&b);
	return code;
}
