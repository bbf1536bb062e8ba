/* Adds, replaces and removes one value in the text of a JSON file, and keeps every other byte of
 * it. A result that is not valid JSON is never returned: the caller gets TEXT_UNFIT and the file
 * stays as it was. The last part writes JSON as compact text, byte for byte as jansson does. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/json.h"

#define TEXT_LIMIT (64u << 20)
#define NONE SIZE_MAX

const char *json_text_fault(struct str text, struct arena *a)
{
	struct arena views = { 0 };
	struct json_doc d;
	const char *fault = json_scan(text, &d, &views);

	if (fault)
		fault = arena_cstr(a, str_c(fault));
	arena_free(&views);
	return fault;
}

static size_t count_keys(const struct json_place *at)
{
	size_t n = 0;

	while (n < JSON_PLACE_KEYS && at->key[n])
		n++;
	return n;
}

/* The items along the keys of a place. */
struct json_path {
	struct json_item item[JSON_PLACE_KEYS + 1];
	size_t n;         /* how many of its keys exist */
	size_t container; /* the value of the last one, or the whole object */
	bool fits;        /* each value before the last is an object */
};

static struct json_path find_json_path(const struct json_doc *d, const struct json_place *at)
{
	struct json_path w = { .container = json_skip(d, 0), .fits = true };

	for (; w.n < count_keys(at); w.n++) {
		w.fits = d->map[w.container] == '{';
		if (!w.fits || !json_find_key(d, w.container, at->key[w.n], &w.item[w.n]))
			break;
		w.container = w.item[w.n].value;
	}
	return w;
}

/* Returns the new text only if it is valid JSON. */
static enum text_change json_text_finish(struct buf *b, struct str *out, struct arena *a)
{
	struct str text = arena_str(a, buf_str(b));
	bool good = !b->full && !json_text_fault(text, a);

	buf_free(b);
	if (!good)
		return TEXT_UNFIT;
	*out = text;
	return TEXT_CHANGED;
}

/* --- adding -------------------------------------------------------------------------------------- */

/* The value inside the objects, and the array, that must be made for it from the key `depth` on. */
static json_t *json_text_wrapped(const struct json_place *at, size_t depth, const json_t *value)
{
	json_t *v = json_deep_copy(value);

	if (at->element)
		v = json_pack("[o]", v);
	for (size_t i = count_keys(at); i > depth; i--)
		v = json_pack("{s:o}", at->key[i - 1], v);
	return v;
}

static bool has_line(struct str s)
{
	return s.n && memchr(s.p, '\n', s.n);
}

/* The blanks before a position, from the last newline on. */
static struct str lead_of(const struct json_doc *d, size_t at)
{
	size_t from = json_lead(d, at);

	for (size_t i = at; i-- > from;)
		if (d->text.p[i] == '\n') {
			from = i > from && d->text.p[i - 1] == '\r' ? i - 1 : i;
			break;
		}
	return str_n(d->text.p + from, at - from);
}

/* The end of the comments after `at` with only `blanks` before them; `at`: there are none. */
static size_t after_notes(const struct json_doc *d, size_t at, const char *blanks)
{
	size_t i = at;

	for (;;) {
		i += strspn(d->map + i, blanks);
		if (!json_is_note(d->map[i]))
			return at;
		while (json_is_note(d->map[i]))
			i++;
		at = i;
	}
}

/* The lead of the last comment in an empty container; else a blank. */
static struct str lead_in_empty(const struct json_doc *d, size_t container)
{
	size_t note = after_notes(d, container + 1, " \t\r\n");

	while (json_is_note(d->map[note - 1]))
		note--;
	return has_line(lead_of(d, note)) ? lead_of(d, note) : STR(" ");
}

/* The indentation of one level in this file. */
static struct str unit_of(const struct json_doc *d)
{
	size_t container = json_skip(d, 0);
	struct json_item i;
	struct str lead;

	if (json_next(d, container + 1, true, &i))
		lead = lead_of(d, i.from);
	else
		lead = lead_in_empty(d, container);
	if (!has_line(lead))
		return STR("  ");
	str_cut(&lead, '\n');
	return lead.n ? lead : STR("  ");
}

