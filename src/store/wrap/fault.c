/* A store that passes calls on and makes some of them fail on purpose (wrap.h). An injected fault must set each
 * change's rc and err->applied as a real fault does. */
#include <stdlib.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/text.h"
#include "store/wrap/wrap.h"

enum call {
	CALL_OPEN,
	CALL_GET,
	CALL_SCAN,
	CALL_COUNT,
	CALL_TALLY,
	CALL_MODIFY,
	CALL_ENTRIES,
	CALL_DISCARD,
	CALL_REPAIR,
	CALL_ANY
};
enum kind { KIND_FAIL, KIND_BUSY, KIND_FULL, KIND_MOVED, KIND_LOST, KIND_UNKNOWN, KIND_NONE };

static const char *const calls[] = { "open",    "get",     "scan", "count", "tally", "modify",
				     "entries", "discard", "mend", "any",   NULL };
static const char *const kinds[] = { "fail", "busy", "full", "moved", "lost", "unknown", NULL };

struct rule {
	enum call call;
	enum kind kind;
	int64_t nth, seen;
	bool always;
	int64_t one_in; /* 0: not at random, `nth` decides */
	uint64_t random;
};

struct fault {
	struct store base;
	struct store *inner;
	char *uri; /* the inner store's URI; that store may keep pointers into it */
	struct rule rules[FAULT_MAX];
	size_t n;
	bool shows_calls;
	bool copies; /* a callback gets a copy that is freed after it, so a sanitizer finds a kept string */
};

/* --- the rules ---------------------------------------------------------------------------------- */

static int word_find(const char *const *list, struct str word)
{
	for (int i = 0; list[i]; i++)
		if (str_is(word, list[i]))
			return i;
	return -1;
}

/* nth is "3" and rest is "always" or empty, or nth is "~50" and rest is a seed or empty. */
static bool when_parse(struct str nth, struct str rest, struct rule *out)
{
	int64_t seed = 0;

	if (str_cut_prefix(&nth, STR("~"))) {
		if (rest.n && !str_to_i64(rest, &seed))
			return false;
		out->random = (uint64_t)seed;
		return str_to_i64(nth, &out->one_in) && out->one_in > 0 &&
		       out->one_in <= UINT32_MAX;
	}
	out->always = str_is(rest, "always");
	return str_to_i64(nth, &out->nth) && out->nth > 0 && (!rest.n || out->always);
}

static bool rule_parse(struct str text, struct rule *out)
{
	struct str call = str_cut(&text, ':'), nth = str_cut(&text, ':'),
		   kind = str_cut(&text, ':');
	int c = word_find(calls, call), k = kind.n ? word_find(kinds, kind) : KIND_FAIL;

	*out = (struct rule){ 0 };
	if (c < 0 || k < 0 || !when_parse(nth, text, out))
		return false;
	out->call = (enum call)c;
	out->kind = (enum kind)k;
	return true;
}

/* Copies the URI without the fault= parameters, and parses these. */
static int take_rules(struct fault *f, struct str text)
{
	struct uri uri;
	struct str rest;
	char *at, sep = '?';

	at = f->uri = mem_alloc(text.n + 1);
	if (uri_parse(text, &uri) < 0 || !uri.params.n) {
		memcpy(at, text.p, text.n);
		at[text.n] = '\0';
		return 0;
	}
	memcpy(at, text.p, (size_t)(uri.params.p - 1 - text.p));
	at += uri.params.p - 1 - text.p;
	rest = uri.params;
	while (rest.n) {
		struct str param = str_cut(&rest, '&'), value = param;

		if (str_is(str_cut(&value, '='), "fault")) {
			if (str_is(value, "calls"))
				f->shows_calls = true;
			else if (str_is(value, "copies"))
				f->copies = true;
			else if (f->n == FAULT_MAX || !rule_parse(value, &f->rules[f->n++]))
				return -1;
			continue;
		}
		*at++ = sep;
		memcpy(at, param.p, param.n);
		at += param.n;
		sep = '&';
	}
	rest = str_n(uri.params.p + uri.params.n,
		     (size_t)(text.p + text.n - uri.params.p) - uri.params.n);
	memcpy(at, rest.p, rest.n);
	at[rest.n] = '\0';
	return 0;
}

static bool fault_strikes(struct rule *r)
{
	if (r->one_in)
		return seeded_below(&r->random, (uint32_t)r->one_in) == 0;
	r->seen++;
	return r->seen == r->nth || (r->always && r->seen > r->nth);
}

