/* The positions of the values in a JSON file that may have comments and trailing commas. All three
 * views of a file have the same length, so a position in one is valid in the others. A comment
 * whose end other programs could read differently is refused. */
#include "format/json.h"

#include "base/text.h"

#define BLANKS " \t\r\n"
#define MARK "\xef\xbb\xbf" /* a byte order mark */

static size_t skip_string(const char *p, size_t n, size_t at)
{
	for (at++; at < n && p[at] != '"'; at++)
		if (p[at] == '\\')
			at++;
	return at < n ? at + 1 : n;
}

/* --- comments ------------------------------------------------------------------------------------ */

/* The end of the comment at `at`, which does not include the newline; `at`: there is no comment, or it has no end. */
static size_t note_end(struct str t, size_t at)
{
	size_t i = at + 2;

	if (t.n < i || t.p[at] != '/')
		return at;
	if (t.p[at + 1] == '/') {
		while (i < t.n && t.p[i] != '\n')
			i++;
		return i < t.n && t.p[i - 1] == '\r' ? i - 1 : i;
	}
	for (; t.p[at + 1] == '*' && i + 1 < t.n; i++)
		if (t.p[i] == '*' && t.p[i + 1] == '/')
			return i + 2;
	return at;
}

static void blank_out(char *map, char *strict, size_t from, size_t to, char note)
{
	memset(map + from, note, to - from);
	for (size_t i = from; i < to; i++)
		if (strict[i] != '\n') /* messages count lines */
			strict[i] = ' ';
}

/* Some programs end a line at a carriage return and others do not, so they would disagree on where
 * this comment ends. */
static bool json_scan_ambiguous(struct str t, size_t from, size_t to)
{
	return t.p[from + 1] == '/' && memchr(t.p + from, '\r', to - from);
}

/* Fills in the views. Returns a message, or NULL. */
static const char *make_views(struct str t, char *map, char *strict)
{
	size_t at = str_starts(t, STR(MARK)) ? strlen(MARK) : 0, comma = 0;
	char last = '\0', before = '\0';

	blank_out(map, strict, 0, at, JSON_NOTE);
	while (at < t.n) {
		size_t end = note_end(t, at);
		char c = t.p[at];

		if (end > at) {
			if (json_scan_ambiguous(t, at, end))
				return "a comment contains a carriage return without a newline";
			blank_out(map, strict, at, end,
				  t.p[at + 1] == '/' ? JSON_LINE_NOTE : JSON_NOTE);
			at = end;
			continue;
		}
		/* a comma after a value, and before the end of its object or array */
		if ((c == '}' || c == ']') && last == ',' && !strchr("{[,:", before))
			strict[comma] = ' ';
		if (!strchr(BLANKS, c)) {
			before = last;
			last = c;
		}
		if (c == ',')
			comma = at;
		at = c == '"' ? skip_string(t.p, t.n, at) : at + 1;
	}
	return NULL;
}

static const char *load_fault(const struct json_doc *d, struct arena *a)
{
	json_error_t e;
	json_t *o = json_loadb(d->strict, d->text.n, JSON_REJECT_DUPLICATES, &e);
	bool object = json_is_object(o);

	if (!o)
		return arena_printf(a, "it is not JSON: %s (line %d, column %d)",
				    arena_cstr(a, text_line(a, str_c(e.text))), e.line, e.column)
			.p;
	json_decref(o);
	return object ? NULL : "it is JSON, but not an object";
}

static const char *open_views(struct str text, struct json_doc *d, struct arena *a)
{
	char *map = arena_cstr(a, text), *strict = arena_cstr(a, text);

	*d = (struct json_doc){ .text = text, .map = map, .strict = strict };
	return make_views(text, map, strict);
}

void json_views(struct str text, struct json_doc *d, struct arena *a)
{
	(void)open_views(text, d, a);
}

const char *json_scan(struct str text, struct json_doc *d, struct arena *a)
{
	const char *fault;

	if (!text_valid(text))
		return "it is not JSON: it is not UTF-8, or contains a NUL";
	fault = open_views(text, d, a);
	return fault ? fault : load_fault(d, a);
}

/* --- positions ----------------------------------------------------------------------------------- */

size_t json_skip(const struct json_doc *d, size_t at)
{
	while (at < d->text.n && (strchr(BLANKS, d->map[at]) || json_is_note(d->map[at])))
		at++;
	return at;
}

size_t json_lead(const struct json_doc *d, size_t at)
{
	while (at && strchr(BLANKS, d->map[at - 1]))
		at--;
	return at;
}

/* The position after the value that begins at `at`. */
static size_t skip_value(const struct json_doc *d, size_t at)
{
	const char *p = d->map;
	size_t depth = 0, n = d->text.n;

	if (p[at] == '"')
		return skip_string(p, n, at);
	if (p[at] != '{' && p[at] != '[')
		return at + strcspn(p + at, ",]}#/" BLANKS);
	do {
		if (p[at] == '"') {
			at = skip_string(p, n, at);
			continue;
		}
		if (p[at] == '{' || p[at] == '[')
			depth++;
		else if (p[at] == '}' || p[at] == ']')
			depth--;
		at++;
	} while (depth);
	return at;
}

bool json_next(const struct json_doc *d, size_t behind, bool object, struct json_item *i)
{
	const char *p = d->map;
	size_t at = json_skip(d, behind);

	i->first = p[at] != ',';
	i->before = behind;
	if (!i->first)
		at = json_skip(d, at + 1);
	if (p[at] == '}' || p[at] == ']')
		return false;
	i->from = at;
	if (object) {
		at = json_skip(d, skip_string(p, d->text.n, at)); /* the colon */
		at = json_skip(d, at + 1);
	}
	i->value = at;
	i->end = skip_value(d, at);
	return true;
}

static json_t *json_scan_load(const struct json_doc *d, size_t from, size_t to)
{
	return json_loadb(d->strict + from, to - from, JSON_DECODE_ANY, NULL);
}

json_t *json_value_of(const struct json_doc *d, const struct json_item *i)
{
	return json_scan_load(d, i->value, i->end);
}

static bool is_key(const struct json_doc *d, const struct json_item *i, const char *key)
{
	json_t *v = json_scan_load(d, i->from, skip_string(d->map, d->text.n, i->from));
	bool same = json_is_string(v) && !strcmp(json_string_value(v), key);

	json_decref(v);
	return same;
}

bool json_find_key(const struct json_doc *d, size_t container, const char *key, struct json_item *i)
{
	for (size_t at = container + 1; json_next(d, at, true, i); at = i->end)
		if (is_key(d, i, key))
			return true;
	return false;
}

bool json_find_value(const struct json_doc *d, size_t container, const json_t *value,
		     struct json_item *i)
{
	bool same = false;

	for (size_t at = container + 1; !same && json_next(d, at, false, i); at = i->end) {
		json_t *v = json_value_of(d, i);

		same = json_equal(v, value);
		json_decref(v);
	}
	return same;
}
