/* Checks that a repeated call does not take effect twice. A repeat has the same request id or the same token. A task is
 * completed at most once under a fence. A finding is certain: no order of concurrent calls explains it. */
#include <stdlib.h>

#include "proof/check/checker_private.h"
#include "proof/model/model.h"

/* Chains of calls that have one name (a request id or a token) in common. */
struct chains {
	struct checking *x;
	struct tally names;
	size_t *first, *next; /* indexes of calls, + 1 */
};

static bool starts_work(const struct request *rq)
{
	return op_flags(rq->op) & OP_TAKES || (rq->op == OP_STATUS && rq->status == IN_PROGRESS);
}

/* The request id identifies a change; acquisitions are identified by their token. */
static struct str name_by_id(const struct history_call *c)
{
	bool counts = call_accepted(c) && !(op_flags(c->rq->op) & OP_READS) && !starts_work(c->rq);

	return counts ? c->rq->request_id : STR("");
}

static const struct task *check_twice_taken(const struct history_call *c)
{
	return c->rq->op == OP_TAKE ? c->ans->task : c->rq->claim_next ? c->ans->next : NULL;
}

/* Only for calls that select a task; others name the task. */
static struct str name_by_token(const struct history_call *c)
{
	return call_accepted(c) && check_twice_taken(c) ? c->rq->new_token : STR("");
}

static struct chains chain_up(struct checking *x,
			      struct str (*name_of)(const struct history_call *))
{
	size_t n = x->log->n_calls;
	struct chains all = { .x = x, .next = arena_array(x->arena, size_t, n + 1) };

	for (size_t i = 0; i < n; i++)
		tally_add(&all.names, name_of(x->calls[i]));
	all.first = arena_array(x->arena, size_t, all.names.n + 1);
	for (size_t i = n; i-- > 0;) {
		uint32_t name = tally_find(&all.names, name_of(x->calls[i]));

		if (!name)
			continue;
		all.next[i + 1] = all.first[name];
		all.first[name] = i + 1;
	}
	return all;
}

static void check_ids(struct checking *x)
{
	struct chains all = chain_up(x, name_by_id);

	for (uint32_t id = 1; id < all.names.n; id++)
		for (size_t i = all.first[id]; i && all.next[i]; i = all.next[i]) {
			const struct history_call *a = x->calls[i - 1],
						  *b = x->calls[all.next[i] - 1];

			/* of two concurrent calls, the one that was sent first may have taken effect last */
			if (llabs(b->ans->now - a->ans->now) >= MODEL_KEPT)
				continue;
			check_add(x, CHECK_TWICE, a->rq->id,
				  (const struct history_call *const[]){ a, b }, 2,
				  "%.*s: a call with one request id was made twice",
				  STRF(a->rq->id));
		}
	tally_free(&all.names);
}

/* Was the task seen after the call? Within one ms, the store's time does not tell. */
static bool seen_after(const struct history_call *c, int64_t now, const struct history_call *by)
{
	return now > c->ans->now ||
	       (now == c->ans->now && (!by || by == c || by->sent > c->answered));
}

/* Violation: a token took another task while this task was held under it. */
static void check_sight(struct chains *all, const struct task *t, int64_t now,
			const struct history_call *by)
{
	uint32_t token = tally_find(&all->names, t->lock.token);

	for (size_t i = all->first[token]; token && i; i = all->next[i]) {
		const struct history_call *c = all->x->calls[i - 1];
		struct str other = check_twice_taken(c)->id;

		if (str_eq_nocase(other, t->id) || !t->lock.acquired_at ||
		    c->ans->now <= t->lock.acquired_at || c->ans->now >= t->lock.expires_at ||
		    !seen_after(c, now, by))
			continue;
		check_add(all->x, CHECK_TWICE, other, (const struct history_call *const[]){ c, by },
			  by && by != c ? 2 : 1,
			  "%.*s was taken under a token that held %.*s from %lld on", STRF(other),
			  STRF(t->id), (long long)t->lock.acquired_at);
		all->first[token] = 0; /* report each token once */
		return;
	}
}

static void check_tokens(struct checking *x)
{
	struct chains all = chain_up(x, name_by_token);
	size_t n = x->first[x->tasks.n];

	for (size_t i = 0; i < n; i++) {
		const struct touch *t = &x->touches[i];

		/* a repeat by request id shows the task as it was at the first call */
		if (t->task && !(t->call->ans->repeated && t->call->rq->request_id.n))
			check_sight(&all, t->task, t->call->ans->now, t->call);
	}
	for (size_t i = 0; i < x->log->n_ends; i++)
		if (x->log->ends[i].task)
			check_sight(&all, x->log->ends[i].task, x->log->ends[i].now, NULL);
	tally_free(&all.names);
}

void check_twice(struct checking *x)
{
	check_ids(x);
	if (!x->skewed)
		check_tokens(x);
}

/* --- completions --------------------------------------------------------------------------------- */

static bool check_twice_completes(const struct touch *t)
{
	const struct request *rq = t->call->rq;

	return call_accepted(t->call) && !t->next && t->task &&
	       (rq->op == OP_DONE || rq->op == OP_APPROVE ||
		(rq->op == OP_STATUS && rq->status == DONE));
}

static int touch_by_fence(const void *a, const void *b)
{
	const struct touch *x = *(const struct touch *const *)a,
			   *y = *(const struct touch *const *)b;

	if (x->task->fence != y->task->fence)
		return x->task->fence < y->task->fence ? -1 : 1;
	return (x > y) - (x < y);
}

void check_done(struct checking *x, struct str task, const struct touch *touches, size_t n_touches,
		const struct touch **done)
{
	size_t n = 0;

	for (size_t i = 0; i < n_touches; i++)
		if (check_twice_completes(&touches[i]))
			done[n++] = &touches[i];
	qsort(done, n, sizeof(*done), touch_by_fence);
	for (size_t i = 0; i + 1 < n; i++)
		if (done[i]->task->fence == done[i + 1]->task->fence)
			check_add(x, CHECK_DONE, task,
				  (const struct history_call *const[]){ done[i]->call,
									done[i + 1]->call },
				  2, "%.*s: completed twice under fence %lld", STRF(task),
				  (long long)done[i]->task->fence);
}
