/*
 * Records that cannot be used: they fail the checks of core/check.h, so pawl did not write them. Other programs can
 * write to a store. pawl omits these records from lists and never offers or changes them. `doctor` lists them, and
 * `remove --force` removes them.
 */
#include "base/secret.h"
#include "base/text.h"
#include "core/check.h"
#include "core/order.h"
#include "format/task.h"
#include "queue/act.h"
#include "format/event.h"
#include "format/answer.h"

#define SHOWN_COLUMNS 60
#define LARGE (64u << 10)

/* The strings of the task point into the record. */
static const char *decode_in_place(const struct record *r, struct task *out, struct arena *a)
{
	*out = (struct task){ 0 };
	if (r->ix.status && !str_starts(r->key, STR("task/")))
		return "its index is that of a task";
	if (!r->body.n && !r->hot.n)
		return "it is empty or foreign";
	if (!r->body.n && str_starts(r->key, STR("task/")))
		return "its texts are missing, or larger than the limit";
	if (task_unpack(r->hot, out, a) || task_unpack(r->body, out, a))
		return "its bytes are damaged";
	return task_fault(out, r->key, a);
}

static const char *decode(const struct record *r, struct task *out, struct arena *a)
{
	struct record own = *r;

	own.hot = arena_str(a, r->hot);
	own.body = arena_str(a, r->body);
	return decode_in_place(&own, out, a);
}

/* Checks a large record without a copy: many bad records would fill the caller's arena. */
static bool bad_and_large(const struct record *r)
{
	struct arena scratch = { 0 };
	struct task t;
	bool bad;

	if (r->hot.n + r->body.n < LARGE)
		return false;
	bad = decode_in_place(r, &t, &scratch) != NULL;
	arena_free(&scratch);
	return bad;
}

int task_of(const struct record *r, struct task *out, struct arena *a)
{
	return bad_and_large(r) || decode(r, out, a) ? BAD : 0;
}

static const char *kept_fault(const struct record *r, struct arena *a)
{
	struct answer ans = { 0 };

	if (answer_unpack(arena_str(a, r->body), &ans, a))
		return "the answer that it keeps is damaged";
	return answer_fault(&ans, a);
}

const char *record_fault(const struct record *r, struct arena *a)
{
	const char *fault = key_fault(r->key);
	struct task t;
	int64_t n;

	if (fault)
		return fault;
	if (str_starts(r->key, STR("task/")) || str_starts(r->key, STR("lock/")))
		return decode(r, &t, a);
	if (str_eq(r->key, IDENTITY_KEY))
		return token_valid(r->hot) ? NULL : "the identity in it is damaged";
	if (str_starts(r->key, STR("gone/")) || str_starts(r->key, STR("meta/")))
		return number_valid(r->hot, &n) ? NULL : "its number is damaged";
	return str_starts(r->key, STR("request/")) ? kept_fault(r, a) : NULL;
}

struct str bad_name(struct str key, struct arena *a)
{
	struct str id = key;

	if (key_fault(key) || !str_cut_prefix(&id, STR("task/")) || id.p[0] == '@' ||
	    !str_eq(key, task_key(a, id)))
		return bad_handle(a, key); /* no id leads to it */
	return arena_str(a, id);
}

struct str bad_shown(struct str key, struct arena *a)
{
	return text_cut(a, text_line(a, key), SHOWN_COLUMNS);
}

int bad_refuse(struct answer *ans, const struct record *r, struct arena *a)
{
	const char *fault = record_fault(r, a);

	answer_fail(ans, MISCONFIGURED,
		    arena_printf(a, "the record %.*s cannot be used: %s",
				 STRF(bad_shown(r->key, a)), fault ? fault : "it is damaged"),
		    arena_printf(a,
				 "pawl remove %.*s --force removes it; pawl doctor lists all such "
				 "records",
				 STRF(bad_name(r->key, a))));
	return REFUSED;
}

