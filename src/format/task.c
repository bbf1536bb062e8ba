#include "format/task.h"

#include <errno.h>

#include "format/pack.h"
#include "base/when.h"
#include "core/lease.h"

#define PART_MAX (32u << 20)

static void pack_field(const struct field *f, const void *p, struct buf *out)
{
	const struct strs *list = p;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_JSON:
		if (((const struct str *)p)->n)
			pack_str(out, f->tag, *(const struct str *)p);
		break;
	case FIELD_LIST:
		for (size_t i = 0; i < list->n; i++)
			pack_str(out, f->tag, list->v[i]);
		break;
	default:
		if (*(const int64_t *)p)
			pack_int(out, f->tag, *(const int64_t *)p);
	}
}

void task_pack(const struct task *t, unsigned parts, struct buf *out)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (field_table[i].part & parts)
			pack_field(&field_table[i], field_of(&field_table[i], t), out);
}

struct str task_part(const struct task *t, unsigned part, struct arena *a)
{
	struct buf b = BUF_MAX(PART_MAX);
	struct str out;

	task_pack(t, part, &b);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

bool field_same(const struct field *f, const void *a, const void *b)
{
	if (f->kind == FIELD_STR || f->kind == FIELD_JSON)
		return str_eq(*(const struct str *)a, *(const struct str *)b);
	if (f->kind == FIELD_LIST)
		return strs_eq(*(const struct strs *)a, *(const struct strs *)b);
	return *(const int64_t *)a == *(const int64_t *)b;
}

bool task_same(const struct task *a, const struct task *b, unsigned parts)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &field_table[i];

		if (f->part & parts && !field_same(f, field_of(f, a), field_of(f, b)))
			return false;
	}
	return true;
}

/* The tags in the table ascend from 1, with few gaps: the field is at its tag, or a little before. */
static const struct field *by_tag(uint8_t tag)
{
	size_t i = tag < N_FIELDS ? tag : N_FIELDS;

	while (i && field_table[i - 1].tag > tag)
		i--;
	return i && field_table[i - 1].tag == tag ? &field_table[i - 1] : NULL;
}

/* Refuses a status or a class that does not exist: other code relies on valid ones. */
static int unpack_number(const struct field *f, struct str value, int64_t *out)
{
	int64_t end = f->kind == FIELD_STATUS  ? STATUS_END
		      : f->kind == FIELD_CLASS ? CLASS_END
					       : INT64_MAX;

	if (unpack_int(value, out))
		return -EBADMSG;
	return end != INT64_MAX && (*out <= 0 || *out >= end) ? -EBADMSG : 0;
}

/* The number of fields with this tag that follow. */
static size_t count_tag(struct unpack u, uint8_t tag)
{
	struct str value;
	uint8_t other;
	size_t n = 0;

	while (unpack_next(&u, &other, &value) > 0)
		n += other == tag;
	return n;
}

/* The list with room for `more` items, so that unpacking copies the list only once. */
static struct strs list_room(struct strs list, size_t more, struct arena *a)
{
	struct strs out = { arena_array(a, struct str, list.n + more), list.n };

	for (size_t i = 0; i < list.n; i++)
		out.v[i] = list.v[i];
	return out;
}

/* Adds an item. more: the number of items from this one on, at the first item of the list; else 0. */
static int unpack_item(struct strs *list, struct str value, size_t more, struct arena *a)
{
	if (list->n + more > LIST_UNPACK_MAX)
		return -EBADMSG;
	if (more)
		*list = list_room(*list, more, a);
	list->v[list->n++] = value;
	return 0;
}

int task_unpack(struct str bytes, struct task *out, struct arena *a)
{
	bool seen[N_FIELDS] = { false };
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		const struct field *f = by_tag(tag);
		void *p = f ? field_at(f, out) : NULL;
		bool again;

		if (!f)
			continue;
		again = seen[f - field_table];
		seen[f - field_table] = true;
		if (f->kind == FIELD_LIST)
			r = unpack_item(p, value, again ? 0 : 1 + count_tag(u, tag), a);
		else if (again)
			r = -EBADMSG; /* only a list may repeat its tag */
		else if (f->kind == FIELD_STR || f->kind == FIELD_JSON)
			*(struct str *)p = value;
		else
			r = unpack_number(f, value, p);
		if (r < 0)
			return r;
	}
	return r;
}