/* Converts jansson's indentation to the file's units, and puts `lead` before each line except the first. */
static void put_lines(struct buf *b, struct str lines, struct str lead, struct str unit)
{
	bool start = false;

	for (size_t i = 0; i < lines.n; i++) {
		if (start && lines.p[i] == ' ') {
			buf_adds(b, unit);
		} else if (lines.p[i] == '\n') {
			buf_adds(b, lead);
			start = true;
		} else {
			start = false;
			buf_addc(b, lines.p[i]);
		}
	}
}

/* The text of an item: the only member of `item`, or `item` itself. */
static void put_item(struct buf *b, const json_t *item, bool member, struct str lead,
		     struct str unit)
{
	bool lines = has_line(lead);
	char *text = json_dumps(item, lines ? JSON_INDENT(1) : 0);
	struct str s = str_c(text);

	if (member) { /* without its braces */
		s = str_n(s.p + 1, s.n - 2);
		s = str_trim(s);
	}
	if (member && lines) { /* one level less */
		struct buf out = BUF_MAX(TEXT_LIMIT);

		for (size_t i = 0; i < s.n; i++) {
			buf_addc(&out, s.p[i]);
			if (s.p[i] == '\n')
				i++;
		}
		put_lines(b, buf_str(&out), lead, unit);
		buf_free(&out);
	} else if (lines) {
		put_lines(b, s, lead, unit);
	} else {
		buf_adds(b, s);
	}
	free(text);
}

/* The place of a new item: behind the last one and the comments on its line, which belong to the last one. In an
 * empty container it is behind all comments. */
struct spot {
	size_t value;        /* end of the last value, or of the opening bracket */
	size_t at;           /* the item goes here, with `lead` before it */
	bool comma;          /* needs one after the last value */
	bool trailing_comma; /* the last value had one, so the new item gets one */
	struct str lead;
};

static struct spot find_spot(const struct json_doc *d, size_t container, struct arena *a)
{
	struct spot s = { 0 };
	struct json_item i, last = { .end = container + 1 };
	size_t comma;
	bool any = false;

	for (; json_next(d, last.end, d->map[container] == '{', &i); any = true)
		last = i;
	s.value = last.end;
	if (any) {
		comma = json_skip(d, last.end);
		s.trailing_comma = d->map[comma] == ',';
		s.comma = !s.trailing_comma;
		s.at = after_notes(d, s.trailing_comma ? comma + 1 : last.end, " \t");
		s.lead = lead_of(d, last.from);
	} else {
		s.at = after_notes(d, s.value, " \t\r\n");
		s.lead = lead_in_empty(d, container);
	}
	if (d->map[s.at - 1] == JSON_LINE_NOTE && !has_line(s.lead))
		s.lead = arena_printf(a, "%s%s", d->map[s.at] == '\r' ? "\r\n" : "\n",
				      arena_cstr(a, unit_of(d)));
	return s;
}

static enum text_change json_text_insert(const struct json_doc *d, size_t container,
					 const json_t *item, bool member, struct str *out,
					 struct arena *a)
{
	struct spot s = find_spot(d, container, a);
	struct buf b = BUF_MAX(TEXT_LIMIT);
	struct str t = d->text;

	buf_add(&b, t.p, s.value);
	if (s.comma)
		buf_addc(&b, ',');
	buf_add(&b, t.p + s.value, s.at - s.value);
	buf_adds(&b, s.lead);
	put_item(&b, item, member, s.lead, unit_of(d));
	if (s.trailing_comma)
		buf_addc(&b, ',');
	buf_add(&b, t.p + s.at, t.n - s.at);
	return json_text_finish(&b, out, a);
}

static enum text_change json_text_fresh(const struct json_place *at, const json_t *value,
					struct str *out, struct arena *a)
{
	json_t *o = json_text_wrapped(at, 0, value);
	char *text = json_dumps(o, JSON_INDENT(2));

	*out = arena_printf(a, "%s\n", text);
	free(text);
	json_decref(o);
	return TEXT_CHANGED;
}

/* Inserts the key `depth`, with the objects that must be made inside it, or the element, into the container. */
static enum text_change add_here(const struct json_doc *d, size_t container,
				 const struct json_place *at, size_t depth, const json_t *value,
				 struct str *out, struct arena *a)
{
	bool member = depth < count_keys(at);
	json_t *item = member ? json_text_wrapped(at, depth, value) : json_deep_copy(value);
	enum text_change r = json_text_insert(d, container, item, member, out, a);

