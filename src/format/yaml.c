/* Reads and writes the YAML of front matter. Limits on size, depth and number of values, and no
 * aliases, keep a small file from filling the memory. A text that another YAML reader would take
 * for a number or a boolean is written in quotes. */
#include "format/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/text.h"

/* --- in ----------------------------------------------------------------------------------------- */

struct reader {
	yaml_parser_t parser;
	struct str text;
	size_t parts;
	struct yaml_fault *fault;
	struct arena *arena;
};

static int yaml_refuse(struct reader *r, size_t line, struct str text)
{
	*r->fault = (struct yaml_fault){ line, arena_str(r->arena, text) };
	return -EBADMSG;
}

static size_t lines_before(struct str text, size_t offset)
{
	size_t lines = 0;

	for (size_t i = 0; i < offset && i < text.n; i++)
		lines += text.p[i] == '\n';
	return lines;
}

static int yaml_next(struct reader *r, yaml_event_t *ev)
{
	const yaml_parser_t *p = &r->parser;
	size_t line;

	if (++r->parts > YAML_PARTS)
		return yaml_refuse(r, p->mark.line + 1, STR("more than 250,000 values"));
	if (yaml_parser_parse(&r->parser, ev))
		return 0;
	line = p->error == YAML_READER_ERROR ? lines_before(r->text, p->problem_offset)
					     : p->problem_mark.line;
	return yaml_refuse(r, line + 1, str_c(p->problem ? p->problem : "out of memory"));
}

static bool is_word(struct str s, const char *a, const char *b, const char *c)
{
	return str_is(s, a) || str_is(s, b) || str_is(s, c);
}

/* The value of a word without quotes, by the JSON schema, with YAML's spellings of null, true and false. */
static json_t *yaml_resolve(struct str s)
{
	json_t *number = NULL;

	if (!s.n || str_is(s, "~") || is_word(s, "null", "Null", "NULL"))
		return json_null();
	if (is_word(s, "true", "True", "TRUE"))
		return json_true();
	if (is_word(s, "false", "False", "FALSE"))
		return json_false();
	if (s.p[0] == '-' || (s.p[0] >= '0' && s.p[0] <= '9'))
		number = json_loadb(s.p, s.n, JSON_DECODE_ANY, NULL);
	return number ? number : json_stringn(s.p, s.n);
}

static int read_scalar(struct reader *r, const yaml_event_t *ev, json_t **out)
{
	struct str s = str_n((const char *)ev->data.scalar.value, ev->data.scalar.length);

	if (memchr(str_p(s), '\0', s.n))
		return yaml_refuse(r, ev->start_mark.line + 1,
				   STR("this text contains a NUL byte"));
	if (ev->data.scalar.plain_implicit && ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		*out = yaml_resolve(s);
	else
		*out = json_stringn(str_p(s), s.n);
	return 0;
}

static int read_node(struct reader *r, const yaml_event_t *ev, int depth, json_t **out);

static int read_list(struct reader *r, int depth, json_t *list)
{
	for (;;) {
		yaml_event_t ev;
		json_t *value = NULL;
		int bad = yaml_next(r, &ev);
		bool end;

		if (bad)
			return bad;
		end = ev.type == YAML_SEQUENCE_END_EVENT;
		if (!end)
			bad = read_node(r, &ev, depth, &value);
		yaml_event_delete(&ev);
		if (bad || end)
			return bad;
		json_array_append_new(list, value);
	}
}

/* *out: the key of the event, in the arena. */
static int read_key(struct reader *r, const yaml_event_t *ev, const json_t *others, char **out)
{
	struct str s = str_n((const char *)ev->data.scalar.value, ev->data.scalar.length);
	size_t line = ev->start_mark.line + 1;

	if (ev->type == YAML_ALIAS_EVENT)
		return yaml_refuse(r, line, STR("aliases (*name) are not read"));
	if (ev->type != YAML_SCALAR_EVENT)
		return yaml_refuse(r, line, STR("a key is a word, not a list or a mapping"));
	if (!s.n || s.n > YAML_KEY_MAX || memchr(s.p, '\0', s.n))
		return yaml_refuse(r, line, STR("a key has 1 to 128 bytes, and no NUL"));
	*out = arena_cstr(r->arena, s);
	if (json_object_get(others, *out))
		return yaml_refuse(r, line,
				   arena_printf(r->arena, "the key %s occurs twice",
						arena_cstr(r->arena, text_line(r->arena, s))));
	return 0;
}

static int read_value(struct reader *r, int depth, json_t **out)
{
	yaml_event_t ev;
	int bad = yaml_next(r, &ev);

	if (bad)
		return bad;
	bad = read_node(r, &ev, depth, out);
	yaml_event_delete(&ev);
	return bad;
}

/* Reads each key and value into `map`, and passes them to `fn`, which may be NULL. */
static int read_map(struct reader *r, int depth, json_t *map, yaml_key_fn *fn, void *ctx)
{
	for (;;) {
		yaml_event_t ev;
		json_t *value = NULL;
		char *key = NULL;
		size_t line;
		int bad = yaml_next(r, &ev);

		if (bad)
			return bad;
		line = ev.start_mark.line + 1;
		if (ev.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&ev);
			return 0;
		}
		bad = read_key(r, &ev, map, &key);
		yaml_event_delete(&ev);
		if (!bad)
			bad = read_value(r, depth, &value);
		if (bad)
			return bad;
		json_object_set_new(map, key, value);
		if (fn && (bad = fn(ctx, str_c(key), value, line)))
			return bad;
	}
}

