/* A task with all its fields as JSON, the entries of the event log, and the changes that an update
 * made. A task that was written reads back as the same task: bytes that are not valid text are
 * written as hex, and no value is rounded. */
#include <errno.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/text.h"
#include "base/when.h"
#include "format/json.h"
#include "format/record_form.h"
#include "format/task_form.h"

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

/* --- event ------------------------------------------------------------------------------------ */

/* The parts of an event, and when a member is packed. */
#define STORED 1u
#define PLACE 2u
#define WHEN_STORED SHAPE_SOME
#define WHEN_PLACE SHAPE_ALWAYS

static const struct shape_member members[] = {
#define EVENT(tag, part, kind, member) \
	{ tag, SHAPE_##kind, WHEN_##part, part, 0, offsetof(struct event, member), 0, NULL },
#include "core/event.def"
};

const struct shape event_shape = SHAPE_OF(members, event);

void event_pack(const struct event *e, struct buf *out)
{
	shape_pack(&event_shape, STORED, e, out);
}

static void event_hash_at(struct buf *b, int64_t at, unsigned char out[SHORT_HASH_LEN])
{
	size_t n = b->n;

	for (int i = 0; i < 64; i += 8)
		buf_addc(b, (char)(unsigned char)((uint64_t)at >> i));
	hash_short(buf_str(b), out);
	b->n = n;
}

void event_hash(struct str bytes, int64_t at, unsigned char out[SHORT_HASH_LEN])
{
	struct buf b = BUF_MAX(SIZE_MAX / 2);

	buf_adds(&b, bytes);
	event_hash_at(&b, at, out);
	buf_free(&b);
}

void event_pack_hash(const struct event *e, int64_t at, struct buf *out,
		     unsigned char hash[SHORT_HASH_LEN])
{
	event_pack(e, out);
	event_hash_at(out, at, hash);
}

int event_unpack(struct str bytes, struct event *out)
{
	*out = (struct event){ 0 };
	return shape_unpack(&event_shape, STORED, bytes, out, NULL);
}

json_t *event_json(const struct event *e, struct arena *a)
{
	json_t *o = json_object(), *changes = changes_json(e->changes);

	json_set_text(o, "cursor", e->cursor);
	json_set_text(o, "at", when_text(a, e->at));
	json_set_text(o, "event", e->name);
	json_set_text(o, "task", e->task);
	json_set_text(o, "agent", e->agent);
	json_set_text(o, "run", e->run);
	if (e->fence)
		json_object_set_new(o, "fence", json_integer(e->fence));
	if (e->from)
		json_object_set_new(o, "from", json_string(status_name(e->from)));
	if (e->to)
		json_object_set_new(o, "to", json_string(status_name(e->to)));
	json_set_text(o, "text", e->text);
	json_set_text(o, "unblock_action", e->unblock_action);
	if (changes)
		json_object_set_new(o, "changes", changes);
	return o;
}

/* --- changes ---------------------------------------------------------------------------------- */

/* The fields whose old and new values the log keeps, in display order. */
static const char *const fields[] = { "title",  "class", "priority",
#define PLAIN(tag, part, name, limit, argument, help) #name,
#include "core/task.def"
				      "labels", "due",   "not_before", "parent", "assignee", NULL };
/* These are too long for the log, so it keeps only their names. */
static const char *const texts[] = { "description", "acceptance", "extra", NULL };

/* --- making ------------------------------------------------------------------------------------- */

static bool changes_differs(const struct field *f, const struct task *old, const struct task *now)
{
	return !field_same(f, field_of(f, old), field_of(f, now));
}

static void set_value(json_t *o, const char *name, json_t *value)
{
	json_object_set_new(o, name, value ? value : json_null());
}

static void add_fields(json_t *o, const char *const *names, bool values, const struct task *old,
		       const struct task *now, struct arena *a)
{
	for (; *names; names++) {
		const struct field *f = field_find(str_c(*names));
		json_t *change;

		if (!changes_differs(f, old, now))
			continue;
		change = json_object();
		if (values) {
			set_value(change, "from", value_json(f, field_of(f, old), a));
			set_value(change, "to", value_json(f, field_of(f, now), a));
		}
		json_object_set_new(o, *names, change);
	}
}

struct str changes_of(const struct task *old, const struct task *now, struct arena *a)
{
	json_t *o = json_object();
	struct str out = STR("");
	char *text;

	add_fields(o, fields, true, old, now, a);
	add_fields(o, texts, false, old, now, a);
	if (json_object_size(o)) {
		text = json_dumps(o, JSON_COMPACT);
		out = arena_str(a, str_c(text));
		free(text);
	}
	json_decref(o);
	return out;
}

json_t *changes_json(struct str changes)
{
	json_t *o = changes.n ? json_loadb(changes.p, changes.n, JSON_REJECT_DUPLICATES, NULL)
			      : NULL;

	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

struct strs changes_names(struct str changes, struct arena *a)
{
	json_t *o = changes_json(changes), *v;
	struct strs names = { 0 };
	const char *name;

	json_object_foreach(o, name, v)
		names = arena_append(a, names, arena_str(a, str_c(name)));
	json_decref(o);
	return names;
}

/* --- for people --------------------------------------------------------------------------------- */

static bool list_has(const json_t *list, const json_t *item)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
		if (json_equal(v, item))
			return true;
	return false;
}

/* The items of `list` that `other` lacks, each after the sign. */
static void put_items(struct buf *b, const json_t *list, const json_t *other, const char *sign)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
		if (json_is_string(v) && !list_has(other, v))
			buf_addf(b, " %s%s", sign, json_string_value(v));
}

static void put_value(struct buf *b, const json_t *v)
{
	if (json_is_integer(v))
		buf_addf(b, "%lld", (long long)json_integer_value(v));
	else if (json_is_string(v) && strchr(json_string_value(v), ' '))
		buf_addf(b, "\"%s\"", json_string_value(v));
	else if (json_is_string(v))
		buf_adds(b, str_c(json_string_value(v)));
	else
		buf_adds(b, STR("none"));
}

static void put_change(struct buf *b, const char *name, const json_t *change)
{
	const json_t *from = json_object_get(change, "from"), *to = json_object_get(change, "to");

	buf_addf(b, "%s%s", b->n ? ", " : "", name);
	if (!to) {
		buf_adds(b, STR(" changed"));
	} else if (json_is_array(to) || json_is_array(from)) {
		put_items(b, to, from, "+");
		put_items(b, from, to, "-");
	} else {
		buf_addc(b, ' ');
		put_value(b, from);
		buf_adds(b, STR(" → "));
		put_value(b, to);
	}
}

struct str changes_text(struct str changes, struct arena *a)
{
	json_t *o = changes_json(changes);
	struct buf b = BUF_MAX(TEXT_MAX);
	struct str out;

	for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
		put_change(&b, json_object_iter_key(at), json_object_iter_value(at));
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	json_decref(o);
	return out;
}
