#include "format/json_text.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"

#define TEXT_LIMIT (64u << 20)

const char *json_text_fault(struct str text, struct arena *a)
{
	json_error_t e;
	json_t *o = json_loadb(str_p(text), text.n, JSON_REJECT_DUPLICATES, &e);
	bool object = json_is_object(o);

	if (!o)
		return arena_printf(a, "it is not JSON: %.*s (line %d, column %d)",
				    STRF(text_line(a, str_c(e.text))), e.line, e.column)
			.p;
	json_decref(o);
	return object ? NULL : "it is JSON, but not an object";
}

/* --- positions, only in a text that json_text_fault() has accepted ------------------------------- */

static size_t skip_blank(struct str t, size_t at)
{
	while (at < t.n && strchr(" \t\r\n", t.p[at]))
		at++;
	return at;
}

static size_t skip_string(struct str t, size_t at)
{
	for (at++; t.p[at] != '"'; at++)
		if (t.p[at] == '\\')
			at++;
	return at + 1;
}

/* The position after the value that begins at `at`. */
static size_t skip_value(struct str t, size_t at)
{
	size_t depth = 0;

	if (t.p[at] == '"')
		return skip_string(t, at);
	if (t.p[at] != '{' && t.p[at] != '[') {
		while (at < t.n && !strchr(",]} \t\r\n", t.p[at]))
			at++;
		return at;
	}
	do {
		if (t.p[at] == '"') {
			at = skip_string(t, at);
			continue;
		}
		if (t.p[at] == '{' || t.p[at] == '[')
			depth++;
		else if (t.p[at] == '}' || t.p[at] == ']')
			depth--;
		at++;
	} while (depth);
	return at;
}

/* One member of an object, or element of an array. */
struct item {
	size_t from;       /* start of its key, or of the element */
	size_t value, end; /* start and end of its value */
	size_t before;     /* end of the value before it, or of the opening bracket */
	bool first;
};

/* The item after `behind`, which is the end of an item or of the opening bracket. */
static bool next_item(struct str t, size_t behind, bool object, struct item *i)
{
	size_t at = skip_blank(t, behind);

	i->first = t.p[at] != ',';
	i->before = behind;
	if (!i->first)
		at = skip_blank(t, at + 1);
	if (t.p[at] == '}' || t.p[at] == ']')
		return false;
	i->from = at;
	if (object) {
		at = skip_blank(t, skip_string(t, at)); /* the colon */
		at = skip_blank(t, at + 1);
	}
	i->value = at;
	i->end = skip_value(t, at);
	return true;
}

static json_t *load(struct str t, size_t from, size_t to)
{
	return json_loadb(t.p + from, to - from, JSON_DECODE_ANY, NULL);
}

static bool is_value(struct str t, const struct item *i, const json_t *value)
{
	json_t *v = load(t, i->value, i->end);
	bool same = json_equal(v, value);

	json_decref(v);
	return same;
}

static bool is_key(struct str t, const struct item *i, const char *key)
{
	json_t *v = load(t, i->from, skip_string(t, i->from));
	bool same = json_is_string(v) && !strcmp(json_string_value(v), key);

	json_decref(v);
	return same;
}

static bool find_key(struct str t, size_t container, const char *key, struct item *i)
{
	for (size_t at = container + 1; next_item(t, at, true, i); at = i->end)
		if (is_key(t, i, key))
			return true;
	return false;
}

static bool find_value(struct str t, size_t container, const json_t *value, struct item *i)
{
	for (size_t at = container + 1; next_item(t, at, false, i); at = i->end)
		if (is_value(t, i, value))
			return true;
	return false;
}

/* --- adding -------------------------------------------------------------------------------------- */

static size_t count_keys(const struct json_place *at)
{
	size_t n = 0;

	while (n < 3 && at->key[n])
		n++;
	return n;
}

/* The value inside the objects, and the array, that must be made for it from the key `depth` on. */
static json_t *wrapped(const struct json_place *at, size_t depth, const json_t *value)
{
	json_t *v = json_deep_copy(value);

	if (at->element)
		v = json_pack("[o]", v);
	for (size_t i = count_keys(at); i > depth; i--)
		v = json_pack("{s:o}", at->key[i - 1], v);
	return v;
}

/* The indentation of one level in this file. */
static struct str unit_of(struct str t)
{
	struct item i;
	struct str lead;