static json_t *list_json(const struct strs *list)
{
	json_t *o = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(o, json_stringn(list->v[i].p, list->v[i].n));
	return o;
}

static json_t *text_json(struct str s)
{
	return s.n ? json_stringn(s.p, s.n) : NULL;
}

static json_t *time_json(int64_t ms, struct arena *a)
{
	return ms ? text_json(when_text(a, ms)) : NULL;
}

/* NULL: it has no value. */
json_t *value_json(const struct field *f, const void *p, struct arena *a)
{
	const int64_t *n = p;
	const struct str *s = p;
	const struct strs *list = p;

	switch (f->kind) {
	case FIELD_STR:
		return text_json(*s);
	case FIELD_JSON:
		return s->n ? json_loadb(s->p, s->n, 0, NULL) : NULL;
	case FIELD_LIST:
		return list_json(list);
	case FIELD_STATUS:
		return json_string(status_name(*n));
	case FIELD_CLASS:
		return json_string(class_name(*n));
	case FIELD_TIME:
		return time_json(*n, a);
	case FIELD_DATE:
		return *n ? text_json(when_date_iso(a, *n)) : NULL;
	default:
		return *n || f->shown == ALWAYS ? json_integer(*n) : NULL;
	}
}

json_t *seconds_json(int64_t ms)
{
	return ms % 1000 ? json_real((double)ms / 1000.0) : json_integer(ms / 1000);
}

const char *life_name(int64_t life)
{
	static const char *const lives[] = { "", "unknown", "alive", "dead" };

	return life > LIFE_NOT_LOOKED && life <= LIFE_DEAD ? lives[life] : "";
}

json_t *lock_json(const struct task *t, int64_t now, struct arena *a)
{
	const struct lock *l = &t->lock;
	json_t *o;

	if (!l->holder.n)
		return json_null();
	o = json_object();
	json_object_set_new(o, "holder", text_json(l->holder));
	json_object_set_new(o, "host", text_json(l->host));
	json_object_set_new(o, "fence", json_integer(t->fence));
	json_object_set_new(o, "live", json_boolean(lease_live(l, now)));
	if (lease_abandoned(t, now))
		json_object_set_new(o, "abandoned", json_true());
	json_object_set_new(o, "acquired_at", time_json(l->acquired_at, a));
	if (l->expires_at) {
		json_object_set_new(o, "expires_at", time_json(l->expires_at, a));
		json_object_set_new(o, "expires_in",
				    seconds_json(l->expires_at > now ? l->expires_at - now : 0));
	}
	json_object_set_new(o, "ttl", seconds_json(l->ttl));
	if (l->manual)
		json_object_set_new(o, "manual", json_true());
	if (l->foreign)
		json_object_set_new(o, "foreign", json_true());
	if (l->operation.n)
		json_object_set_new(o, "operation", text_json(l->operation));
	if (l->user.n)
		json_object_set_new(o, "user", text_json(l->user));
	if (l->mode.n)
		json_object_set_new(o, "mode", text_json(l->mode));
	if (l->pid) {
		json_object_set_new(o, "pid", json_integer(l->pid));
		json_object_set_new(o, "pid_start", json_integer(l->pid_start));
		json_object_set_new(o, "boot_id", text_json(l->boot_id));
	}
	if (*life_name(l->life))
		json_object_set_new(o, "process", json_string(life_name(l->life)));
	return o;
}

json_t *task_json(const struct task *t, int64_t now, struct arena *a)
{
	json_t *o = json_object();

	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &field_table[i];
		json_t *v;

		if (f->shown == HIDDEN ||
		    (!t->status && f->shown == ALWAYS && f->kind != FIELD_STR))
			continue; /* a lock of the whole queue has only texts and times */
		v = value_json(f, field_of(f, t), a);
		if (v)
			json_object_set_new(o, f->name, v);
	}
	json_object_set_new(o, "lock", lock_json(t, now, a));
	return o;
}
