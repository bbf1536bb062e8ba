/* Checks the locks without a model: which agent got which fence, and which agent wrote under it. A finding is certain: no order
 * of concurrent calls explains it. */
#include <stdlib.h>

#include "proof/check/checker_private.h"

struct hold {
	const struct history_call *call;
	struct str token;
	int64_t fence, from, until; /* store time; until: as granted or last renewed */
	bool renewing;              /* an unanswered call may have renewed the lease */
};

/* The touches of one task and the acquisitions among them. */
struct locks {
	struct checking *x;
	struct str task;
	const struct touch *touches;
	size_t n;
	struct hold *holds;
	size_t n_holds;
	struct tally tokens;
	uint32_t *last; /* by token: its latest hold + 1 */
	/* Calls that may have ended a lock. Answered ones are sorted by the time sent; answered_by
	 * has the latest answer up to each. */
	const struct history_call **enders, **open_enders;
	int64_t *answered_by;
	size_t n_enders, n_open;
};

static bool is_start(const struct request *rq)
{
	return rq->op == OP_STATUS && rq->status == IN_PROGRESS;
}

static bool is_acquisition(const struct touch *t)
{
	enum op op = t->call->rq->op;

	if (!call_accepted(t->call) || !t->lock)
		return false;
	return t->next || op == OP_TAKE || op == OP_CLAIM || op == OP_LOCK_ACQUIRE ||
	       is_start(t->call->rq);
}

static struct hold *hold_of(const struct locks *l, struct str token)
{
	uint32_t name = tally_find(&l->tokens, token);

	return name && l->last[name] ? &l->holds[l->last[name] - 1] : NULL;
}

static void name_holds(struct locks *l)
{
	memset(l->last, 0, (l->n_holds + 2) * sizeof(*l->last));
	for (size_t i = 0; i < l->n_holds; i++)
		l->last[tally_add(&l->tokens, l->holds[i].token)] = (uint32_t)i + 1;
}

/* Starting work under a manual lock keeps its fence and token, so it is not another acquisition. */
static struct hold *same_hold(const struct locks *l, const struct touch *t, const struct hold *h)
{
	struct hold *same = hold_of(l, h->token);

	if (t->call->rq->op != OP_CLAIM && !is_start(t->call->rq))
		return NULL;
	return same && same->fence == h->fence ? same : NULL;
}

static void find_holds(struct locks *l)
{
	l->n_holds = 0;
	memset(l->last, 0, (l->n + 2) * sizeof(*l->last));
	for (size_t i = 0; i < l->n; i++) {
		const struct touch *t = &l->touches[i];
		struct hold h = { .call = t->call };
		struct hold *same;

		if (!is_acquisition(t))
			continue;
		h.token = t->call->rq->new_token;
		h.fence = t->lock->fence;
		h.from = t->call->ans->now;
		h.until = t->lock->expires_at;
		same = same_hold(l, t, &h);
		if (same) {
			same->until = h.until > same->until ? h.until : same->until;
			continue;
		}
		l->holds[l->n_holds++] = h;
		l->last[tally_add(&l->tokens, h.token)] = (uint32_t)l->n_holds;
	}
}

/* --- fences -------------------------------------------------------------------------------------- */

static int by_fence(const void *a, const void *b)
{
	const struct hold *x = a, *y = b;

	if (x->fence != y->fence)
		return x->fence < y->fence ? -1 : 1;
	return (x->call->sent > y->call->sent) - (x->call->sent < y->call->sent);
}

/* A claim may take over the lock that its caller acquired by hand, and keeps its fence. */
static bool taken_over(const struct hold *a, const struct hold *b)
{
	enum op x = a->call->rq->op, y = b->call->rq->op;

	return str_eq(a->token, b->token) &&
	       ((x == OP_LOCK_ACQUIRE && y == OP_CLAIM) || (x == OP_CLAIM && y == OP_LOCK_ACQUIRE));
}

/* Fences ascend, so no acquisition may have been answered before one with a lower fence was
 * sent. */
static void check_fences(struct locks *l)
{
	const struct hold *later = NULL;

	qsort(l->holds, l->n_holds, sizeof(*l->holds), by_fence);
	for (size_t i = l->n_holds; i-- > 0;) {
		const struct hold *h = &l->holds[i], *above = h + 1;

		if (above < l->holds + l->n_holds && above->fence == h->fence &&
		    !taken_over(h, above))
			check_add(l->x, CHECK_FENCE, l->task,
				  (const struct history_call *const[]){ h->call, above->call }, 2,
				  "%.*s: fence %lld was given twice", STRF(l->task),
				  (long long)h->fence);
		else if (later && call_before(later->call, h->call))
			check_add(l->x, CHECK_FENCE, l->task,
				  (const struct history_call *const[]){ later->call, h->call }, 2,
				  "%.*s: fence %lld was given after fence %lld", STRF(l->task),
				  (long long)h->fence, (long long)later->fence);
		if (!later || h->call->answered < later->call->answered)
			later = h;
	}
}

