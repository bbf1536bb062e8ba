/* A task as JSON values for export and import, in words that people use. A key that pawl does not
 * know is kept in `extra`, so that an import loses nothing. A value of the wrong kind is refused
 * with a message that says which kind the field needs. */
#include "format/plain.h"

#include <stdlib.h>

#include "base/when.h"
#include "format/json.h"
#include "format/record_form.h"

/* --- out ---------------------------------------------------------------------------------------- */

/* A time outside the range of when_text() stays a number. */
static json_t *time_json(int64_t ms, struct arena *a)
{
	return ms > 0 && ms <= WHEN_MAX ? json_str(when_text(a, ms)) : json_integer(ms);
}

static json_t *date_json(int64_t ms, struct arena *a)
{
	return ms > 0 && ms <= WHEN_MAX ? json_str(when_date_iso(a, ms)) : json_integer(ms);
}

/* field_parse() would read an object with the single key "hex" as bytes. */
static bool is_hex(const json_t *o)
{
	return json_object_size(o) == 1 && json_object_get(o, "hex");
}

json_t *plain_extra(const struct task *t)
{
	json_t *o = json_loadb(str_p(t->extra), t->extra.n, JSON_REJECT_DUPLICATES, NULL);
	char *text = json_dumps(o, JSON_COMPACT);
	bool same = json_is_object(o) && !is_hex(o) && str_is(t->extra, text);

	free(text);
	if (same)
		return o;
	json_decref(o);
	return NULL;
}

json_t *plain_value(const struct field *f, const struct task *t, struct arena *a)
{
	const int64_t *n = field_of(f, t);
	json_t *o = f->kind == FIELD_JSON ? plain_extra(t) : NULL;

	if (o)
		return o;
	if (f->kind == FIELD_TIME && *n)
		return time_json(*n, a);
	if (f->kind == FIELD_DATE && *n)
		return date_json(*n, a);
	o = field_json(f, t);
	if (o || f->shown != ALWAYS)
		return o;
	return f->kind == FIELD_LIST ? json_array() : f->kind == FIELD_STR ? NULL : json_integer(0);
}

bool plain_written(const struct field *f, bool whole)
{
	return whole || f->shown == SOME || f->shown == ALWAYS;
}

json_t *plain_comments(const struct event *comments, size_t n, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct event *e = &comments[i];
		json_t *o = json_object();

		json_object_set_new(o, "at", time_json(e->at, a));
		if (e->agent.n)
			json_object_set_new(o, "agent", json_str(e->agent));
		if (e->run.n)
			json_object_set_new(o, "run", json_str(e->run));
		if (e->fence)
			json_object_set_new(o, "fence", json_integer(e->fence));
		json_object_set_new(o, "text", json_str(e->text));
		json_array_append_new(list, o);
	}
	return list;
}

/* --- in ----------------------------------------------------------------------------------------- */

static const struct {
	const char *word, *field;
} other_names[] = {
	{ "issue_type", "type" },
	{ "assigned_to", "assignee" },
	{ "completed_at", "done_at" },
};

static const struct field *plain_find(struct str key, bool whole)
{
	const struct field *f;

	for (size_t i = 0; i < sizeof(other_names) / sizeof(*other_names); i++)
		if (str_is(key, other_names[i].word))
			key = str_c(other_names[i].field);
	f = field_find(key);
	return f && (whole || f->shown != HIDDEN) ? f : NULL;
}

bool plain_known(struct str key, bool whole)
{
	return plain_find(key, whole) || str_is(key, "comments") || str_is(key, "lock");
}

void plain_start(struct plain *p, plain_when_fn *when, bool whole, struct arena *a)
{
	*p = (struct plain){ .when = when, .whole = whole, .arena = a };
	p->task.status = READY;
	p->task.class_rank = STANDARD;
	p->task.priority = PRIORITY_DEFAULT;
}

static bool is_id(const struct field *f)
{
	return f->offset == offsetof(struct task, id) ||
	       f->offset == offsetof(struct task, parent) ||
	       f->offset == offsetof(struct task, depends);
}

/* Converts the value to a text, because YAML may have read a word as a number or a boolean. Returns
 * a new reference. */
static json_t *plain_worded(const struct field *f, const json_t *v)
{
	char *text;
	json_t *o;

	if (json_typeof(v) == JSON_INTEGER && is_id(f))
		return json_sprintf("t%lld", (long long)json_integer_value(v));
	if (json_typeof(v) <= JSON_STRING || json_typeof(v) == JSON_NULL)
		return json_incref((json_t *)v);
	text = json_dumps(v, JSON_ENCODE_ANY);
	o = json_string(text);
	free(text);
	return o;
}

/* "a, b" as ["a", "b"]. */
static json_t *plain_split(const json_t *v)
{
	struct str rest = json_text(v);
	json_t *list = json_array();

	while (rest.n) {
		struct str one = str_trim(str_cut(&rest, ','));

		if (one.n)
			json_array_append_new(list, json_str(one));
	}
	return list;
}

static int set_list(struct plain *p, const struct field *f, const json_t *v)
{
	json_t *from = json_typeof(v) == JSON_STRING ? plain_split(v) : json_incref((json_t *)v),
	       *list = NULL;
	int r;

	if (json_typeof(from) == JSON_ARRAY)
		list = json_array();
	for (size_t i = 0; i < json_array_size(from); i++)
		json_array_append_new(list, plain_worded(f, json_array_get(from, i)));
	r = list ? field_parse(f, list, &p->task, p->arena) : -1;
	json_decref(list);
	json_decref(from);
	return r;
}

