/*
 * Expired leases as events, for readers that follow the log. No process writes when a lease expires; the log gets an
 * event only when the next agent takes the task. So a reader derives the event from the lock: an expired lease stays
 * in its record, with the same expiry, until a call takes or clears it.
 */
#include <stdlib.h>

#include "core/validate.h"
#include "core/lease.h"
#include "format/task_form.h"
#include "queue/queue_private.h"

struct expiries {
	struct answer *ans;
	struct arena *arena;
	int64_t since;
	size_t first; /* index of the first one in ans->events */
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
	out->title = STR("-"); /* every task has one */
	return !task_fault(out, r->key, a);
}

/* Skips bad records: doctor reports them. */
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
