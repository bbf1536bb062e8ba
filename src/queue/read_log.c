/* Selects events from the log by task, time, agent and kind. The store selects by task and time,
 * so the cost of a read depends on the requested period; the other conditions apply here. Events
 * that `archive` cut are never shown, even if the store could not remove them. */
#include <stdlib.h>

#include "base/when.h"
#include "core/lease.h"
#include "core/validate.h"
#include "format/task_form.h"
#include "queue/queue_private.h"

struct log_reading {
	struct store *store;
	const struct request *rq;
	struct answer *ans;
	struct arena *arena;
	size_t bad;
	size_t bytes;     /* size of the page so far */
	int64_t from;     /* show older events only for open tasks */
	struct strs open; /* the open tasks' keys, sorted */
};

/* --- which events -------------------------------------------------------------------------------- */

static bool has_kind(struct str kinds, struct str kind)
{
	while (kinds.n)
		if (str_eq_nocase(str_trim(str_cut(&kinds, ',')), kind))
			return true;
	return false;
}

/* Is it a routine lock event? Every change of a setting takes and releases @config. */
static bool is_routine(const struct event *ev)
{
	return typed_of(ev->task) && !str_is(ev->name, "lock_broken");
}

static bool is_wanted(const struct log_reading *x, const struct event *ev)
{
	const struct request *rq = x->rq;

	return (!rq->holder.n || str_eq(rq->holder, ev->agent)) &&
	       (!rq->type.n || has_kind(rq->type, ev->name)) &&
	       (!(rq->log_view & LOG_OF_TASKS) || !is_routine(ev));
}

