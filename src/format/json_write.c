#include "format/json_write.h"

#include <string.h>

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
