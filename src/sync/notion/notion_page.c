/*
 * Pages: converts properties to text and back, and makes the requests about one page. The form of a
 * text must not depend on the side that it comes from, or an unchanged value would look like an
 * edit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "sync/notion/notion.h"

#define PIECE_UNITS 2000 /* UTF-16 units in one piece of rich text */
#define PIECES 100

/* --- texts -------------------------------------------------------------------------------------------- */

/* The number of bytes of `s` that fit into one piece, in whole characters. */
static size_t piece_of(struct str s)
{
	size_t at = 0, n;
	int units = 0;

	while (at < s.n) {
		uint32_t c;

		n = text_char(str_n(s.p + at, s.n - at), &c);
		units += c > 0xffff ? 2 : 1;
		if (!n || units > PIECE_UNITS)
			break;
		at += n;
	}
	return at;
}

struct str notion_fit(struct str text)
{
	size_t at = 0, n;

	for (int i = 0; i < PIECES && at < text.n; i++) {
		n = piece_of(str_n(text.p + at, text.n - at));
		if (!n)
			break;
		at += n;
	}
	return str_n(text.p, at);
}

json_t *notion_rich(struct str text)
{
	json_t *out = json_array();
	size_t n;

	text = notion_fit(text);
	for (; text.n; text = str_n(text.p + n, text.n - n)) {
		n = piece_of(text);
		json_array_append_new(out, json_pack("{s:{s:s%}}", "text", "content", text.p, n));
	}
	return out;
}

struct str notion_plain(const json_t *rich, struct arena *a)
{
	struct buf b = BUF_MAX(4u << 20);
	struct str out;
	const json_t *item;
	size_t i;

	json_array_foreach(rich, i, item) {
		const json_t *t = json_object_get(item, "plain_text");

		buf_add(&b, json_string_value(t), json_string_length(t));
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* Ignores white space, because Notion returns a text in its own form. */
struct str notion_body_hash(struct arena *a, struct str text)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str out;

	for (size_t i = 0; i < text.n; i++)
		if (!strchr(" \t\r\n", text.p[i]) || !text.p[i])
			buf_addc(&b, text.p[i]);
	out = b.n ? hash_hex(a, buf_str(&b)) : STR("");
	buf_free(&b);
	return out;
}

/* --- properties ------------------------------------------------------------------------------------------ */

static struct str string_of(const json_t *o, const char *key, struct arena *a)
{
	const json_t *v = json_object_get(o, key);

	return arena_str(a, str_n(json_string_value(v), json_string_length(v)));
}

static struct str number_text(const json_t *v, struct arena *a)
{
	if (json_is_integer(v))
		return arena_printf(a, "%lld", (long long)json_integer_value(v));
	if (json_is_real(v) && json_real_value(v) < 1e15 && json_real_value(v) > -1e15 &&
	    json_real_value(v) == (double)(int64_t)json_real_value(v))
		return arena_printf(a, "%lld", (long long)json_real_value(v));
	return json_is_real(v) ? arena_printf(a, "%g", json_real_value(v)) : STR("");
}

/* A day, or a time in UTC; any other text stays unchanged. */
static struct str date_text(const json_t *v, struct arena *a)
{
	struct str start = string_of(v, "start", a);
	int64_t ms;

	if (!start.n || start.n <= 10 || !when_parse(start, &ms))
		return start;
	return when_text(a, ms - ms % 1000);
}

static struct str first_id(const json_t *list, struct arena *a)
{
	return notion_id(a, string_of(json_array_get(list, 0), "id", a));
}

static struct str value_text(const struct notion_field_info *k, const json_t *property,
			     struct arena *a)
{
	const json_t *v = json_object_get(property, k->type);

	if (!strcmp(k->type, "title") || !strcmp(k->type, "rich_text"))
		return notion_plain(v, a);
	if (!strcmp(k->type, "status") || !strcmp(k->type, "select"))
		return string_of(v, "name", a);
	if (!strcmp(k->type, "number"))
		return number_text(v, a);
	if (!strcmp(k->type, "date"))
		return date_text(v, a);
	return first_id(v, a);
}

static int64_t time_of(const json_t *o, const char *key, struct arena *a)
{
	int64_t ms = 0;

	return when_parse(string_of(o, key, a), &ms) ? ms : 0;
}

static bool is_bot(const struct notion *n, const json_t *user, struct arena *a)
{
	return str_eq(notion_id(a, string_of(user, "id", a)), n->bot);
}

bool notion_page_read(struct notion *n, const json_t *o, struct page *p, struct arena *a)
{
	const json_t *properties = json_object_get(o, "properties");

	*p = (struct page){ .id = notion_id(a, string_of(o, "id", a)) };
	if (!p->id.n || !json_is_object(properties))
		return false;
	p->edited = time_of(o, "last_edited_time", a);
	p->created = time_of(o, "created_time", a);
	p->trashed = json_is_true(json_object_get(o, "in_trash"));
	p->by_us = is_bot(n, json_object_get(o, "created_by"), a);
	p->last_by_us = is_bot(n, json_object_get(o, "last_edited_by"), a);
	for (int f = 0; f < F_END; f++) {
		if (!n->names[f] || !n->known[f])
			continue;
		p->is.v[f] = value_text(&notion_fields[f], json_object_get(properties, n->names[f]),
					a);
		p->is.has[f] = true;
	}
	p->parent = p->is.v[F_PARENT];
	return true;
}

/* The property's value in Notion's form. */
static json_t *notion_value(enum notion_field f, struct str text)
{
	const char *type = notion_fields[f].type;
	int64_t number = 0;

	if (!strcmp(type, "title") || !strcmp(type, "rich_text"))
		return json_pack("{s:o}", type, notion_rich(text));
	if (!strcmp(type, "relation") || !strcmp(type, "people"))
		return text.n ? json_pack("{s:[{s:s%}]}", type, "id", text.p, text.n)
			      : json_pack("{s:[]}", type);
	if (!text.n)
		return json_pack("{s:n}", type);
	if (!strcmp(type, "status") || !strcmp(type, "select"))
		return json_pack("{s:{s:s%}}", type, "name", text.p, text.n);
	if (!strcmp(type, "date"))
		return json_pack("{s:{s:s%}}", type, "start", text.p, text.n);
	(void)str_to_i64(text, &number);
	return json_pack("{s:I}", type, (json_int_t)number);
}

/* --- requests --------------------------------------------------------------------------------------------- */

static const char *page_target(struct str id, const char *more, struct arena *a)
{
	return arena_printf(a, "/v1/pages/%.*s%s", STRF(id), more).p;
}

static enum result take_page(struct notion *n, json_t *o, struct page *p, struct arena *a)
{
	struct page got;
	bool good = notion_page_read(n, o, &got, a);