	json_decref(item);
	return r;
}

static bool is_value(const struct json_doc *d, const struct json_item *i, const json_t *value)
{
	json_t *v = json_value_of(d, i);
	bool same = json_equal(v, value);

	json_decref(v);
	return same;
}

static enum text_change json_text_add_member(const struct json_doc *d, const struct json_place *at,
					     const json_t *value, struct str *out, struct arena *a)
{
	struct json_path w = find_json_path(d, at);
	struct json_item i;

	if (!w.fits)
		return TEXT_UNFIT;
	if (w.n < count_keys(at))
		return add_here(d, w.container, at, w.n, value, out, a);
	if (!at->element)
		return is_value(d, &w.item[w.n - 1], value) ? TEXT_SAME : TEXT_OTHER;
	if (d->map[w.container] != '[')
		return TEXT_UNFIT;
	if (json_find_value(d, w.container, value, &i))
		return TEXT_SAME;
	return add_here(d, w.container, at, w.n, value, out, a);
}

enum text_change json_text_add(struct str t, const struct json_place *at, const json_t *value,
			       struct str *out, struct arena *a)
{
	struct arena views = { 0 };
	struct json_doc d;
	enum text_change r;

	if (!t.n)
		return json_text_fresh(at, value, out, a);
	json_views(t, &d, &views);
	r = json_text_add_member(&d, at, value, out, a);
	arena_free(&views);
	return r;
}

/* --- finding and replacing ----------------------------------------------------------------------- */

/* Finds the path to `value`, and appends its array element if the place is an element. */
static enum text_change find_entry(const struct json_doc *d, const struct json_place *at,
				   const json_t *value, struct json_path *w)
{
	*w = find_json_path(d, at);
	if (!w->fits)
		return TEXT_UNFIT;
	if (w->n < count_keys(at))
		return TEXT_SAME;
	if (!at->element)
		return is_value(d, &w->item[w->n - 1], value) ? TEXT_CHANGED : TEXT_OTHER;
	if (d->map[w->container] != '[')
		return TEXT_UNFIT;
	if (!json_find_value(d, w->container, value, &w->item[w->n]))
		return TEXT_SAME;
	w->n++;
	return TEXT_CHANGED;
}

json_t *json_text_get(struct str t, const struct json_place *at)
{
	struct arena views = { 0 };
	struct json_doc d;
	json_t *v = NULL;
	struct json_path w;

	if (!t.n)
		return NULL;
	json_views(t, &d, &views);
	w = find_json_path(&d, at);
	if (w.n == count_keys(at))
		v = json_value_of(&d, &w.item[w.n - 1]);
	arena_free(&views);
	return v;
}

static enum text_change put_value(const struct json_doc *d, const struct json_item *i,
				  const json_t *value, struct str *out, struct arena *a)
{
	struct buf b = BUF_MAX(TEXT_LIMIT);
	struct str t = d->text;

	buf_add(&b, t.p, i->value);
	put_item(&b, value, false, lead_of(d, i->from), unit_of(d));
	buf_add(&b, t.p + i->end, t.n - i->end);
	return json_text_finish(&b, out, a);
}

enum text_change json_text_replace(struct str t, const struct json_place *at, const json_t *old,
				   const json_t *value, struct str *out, struct arena *a)
{
	struct arena views = { 0 };
	struct json_doc d;
	enum text_change r;
	struct json_path w;

	json_views(t, &d, &views);
	r = find_entry(&d, at, old, &w);
	if (r == TEXT_CHANGED)
		r = put_value(&d, &w.item[w.n - 1], value, out, a);
	arena_free(&views);
	return r;
}

/* --- removing ------------------------------------------------------------------------------------ */

static bool has_note(const struct json_doc *d, size_t from, size_t to)
{
	return memchr(d->map + from, JSON_NOTE, to - from) ||
	       memchr(d->map + from, JSON_LINE_NOTE, to - from);
}

