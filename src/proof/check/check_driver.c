/* Checks the history of a driver, another program's queue. Such a queue may have no fences, tokens or leases, and it never
 * tells its time. So every time here is a bound: a call took effect after it was sent and before it was answered. A finding
 * must hold for every moment in between. */
#include <stdlib.h>

#include "proof/check/checker_private.h"

#define MS INT64_C(1000000)
#define SLACK (20 * MS) /* a driver may round a lease, and its clock may be slewed */
#define EARLIER 64      /* grants of a task that are compared with the next one */

/* A lock that one agent got; a repeated `next` with the same token belongs to the same hold. */
struct holding {
	const struct history_call *call;
	struct str token;
	int64_t fence;
	int64_t sent, answered; /* the first call with this token, and its first answer */
	int64_t least;          /* the lease lasts at least until then; HISTORY_NEVER: no limit */
	int64_t most;           /* and at most until then; 0: unknown or no limit */
	int64_t ended;          /* the first call that showed that it was over was sent then */
	int64_t done;           /* the first `done` was sent then */
	size_t n_renewed;
	bool accused; /* a finding says that it should not have been granted */
};

struct holdings {
	struct checking *x;
	struct str task;
	const struct touch *touches;
	size_t n, n_holds;
	struct holding *v;
	struct tally tokens;
	struct tally *all;      /* tokens of every `next` of the history */
	const int64_t *earlier; /* by token in `all`: when it was sent first */
};

/* --- the holds of a task -------------------------------------------------------------------------- */

static struct holding *holding_of(const struct holdings *l, struct str token)
{
	uint32_t name = tally_find(&l->tokens, token);

	return name ? &l->v[name - 1] : NULL;
}

static void holding_add(struct holdings *l, const struct touch *t)
{
	const struct history_call *c = t->call;
	struct holding *h = holding_of(l, c->rq->new_token);
	int64_t most = t->lock->expires_at * MS;

	if (h) {
		h->most = most > h->most && h->most ? most : h->most;
		return;
	}
	tally_add(&l->tokens, c->rq->new_token);
	h = &l->v[l->n_holds++];
	*h = (struct holding){ .call = c,
			       .token = c->rq->new_token,
			       .fence = t->lock->fence,
			       .sent = l->earlier[tally_find(l->all, c->rq->new_token)],
			       .answered = c->answered,
			       .most = most,
			       .ended = HISTORY_NEVER,
			       .done = HISTORY_NEVER };
	h->least = t->lock->ttl ? h->sent + t->lock->ttl * MS : HISTORY_NEVER;
}

static void holding_find(struct holdings *l)
{
	l->n_holds = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct touch *t = &l->touches[i];

		if (t->call->rq->op == OP_TAKE && call_accepted(t->call) && t->lock)
			holding_add(l, t);
	}
}

static int64_t earlier_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Notes which calls renewed each hold, and which show that it was over: a refusal says that the lock is lost. A completion
 * does not make room for another holder, because no task comes back from there. */
static void holding_follow(struct holdings *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct touch *t = &l->touches[i];
		const struct history_call *c = t->call;
		struct holding *h = holding_of(l, c->rq->token);
		bool renews = c->rq->op == OP_HEARTBEAT;

		if (!h || (!renews && c->rq->op != OP_DONE))
			continue;
		if (!renews)
			h->done = earlier_of(h->done, c->sent);
		if (renews && call_accepted(c))
			h->n_renewed++;
		else if (renews && call_unanswered(c))
			h->most = 0;
		else if (c->ans && !call_accepted(c) && !call_unanswered(c) && !c->ans->repeated)
			h->ended = earlier_of(h->ended, c->sent);
		if (renews && call_accepted(c) && t->lock && h->most)
			h->most = t->lock->expires_at ? (h->most > t->lock->expires_at * MS
								 ? h->most
								 : t->lock->expires_at * MS)
						      : 0;
	}
}

/* --- two holders ---------------------------------------------------------------------------------- */

/* The moment until which the hold surely lasted, counting the renewals that were acknowledged before `by`. */
static int64_t surely_until(const struct holdings *l, const struct holding *h, int64_t by)
{
	int64_t until = h->least;

	for (size_t i = 0; h->n_renewed && i < l->n; i++) {
		const struct touch *t = &l->touches[i];
		const struct history_call *c = t->call;

		if (c->rq->op == OP_HEARTBEAT && call_accepted(c) && c->answered < by && t->lock &&
		    t->lock->ttl && str_eq(c->rq->token, h->token) &&
		    c->sent + t->lock->ttl * MS > until)
			until = c->sent + t->lock->ttl * MS;
	}
	return until;
}