static enum kind fault_due(struct fault *f, enum call call)
{
	enum kind kind = KIND_NONE;

	for (size_t i = 0; i < f->n; i++) {
		struct rule *r = &f->rules[i];

		if ((r->call == call || r->call == CALL_ANY) && fault_strikes(r))
			kind = r->kind;
	}
	return kind;
}

/* 0: make the call. */
static int fault_fail(struct fault *f, enum call call, enum kind kind)
{
	const struct store_env *env = &f->base.env;
	const char *hint = "remove fault+ from the store's URI";

	switch (kind) {
	case KIND_NONE:
		return 0;
	case KIND_BUSY:
		return store_fail(env, STORE_BUSY, hint, "injected: %s timed out", calls[call]);
	case KIND_FULL:
		return store_fail(env, STORE_FULL, hint, "injected: no space is left for %s",
				  calls[call]);
	case KIND_MOVED:
		return store_fail(env, STORE_MOVED, hint, "injected: %s read a replaced file",
				  calls[call]);
	default:
		store_fail(env, STORE_IO, hint, "injected: %s %s", calls[call],
			   kind == KIND_LOST ? "lost its reply" : "failed");
		if ((call == CALL_MODIFY || call == CALL_DISCARD) && kind != KIND_FAIL)
			env->err->applied = '?';
		return STORE_IO;
	}
}

static int check_due(struct fault *f, enum call call)
{
	return fault_fail(f, call, fault_due(f, call));
}

/* Shows the end of a call; n: the records or entries that its caller got. Returns rc. */
static int fault_ended(const struct fault *f, enum call call, size_t n, int rc)
{
	if (f->shows_calls)
		tty_print(STDERR_FILENO, "pawl-calls: %s %zu\n", calls[call], n);
	return rc;
}

/* --- the calls ---------------------------------------------------------------------------------- */

static void f_close(struct store *s)
{
	struct fault *f = (struct fault *)s;

	store_close(f->inner);
	free(f->uri);
	free(f);
}

static int64_t f_now(struct store *s)
{
	struct store *in = ((struct fault *)s)->inner;

	return in->ops->now(in);
}

static int f_get(struct store *s, struct str key, struct record *out, struct arena *a)
{
	struct fault *f = (struct fault *)s;
	int rc = check_due(f, CALL_GET);

	if (!rc)
		rc = f->inner->ops->get(f->inner, key, out, a);
	return fault_ended(f, CALL_GET, !rc, rc);
}

struct counted {
	record_fn *record;
	entry_fn *entry;
	bool (*counts)(const struct entry *e, void *ctx);
	void *ctx;
	bool copies;
	size_t n;
};

static int count_record(const struct record *r, void *ctx)
{
	struct counted *c = ctx;
	struct arena a = { 0 };
	int rc;

	c->n++;
	rc = c->record(c->copies ? record_copy(&a, r) : r, c->ctx);
	arena_free(&a);
	return rc;
}

static int count_entry(const struct entry *e, void *ctx)
{
	struct counted *c = ctx;
	struct entry own = *e;
	struct arena a = { 0 };
	int rc;

	c->n++;
	if (c->copies) {
		own.cursor = arena_str(&a, e->cursor);
		own.key = arena_str(&a, e->key);
		own.data = arena_str(&a, e->data);
	}
	rc = c->entry(&own, c->ctx);
	arena_free(&a);
	return rc;
}

static int f_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx)
{
	struct fault *f = (struct fault *)s;
	struct counted c = { .record = fn, .ctx = ctx, .copies = f->copies };
	int rc = check_due(f, CALL_SCAN);

	if (!rc)
		rc = f->inner->ops->scan(f->inner, q, count_record, &c);
	return fault_ended(f, CALL_SCAN, c.n, rc);
}

static int f_count(struct store *s, const struct query *q, int64_t *n)
{
	struct fault *f = (struct fault *)s;
	int rc = check_due(f, CALL_COUNT);

	if (!rc)
		rc = f->inner->ops->count(f->inner, q, n);
	return fault_ended(f, CALL_COUNT, 0, rc);
}

static int f_tally(struct store *s, int64_t *counts)
{
	struct fault *f = (struct fault *)s;
	int rc = check_due(f, CALL_TALLY);

	if (!rc)
		rc = f->inner->ops->tally(f->inner, counts);
	return fault_ended(f, CALL_TALLY, 0, rc);
}

