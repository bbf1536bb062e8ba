#include "proof/history/members.h"

#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"
#include "base/text.h"
#include "proof/history/history.h"

#define ALWAYS true
#define SOME false

const struct field head_fields[] = {
	{ "pawl", FIELD_STR, ALWAYS, offsetof(struct history_head, pawl) },
	{ "store", FIELD_STR, ALWAYS, offsetof(struct history_head, store) },
	{ "seed", FIELD_SEED, ALWAYS, offsetof(struct history_head, seed) },
	{ "agents", FIELD_INT, ALWAYS, offsetof(struct history_head, agents) },
	{ "tasks", FIELD_INT, ALWAYS, offsetof(struct history_head, tasks) },
	{ 0 },
};

const struct field policy_fields[] = {
	{ "lease", FIELD_INT, ALWAYS, offsetof(struct policy, lease) },
	{ "lease_min", FIELD_INT, ALWAYS, offsetof(struct policy, lease_min) },
	{ "lease_max", FIELD_INT, ALWAYS, offsetof(struct policy, lease_max) },
	{ "lock_ttl", FIELD_INT, ALWAYS, offsetof(struct policy, lock_ttl) },
	{ "max_abandoned", FIELD_INT, ALWAYS, offsetof(struct policy, max_abandoned) },
	{ "keep_abandoned", FIELD_BOOL, ALWAYS, offsetof(struct policy, keep_abandoned) },
	{ "ignore_depends", FIELD_BOOL, ALWAYS, offsetof(struct policy, ignore_depends) },
	{ "claim_creates", FIELD_BOOL, SOME, offsetof(struct policy, claim_creates) },
	{ 0 },
};

#define T(name, kind, when, member)                             \
	{                                                       \
		name, kind, when, offsetof(struct task, member) \
	}

const struct field task_fields[] = {
	T("id", FIELD_STR, ALWAYS, id),
	T("status", FIELD_STATUS, ALWAYS, status),
	T("class", FIELD_CLASS, SOME, class_rank),
	T("priority", FIELD_INT, ALWAYS, priority),
	T("type", FIELD_STR, SOME, type),
	T("labels", FIELD_LIST, SOME, labels),
	T("not_before", FIELD_INT, SOME, not_before),
	T("parent", FIELD_STR, SOME, parent),
	T("depends", FIELD_LIST, SOME, depends),
	T("open_depends", FIELD_INT, SOME, open_deps),
	T("canceled_depends", FIELD_INT, SOME, canceled_deps),
	T("open_subtasks", FIELD_INT, SOME, open_subs),
	T("assignee", FIELD_STR, SOME, assignee),
	T("attempts", FIELD_INT, SOME, attempts),
	T("abandoned", FIELD_INT, SOME, abandoned),
	T("fence", FIELD_INT, ALWAYS, fence),
	T("version", FIELD_INT, ALWAYS, version),
	T("created_at", FIELD_INT, SOME, created_at),
	T("updated_at", FIELD_INT, SOME, updated_at),
	T("done_at", FIELD_INT, SOME, done_at),
	T("archived_at", FIELD_INT, SOME, archived_at),
	{ 0 },
};

const struct field lock_fields[] = {
	T("holder", FIELD_STR, ALWAYS, lock.holder),
	T("token", FIELD_MARK, SOME, lock.token),
	T("acquired_at", FIELD_INT, SOME, lock.acquired_at),
	T("expires_at", FIELD_INT, SOME, lock.expires_at),
	T("ttl", FIELD_INT, SOME, lock.ttl),
	T("manual", FIELD_FLAG, SOME, lock.manual),
	T("foreign", FIELD_FLAG, SOME, lock.foreign),
	{ 0 },
};

#undef T

const struct field grant_fields[] = {
	{ "fence", FIELD_INT, ALWAYS, offsetof(struct grant, fence) },
	{ "expires_at", FIELD_INT, ALWAYS, offsetof(struct grant, expires_at) },
	{ "ttl", FIELD_INT, ALWAYS, offsetof(struct grant, ttl) },
	{ "token", FIELD_TOKEN, SOME, offsetof(struct grant, token) },
	{ 0 },
};