/* Did json_text_add() make the container for its only item, n? A comment shows that it did not. */
static bool made_for(const struct json_doc *d, const struct json_path *w, size_t n)
{
	const struct json_item *i = &w->item[n];
	size_t from = n ? w->item[n - 1].from : 0, to = n ? w->item[n - 1].end : d->text.n;

	return !has_note(d, from, i->from) && !has_note(d, i->end, to) &&
	       !str_is(str_n(d->text.p + i->before, i->from - i->before), " ");
}

/* Removes the item with the blanks before it, and one comma. */
static enum text_change json_text_cut(const struct json_doc *d, const struct json_item *i,
				      struct str *out, struct arena *a)
{
	size_t from = json_lead(d, i->from), comma = json_skip(d, i->end), rest = i->end;
	struct buf b = BUF_MAX(TEXT_LIMIT);
	struct str t = d->text;

	if (d->map[comma] != ',')
		comma = i->first ? NONE : json_skip(d, i->before);
	if (comma == rest)
		rest++;
	/* keep the newline: without it, the text after the item would join the comment */
	if (from && d->map[from - 1] == JSON_LINE_NOTE && !strchr("\r\n", t.p[rest]))
		from = i->from;
	for (size_t k = 0; k < t.n; k++)
		if (k != comma && (k < from || k >= i->end))
			buf_addc(&b, t.p[k]);
	return json_text_finish(&b, out, a);
}

/* Removes the innermost item, and with it the objects around it that json_text_add() made for it. */
static enum text_change take_out(const struct json_doc *d, const struct json_path *w,
				 struct str *out, struct arena *a)
{
	for (size_t n = w->n; n-- > 0;) {
		const struct json_item *i = &w->item[n];
		struct json_item next;

		if (!i->first || json_next(d, i->end, i->from != i->value, &next) ||
		    !made_for(d, w, n))
			return json_text_cut(d, i, out, a);
	}
	return TEXT_EMPTY;
}

enum text_change json_text_remove(struct str t, const struct json_place *at, const json_t *value,
				  struct str *out, struct arena *a)
{
	struct arena views = { 0 };
	struct json_doc d;
	enum text_change r;
	struct json_path w;

	json_views(t, &d, &views);
	r = find_entry(&d, at, value, &w);
	if (r == TEXT_CHANGED)
		r = take_out(&d, &w, out, a);
	arena_free(&views);
	return r;
}

/* --- json write ------------------------------------------------------------------------------- */

static void write_escape(struct buf *out, char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *at = c ? strchr(plain, c) : NULL;

	if (!at) {
		buf_addf(out, "\\u%04X", (unsigned)c);
		return;
	}
	buf_addc(out, '\\');
	buf_addc(out, letters[at - plain]);
}

static void write_text(struct buf *out, const char *p, size_t n)
{
	size_t from = 0;

	buf_addc(out, '"');
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
			continue;
		buf_add(out, p + from, i - from);
		write_escape(out, p[i]);
		from = i + 1;
	}
	buf_add(out, p + from, n - from);
	buf_addc(out, '"');
}

static void write_array(struct buf *out, const json_t *v)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (i)
			buf_addc(out, ',');
		json_write(json_array_get(v, i), out);
	}
	buf_addc(out, ']');
}

static void write_object(struct buf *out, const json_t *v)
{
	json_t *o = (json_t *)v; /* an iterator changes nothing */
	void *first = json_object_iter(o);

	buf_addc(out, '{');
	for (void *at = first; at; at = json_object_iter_next(o, at)) {
		if (at != first)
			buf_addc(out, ',');
		write_text(out, json_object_iter_key(at), json_object_iter_key_len(at));
		buf_addc(out, ':');
		json_write(json_object_iter_value(at), out);
	}
	buf_addc(out, '}');
}

static void write_real(struct buf *out, const json_t *v)
{
	char text[64];
	size_t n = json_dumpb(v, text, sizeof(text), JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	buf_add(out, text, n);
}

void json_write(const json_t *v, struct buf *out)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		write_object(out, v);
		break;
	case JSON_ARRAY:
		write_array(out, v);
		break;
	case JSON_STRING:
		write_text(out, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		write_real(out, v);
		break;
	case JSON_TRUE:
		buf_adds(out, STR("true"));
		break;
	case JSON_FALSE:
		buf_adds(out, STR("false"));
		break;
	case JSON_NULL:
		buf_adds(out, STR("null"));
		break;
	}
}
