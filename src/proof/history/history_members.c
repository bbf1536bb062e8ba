/* The tables, and their generic writer and reader. Tokens leave this file only as marks, so a history can be published. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"
#include "base/text.h"
#include "proof/history/history.h"
#include "proof/history/history_members.h"

#define ALWAYS true
#define SOME false

const struct member head_members[] = {
	{ "pawl", MEMBER_STR, ALWAYS, offsetof(struct history_head, pawl) },
	{ "store", MEMBER_STR, ALWAYS, offsetof(struct history_head, store) },
	{ "driver", MEMBER_STR, SOME, offsetof(struct history_head, driver) },
	{ "seed", MEMBER_SEED, ALWAYS, offsetof(struct history_head, seed) },
	{ "agents", MEMBER_INT, ALWAYS, offsetof(struct history_head, agents) },
	{ "tasks", MEMBER_INT, ALWAYS, offsetof(struct history_head, tasks) },
	{ 0 },
};

const struct member policy_members[] = {
	{ "lease", MEMBER_INT, ALWAYS, offsetof(struct policy, lease) },
	{ "lease_min", MEMBER_INT, ALWAYS, offsetof(struct policy, lease_min) },
	{ "lease_max", MEMBER_INT, ALWAYS, offsetof(struct policy, lease_max) },
	{ "lock_ttl", MEMBER_INT, ALWAYS, offsetof(struct policy, lock_ttl) },
	{ "max_abandoned", MEMBER_INT, ALWAYS, offsetof(struct policy, max_abandoned) },
	{ "keep_abandoned", MEMBER_BOOL, ALWAYS, offsetof(struct policy, keep_abandoned) },
	{ "ignore_depends", MEMBER_BOOL, ALWAYS, offsetof(struct policy, ignore_depends) },
	{ "untyped", MEMBER_BOOL, SOME, offsetof(struct policy, untyped) },
	{ "claim_creates", MEMBER_BOOL, SOME, offsetof(struct policy, claim_creates) },
	{ "offer_parents", MEMBER_BOOL, SOME, offsetof(struct policy, offer_parents) },
	{ "handback", MEMBER_INT, SOME, offsetof(struct policy, handback) },
	{ 0 },
};

#define T(name, kind, when, member)                             \
	{                                                       \
		name, kind, when, offsetof(struct task, member) \
	}

const struct member task_members[] = {
	T("id", MEMBER_STR, ALWAYS, id),
	T("status", MEMBER_STATUS, ALWAYS, status),
	T("class", MEMBER_CLASS, SOME, class_rank),
	T("priority", MEMBER_INT, ALWAYS, priority),
	T("type", MEMBER_STR, SOME, type),
	T("labels", MEMBER_LIST, SOME, labels),
	T("due", MEMBER_INT, SOME, due),
	T("not_before", MEMBER_INT, SOME, not_before),
	T("parent", MEMBER_STR, SOME, parent),
	T("depends", MEMBER_LIST, SOME, depends),
	T("open_depends", MEMBER_INT, SOME, open_deps),
	T("canceled_depends", MEMBER_INT, SOME, canceled_deps),
	T("open_subtasks", MEMBER_INT, SOME, open_subs),
	T("assignee", MEMBER_STR, SOME, assignee),
	T("last_holder", MEMBER_STR, SOME, last_holder),
	T("attempts", MEMBER_INT, SOME, attempts),
	T("abandoned", MEMBER_INT, SOME, abandoned),
	T("fence", MEMBER_INT, ALWAYS, fence),
	T("version", MEMBER_INT, ALWAYS, version),
	T("created_at", MEMBER_INT, SOME, created_at),
	T("updated_at", MEMBER_INT, SOME, updated_at),
	T("done_at", MEMBER_INT, SOME, done_at),
	T("archived_at", MEMBER_INT, SOME, archived_at),
	{ 0 },
};

const struct member lock_members[] = {
	T("holder", MEMBER_STR, ALWAYS, lock.holder),
	T("token", MEMBER_MARK, SOME, lock.token),
	T("acquired_at", MEMBER_INT, SOME, lock.acquired_at),
	T("expires_at", MEMBER_INT, SOME, lock.expires_at),
	T("ttl", MEMBER_INT, SOME, lock.ttl),
	T("manual", MEMBER_FLAG, SOME, lock.manual),
	T("foreign", MEMBER_FLAG, SOME, lock.foreign),
	{ 0 },
};

#undef T

const struct member grant_members[] = {
	{ "fence", MEMBER_INT, ALWAYS, offsetof(struct grant, fence) },
	{ "expires_at", MEMBER_INT, ALWAYS, offsetof(struct grant, expires_at) },
	{ "ttl", MEMBER_INT, ALWAYS, offsetof(struct grant, ttl) },
	{ "token", MEMBER_TOKEN, SOME, offsetof(struct grant, token) },
	{ 0 },
};

const struct member notice_members[] = {
	{ "by", MEMBER_STR, ALWAYS, offsetof(struct notice, by) },
	{ "at", MEMBER_INT, ALWAYS, offsetof(struct notice, at) },
	{ "reason", MEMBER_STR, SOME, offsetof(struct notice, reason) },
	{ 0 },
};

const struct member answer_members[] = {
	{ "code", MEMBER_CODE, ALWAYS, offsetof(struct answer, code) },
	{ "now", MEMBER_INT, ALWAYS, offsetof(struct answer, now) },
	{ "message", MEMBER_STR, SOME, offsetof(struct answer, message) },
	{ "applied", MEMBER_APPLIED, SOME, offsetof(struct answer, applied) },
	{ "repeated", MEMBER_FLAG, SOME, offsetof(struct answer, repeated) },
	{ "existed", MEMBER_FLAG, SOME, offsetof(struct answer, existed) },
	{ "wait", MEMBER_INT, SOME, offsetof(struct answer, wait_ms) },
	{ "made_id", MEMBER_STR, SOME, offsetof(struct answer, text) },
	{ 0 },
};

/* --- tokens -------------------------------------------------------------------------------------- */

