/* A task as a Markdown file with YAML front matter, and marked sections in the user's own files. A
 * task that was written reads back as the same task. A section whose end mark is missing is left
 * alone, so that pawl never deletes the user's text. */
#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/text.h"
#include "format/markdown.h"
#include "format/record_form.h"
#include "format/section.h"

/* --- out ---------------------------------------------------------------------------------------- */

/* The key of a field in the front matter, where it differs from pawl's name. */
static struct str key_of(const struct field *f)
{
	static const struct {
		size_t offset;
		const char *key;
	} keys[] = {
		{ offsetof(struct task, type), "issue_type" },
		{ offsetof(struct task, assignee), "assigned_to" },
		{ offsetof(struct task, done_at), "completed_at" },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (f->offset == keys[i].offset)
			return str_c(keys[i].key);
	return str_c(f->name);
}

static json_t *priority_json(int64_t priority)
{
	static const char *const words[] = { "low", "medium", "high" };

	return priority >= 1 && priority <= 3 ? json_string(words[priority - 1])
					      : json_integer(priority);
}

static bool in_body(const struct task *t)
{
	return text_valid(t->description);
}

/* NULL for zero and empty values, except priority, whose default is not zero. */
static json_t *front_value(const struct field *f, const struct task *t, struct arena *a)
{
	const int64_t *n = field_of(f, t);

	if (f->offset == offsetof(struct task, priority))
		return priority_json(t->priority);
	if (f->offset == offsetof(struct task, description) && in_body(t))
		return NULL;
	if (f->kind == FIELD_JSON)
		return NULL;
	if (f->kind == FIELD_LIST)
		return ((const struct strs *)field_of(f, t))->n ? plain_value(f, t, a) : NULL;
	return f->kind != FIELD_STR && !*n ? NULL : plain_value(f, t, a);
}

static void markdown_add(struct buf *out, struct str key, json_t *v)
{
	if (v)
		yaml_add(out, key, v);
	json_decref(v);
}

/* Can the keys of `extra` be written beside the fields, without a clash of names? */
static bool stands_alone(const json_t *extra, bool whole)
{
	for (void *at = json_object_iter((json_t *)extra); at;
	     at = json_object_iter_next((json_t *)extra, at))
		if (plain_known(str_c(json_object_iter_key(at)), whole))
			return false;
	return json_object_size(extra) > 0;
}

static void add_extra(struct buf *out, const struct task *t, bool whole)
{
	json_t *o = plain_extra(t);

	if (!t->extra.n)
		return;
	if (!o || !yaml_able(o)) {
		json_decref(o);
		markdown_add(out, STR("extra"), field_json(field_find(STR("extra")), t));
		return;
	}
	if (!stands_alone(o, whole)) {
		markdown_add(out, STR("extra"), o);
		return;
	}
	for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
		yaml_add(out, str_c(json_object_iter_key(at)), json_object_iter_value(at));
	json_decref(o);
}

void task_md_write(const struct task *t, const struct event *comments, size_t n, bool whole,
		   struct buf *out, struct arena *a)
{
	buf_adds(out, STR("---\n"));
	for (size_t i = 0; i < N_FIELDS; i++)
		if (plain_written(&field_table[i], whole))
			markdown_add(out, key_of(&field_table[i]),
				     front_value(&field_table[i], t, a));
	add_extra(out, t, whole);
	if (n)
		markdown_add(out, STR("comments"), plain_comments(comments, n, a));
	buf_adds(out, STR("---\n"));
	if (!t->description.n || !in_body(t))
		return;
	buf_addc(out, '\n');
	buf_adds(out, t->description);
	buf_addc(out, '\n');
}

/* The fields that people may edit, in the order in which the form shows them. */
static const char *const editable[] = { "title",     "status", "class",      "priority", "labels",
#define PLAIN(tag, part, name, limit, argument, help) #name,
#include "core/task.def"
					"assignee",  "due",    "not_before", "parent",   "depends",
					"acceptance" };

#define EDITABLE (sizeof(editable) / sizeof(*editable))

bool task_md_editable(struct str key)
{
	for (size_t i = 0; i < EDITABLE; i++)
		if (str_is(key, editable[i]))
			return true;
	return str_is(key, "version") || str_is(key, "description") || str_is(key, "extra");
}

void task_md_form(const struct task *t, struct str head, struct buf *out, struct arena *a)
{
	buf_adds(out, STR("---\n"));
	buf_adds(out, head);
	for (size_t i = 0; i < EDITABLE; i++)
		markdown_add(out, str_c(editable[i]),
			     front_value(field_find(str_c(editable[i])), t, a));
	if (!t->title.n)
		buf_adds(out, STR("title:\n"));
	add_extra(out, t, false);
	if (t->version)
		markdown_add(out, STR("version"), json_integer(t->version));
	buf_adds(out, STR("---\n\n"));
	buf_adds(out, t->description);
	buf_adds(out, t->description.n ? STR("\n") : STR(""));
}

/* --- in ----------------------------------------------------------------------------------------- */

/* Cuts the first line from *rest, and returns it without its line end. */
static struct str take_line(struct str *rest)
{
	struct str line = str_cut(rest, '\n');