static int f_modify(struct store *s, struct change *changes, size_t n)
{
	struct fault *f = (struct fault *)s;
	enum kind kind = fault_due(f, CALL_MODIFY);
	int rc = 0;

	if (kind == KIND_NONE || kind == KIND_LOST)
		rc = f->inner->ops->modify(f->inner, changes, n);
	fault_ended(f, CALL_MODIFY, 0, rc);
	if (rc < 0 || kind == KIND_NONE)
		return rc;
	rc = fault_fail(f, CALL_MODIFY, kind);
	for (size_t i = 0; i < n; i++)
		changes[i].rc = rc;
	return rc;
}

/* q->counts() must get its own caller's ctx, not ours. */
static bool inner_counts(const struct entry *e, void *ctx)
{
	const struct counted *c = ctx;

	return c->counts(e, c->ctx);
}

static int f_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct fault *f = (struct fault *)s;
	struct counted c = { .entry = fn, .counts = q->counts, .ctx = ctx, .copies = f->copies };
	struct entry_query inner = *q;
	int rc = check_due(f, CALL_ENTRIES);

	if (q->counts)
		inner.counts = inner_counts;
	if (!rc)
		rc = f->inner->ops->entries(f->inner, &inner, count_entry, &c);
	return fault_ended(f, CALL_ENTRIES, c.n, rc);
}

static int f_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx)
{
	struct fault *f = (struct fault *)s;

	return f->inner->ops->snapshot(f->inner, all, fn, ctx);
}

static int f_wake_fd(struct store *s)
{
	struct store *in = ((struct fault *)s)->inner;

	return in->ops->wake_fd(in);
}

static void f_wake_clear(struct store *s)
{
	struct store *in = ((struct fault *)s)->inner;

	in->ops->wake_clear(in);
}

static int f_check(struct store *s, check_fn *fn, void *ctx)
{
	struct store *in = ((struct fault *)s)->inner;

	return in->ops->check(in, fn, ctx);
}

static int f_repair(struct store *s, enum repair_step step, const struct repair_sink *sink)
{
	struct fault *f = (struct fault *)s;
	int rc = check_due(f, CALL_REPAIR);

	if (!rc && f->inner->ops->repair)
		rc = f->inner->ops->repair(f->inner, step, sink);
	return fault_ended(f, CALL_REPAIR, 0, rc);
}

static int f_queues(struct store *s, name_fn *fn, void *ctx)
{
	struct store *in = ((struct fault *)s)->inner;

	return in->ops->queues ? in->ops->queues(in, fn, ctx) : 0;
}

static int f_discard(struct store *s)
{
	struct fault *f = (struct fault *)s;
	enum kind kind = fault_due(f, CALL_DISCARD);
	int rc = 0;

	if (kind == KIND_NONE || kind == KIND_LOST)
		rc = f->inner->ops->discard(f->inner);
	return fault_ended(f, CALL_DISCARD, 0, rc < 0 ? rc : fault_fail(f, CALL_DISCARD, kind));
}

static struct store_counts *f_counts(struct store *s)
{
	struct store *in = ((struct fault *)s)->inner;

	return in->ops->counts ? in->ops->counts(in) : NULL;
}

static const struct store_ops fault_ops = {
	.scheme = "fault",
	.close = f_close,
	.now = f_now,
	.get = f_get,
	.scan = f_scan,
	.count = f_count,
	.tally = f_tally,
	.modify = f_modify,
	.entries = f_entries,
	.snapshot = f_snapshot,
	.wake_fd = f_wake_fd,
	.wake_clear = f_wake_clear,
	.check = f_check,
	.repair = f_repair,
	.queues = f_queues,
	.discard = f_discard,
	.counts = f_counts,
};

int fault_open(struct store **out, struct str uri, const struct store_env *env)
{
	struct fault *f = mem_alloc(sizeof(*f));
	int rc;

	*f = (struct fault){ .base = { .ops = &fault_ops, .env = *env } };
	if (take_rules(f, uri) < 0)
		rc = store_fail(
			env, STORE_UNSUPPORTED,
			"fault=CALL:N[:KIND[:always]] or CALL:~N[:KIND[:SEED]], at most 4 times; fault=calls; fault=copies",
			"a fault= parameter of the store's URI is invalid");
	else
		rc = check_due(f, CALL_OPEN);
	if (!rc)
		rc = store_open(&f->inner, str_c(f->uri), env);
	fault_ended(f, CALL_OPEN, 0, rc);
	if (rc) {
		free(f->uri);
		free(f);
		return rc;
	}
	f->base.env = f->inner->env;
	f->base.inner = f->inner;
	f->base.traits = f->inner->traits;
	*out = &f->base;
	return 0;
}
