/* A task as bytes for the stores, and as the JSON object that every face shows. Unpacking
 * refuses a status or class that does not exist, because other code relies on valid ones. The JSON
 * never shows hidden fields such as token hashes. */
#include "base/when.h"
#include "core/lease.h"
#include "format/task_form.h"

#define PART_MAX (32u << 20)

#define KIND_STR SHAPE_STR, SHAPE_SOME
#define KIND_JSON SHAPE_STR, SHAPE_SOME
#define KIND_INT SHAPE_INT, SHAPE_SOME
#define KIND_TIME SHAPE_INT, SHAPE_SOME
#define KIND_DATE SHAPE_INT, SHAPE_SOME
#define KIND_LIST SHAPE_LIST, SHAPE_SOME
#define KIND_STATUS SHAPE_RANK, SHAPE_SOME
#define KIND_CLASS SHAPE_RANK, SHAPE_SOME
/* Unpacking refuses values from END on: other code relies on a valid status and class. */
#define END_STR 0
#define END_JSON 0
#define END_INT 0
#define END_TIME 0
#define END_DATE 0
#define END_LIST LIST_UNPACK_MAX
#define END_STATUS STATUS_END
#define END_CLASS CLASS_END

static const struct shape_member members[] = {
#define FIELD(tag, part, kind, member, name, shown, limit, uses) \
	{ tag, KIND_##kind, part, END_##kind, offsetof(struct task, member), 0, NULL },
#include "core/task.def"
};

const struct shape task_shape = SHAPE_OF(members, task);

void task_pack(const struct task *t, unsigned parts, struct buf *out)
{
	shape_pack(&task_shape, parts, t, out);
}

int task_unpack(struct str bytes, struct task *out, struct arena *a)
{
	return shape_unpack(&task_shape, HOT | BODY, bytes, out, a);
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

	return life > LIFE_NOT_CHECKED && life <= LIFE_DEAD ? lives[life] : "";
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
	if (lease_held(t, now))
		json_object_set_new(o, "held", json_true());
	if (STATUS_ENDED & STATUS_BIT(t->status))
		json_object_set_new(o, "ended", json_true());
	json_object_set_new(o, "lock", lock_json(t, now, a));
	return o;
}
