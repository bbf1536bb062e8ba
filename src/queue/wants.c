/*
 * wants: what a request is likely to read, for a store that asks a server. A read that is missing here costs one more
 * round trip, and a read too many some bytes; neither changes an answer.
 */
#include "core/typed.h"
#include "queue/queue_private.h"

#define QUERIES 4
#define OFFERS \
	3 /* `done --claim-next` has put a record or two before it takes: each may hide an offer */

struct list {
	struct arena *a;
	struct wants *w;
	struct query queries[QUERIES];
};

static void wants_key(struct list *l, struct str key)
{
	l->w->keys = arena_append(l->a, l->w->keys, key);
}

static void wants_task(struct list *l, struct str id)
{
	if (id.n)
		wants_key(l, task_key(l->a, id));
}

static void want_records(struct list *l, const struct request *rq)
{
	guard_keys(rq, l->w, l->a);
	if (rq->request_id.n)
		wants_key(l, repeat_key(rq, l->a));
	if (rq->queue_id.n)
		wants_key(l, IDENTITY_KEY);
	if ((rq->op == OP_CREATE && !rq->id.n) || rq->op == OP_ID_CLAIM || rq->op == OP_ID_INIT)
		wants_key(l, COUNTER_KEY);
	if (rq->id.n && typed_of(rq->id) == TYPED_NONE)
		wants_task(l, rq->id);
	if (rq->op == OP_CREATE && rq->id.n) {
		struct str k = task_key(l->a, rq->id);

		(void)str_cut(&k, '/');
		wants_key(l, arena_printf(l->a, "gone/%.*s", STRF(k)));
	}
	wants_task(l, rq->parent);
	for (size_t i = 0; i < rq->depends.n; i++)
		wants_task(l, rq->depends.v[i]);
}

/* May the task end, or open again? Then the counts of its parent and of the tasks that wait for it change. */
static bool ends_task(const struct request *rq)
{
	if (rq->op == OP_STATUS)
		return status_ended(rq->status);
	return rq->op == OP_DONE || rq->op == OP_CANCEL || rq->op == OP_APPROVE ||
	       rq->op == OP_REOPEN || rq->op == OP_REMOVE;
}

static void want_queries(struct list *l, const struct act *w)
{
	const struct request *rq = w->call.rq;
	bool takes = rq->op == OP_TAKE || (rq->op == OP_DONE && rq->claim_next);
	size_t n = 0;

	if (ends_task(rq) && rq->id.n)
		l->queries[n++] = (struct query){ .depends_on = task_key(l->a, rq->id) };
	if (takes && w->call.fresh.n)
		l->queries[n++] = (struct query){ .token = w->call.fresh };
	if (takes && !rq->assignee.n && !rq->except.n) {
		select_query(rq, w->call.policy, &l->queries[n]);
		l->queries[n++].limit = rq->op == OP_TAKE ? 1 : OFFERS;
	}
	if (rq->op == OP_TAKE && rq->view & VIEW_BRIEF)
		l->queries[n++] = brief_held_query(rq);
	l->w->queries = l->queries;
	l->w->n_queries = n;
	l->w->parents = ends_task(rq) || (rq->op == OP_UPDATE && HAS(rq, parent)) ||
			rq->view & VIEW_BRIEF;
}

const struct wants *act_reads(const struct act *w, struct arena *a)
{
	struct list *l = arena_new(a, struct list);

	l->a = a;
	l->w = arena_new(a, struct wants);
	want_records(l, w->call.rq);
	want_queries(l, w);
	return l->w;
}

const struct wants *act_wants(const struct queue *q, const struct act *w)
{
	return q->store->traits & STORE_FAR ? act_reads(w, w->call.arena) : NULL;
}