static int by_bytes(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Hides the entries that a cut removed from the log, because some stores keep them (git keeps every commit). */
static bool is_forgotten(const struct log_reading *x, const struct entry *en)
{
	return en->at < x->from && !(x->open.n && bsearch(&en->key, x->open.v, x->open.n,
							  sizeof(*x->open.v), by_bytes));
}

/* Only events that are shown count towards the limit. */
static bool read_log_counts(const struct entry *en, void *ctx)
{
	const struct log_reading *x = ctx;
	struct event ev;

	return !is_forgotten(x, en) && !event_of(en, &ev) && is_wanted(x, &ev);
}

/* Call it after adding the event, so a page has at least one event. */
static bool page_is_full(struct log_reading *x, const struct entry *en)
{
	if (!(x->rq->log_view & LOG_PAGE))
		return false;
	x->bytes += en->data.n;
	x->ans->more = x->bytes > PAGE_BYTES ||
		       (x->rq->limit && x->ans->n_events >= (size_t)x->rq->limit);
	return x->ans->more;
}

static int add_event(const struct entry *en, void *ctx)
{
	struct log_reading *x = ctx;
	struct answer *ans = x->ans;
	struct event ev;

	if (is_forgotten(x, en))
		return 0;
	if (event_of(en, &ev)) {
		x->bad++;
		return 0;
	}
	if (!is_wanted(x, &ev))
		return 0;
	ans->events = arena_grow(x->arena, ans->events, ans->n_events, sizeof(ev));
	(void)event_keep(en, &ans->events[ans->n_events++], x->arena);
	return arena_over(x->arena) || page_is_full(x, en);
}

static bool is_selective(const struct log_reading *x)
{
	const struct request *rq = x->rq;

	return x->from > rq->since || rq->holder.n || rq->type.n || rq->log_view & LOG_OF_TASKS;
}

/* --- the events' tasks ------------------------------------------------------------------------ */

/* Lists the task ids in the events, sorted, with duplicates. */
static struct strs ids_of(const struct log_reading *x)
{
	struct strs ids = { arena_array(x->arena, struct str, x->ans->n_events), 0 };

	for (size_t i = 0; i < x->ans->n_events; i++)
		if (x->ans->events[i].task.n && !typed_of(x->ans->events[i].task))
			ids.v[ids.n++] = x->ans->events[i].task;
	if (ids.n)
		qsort(ids.v, ids.n, sizeof(*ids.v), by_bytes);
	return ids;
}

/* Skips a removed task and a record that cannot be used. */
static int add_task(struct log_reading *x, struct str id)
{
	struct answer *ans = x->ans;
	struct record rec;
	int r = x->store->ops->get(x->store, task_key(x->arena, id), &rec, x->arena);

	if (r)
		return r < 0 ? r : 0;
	ans->tasks = arena_grow(x->arena, ans->tasks, ans->n_tasks, sizeof(*ans->tasks));
	ans->n_tasks += task_of(&rec, &ans->tasks[ans->n_tasks], x->arena) == 0;
	return 0;
}

static int add_tasks(struct log_reading *x)
{
	struct strs ids = ids_of(x);
	int r = 0;

	for (size_t i = 0; !r && i < ids.n && !arena_over(x->arena); i++)
		if (!i || !str_eq(ids.v[i - 1], ids.v[i]))
			r = add_task(x, ids.v[i]);
	return r;
}

/* --- the read ------------------------------------------------------------------------------------- */

/* Reads the time stored under a key. 0: there is none. */
static int time_of(struct store *s, struct str key, int64_t *at, struct arena *a)
{
	struct record rec;
	int r = s->ops->get(s, key, &rec, a);

	*at = 0;
	if (!r && !number_valid(rec.hot, at))
		return BAD;
	return r < 0 ? r : 0;
}

static int add_open(const struct record *r, void *ctx)
{
	struct log_reading *x = ctx;

	x->open.v = arena_grow(x->arena, x->open.v, x->open.n, sizeof(*x->open.v));
	x->open.v[x->open.n++] = arena_str(x->arena, r->key);
	return arena_over(x->arena);
}

static int find_start(struct log_reading *x)
{
	struct query open = { .statuses = LOG_KEPT_FOR };
	int r = time_of(x->store, LOG_FROM_KEY, &x->from, x->arena);

	if (r == BAD)
		x->from = 0;
	if (r < 0 || x->from <= x->rq->since)
		return r < 0 ? r : 0;
	r = x->store->ops->scan(x->store, &open, add_open, x);
	if (x->open.n)
		qsort(x->open.v, x->open.n, sizeof(*x->open.v), by_bytes);
	return r;
}

int log_read(struct store *s, const struct request *rq, struct answer *ans, struct arena *a,
	     size_t *bad)
{
	struct log_reading x = { .store = s, .rq = rq, .ans = ans, .arena = a };
	struct entry_query q = { .after = rq->after,
				 .last = rq->log_view & LOG_PAGE ? 0 : (size_t)rq->limit,
				 .since = rq->since,
				 .until = rq->until };
	int64_t relogged = 0;
	int r = find_start(&x);

	if (HAS(rq, id))
		q.key = task_key(a, rq->id);
	if (!r && q.since)
		r = time_of(s, RELOGGED_KEY, &relogged, a);
	q.unordered = r == BAD || relogged >= q.since;
	if (is_selective(&x))
		q.counts = read_log_counts;
	if (r >= 0)
		r = s->ops->entries(s, &q, add_event, &x);
	if (!r && rq->log_view & LOG_WITH_TASKS)
		r = add_tasks(&x);
	*bad += x.bad;
	return r;
}

/* --- expiry ----------------------------------------------------------------------------------- */

/*
 * Expired leases as events, for readers that follow the log. No process writes when a lease
 * expires. The log gets an event only when the next agent takes the task. So a reader derives the
 * event from the lock: an expired lease stays in its record until a call takes or clears it.
 */

struct expiries {
	struct answer *ans;
	struct arena *arena;
	int64_t since;
	size_t first; /* index of the first derived event in ans->events */
};

static void add_expired(struct expiries *x, struct str id, const struct task *t)
{
	struct answer *ans = x->ans;
	struct event *ev;

	ans->events = arena_grow(x->arena, ans->events, ans->n_events, sizeof(*ev));
	ev = &ans->events[ans->n_events++];
	*ev = (struct event){ .name = STR("expired"),
			      .task = arena_str(x->arena, id),
			      .agent = arena_str(x->arena, t->lock.holder),
			      .run = arena_str(x->arena, t->run),
			      .fence = t->fence,
			      .at = t->lock.expires_at };
}

static void check_one(struct expiries *x, struct str id, const struct task *t)
{
	const struct lock *l = &t->lock;
	int64_t now = x->ans->now, left = l->expires_at - now;

	if (!l->expires_at)
		return;
	if (lease_live(l, now)) {
		if (!x->ans->wait_ms || left < x->ans->wait_ms)
			x->ans->wait_ms = left;
	} else if (left <= 0 && l->expires_at > x->since && (l->token.n || l->foreign)) {
		add_expired(x, id, t);
	}
}

/* The state of the task without its texts, which may be large. false: the record is bad. */
static bool state_of(const struct record *r, struct task *out, struct arena *a)
{
	*out = (struct task){ 0 };
	if (!r->hot.n || task_unpack(arena_str(a, r->hot), out, a))
		return false;
	out->id = r->ix.id;
	out->title = STR("-"); /* task_fault() needs a title */
	return !task_fault(out, r->key, a);
}

/* Skips bad records, because doctor reports them. */
static int each_held(const struct record *r, void *ctx)
{
	struct expiries *x = ctx;
	struct arena scratch = { 0 };
	struct task t;

	if (state_of(r, &t, &scratch))
		check_one(x, t.id, &t);
	arena_free(&scratch);
	return arena_over(x->arena);
}

static int each_kind(struct store *s, struct expiries *x)
{
	int r = 0;

	for (int k = TYPED_WRITE; r >= 0 && k < TYPED_END; k++) {
		struct arena scratch = { 0 };
		struct task t;

		r = guard_kind(s, (enum typed)k, &t, &scratch);
		if (!r)
			check_one(x, t.id, &t);
		arena_free(&scratch);
	}
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return index_id_cmp(x->task, y->task);
}

int read_expired(struct store *s, int64_t since, const struct task *only, struct answer *ans,
		 struct arena *a)
{
	struct expiries x = { .ans = ans, .arena = a, .since = since, .first = ans->n_events };
	struct query held = { .held = true };
	int r = 0;

	if (only) {
		check_one(&x, only->id, only);
	} else {
		r = s->ops->scan(s, &held, each_held, &x);
		if (r >= 0)
			r = each_kind(s, &x);
	}
	if (ans->n_events > x.first)
		qsort(ans->events + x.first, ans->n_events - x.first, sizeof(*ans->events),
		      by_time);
	return r < 0 && r != STORE_CORRUPT ? r : 0;
}