static int read_node(struct reader *r, const yaml_event_t *ev, int depth, json_t **out)
{
	int bad;

	if (ev->type == YAML_ALIAS_EVENT)
		return yaml_refuse(r, ev->start_mark.line + 1, STR("aliases (*name) are not read"));
	if (ev->type == YAML_SCALAR_EVENT)
		return read_scalar(r, ev, out);
	if (depth == YAML_DEPTH)
		return yaml_refuse(r, ev->start_mark.line + 1,
				   STR("lists and mappings are nested more than 32 deep"));
	if (ev->type == YAML_SEQUENCE_START_EVENT)
		bad = read_list(r, depth + 1, *out = json_array());
	else
		bad = read_map(r, depth + 1, *out = json_object(), NULL, NULL);
	if (bad)
		json_decref(*out);
	return bad;
}

/* Reads the next event into *type. It must be `want` or the end of the stream; others are a fault with `text`. */
static int yaml_expect(struct reader *r, yaml_event_type_t want, const char *text,
		       yaml_event_type_t *type)
{
	yaml_event_t ev;
	size_t line;
	int bad = yaml_next(r, &ev);

	if (bad)
		return bad;
	*type = ev.type;
	line = ev.start_mark.line + 1;
	yaml_event_delete(&ev);
	return *type == want || *type == YAML_STREAM_END_EVENT ? 0
							       : yaml_refuse(r, line, str_c(text));
}

static int read_document(struct reader *r, yaml_key_fn *fn, void *ctx)
{
	static const char one[] = "more than one document",
			  keys[] = "not a mapping of keys to values";
	yaml_event_type_t type;
	json_t *map;
	int bad = yaml_expect(r, YAML_STREAM_START_EVENT, one, &type);

	if (!bad)
		bad = yaml_expect(r, YAML_DOCUMENT_START_EVENT, one, &type);
	if (bad || type == YAML_STREAM_END_EVENT)
		return bad;
	bad = yaml_expect(r, YAML_MAPPING_START_EVENT, keys, &type);
	map = json_object();
	if (!bad)
		bad = read_map(r, 1, map, fn, ctx);
	json_decref(map);
	if (!bad)
		bad = yaml_expect(r, YAML_DOCUMENT_END_EVENT, one, &type);
	return bad ? bad : yaml_expect(r, YAML_STREAM_END_EVENT, one, &type);
}

int yaml_read(struct str text, yaml_key_fn *fn, void *ctx, struct yaml_fault *fault,
	      struct arena *a)
{
	struct reader r = { .text = text, .fault = fault, .arena = a };
	int bad;

	if (text.n > YAML_MAX)
		return yaml_refuse(&r, 1, STR("more than 16 MiB"));
	if (!yaml_parser_initialize(&r.parser))
		return yaml_refuse(&r, 1, STR("out of memory"));
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)str_p(text), text.n);
	bad = read_document(&r, fn, ctx);
	yaml_parser_delete(&r.parser);
	return bad;
}

/* --- out ---------------------------------------------------------------------------------------- */

static bool able_at(const json_t *v, int depth);

static bool able_map(const json_t *map, int depth)
{
	for (void *at = json_object_iter((json_t *)map); at;
	     at = json_object_iter_next((json_t *)map, at))
		if (!yaml_able_key(str_c(json_object_iter_key(at))) ||
		    !able_at(json_object_iter_value(at), depth))
			return false;
	return true;
}

static bool able_at(const json_t *v, int depth)
{
	if (json_is_string(v))
		return text_valid(str_n(json_string_value(v), json_string_length(v)));
	if (!json_is_array(v) && !json_is_object(v))
		return true;
	if (depth == YAML_DEPTH)
		return false;
	if (json_is_object(v))
		return able_map(v, depth + 1);
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!able_at(json_array_get(v, i), depth + 1))
			return false;
	return true;
}

bool yaml_able(const json_t *value)
{
	return able_at(value, 1);
}

bool yaml_able_key(struct str key)
{
	return key.n && key.n <= YAML_KEY_MAX;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Words that other YAML readers treat as true and false. */
static bool is_boolean(struct str s)
{
	static const char *const words[] = { "yes", "no", "on", "off", "y", "n" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_eq_nocase(s, str_c(words[i])))
			return true;
	return false;
}

/* 10_2 and 14:30, which other YAML readers treat as numbers. */
static bool is_numeral(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '_' && s.p[i] != ':')
			return false;
	return true;
}