const struct field answer_fields[] = {
	{ "code", FIELD_CODE, ALWAYS, offsetof(struct answer, code) },
	{ "now", FIELD_INT, ALWAYS, offsetof(struct answer, now) },
	{ "message", FIELD_STR, SOME, offsetof(struct answer, message) },
	{ "applied", FIELD_APPLIED, SOME, offsetof(struct answer, applied) },
	{ "repeated", FIELD_FLAG, SOME, offsetof(struct answer, repeated) },
	{ "existed", FIELD_FLAG, SOME, offsetof(struct answer, existed) },
	{ "wait", FIELD_INT, SOME, offsetof(struct answer, wait_ms) },
	{ "made_id", FIELD_STR, SOME, offsetof(struct answer, text) },
	{ 0 },
};

/* --- tokens -------------------------------------------------------------------------------------- */

static struct str mark(struct arena *a, struct str hash)
{
	char *hex = arena_alloc(a, MARK_LEN + 1);

	sodium_bin2hex(hex, MARK_LEN + 1, (const unsigned char *)hash.p, MARK_LEN / 2);
	return str_n(hex, MARK_LEN);
}

struct str token_mark(struct arena *a, struct str token)
{
	return mark(a, token_hash(a, token));
}

/* --- writing ------------------------------------------------------------------------------------- */

static json_t *text(struct str s)
{
	return json_stringn(str_p(s), s.n);
}

static json_t *list_json(const struct strs *list)
{
	json_t *o = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(o, text(list->v[i]));
	return o;
}

/* NULL: it has no value. */
static json_t *value_json(const struct field *f, const void *p, struct arena *a)
{
	const struct str *s = p;
	const struct strs *list = p;
	const int64_t *n = p;

	switch (f->kind) {
	case FIELD_STR:
		return s->n || f->always ? text(*s) : NULL;
	case FIELD_MARK:
		return s->n >= MARK_LEN / 2 ? text(mark(a, *s)) : NULL;
	case FIELD_TOKEN:
		return s->n ? text(token_mark(a, *s)) : NULL;
	case FIELD_LIST:
		return list->n ? list_json(list) : NULL;
	case FIELD_STATUS:
		return json_string(status_name(*n));
	case FIELD_CLASS:
		return *n ? json_string(class_name(*n)) : NULL;
	case FIELD_CODE:
		return json_string(result_name(*(const enum result *)p));
	case FIELD_APPLIED:
		return *(const char *)p ? json_string(*(const char *)p == 'n' ? "no" : "unknown")
					: NULL;
	case FIELD_FLAG:
		return *n ? json_true() : NULL;
	case FIELD_BOOL:
		return *(const bool *)p || f->always ? json_boolean(*(const bool *)p) : NULL;
	default:
		return *n || f->always ? json_integer(*n) : NULL;
	}
}

void fields_write(json_t *o, const struct field *fields, const void *from, struct arena *a)
{
	for (const struct field *f = fields; f->name; f++) {
		json_t *v = value_json(f, (const char *)from + f->offset, a);

		if (v)
			json_object_set_new(o, f->name, v);
	}
}

/* --- reading ------------------------------------------------------------------------------------- */

bool reader_fail(struct reader *r, const char *fmt, ...)
{
	char line[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	r->why = text_line(r->arena, str_c(line));
	return false;
}

struct str reader_word(struct reader *r, struct str s)
{
	uint32_t word = tally_find(&r->words, s);

	if (!word)
		word = tally_add(&r->words, arena_str(r->arena, s));
	return word ? r->words.v[word] : STR("");
}

void reader_free(struct reader *r)
{
	tally_free(&r->words);
}

/* Two such numbers can be added. */
#define INT_FAR (INT64_C(1) << 60)

bool read_int(struct reader *r, const char *name, const json_t *v, int64_t *out)
{
	if (!json_is_integer(v))
		return reader_fail(r, "%s: a whole number is needed", name);
	*out = json_integer_value(v);
	if (*out > INT_FAR || *out < -INT_FAR)
		return reader_fail(r, "%s: a number this large means nothing here", name);
	return true;
}

bool read_str(struct reader *r, const char *name, const json_t *v, struct str *out)
{
	if (!json_is_string(v))
		return reader_fail(r, "%s: a text is needed", name);
	*out = reader_word(r, str_n(json_string_value(v), json_string_length(v)));
	return true;
}

bool read_list(struct reader *r, const char *name, const json_t *v, struct strs *out)
{
	size_t n = json_array_size(v);

	if (!json_is_array(v))
		return reader_fail(r, "%s: a list is needed", name);
	*out = (struct strs){ arena_array(r->arena, struct str, n), n };
	for (size_t i = 0; i < n; i++)
		if (!read_str(r, name, json_array_get(v, i), &out->v[i]))
			return false;
	return true;
}

static bool is_mark(struct str s)
{
	if (s.n != MARK_LEN)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!memchr("0123456789abcdef", s.p[i], 16))
			return false;
	return true;
}