	if (str_ends(line, STR("\r")))
		line.n--;
	return line;
}

/* *front: the text between the two lines of dashes; *rest: the text after them. false: the lines of
 * dashes are missing. */
static bool take_front(struct str *rest, struct str *front)
{
	struct str all = *rest;

	if (!str_is(take_line(rest), "---"))
		goto none;
	*front = *rest;
	while (rest->n) {
		const char *line = rest->p;

		if (str_is(take_line(rest), "---")) {
			front->n = (size_t)(line - front->p);
			return true;
		}
	}
none:
	*front = STR("");
	*rest = all;
	return false;
}

static int markdown_refuse(struct yaml_fault *fault, size_t line, const char *text)
{
	*fault = (struct yaml_fault){ line, str_c(text) };
	return -EBADMSG;
}

struct reading {
	struct plain *p;
	struct yaml_fault *fault;
	bool described;
};

static int set_key(void *ctx, struct str key, json_t *v, size_t line)
{
	struct reading *r = ctx;
	const char *wrong = plain_set(r->p, key, v);

	r->described |= str_is(key, "description");
	return wrong ? markdown_refuse(r->fault, line, wrong) : 0;
}

/* The empty line before the body and the newline after it are not part of the description. */
static struct str body_of(struct str rest)
{
	struct str body = rest, first = take_line(&rest);

	if (!first.n)
		body = rest;
	if (str_ends(body, STR("\n")))
		body.n--;
	return body;
}

/* The text of the first heading outside code blocks; empty: there is none. */
static struct str markdown_heading(struct str body)
{
	bool code = false;

	while (body.n) {
		struct str line = take_line(&body), text = line;

		code ^= str_starts(line, STR("```"));
		while (str_cut_prefix(&text, STR("#")))
			;
		if (!code && text.n < line.n && str_starts(text, STR(" ")))
			return str_trim(text);
	}
	return STR("");
}

/* t10_2_some_words: the id is t10_2, the rest some_words. In another form, the whole stem is the id. */
static void split_name(struct str stem, struct str *id, struct str *rest)
{
	size_t i = 1, end = 0;

	*id = stem;
	*rest = STR("");
	if (!str_starts(stem, STR("t")))
		return;
	while (i < stem.n && is_digit(stem.p[i])) {
		while (i < stem.n && is_digit(stem.p[i]))
			i++;
		end = i;
		i += i < stem.n && stem.p[i] == '_';
	}
	if (!end || i == end)
		return;
	*id = str_n(stem.p, end);
	*rest = str_n(stem.p + i, stem.n - i);
}

static struct str markdown_spaced(struct str s, struct arena *a)
{
	char *p = arena_cstr(a, s);

	for (size_t i = 0; i < s.n; i++)
		if (p[i] == '_' || p[i] == '-')
			p[i] = ' ';
	return str_n(p, s.n);
}

struct str task_md_id(struct str name)
{
	struct str id, rest;

