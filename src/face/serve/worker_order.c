/*
 * The order of the jobs in a batch: the first job of each caller, the second job of each, and so
 * on. So a caller with many jobs does not keep the others waiting.
 */
#include <stdlib.h>

#include "base/os.h"
#include "core/typed.h"
#include "face/serve/serve.h"

/* A caller's share of the batch. */
struct share {
	const struct meter *caller;
	size_t jobs;
};

struct batch_place {
	struct job *job;
	size_t round, n;
};

static int by_round(const void *a, const void *b)
{
	const struct batch_place *x = a, *y = b;

	if (x->round != y->round)
		return x->round < y->round ? -1 : 1;
	return x->n < y->n ? -1 : 1;
}

static struct share *share_of(struct share *shares, size_t *n, const struct meter *caller)
{
	size_t i = 0;

	while (i < *n && shares[i].caller != caller)
		i++;
	if (i == *n)
		shares[(*n)++] = (struct share){ .caller = caller };
	return &shares[i];
}

struct job *fair_order(const struct worker *d, struct job *list)
{
	struct arena a = { 0 };
	struct share *shares;
	struct batch_place *places;
	struct job *first = NULL, **last = &first;
	size_t n = 0, callers = 0;

	for (struct job *j = list; j; j = j->next)
		n++;
	shares = arena_array(&a, struct share, n + 1);
	places = arena_array(&a, struct batch_place, n + 1);
	n = 0;
	for (struct job *j = list; j; j = j->next, n++) {
		struct share *s = share_of(shares, &callers, j->payer);

		places[n] = (struct batch_place){ j, s->jobs++ + (j->payer == d->slow), n };
	}
	if (callers > 1)
		qsort(places, n, sizeof(*places), by_round);
	for (size_t i = 0; i < n; i++) {
		*last = places[i].job;
		last = &places[i].job->next;
	}
	*last = NULL;
	arena_free(&a);
	return first;
}

/* --- expiry ----------------------------------------------------------------------------------- */

/*
 * Leases that expire. No call reports them, and the store does not wake anybody. So the worker
 * derives them from the locks (queue/read_log.c). Each check returns the time when the next lease
 * expires, and the worker checks again then. While a caller streams the events, the worker also
 * checks soon after each change: a lease lasts at least a second, so the worker knows each one in
 * time.
 */

#define POLL_MS 500

int64_t expiry_due(const struct worker *d)
{
	const struct expiries *l = &d->expiries;
	int64_t due = l->next ? l->next : INT64_MAX;

	if (l->stale && d->watched && l->checked + POLL_MS < due)
		due = l->checked + POLL_MS;
	return d->open ? due : INT64_MAX;
}

bool expiry_check(struct worker *d)
{
	struct request rq = { .op = OP_LOG };
	struct expiries *l = &d->expiries;
	struct answer ans = { 0 };
	struct arena a = { 0 };
	bool any = false;

	GIVE(&rq, limit, 1);
	GIVE(&rq, expired_after, l->since);
	queue_call(d->session.client.conn.queue, &rq, &ans, &a);
	l->checked = os_boot_ms();
	l->stale = false;
	l->next = ans.code == SUCCESS && ans.wait_ms ? l->checked + ans.wait_ms : 0;
	if (ans.code == SUCCESS)
		l->since = ans.now;
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_events; i++) {
		const struct event *e = &ans.events[i];

		if (e->cursor.n) /* it is in the log */
			continue;
		any = true;
		l->n += !typed_of(e->task);
	}
	arena_free(&a);
	return any;
}