/* --- holders ------------------------------------------------------------------------------------- */

static void find_renewals(struct locks *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct history_call *c = l->touches[i].call;
		struct hold *h = c->rq->op == OP_HEARTBEAT ? hold_of(l, c->rq->token) : NULL;

		if (h)
			h->renewing |= call_unanswered(c);
	}
}

/* Could the call have ended a lock that was held then? */
static bool may_end(const struct history_call *c)
{
	enum op op = c->rq->op;

	if (op_flags(op) & OP_READS || !(call_accepted(c) || call_unanswered(c)))
		return false;
	return op != OP_HEARTBEAT && op != OP_COMMENT && op != OP_CLAIM && op != OP_LOCK_ACQUIRE &&
	       op != OP_TAKE && op != OP_DEPEND && op != OP_UNDEPEND && op != OP_CREATE &&
	       op != OP_ARCHIVE;
}

static bool needs_own_lock(const struct request *rq)
{
	switch (rq->op) {
	case OP_RELEASE:
		return !rq->force;
	case OP_DONE:
		return !rq->take || rq->explicit;
	case OP_HEARTBEAT:
	case OP_BLOCK:
	case OP_ESCALATE:
	case OP_REVIEW:
	case OP_FAIL:
		return true;
	default:
		return rq->explicit && rq->op != OP_CLAIM && rq->op != OP_LOCK_ACQUIRE &&
		       rq->op != OP_TAKE && rq->op != OP_CREATE && !is_start(rq);
	}
}

static void find_enders(struct locks *l)
{
	int64_t latest = 0;

	l->n_enders = l->n_open = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct history_call *c = l->touches[i].call;

		if (l->touches[i].next || !may_end(c))
			continue;
		if (call_unanswered(c)) {
			l->open_enders[l->n_open++] = c;
			continue;
		}
		latest = c->answered > latest ? c->answered : latest;
		l->answered_by[l->n_enders] = latest;
		l->enders[l->n_enders++] = c;
	}
}

static bool may_have_ended(const struct history_call *c, const struct hold *a, const struct hold *b)
{
	return c->sent <= b->call->answered && (call_unanswered(c) || !call_before(c, a->call)) &&
	       (!needs_own_lock(c->rq) || str_eq(c->rq->token, a->token));
}

static bool ended_between(const struct locks *l, const struct hold *a, const struct hold *b)
{
	size_t low = 0, high = l->n_enders;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (l->enders[mid]->sent <= b->call->answered)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i-- > 0 && l->answered_by[i] >= a->call->sent;)
		if (may_have_ended(l->enders[i], a, b))
			return true;
	for (size_t i = 0; i < l->n_open; i++)
		if (may_have_ended(l->open_enders[i], a, b))
			return true;
	return false;
}

static bool check_locks_swept(const struct checking *x)
{
	for (size_t i = 0; i < x->log->n_calls; i++)
		if (x->calls[i]->rq->op == OP_LOCK_CLEANUP)
			return true;
	return false;
}

static void check_holders(struct locks *l)
{
	for (size_t i = 0; i + 1 < l->n_holds; i++) {
		const struct hold *a = &l->holds[i], *b = a + 1;

		/* the next hold began while the lease of this one surely lasted */
		if (a->fence == b->fence || b->from < a->from || b->from >= a->until)
			continue;
		if (ended_between(l, a, b))
			continue;
		check_add(l->x, CHECK_HOLDERS, l->task,
			  (const struct history_call *const[]){ a->call, b->call }, 2,
			  "%.*s: fence %lld was given at %lld while fence %lld was held until %lld",
			  STRF(l->task), (long long)b->fence, (long long)b->from,
			  (long long)a->fence, (long long)a->until);
	}
}

/* --- stale tokens -------------------------------------------------------------------------------- */

/* Did an unanswered call acquire the lock again with the same token? Then the write was made under
 * that lock, and its fence differs. */
static bool taken_anew(const struct locks *l, const struct hold *h, const struct touch *t)
{
	return tally_find(&l->x->open_tokens, h->token) && (!t->task || t->task->fence != h->fence);
}