	if (!t.n || !next_item(t, skip_blank(t, 0) + 1, true, &i))
		return STR("  ");
	lead = str_n(t.p + i.before, i.from - i.before);
	while (lead.n && strchr("\r\n", lead.p[0]))
		lead = str_n(lead.p + 1, lead.n - 1);
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
	bool lines = lead.n && memchr(lead.p, '\n', lead.n);
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

/* Inserts the item after the last item of the container. */
static struct str insert(struct str t, size_t container, const json_t *item, bool member,
			 struct arena *a)
{
	struct buf b = BUF_MAX(TEXT_LIMIT);
	struct item i = { 0 }, last = { .end = container + 1 };
	struct str lead = STR(" "), out;
	bool any = false;

	while (next_item(t, last.end, t.p[container] == '{', &i)) {
		last = i;
		any = true;
	}
	if (any) {
		size_t from = last.before;

		while (t.p[from] != ',' && !last.first)
			from++;
		from += !last.first;
		lead = str_n(t.p + from, last.from - from);
	}
	buf_add(&b, t.p, last.end);
	if (any)
		buf_addc(&b, ',');
	buf_adds(&b, lead);
	put_item(&b, item, member, lead, unit_of(t));
	buf_add(&b, t.p + last.end, t.n - last.end);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static struct str fresh(const struct json_place *at, const json_t *value, struct arena *a)
{
	json_t *o = wrapped(at, 0, value);
	char *text = json_dumps(o, JSON_INDENT(2));
	struct str out = arena_printf(a, "%s\n", text);

	free(text);
	json_decref(o);
	return out;
}

/* Inserts the key `depth`, with the objects that must be made inside it, or the element, into the container. */
static enum text_change add_here(struct str t, size_t container, const struct json_place *at,
				 size_t depth, const json_t *value, struct str *out,
				 struct arena *a)
{
	bool member = depth < count_keys(at);
	json_t *item = member ? wrapped(at, depth, value) : json_deep_copy(value);

	*out = insert(t, container, item, member, a);
	json_decref(item);
	return TEXT_CHANGED;
}

enum text_change json_text_add(struct str t, const struct json_place *at, const json_t *value,
			       struct str *out, struct arena *a)
{
	size_t container = skip_blank(t, 0), n = count_keys(at);
	struct item i;

	if (!t.n) {
		*out = fresh(at, value, a);
		return TEXT_CHANGED;
	}
	for (size_t depth = 0; depth < n; depth++) {
		if (t.p[container] != '{')
			return TEXT_UNFIT;
		if (!find_key(t, container, at->key[depth], &i))
			return add_here(t, container, at, depth, value, out, a);
		container = i.value;
	}
	if (!at->element)
		return is_value(t, &i, value) ? TEXT_SAME : TEXT_OTHER;
	if (t.p[container] != '[')
		return TEXT_UNFIT;
	if (find_value(t, container, value, &i))
		return TEXT_SAME;
	return add_here(t, container, at, n, value, out, a);
}

/* --- removing ------------------------------------------------------------------------------------ */

static struct str without(struct str t, size_t from, size_t to, struct arena *a)
{
	return arena_printf(a, "%.*s%.*s", (int)from, t.p, (int)(t.n - to), t.p + to);
}

/* Removes the innermost item, and with it the objects around it that json_text_add() made for it. */
static enum text_change take_out(struct str t, const struct item *way, size_t n, struct str *out,
				 struct arena *a)
{
	while (n-- > 0) {
		const struct item *i = &way[n];
		struct item next;
		bool more = next_item(t, i->end, i->from != i->value, &next);

		if (!i->first) {
			*out = without(t, i->before, i->end, a);
			return TEXT_CHANGED;
		}
		if (more) {
			*out = without(t, i->from, next.from, a);
			return TEXT_CHANGED;
		}
		if (str_is(str_n(t.p + i->before, i->from - i->before), " ")) {
			*out = without(t, i->before, i->end, a);
			return TEXT_CHANGED;
		}
	}
	return TEXT_EMPTY;
}

enum text_change json_text_remove(struct str t, const struct json_place *at, const json_t *value,
				  struct str *out, struct arena *a)
{
	size_t container = skip_blank(t, 0), n = count_keys(at);
	struct item way[4];

	for (size_t depth = 0; depth < n; depth++) {
		if (t.p[container] != '{')
			return TEXT_UNFIT;
		if (!find_key(t, container, at->key[depth], &way[depth]))
			return TEXT_SAME;
		container = way[depth].value;
	}
	if (!at->element)
		return is_value(t, &way[n - 1], value) ? take_out(t, way, n, out, a) : TEXT_OTHER;
	if (t.p[container] != '[')
		return TEXT_UNFIT;
	if (!find_value(t, container, value, &way[n]))
		return TEXT_SAME;
	return take_out(t, way, n + 1, out, a);
}