	if (str_ends(name, STR(".md")))
		name.n -= strlen(".md");
	split_name(name, &id, &rest);
	return id;
}

static void name_it(struct task *t, struct str name, struct arena *a)
{
	struct str id, rest, title = markdown_heading(t->description);

	if (str_ends(name, STR(".md")))
		name.n -= strlen(".md");
	split_name(name, &id, &rest);
	if (!t->id.n)
		t->id = arena_str(a, id);
	if (t->title.n)
		return;
	if (!title.n)
		title = markdown_spaced(rest, a);
	t->title = arena_str(a, title_from(title.n ? title : t->description, t->id));
}

/* 0: every line is valid. */
static size_t first_bad_line(struct str text)
{
	for (size_t line = 1; text.n; line++)
		if (!text_valid(str_cut(&text, '\n')))
			return line;
	return 0;
}

static int read_front(struct str front, struct reading *r)
{
	const char *wrong;
	int bad = yaml_read(front, set_key, r, r->fault, r->p->arena);

	if (bad) {
		plain_abort(r->p);
		r->fault->line++; /* the line of dashes comes before the front matter */
		return bad;
	}
	wrong = plain_end(r->p);
	return wrong ? markdown_refuse(r->fault, 1, wrong) : 0;
}

int task_md_parse(struct str text, struct str name, struct plain *p, struct yaml_fault *fault)
{
	struct reading r = { p, fault, false };
	struct str front = { 0 }, body;
	size_t bad_line = first_bad_line(text);
	bool has_front;
	int bad;

	if (bad_line)
		return markdown_refuse(fault, bad_line, "not valid UTF-8");
	(void)str_cut_prefix(&text, STR("\xef\xbb\xbf"));
	has_front = take_front(&text, &front);
	bad = read_front(front, &r);
	if (bad)
		return bad;
	body = has_front ? body_of(text) : text;
	if (body.n && r.described)
		return markdown_refuse(
			fault, 1,
			"the file has a description in the front matter and another below it");
	if (body.n)
		p->task.description = arena_str(p->arena, body);
	name_it(&p->task, name, p->arena);
	return 0;
}

struct keys {
	yaml_key_fn *fn;
	void *ctx;
};

static int pass_key(void *ctx, struct str key, json_t *value, size_t line)
{
	const struct keys *k = ctx;

	return k->fn(k->ctx, key, value, line + 1);
}

int task_md_split(struct str text, struct str *body, yaml_key_fn *fn, void *ctx,
		  struct yaml_fault *fault, struct arena *a)
{
	struct keys k = { fn, ctx };
	struct str front = { 0 };
	int r;

	(void)str_cut_prefix(&text, STR("\xef\xbb\xbf"));
	(void)take_front(&text, &front);
	*body = text;
	r = yaml_read(front, pass_key, &k, fault, a);
	if (r == -EBADMSG && fault->line)
		fault->line++; /* the line of dashes comes before the front matter */
	return r;
}

int task_md_keys(struct str text, yaml_key_fn *fn, void *ctx, struct yaml_fault *fault,
		 struct arena *a)
{
	struct keys k = { fn, ctx };
	struct str front = { 0 };
	int r;

	(void)str_cut_prefix(&text, STR("\xef\xbb\xbf"));
	if (!take_front(&text, &front))
		return markdown_refuse(
			fault, 1, "the file must begin with front matter between two lines ---");
	r = yaml_read(front, pass_key, &k, fault, a);
	if (r == -EBADMSG && fault->line)
		fault->line++;
	return r;
}

/* --- section ---------------------------------------------------------------------------------- */

/* The position of `mark` at the beginning of a line; t.n: not found. */
static size_t find_line(struct str t, size_t at, const char *mark)
{
	size_t n = strlen(mark);

	for (; at < t.n; at++)
		if ((!at || t.p[at - 1] == '\n') && t.n - at >= n && !memcmp(t.p + at, mark, n))
			return at;
	return t.n;
}

static size_t line_end(struct str t, size_t at)
{
	while (at < t.n && t.p[at] != '\n')
		at++;
	return at < t.n ? at + 1 : at;
}

/* TEXT_SAME: there is no section; TEXT_UNFIT: its end mark is missing. */
static enum text_change section_find(struct str t, const struct section *s, size_t *from,
				     size_t *to)
{
	*from = find_line(t, 0, s->begin);
	if (*from == t.n)
		return TEXT_SAME;
	*to = find_line(t, *from, s->end);
	if (*to == t.n)
		return TEXT_UNFIT;
	*to = line_end(t, *to);
	return TEXT_CHANGED;
}

static struct str section_around(struct str t, size_t from, struct str middle, size_t to,
				 struct arena *a)
{
	return arena_printf(a, "%.*s%.*s%.*s", (int)from, str_p(t), STRF(middle), (int)(t.n - to),
			    str_p(t) + to);
}

enum text_change section_add(struct str t, bool exists, const struct section *s, struct str *out,
			     struct arena *a)
{
	struct str text = str_c(s->text);
	size_t from, to;

	switch (section_find(t, s, &from, &to)) {
	case TEXT_SAME:
		*out = arena_printf(a, "%.*s%s%.*s", STRF(t), exists ? "\n" : "", STRF(text));
		return TEXT_CHANGED;
	case TEXT_CHANGED:
		if (str_eq(str_n(t.p + from, to - from), text))
			return TEXT_SAME;
		*out = section_around(t, from, text, to, a);
		return TEXT_CHANGED;
	default:
		return TEXT_UNFIT;
	}
}

enum text_change section_remove(struct str t, const struct section *s, struct str *out,
				struct arena *a)
{
	size_t from, to;
	enum text_change r = section_find(t, s, &from, &to);

	if (r != TEXT_CHANGED)
		return r;
	if (!from && to == t.n)
		return TEXT_EMPTY;
	*out = section_around(t, from ? from - 1 : 0, STR(""), to, a);
	return TEXT_CHANGED;
}