static int set_time(struct plain *p, const struct field *f, const json_t *v, int64_t *out)
{
	struct str s = json_text(v);

	*out = json_integer_value(v);
	if (json_typeof(v) != JSON_STRING)
		return json_typeof(v) == JSON_INTEGER ? 0 : -1;
	if (f && f->kind == FIELD_DATE && s.n == strlen("2026-02-06"))
		s = arena_printf(p->arena, "%.*sT00:00Z", STRF(s));
	return p->when(s, out) ? 0 : -1;
}

static int set_number(struct plain *p, const struct field *f, const json_t *v)
{
	int64_t *out = field_at(f, &p->task), n;
	json_t *text = plain_worded(f, v);
	struct str s = json_text(text);
	bool ranked = f->offset == offsetof(struct task, priority), good;

	good = (ranked && priority_parse(s, &n)) || ((!ranked || p->whole) && str_to_i64(s, &n));
	if (good)
		*out = n;
	json_decref(text);
	return good ? 0 : -1;
}

static int set_extra(struct plain *p, const struct field *f, const json_t *v)
{
	char *text;

	if (json_typeof(v) != JSON_OBJECT || is_hex(v))
		return field_parse(f, v, &p->task, p->arena);
	text = json_dumps(v, JSON_COMPACT);
	p->task.extra = arena_str(p->arena, str_c(text));
	free(text);
	return 0;
}

static int set_text(struct plain *p, const struct field *f, const json_t *v)
{
	json_t *text = plain_worded(f, v);
	int r = field_parse(f, text, &p->task, p->arena);

	json_decref(text);
	return r;
}

static int set_field(struct plain *p, const struct field *f, const json_t *v)
{
	switch (f->kind) {
	case FIELD_LIST:
		return set_list(p, f, v);
	case FIELD_TIME:
	case FIELD_DATE:
		return set_time(p, f, v, field_at(f, &p->task));
	case FIELD_INT:
		return set_number(p, f, v);
	case FIELD_JSON:
		return set_extra(p, f, v);
	default:
		return set_text(p, f, v);
	}
}

static const char *plain_wanted(const struct field *f)
{
	static const char *const words[] = {
		[FIELD_STR] = "a text",
		[FIELD_INT] = "a whole number",
		[FIELD_STATUS] =
			"a status: Backlog, Ready, In Progress, Blocked, Needs Help, Review, Done, Failed or Canceled",
		[FIELD_CLASS] = "a class: Expedite, Fixed Date, Standard or Intangible",
		[FIELD_TIME] = "a time, such as 2026-02-06T10:30Z",
		[FIELD_DATE] = "a date, such as 2026-02-06",
		[FIELD_LIST] = "a list of words",
		[FIELD_JSON] = "an object",
	};

	if (f->offset == offsetof(struct task, priority))
		return "a priority: high, medium, low or 0 to 1000";
	return words[f->kind];
}

static int set_comment(struct plain *p, const json_t *v)
{
	const json_t *at = json_object_get(v, "at"), *agent = json_object_get(v, "agent"),
		     *run = json_object_get(v, "run"), *fence = json_object_get(v, "fence"),
		     *text = json_object_get(v, "text");
	struct event *e;

	p->comments = arena_grow(p->arena, p->comments, p->n_comments, sizeof(*e));
	e = &p->comments[p->n_comments++];
	*e = (struct event){ .name = STR("comment"),
			     .agent = arena_str(p->arena, json_text(agent)),
			     .run = arena_str(p->arena, json_text(run)),
			     .text = arena_str(p->arena, json_text(text)),
			     .fence = json_integer_value(fence) };
	if (!text || json_typeof(text) != JSON_STRING)
		return -1;
	return at ? set_time(p, NULL, at, &e->at) : 0;
}

static const char *set_comments(struct plain *p, const json_t *v)
{
	int r = json_typeof(v) == JSON_ARRAY || json_typeof(v) == JSON_NULL ? 0 : -1;

	for (size_t i = 0; !r && i < json_array_size(v); i++)
		r = set_comment(p, json_array_get(v, i));
	return r ? "comments: this must be a list of objects with text, agent and at" : NULL;
}

static void plain_keep(struct plain *p, struct str key, const json_t *v)
{
	if (!p->others)
		p->others = json_object();
	json_object_set(p->others, arena_cstr(p->arena, key), (json_t *)v);
}

const char *plain_set(struct plain *p, struct str key, const json_t *v)
{
	const struct field *f = plain_find(key, p->whole);

	if (str_is(key, "comments"))
		return set_comments(p, v);
	if (!f && !str_is(key, "lock"))
		plain_keep(p, key, v);
	if (!f || json_typeof(v) == JSON_NULL || (f->shown == COUNTED && !p->whole))
		return NULL; /* the queue computes counts itself */
	if (!set_field(p, f, v))
		return NULL;
	return arena_printf(p->arena, "%.*s: this is not %s", STRF(key), plain_wanted(f)).p;
}

const char *plain_end(struct plain *p)
{
	json_t *o = p->others ? json_loadb(str_p(p->task.extra), p->task.extra.n, 0, NULL) : NULL;
	bool merge = json_is_object(o) || !p->task.extra.n;
	char *text;

	if (p->others && merge) {
		if (!o)
			o = json_object();
		json_object_update(o, p->others);
		text = json_dumps(o, JSON_COMPACT);
		p->task.extra = arena_str(p->arena, str_c(text));
		free(text);
	}
	json_decref(o);
	merge |= !p->others;
	plain_abort(p);
	return merge ? NULL
		     : "extra: this is not an object, so pawl cannot keep the unknown keys in it";
}

void plain_abort(struct plain *p)
{
	json_decref(p->others);
	p->others = NULL;
}