static bool read_code(struct reader *r, struct str s, enum result *out)
{
	static const enum result all[] = {
#define RESULT(name, exit, http, text) name,
#include "core/result.def"
#undef RESULT
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (str_is(s, result_name(all[i]))) {
			*out = all[i];
			return true;
		}
	}
	return reader_fail(r, "code: there is no %.*s", STRF(s));
}

static bool read_applied(struct reader *r, struct str s, char *out)
{
	if (!str_is(s, "no") && !str_is(s, "unknown"))
		return reader_fail(r, "applied: \"no\" or \"unknown\"");
	*out = str_is(s, "no") ? 'n' : '?';
	return true;
}

static bool read_named(struct reader *r, const struct field *f, const json_t *v, void *p)
{
	struct str s;

	if (!read_str(r, f->name, v, &s))
		return false;
	switch (f->kind) {
	case FIELD_MARK:
	case FIELD_TOKEN:
		*(struct str *)p = s;
		return is_mark(s) ||
		       reader_fail(r, "%s: %d hex digits are needed", f->name, MARK_LEN);
	case FIELD_STATUS:
		*(int64_t *)p = status_parse(s);
		return *(int64_t *)p || str_is(s, status_name(0)) ||
		       reader_fail(r, "status: there is no %.*s", STRF(s));
	case FIELD_CLASS:
		*(int64_t *)p = class_parse(s);
		return *(int64_t *)p || reader_fail(r, "class: there is no %.*s", STRF(s));
	case FIELD_CODE:
		return read_code(r, s, p);
	case FIELD_APPLIED:
		return read_applied(r, s, p);
	default:
		*(struct str *)p = s;
		return true;
	}
}

static bool read_value(struct reader *r, const struct field *f, const json_t *v, void *p)
{
	switch (f->kind) {
	case FIELD_INT:
		return read_int(r, f->name, v, p);
	case FIELD_SEED:
		*(int64_t *)p = json_integer_value(v);
		return json_is_integer(v) ||
		       reader_fail(r, "%s: a whole number is needed", f->name);
	case FIELD_LIST:
		return read_list(r, f->name, v, p);
	case FIELD_FLAG:
		*(int64_t *)p = json_is_true(v);
		return json_is_boolean(v) || reader_fail(r, "%s: true or false", f->name);
	case FIELD_BOOL:
		*(bool *)p = json_is_true(v);
		return json_is_boolean(v) || reader_fail(r, "%s: true or false", f->name);
	default:
		return read_named(r, f, v, p);
	}
}

static bool among(const char *name, const char *const *names)
{
	for (; names && *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

bool fields_read(struct reader *r, const json_t *o, const struct field *fields,
		 const char *const *others, void *to)
{
	size_t known = 0;
	const char *name;
	json_t *v;

	for (const struct field *f = fields; f->name; f++) {
		v = json_object_get(o, f->name);
		if (!v && f->always)
			return reader_fail(r, "%s is missing", f->name);
		if (v && !read_value(r, f, v, (char *)to + f->offset))
			return false;
		known += v != NULL;
	}
	for (const char *const *n = others; n && *n; n++)
		known += json_object_get(o, *n) != NULL;
	if (known == json_object_size(o))
		return true;
	json_object_foreach((json_t *)o, name, v) {
		const struct field *f = fields;

		while (f->name && strcmp(f->name, name) != 0)
			f++;
		if (!f->name && !among(name, others))
			return reader_fail(r, "%s is not known here", name);
	}
	return true;
}