static void check_write(struct locks *l, const struct touch *t, const struct hold *newest_before)
{
	const struct history_call *w = t->call;
	const struct hold *h = hold_of(l, w->rq->token);

	if (!h) {
		/* an unanswered call may have taken the lock with this token */
		if (!tally_find(&l->x->open_tokens, w->rq->token))
			check_add(
				l->x, CHECK_STALE, l->task, &w, 1,
				"%.*s: a write was accepted with a token that never took the lock",
				STRF(l->task));
		return;
	}
	if (!taken_anew(l, h, t) && newest_before && newest_before->fence > h->fence)
		check_add(l->x, CHECK_STALE, l->task,
			  (const struct history_call *const[]){ h->call, newest_before->call, w },
			  3,
			  "%.*s: a write under fence %lld was accepted after fence %lld was given",
			  STRF(l->task), (long long)h->fence, (long long)newest_before->fence);
}

/* No write is accepted after the lease has expired, counting renewals. */
static void check_lease(struct locks *l, const struct touch *t)
{
	const struct history_call *w = t->call;
	struct hold *h = hold_of(l, w->rq->token);

	if (!h)
		return;
	if (w->ans->now >= h->until && !h->renewing && !taken_anew(l, h, t) && !l->x->skewed)
		check_add(l->x, CHECK_STALE, l->task,
			  (const struct history_call *const[]){ h->call, w }, 2,
			  "%.*s: a write was accepted at %lld under a lease that expired at %lld",
			  STRF(l->task), (long long)w->ans->now, (long long)h->until);
	if (w->rq->op == OP_HEARTBEAT && t->lock && t->lock->expires_at > h->until)
		h->until = t->lock->expires_at;
}

/* Sorts by store time; within one ms, a renewal comes first. */
static int by_now(const void *a, const void *b)
{
	const struct history_call *x = (*(const struct touch *const *)a)->call,
				  *y = (*(const struct touch *const *)b)->call;

	if (x->ans->now != y->ans->now)
		return x->ans->now < y->ans->now ? -1 : 1;
	return (y->rq->op == OP_HEARTBEAT) - (x->rq->op == OP_HEARTBEAT);
}

static bool is_write(const struct touch *t)
{
	return !t->next && call_accepted(t->call) && needs_own_lock(t->call->rq) &&
	       t->call->rq->token.n;
}

static void check_leases(struct locks *l, const struct touch **writes)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (is_write(&l->touches[i]))
			writes[n++] = &l->touches[i];
	qsort(writes, n, sizeof(*writes), by_now);
	for (size_t i = 0; i < n; i++)
		check_lease(l, writes[i]);
}

static int by_answered(const void *a, const void *b)
{
	const struct hold *x = *(const struct hold *const *)a, *y = *(const struct hold *const *)b;

	return (x->call->answered > y->call->answered) - (x->call->answered < y->call->answered);
}

static void check_stale(struct locks *l, const struct hold **by_end)
{
	const struct hold *newest = NULL;
	size_t at = 0;

	for (size_t i = 0; i < l->n_holds; i++)
		by_end[i] = &l->holds[i];
	qsort(by_end, l->n_holds, sizeof(*by_end), by_answered);
	for (size_t i = 0; i < l->n; i++) {
		const struct history_call *w = l->touches[i].call;

		for (; at < l->n_holds && call_before(by_end[at]->call, w); at++)
			if (!newest || by_end[at]->fence > newest->fence)
				newest = by_end[at];
		if (is_write(&l->touches[i]))
			check_write(l, &l->touches[i], newest);
	}
}

/* --- one task, all tasks ------------------------------------------------------------------------- */

static void check_task(struct locks *l, bool cleaned, void *room)
{
	find_holds(l);
	check_fences(l);
	name_holds(l);
	find_renewals(l);
	find_enders(l);
	check_stale(l, room);
	check_leases(l, room);
	/* a cleanup may end a dead process's lock; after the clock was set, any lease may have
	 * expired */
	if (!cleaned && !l->x->skewed)
		check_holders(l);
	check_done(l->x, l->task, l->touches, l->n, room);
}

void check_locks(struct checking *x)
{
	bool cleaned = check_locks_swept(x);
	struct arena a = { 0 };
	struct locks l = { .x = x };
	size_t most = 0;
	void *room;

	for (uint32_t i = 1; i < x->tasks.n; i++)
		if (x->first[i + 1] - x->first[i] > most)
			most = x->first[i + 1] - x->first[i];
	l.holds = arena_array(&a, struct hold, most);
	l.last = arena_array(&a, uint32_t, most + 2);
	l.enders = arena_array(&a, const struct history_call *, most);
	l.open_enders = arena_array(&a, const struct history_call *, most);
	l.answered_by = arena_array(&a, int64_t, most);
	room = arena_array(&a, void *, most);
	for (uint32_t i = 1; i < x->tasks.n; i++) {
		l.task = x->tasks.v[i];
		l.touches = x->touches + x->first[i];
		l.n = x->first[i + 1] - x->first[i];
		check_task(&l, cleaned, room);
		tally_free(&l.tokens);
	}
	arena_free(&a);
}