struct str bad_warning(size_t n, struct arena *a)
{
	return arena_printf(a, "%zu record%s cannot be used and %s left out: pawl doctor", n,
			    n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

/* --- by handle ------------------------------------------------------------------------------------ */

struct search {
	struct str handle;
	struct arena *arena;
	struct str key;
};

static int same_handle(const struct record *r, void *ctx)
{
	struct search *x = ctx;
	struct arena scratch = { 0 };
	bool same = str_eq(bad_handle(&scratch, r->key), x->handle);

	arena_free(&scratch);
	if (same)
		x->key = arena_str(x->arena, r->key);
	return same;
}

int bad_find(struct store *s, struct edit *e, struct str handle, struct str *key, struct arena *a)
{
	struct query tasks = { .pick = PICK_ALL }, others = { .pick = PICK_OTHERS };
	const struct query *const all[] = { &tasks, &others };
	struct search x = { .handle = handle, .arena = a };
	int r = 0;

	for (size_t i = 0; !r && !x.key.p && i < 2; i++)
		r = e ? edit_scan(e, all[i], same_handle, &x)
		      : s->ops->scan(s, all[i], same_handle, &x);
	*key = x.key;
	return r < 0 ? r : x.key.p ? 0 : 1;
}

/* --- for doctor ----------------------------------------------------------------------------------- */

#define NAMED 20 /* doctor lists at most this many records */

struct exam {
	struct store *store;
	check_fn *fn;
	void *ctx;
	struct counts counts;
	size_t bad, odd, miscounted, over, lines;
};

static void name_bad(struct exam *x, const struct record *r, const char *fault, struct arena *a)
{
	if (x->bad++ < NAMED)
		x->fn(x->ctx, CHECK_BAD, "record",
		      arena_printf(a, "%.*s cannot be used: %s", STRF(bad_shown(r->key, a)), fault),
		      str_is(r->key, "meta/counter") ? STR("pawl id init")
						     : arena_printf(a, "pawl remove %.*s --force",
								    STRF(bad_name(r->key, a))));
}

/* A task that an older version let grow beyond today's limits. */
static void name_over(struct exam *x, const struct record *r, struct arena *a)
{
	static const struct task none;
	const char *fault;
	struct task t;

	if (!str_starts(r->key, STR("task/")) || task_of(r, &t, a))
		return;
	fault = growth_fault(&t, &none, a);
	if (fault && x->over++ < NAMED)
		x->fn(x->ctx, CHECK_NOTE, "record", str_c(fault),
		      STR("it can be used but cannot grow: remove labels, dependencies or extra that it does not need"));
}

/* A due task may have been promoted. On a branch of lock files, the store does not offer tasks that others work on. */
static bool lane_fits(const struct exam *x, int want, int have)
{
	if (want == LANE_LATER && have == LANE_READY)
		return true;
	return want == have || (x->store->traits & STORE_LOCKS_ONLY && have == LANE_NONE);
}

/* Stores filter and sort by the index, so it must agree with the task. A missing due date is not compared, because
 * version 0.1.0 did not store one. */
static const char *index_fault(const struct exam *x, const struct record *r, struct arena *a)
{
	struct index ix;
	struct task t;

	if (!str_starts(r->key, STR("task/")) || task_of(r, &t, a))
		return NULL;
	order_index(&t, &ix, a);
	if (lane_fits(x, ix.lane, r->ix.lane))
		ix.lane = r->ix.lane;
	ix.eligible_at = r->ix.eligible_at;
	ix.due = r->ix.due ? ix.due : 0;
	return index_eq(&ix, &r->ix) ? NULL : "its index differs from the task";
}

static void name_odd(struct exam *x, const struct record *r, const char *fault, struct arena *a)
{
	struct str name = bad_name(r->key, a);

	if (x->odd++ < NAMED)
		x->fn(x->ctx, CHECK_BAD, "record",
		      arena_printf(a, "%.*s: %s", STRF(bad_shown(r->key, a)), fault),
		      arena_printf(
			      a,
			      "a change of the task corrects it, for example: pawl update %.*s --label checked",
			      STRF(name)));
}

/* The task is held back until its sub-tasks are done: a wrong count would do so for ever, or not at all. */
static void name_miscounted(struct exam *x, const struct record *r, struct arena *a)
{
	struct task t;
	int64_t open;

	if (!str_starts(r->key, STR("task/")) || task_of(r, &t, a))
		return;
	open = counts_open_subs(&x->counts, r->key);
	if (t.open_subs != open && x->miscounted++ < NAMED)
		x->fn(x->ctx, CHECK_BAD, "counts",
		      arena_printf(a, "%.*s has %lld open sub-task%s, but its record says %lld",
				   STRF(t.id), (long long)open, open == 1 ? "" : "s",
				   (long long)t.open_subs),
		      STR("pawl backup, then pawl restore FILE --force, counts anew"));
}

static int examine(const struct record *r, void *ctx)
{
	struct exam *x = ctx;
	struct arena a = { 0 };
	const char *fault = record_fault(r, &a);

	if (fault) {
		name_bad(x, r, fault, &a);
	} else {
		name_over(x, r, &a);
		fault = index_fault(x, r, &a);
		if (fault)
			name_odd(x, r, fault, &a);
		name_miscounted(x, r, &a);
	}
	arena_free(&a);
	return 0;
}

static int examine_line(const struct entry *en, void *ctx)
{
	struct exam *x = ctx;
	struct event ev;

	x->lines += event_of(en, &ev) != 0;
	return 0;
}

static void sum_up(struct exam *x)
{
	struct arena a = { 0 };

	if (!x->bad && !x->odd)
		x->fn(x->ctx, CHECK_OK, "record", STR("every record can be used"), STR(""));
	else if (x->bad > NAMED)
		x->fn(x->ctx, CHECK_BAD, "record",
		      arena_printf(&a, "%zu more cannot be used", x->bad - NAMED),
		      STR("remove the records listed above, then run pawl doctor again"));
	if (x->lines)
		x->fn(x->ctx, CHECK_NOTE, "log",
		      arena_printf(&a, "%zu lines of the log cannot be used and are left out",
				   x->lines),
		      STR(""));
	arena_free(&a);
}

int bad_check(struct store *s, check_fn *fn, void *ctx)
{
	struct query tasks = { .body = true }, others = { .pick = PICK_OTHERS, .body = true };
	struct entry_query lines = { 0 };
	struct exam x = { .store = s, .fn = fn, .ctx = ctx };
	int r = counts_read(&x.counts, s);

	if (!r)
		r = s->ops->scan(s, &tasks, examine, &x);
	if (!r)
		r = s->ops->scan(s, &others, examine, &x);
	if (!r)
		r = s->ops->entries(s, &lines, examine_line, &x);
	if (!r)
		sum_up(&x);
	counts_free(&x.counts);
	return r;
}

/* --- the log ---------------------------------------------------------------------------------------- */

int event_of(const struct entry *en, struct event *out)
{
	if (event_unpack(en->data, out))
		return BAD;
	out->cursor = en->cursor;
	out->at = en->at;
	return event_fault(out) ? BAD : 0;
}