/* A queue may free the locks of a process that was killed. */
static bool holder_killed(const struct holdings *l, const struct holding *h, int64_t until)
{
	const struct history_log *log = l->x->log;

	for (size_t i = 0; i < log->n_notes; i++)
		if (log->notes[i].at >= h->sent && log->notes[i].at <= until &&
		    str_starts(log->notes[i].what, STR("kill")) &&
		    str_eq(log->notes[i].agent, h->call->agent))
			return true;
	return false;
}

/* Was `b` surely granted while `h` was held, if `h` was granted first? */
static bool granted_over(const struct holdings *l, const struct holding *h, const struct holding *b)
{
	int64_t until = surely_until(l, h, b->sent);

	return h->ended > b->answered && (until == HISTORY_NEVER || b->answered + SLACK < until) &&
	       !holder_killed(l, h, b->answered);
}

static bool check_driver_pair(const struct holdings *l, const struct holding *h,
			      const struct holding *b)
{
	if (b->answered < h->sent)
		return granted_over(l, b, h);
	if (h->answered < b->sent)
		return granted_over(l, h, b);
	return granted_over(l, h, b) && granted_over(l, b, h);
}

static void check_driver_fence(struct holdings *l, const struct holding *h, const struct holding *b)
{
	if (!h->fence || !b->fence)
		return;
	if (h->fence == b->fence || (h->answered < b->sent && h->fence > b->fence))
		check_add(l->x, CHECK_FENCE, l->task,
			  (const struct history_call *const[]){ h->call, b->call }, 2,
			  "%.*s: fence %lld was given after fence %lld", STRF(l->task),
			  (long long)b->fence, (long long)h->fence);
}

static void check_driver_holders(struct holdings *l)
{
	for (size_t i = 1; i < l->n_holds; i++) {
		struct holding *b = &l->v[i];
		size_t first = i > EARLIER ? i - EARLIER : 0;

		for (size_t k = i; k-- > first;) {
			const struct holding *h = &l->v[k];

			check_driver_fence(l, h, b);
			if (b->accused || !check_driver_pair(l, h, b))
				continue;
			b->accused = true;
			check_add(l->x, CHECK_HOLDERS, l->task,
				  (const struct history_call *const[]){ h->call, b->call }, 2,
				  "%.*s was given to %.*s while %.*s held it", STRF(l->task),
				  STRF(b->call->agent), STRF(h->call->agent));
		}
	}
}

/* --- completions ---------------------------------------------------------------------------------- */

/* The completion that counts: the one that was acknowledged first. */
static const struct history_call *check_driver_first(const struct holdings *l)
{
	const struct history_call *first = NULL;

	for (size_t i = 0; i < l->n; i++) {
		const struct history_call *c = l->touches[i].call;

		if (c->rq->op == OP_DONE && call_accepted(c) &&
		    (!first || c->answered < first->answered))
			first = c;
	}
	return first;
}

static void check_driver_again(struct holdings *l, const struct history_call *first)
{
	for (size_t i = 0; first && i < l->n_holds; i++) {
		struct holding *b = &l->v[i];

		if (b->accused || b->sent <= first->answered)
			continue;
		b->accused = true;
		check_add(l->x, CHECK_HOLDERS, l->task,
			  (const struct history_call *const[]){ first, b->call }, 2,
			  "%.*s was given to %.*s after it was completed", STRF(l->task),
			  STRF(b->call->agent));
	}
}

/* A grant that followed this hold, and that nothing accuses: then this hold was over. */
static const struct holding *check_driver_successor(const struct holdings *l,
						    const struct holding *h, int64_t before)
{
	size_t least = l->n_holds > EARLIER ? l->n_holds - EARLIER : 0;

	for (size_t i = l->n_holds; i-- > least;) {
		const struct holding *g = &l->v[i];

		if (g != h && !g->accused && g->sent > h->answered && g->answered < before)
			return g;
	}
	return NULL;
}

/* true: the write is late. Without a fence, an agent may have acquired an expired lock again, so a write is late only if
 * another agent got the task in between. */
