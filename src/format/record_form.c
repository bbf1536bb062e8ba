#include "format/record_form.h"

#include <errno.h>

#include "base/hex.h"
#include "base/text.h"
#include "format/json.h"

/* --- out ---------------------------------------------------------------------------------------- */

static json_t *hex_json(struct str s)
{
	static const char digits[] = "0123456789abcdef";
	struct buf b = BUF_MAX(SIZE_MAX / 2);
	json_t *o = json_object();

	for (size_t i = 0; i < s.n; i++) {
		buf_addc(&b, digits[(unsigned char)s.p[i] >> 4]);
		buf_addc(&b, digits[(unsigned char)s.p[i] & 15]);
	}
	json_object_set_new(o, "hex", json_stringn(b.p, b.n));
	buf_free(&b);
	return o;
}

static json_t *string_json(struct str s)
{
	return text_valid(s) ? json_stringn(str_p(s), s.n) : hex_json(s);
}

static json_t *list_json(const struct strs *list)
{
	json_t *o = list->n ? json_array() : NULL;

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(o, string_json(list->v[i]));
	return o;
}

json_t *field_json(const struct field *f, const struct task *t)
{
	const void *p = field_of(f, t);
	const int64_t *n = p;
	const struct str *s = p;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_JSON:
		return s->n ? string_json(*s) : NULL;
	case FIELD_LIST:
		return list_json(p);
	case FIELD_STATUS:
		return *n ? json_string(status_name(*n)) : NULL;
	case FIELD_CLASS:
		return *n ? json_string(class_name(*n)) : NULL;
	default:
		return *n ? json_integer(*n) : NULL;
	}
}

json_t *task_fields_json(const struct task *t)
{
	json_t *o = json_object();

	for (size_t i = 0; i < N_FIELDS; i++) {
		json_t *v = field_json(&field_table[i], t);

		if (v)
			json_object_set_new(o, field_table[i].name, v);
	}
	return o;
}

/* --- in ----------------------------------------------------------------------------------------- */

static int parse_string(const json_t *v, struct str *out, struct arena *a)
{
	if (json_typeof(v) == JSON_STRING) {
		*out = arena_str(a, json_text(v));
		return 0;
	}
	v = json_object_get(v, "hex");
	return json_is_string(v) && hex_bytes(json_text(v), out, a) ? 0 : -EBADMSG;
}

static int parse_list(const json_t *v, struct strs *out, struct arena *a)
{
	size_t n = json_array_size(v);

	if (json_typeof(v) != JSON_ARRAY)
		return -EBADMSG;
	*out = (struct strs){ arena_array(a, struct str, n), n };
	for (size_t i = 0; i < n; i++)
		if (parse_string(json_array_get(v, i), &out->v[i], a))
			return -EBADMSG;
	return 0;
}

static int parse_word(enum field_kind kind, const json_t *v, int64_t *out)
{
	if (json_typeof(v) != JSON_STRING)
		return -EBADMSG;
	*out = kind == FIELD_STATUS ? (int64_t)status_parse(json_text(v))
				    : (int64_t)class_parse(json_text(v));
	return *out ? 0 : -EBADMSG;
}

int field_parse(const struct field *f, const json_t *v, struct task *out, struct arena *a)
{
	void *p = field_at(f, out);

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_JSON:
		return parse_string(v, p, a);
	case FIELD_LIST:
		return parse_list(v, p, a);
	case FIELD_STATUS:
	case FIELD_CLASS:
		return parse_word(f->kind, v, p);
	default:
		*(int64_t *)p = json_integer_value(v);
		return json_typeof(v) == JSON_INTEGER ? 0 : -EBADMSG;
	}
}

int task_fields_parse(const json_t *o, struct task *out, struct arena *a)
{
	int r = json_is_object(o) ? 0 : -EBADMSG;

	for (size_t i = 0; !r && i < N_FIELDS; i++) {
		const json_t *v = json_object_get(o, field_table[i].name);

		if (v)
			r = field_parse(&field_table[i], v, out, a);
	}
	return r;
}