static struct str history_members_mark(struct arena *a, struct str hash)
{
	struct buf hex = BUF_MAX(MARK_LEN + 1);
	struct str out;

	for (size_t i = 0; i < MARK_LEN / 2; i++)
		buf_addf(&hex, "%02x", (unsigned char)hash.p[i]);
	out = arena_str(a, buf_str(&hex));
	buf_free(&hex);
	return out;
}

struct str token_mark(struct arena *a, struct str token)
{
	return history_members_mark(a, token_hash(a, token));
}

/* --- writing ------------------------------------------------------------------------------------- */

static json_t *history_members_text(struct str s)
{
	return json_stringn(str_p(s), s.n);
}

static json_t *list_json(const struct strs *list)
{
	json_t *o = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(o, history_members_text(list->v[i]));
	return o;
}

/* NULL: the member has no value. */
static json_t *value_json(const struct member *f, const void *p, struct arena *a)
{
	const struct str *s = p;
	const struct strs *list = p;
	const int64_t *n = p;

	switch (f->kind) {
	case MEMBER_STR:
		return s->n || f->always ? history_members_text(*s) : NULL;
	case MEMBER_MARK:
		return s->n >= MARK_LEN / 2 ? history_members_text(history_members_mark(a, *s))
					    : NULL;
	case MEMBER_TOKEN:
		return s->n ? history_members_text(token_mark(a, *s)) : NULL;
	case MEMBER_LIST:
		return list->n ? list_json(list) : NULL;
	case MEMBER_STATUS:
		return json_string(status_name(*n));
	case MEMBER_CLASS:
		return *n ? json_string(class_name(*n)) : NULL;
	case MEMBER_CODE:
		return json_string(result_name(*(const enum result *)p));
	case MEMBER_APPLIED:
		return *(const char *)p ? json_string(*(const char *)p == 'n' ? "no" : "unknown")
					: NULL;
	case MEMBER_FLAG:
		return *n ? json_true() : NULL;
	case MEMBER_BOOL:
		return *(const bool *)p || f->always ? json_boolean(*(const bool *)p) : NULL;
	default:
		return *n || f->always ? json_integer(*n) : NULL;
	}
}

void members_write(json_t *o, const struct member *members, const void *from, struct arena *a)
{
	for (const struct member *f = members; f->name; f++) {
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

/* Keeps one copy of each text, even if the file repeats it. */
static struct str reader_word(struct reader *r, struct str s)
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

/* Two numbers below this can be added without overflow. */
#define INT_FAR (INT64_C(1) << 60)

bool read_int(struct reader *r, const char *name, const json_t *v, int64_t *out)
{
	if (!json_is_integer(v))
		return reader_fail(r, "%s: a whole number is needed", name);
	*out = json_integer_value(v);
	if (*out > INT_FAR || *out < -INT_FAR)
		return reader_fail(r, "%s: the number is too large", name);
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

static bool read_named(struct reader *r, const struct member *f, const json_t *v, void *p)
{
	struct str s;

	if (!read_str(r, f->name, v, &s))
		return false;
	switch (f->kind) {
	case MEMBER_MARK:
	case MEMBER_TOKEN:
		*(struct str *)p = s;
		return is_mark(s) ||
		       reader_fail(r, "%s: %d hex digits are needed", f->name, MARK_LEN);
	case MEMBER_STATUS:
		*(int64_t *)p = status_parse(s);
		return *(int64_t *)p || str_is(s, status_name(0)) ||
		       reader_fail(r, "status: there is no %.*s", STRF(s));
	case MEMBER_CLASS:
		*(int64_t *)p = class_parse(s);
		return *(int64_t *)p || reader_fail(r, "class: there is no %.*s", STRF(s));
	case MEMBER_CODE:
		return read_code(r, s, p);
	case MEMBER_APPLIED:
		return read_applied(r, s, p);
	default:
		*(struct str *)p = s;
		return true;
	}
}

static bool read_value(struct reader *r, const struct member *f, const json_t *v, void *p)
{
	switch (f->kind) {
	case MEMBER_INT:
		return read_int(r, f->name, v, p);
	case MEMBER_SEED:
		*(int64_t *)p = json_integer_value(v);
		return json_is_integer(v) ||
		       reader_fail(r, "%s: a whole number is needed", f->name);
	case MEMBER_LIST:
		return read_list(r, f->name, v, p);
	case MEMBER_FLAG:
		*(int64_t *)p = json_is_true(v);
		return json_is_boolean(v) || reader_fail(r, "%s: true or false", f->name);
	case MEMBER_BOOL:
		*(bool *)p = json_is_true(v);
		return json_is_boolean(v) || reader_fail(r, "%s: true or false", f->name);
	default:
		return read_named(r, f, v, p);
	}
}

static bool history_members_among(const char *name, const char *const *names)
{
	for (; names && *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

bool members_read(struct reader *r, const json_t *o, const struct member *members,
		  const char *const *others, void *to)
{
	size_t known = 0;
	const char *name;
	json_t *v;

	for (const struct member *f = members; f->name; f++) {
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
		const struct member *f = members;

		while (f->name && strcmp(f->name, name) != 0)
			f++;
		if (!f->name && !history_members_among(name, others))
			return reader_fail(r, "%s is unknown", name);
	}
	return true;
}