/* Does the text read back as the same text without quotes? */
static bool is_plain(struct str s)
{
	json_t *value;
	bool text;

	if (!s.n || !is_alnum(s.p[0]) || s.p[s.n - 1] == ' ' || is_boolean(s) || is_numeral(s))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alnum(s.p[i]) && !memchr(" _./@+-:", s.p[i], 8))
			return false;
		if (s.p[i] == ':' && (i + 1 == s.n || !is_alnum(s.p[i + 1])))
			return false;
	}
	value = yaml_resolve(s);
	text = json_is_string(value);
	json_decref(value);
	return text;
}

/* The length of the character at p if YAML needs an escape for it (control characters, line breaks, byte order marks);
 * else 0. */
static size_t yaml_awkward(const unsigned char *p, size_t n)
{
	if (p[0] < 0x20 || p[0] == 0x7f)
		return 1;
	if (n > 1 && p[0] == 0xc2 && p[1] < 0xa0)
		return 2;
	if (n > 2 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
		return 3;
	if (n > 2 && p[0] == 0xef &&
	    ((p[1] == 0xbb && p[2] == 0xbf) || (p[1] == 0xbf && p[2] >= 0xbe)))
		return 3;
	return 0;
}

static void add_escape(struct buf *out, const unsigned char *p, size_t n)
{
	if (p[0] == '\n' || p[0] == '\t')
		buf_addf(out, "\\%c", p[0] == '\n' ? 'n' : 't');
	else if (n == 1)
		buf_addf(out, "\\x%02x", p[0]);
	else if (n == 2)
		buf_addf(out, "\\x%02x", (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu));
	else
		buf_addf(out, "\\u%04x",
			 (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
}

static void add_quoted(struct buf *out, struct str s)
{
	buf_addc(out, '"');
	for (size_t i = 0; i < s.n;) {
		const unsigned char *p = (const unsigned char *)s.p + i;
		size_t n = yaml_awkward(p, s.n - i);

		if (n)
			add_escape(out, p, n);
		else if (*p == '"' || *p == '\\')
			buf_addf(out, "\\%c", *p);
		else
			buf_addc(out, (char)*p);
		i += n ? n : 1;
	}
	buf_addc(out, '"');
}

static void add_text(struct buf *out, struct str s)
{
	if (is_plain(s))
		buf_adds(out, s);
	else
		add_quoted(out, s);
}

static void add_flow(struct buf *out, const json_t *v);

static void add_map(struct buf *out, const json_t *map)
{
	const char *between = "{";

	for (void *at = json_object_iter((json_t *)map); at;
	     at = json_object_iter_next((json_t *)map, at)) {
		buf_adds(out, str_c(between));
		add_text(out, str_c(json_object_iter_key(at)));
		buf_adds(out, STR(": "));
		add_flow(out, json_object_iter_value(at));
		between = ", ";
	}
	buf_adds(out, json_object_size(map) ? STR("}") : STR("{}"));
}

static void add_list(struct buf *out, const json_t *list)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < json_array_size(list); i++) {
		buf_adds(out, i ? STR(", ") : STR(""));
		add_flow(out, json_array_get(list, i));
	}
	buf_addc(out, ']');
}

static void add_flow(struct buf *out, const json_t *v)
{
	char *text;

	if (json_is_string(v)) {
		add_text(out, str_n(json_string_value(v), json_string_length(v)));
	} else if (json_is_array(v)) {
		add_list(out, v);
	} else if (json_is_object(v)) {
		add_map(out, v);
	} else {
		text = json_dumps(v, JSON_ENCODE_ANY);
		buf_adds(out, str_c(text));
		free(text);
	}
}

/* Does the text have several lines that a block can hold without escapes? */
static bool is_block(struct str s)
{
	if (!memchr(str_p(s), '\n', s.n) || memchr(" \t\n", s.p[0], 3))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == ' ' && (i + 1 == s.n || s.p[i + 1] == '\n'))
			return false;
		if (s.p[i] != '\n' && s.p[i] != '\t' &&
		    yaml_awkward((const unsigned char *)s.p + i, s.n - i))
			return false;
	}
	return !str_ends(s, STR("\n\n"));
}

static void add_block(struct buf *out, struct str s)
{
	bool ends = s.p[s.n - 1] == '\n';

	buf_adds(out, ends ? STR("|\n") : STR("|-\n"));
	while (s.n) {
		struct str line = str_cut(&s, '\n');

		buf_adds(out, line.n ? STR("  ") : STR(""));
		buf_adds(out, line);
		buf_addc(out, '\n');
	}
}

static bool is_rows(const json_t *v)
{
	return json_is_array(v) && json_is_object(json_array_get(v, 0));
}

void yaml_add(struct buf *out, struct str key, const json_t *value)
{
	struct str text = str_n(json_string_value(value), json_string_length(value));

	add_text(out, key);
	buf_addc(out, ':');
	if (is_rows(value)) {
		buf_addc(out, '\n');
		for (size_t i = 0; i < json_array_size(value); i++) {
			buf_adds(out, STR("  - "));
			add_flow(out, json_array_get(value, i));
			buf_addc(out, '\n');
		}
		return;
	}
	buf_addc(out, ' ');
	if (json_is_string(value) && is_block(text)) {
		add_block(out, text);
		return;
	}
	add_flow(out, value);
	buf_addc(out, '\n');
}