	json_decref(o);
	if (!good)
		return notion_fail(n, API_ERROR, STR("Notion's answer about a page cannot be read"),
				   STR("run the same command again"));
	got.body = p->body;
	got.body_read = p->body_read;
	got.is.v[F_BODY] = p->is.v[F_BODY];
	got.is.has[F_BODY] = p->is.has[F_BODY];
	*p = got;
	return SUCCESS;
}

enum result notion_get(struct notion *n, struct str id, struct page *p, struct arena *a)
{
	json_t *o;
	enum result code = notion_ask(n, "GET", page_target(id, "", a), NULL, false, &o);

	*p = (struct page){ 0 };
	return code == SUCCESS ? take_page(n, o, p, a) : code;
}

static void take_body(struct page *p, const json_t *o, struct arena *a)
{
	p->body = string_of(o, "markdown", a);
	p->is.v[F_BODY] = notion_body_hash(a, p->body);
	/* a truncated text must not replace the whole one */
	p->is.has[F_BODY] = p->body_read = !json_is_true(json_object_get(o, "truncated"));
}

static enum result ask_body(struct notion *n, const char *method, json_t *sent, struct page *p,
			    struct arena *a)
{
	json_t *o;
	enum result code = notion_ask(n, method, page_target(p->id, "/markdown", a), sent, false,
				      &o);

	if (code != SUCCESS)
		return code;
	take_body(p, o, a);
	json_decref(o);
	return SUCCESS;
}

enum result notion_body(struct notion *n, struct page *p, struct arena *a)
{
	return ask_body(n, "GET", NULL, p, a);
}

enum result notion_patch_body(struct notion *n, struct page *p, struct str text, struct arena *a)
{
	return ask_body(n, "PATCH",
			json_pack("{s:s,s:{s:s%,s:b}}", "type", "replace_content",
				  "replace_content", "new_str", str_p(text), text.n,
				  "allow_deleting_content", 1),
			p, a);
}

static json_t *properties_of(const struct notion *n, const struct values *v, const bool *which,
			     struct str parent)
{
	json_t *out = json_object();

	for (int f = 0; f < F_END; f++)
		if (which[f] && n->known[f] && n->names[f])
			json_object_set_new(out, n->names[f],
					    notion_value((enum notion_field)f,
							 f == F_PARENT ? parent : v->v[f]));
	return out;
}

enum result notion_patch(struct notion *n, struct page *p, const struct values *v,
			 const bool *which, struct str parent, struct arena *a)
{
	json_t *o, *body = json_pack("{s:o}", "properties", properties_of(n, v, which, parent));
	enum result code = notion_ask(n, "PATCH", page_target(p->id, "", a), body, false, &o);

	return code == SUCCESS ? take_page(n, o, p, a) : code;
}

enum result notion_trash(struct notion *n, struct str id)
{
	struct arena a = { 0 };
	enum result code = notion_ask(n, "PATCH", page_target(id, "", &a),
				      json_pack("{s:b}", "in_trash", 1), false, NULL);

	arena_free(&a);
	return code;
}

enum result notion_find(struct notion *n, struct str task, struct page *p, bool *found,
			struct arena *a)
{
	json_t *o, *body = json_pack("{s:{s:s,s:{s:s%}},s:i}", "filter", "property", n->names[F_ID],
				     "rich_text", "equals", task.p, task.n, "page_size", 10);
	const char *target = arena_printf(a, "/v1/data_sources/%.*s/query", STRF(n->source)).p;
	enum result code = notion_ask(n, "POST", target, body, false, &o);
	const json_t *item;
	size_t i;

	*found = false;
	if (code != SUCCESS)
		return code;
	json_array_foreach(json_object_get(o, "results"), i, item) {
		if (!*found)
			*found = notion_page_read(n, item, p, a) && p->by_us && !p->trashed;
	}
	json_decref(o);
	return SUCCESS;
}

enum result notion_make(struct notion *n, const struct values *v, struct str parent,
			struct str body, struct page *p, struct arena *a)
{
	bool which[F_END];
	json_t *o, *sent;
	enum result code;

	for (int f = 0; f < F_END; f++)
		which[f] = v->has[f] && v->v[f].n && f != F_BODY;
	sent = json_pack("{s:{s:s,s:s%},s:o}", "parent", "type", "data_source_id", "data_source_id",
			 n->source.p, n->source.n, "properties",
			 properties_of(n, v, which, parent));
	if (body.n)
		json_object_set_new(sent, "markdown", json_stringn(body.p, body.n));
	code = notion_ask(n, "POST", "/v1/pages", sent, true, &o);
	if (code != SUCCESS)
		return code;
	code = take_page(n, o, p, a);
	n->unknown = code != SUCCESS; /* the page was made */
	return code;
}