static bool check_driver_late(struct holdings *l, const struct holding *h,
			      const struct history_call *w)
{
	const struct holding *g = check_driver_successor(l, h, w->sent);
	const char *what = w->rq->op == OP_DONE ? "a completion" : "a renewal";

	if (g)
		check_add(l->x, CHECK_STALE, l->task,
			  (const struct history_call *const[]){ h->call, g->call, w }, 3,
			  "%.*s: %s by %.*s was accepted after the task was given to %.*s",
			  STRF(l->task), what, STRF(w->agent), STRF(g->call->agent));
	else if (h->fence && h->most && w->sent > h->most + SLACK)
		check_add(l->x, CHECK_STALE, l->task,
			  (const struct history_call *const[]){ h->call, w }, 2,
			  "%.*s: %s by %.*s was accepted %lld ms after the lease expired",
			  STRF(l->task), what, STRF(w->agent),
			  (long long)((w->sent - h->most) / MS));
	else
		return false;
	return true;
}

/* Of the calls of `done` with one token, only the first is a new completion: the others may be repeats of it. */
static void check_driver_writes(struct holdings *l, const struct history_call *first)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct history_call *c = l->touches[i].call;
		const struct holding *h = holding_of(l, c->rq->token);
		bool done = c->rq->op == OP_DONE;

		if (!h || !call_accepted(c) || (!done && c->rq->op != OP_HEARTBEAT) ||
		    (done && c->sent > h->done))
			continue;
		if (check_driver_late(l, h, c) || !done || c == first ||
		    str_eq(first->rq->token, c->rq->token))
			continue;
		check_add(l->x, CHECK_DONE, l->task,
			  (const struct history_call *const[]){ first, c }, 2,
			  "%.*s: completed by %.*s and again by %.*s", STRF(l->task),
			  STRF(first->agent), STRF(c->agent));
	}
}

/* --- the end -------------------------------------------------------------------------------------- */

static void check_driver_end(struct holdings *l, uint32_t number, const struct history_call *first)
{
	const struct history_end *end = l->x->ends[number];

	l->x->out->endless += !end;
	if (!end)
		return;
	if (!end->task)
		check_add(l->x, CHECK_LOST, l->task, &l->touches[0].call, l->n > 0,
			  "%.*s was acknowledged, but it is gone", STRF(l->task));
	else if (end->task->status != DONE && first)
		check_add(l->x, CHECK_LOST, l->task, &first, 1,
			  "%.*s was completed, but it ends as %s", STRF(l->task),
			  status_name(end->task->status));
	else if (end->task->status != DONE)
		check_add(l->x, CHECK_STUCK, l->task, NULL, 0,
			  "%.*s ends as %s, and `next` offers it to nobody", STRF(l->task),
			  status_name(end->task->status));
}

static void check_driver_task(struct holdings *l, uint32_t number)
{
	const struct history_call *first;

	holding_find(l);
	holding_follow(l);
	check_driver_holders(l);
	first = check_driver_first(l);
	check_driver_again(l, first);
	if (first)
		check_driver_writes(l, first);
	check_driver_end(l, number, first);
}

void check_driver(struct checking *x)
{
	struct arena a = { 0 };
	struct tally all = { 0 };
	int64_t *earlier = arena_array(&a, int64_t, x->log->n_calls + 2);
	struct holdings l = { .x = x, .all = &all, .earlier = earlier };
	size_t most = 0;

	/* the calls are sorted by the time sent, so the first one with a token is the earliest */
	for (size_t i = 0; i < x->log->n_calls; i++) {
		const struct history_call *c = x->calls[i];
		uint32_t before = all.n, token = tally_add(&all, c->rq->new_token);

		if (all.n > before && token)
			earlier[token] = c->sent;
	}
	for (uint32_t i = 1; i < x->tasks.n; i++)
		if (x->first[i + 1] - x->first[i] > most)
			most = x->first[i + 1] - x->first[i];
	l.v = arena_array(&a, struct holding, most + 1);
	for (uint32_t i = 1; i < x->tasks.n; i++) {
		l.task = x->tasks.v[i];
		l.touches = x->touches + x->first[i];
		l.n = x->first[i + 1] - x->first[i];
		check_driver_task(&l, i);
		tally_free(&l.tokens);
	}
	tally_free(&all);
	arena_free(&a);
}
