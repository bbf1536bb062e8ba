#include "client/given_back.h"

#include <stdlib.h>

static struct str own(struct str s)
{
	char *p = mem_alloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	return str_n(p, s.n);
}

static void drop(struct given *t)
{
	free((char *)t->id.p);
	free((char *)t->comment.p);
}

/* The task as it is now; its strings are in `a`. false: it is gone, or nobody can tell. */
static bool look(struct queue *q, struct str id, struct given *out, struct arena *a)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans;

	GIVE(&rq, id, id);
	queue_call(q, &rq, &ans, a);
	if (ans.code != SUCCESS || !ans.task)
		return false;
	*out = (struct given){ .id = ans.task->id,
			       .comment = ans.n_events ? ans.events[ans.n_events - 1].cursor
						       : STR(""),
			       .version = ans.task->version,
			       .open_deps = ans.task->open_deps,
			       .canceled_deps = ans.task->canceled_deps,
			       .open_subs = ans.task->open_subs };
	return true;
}

static bool same(const struct given *a, const struct given *b)
{
	return a->version == b->version && str_eq(a->comment, b->comment) &&
	       a->open_deps == b->open_deps && a->canceled_deps == b->canceled_deps &&
	       a->open_subs == b->open_subs;
}

static void forget(struct given_back *g, size_t i)
{
	drop(&g->v[i]);
	memmove(g->v + i, g->v + i + 1, (--g->n - i) * sizeof(*g->v));
}

void given_back_add(struct given_back *g, struct queue *q, struct str id)
{
	struct arena a = { 0 };
	struct given t;

	for (size_t i = g->n; i-- > 0;)
		if (str_eq_nocase(g->v[i].id, id))
			forget(g, i);
	if (look(q, id, &t, &a)) {
		if (g->n == GIVEN_BACK_MAX)
			forget(g, 0);
		g->v = mem_grow(g->v, (g->n + 1) * sizeof(*g->v));
		t.id = own(t.id);
		t.comment = own(t.comment);
		g->v[g->n++] = t;
	}
	arena_free(&a);
}

void given_back_note(struct given_back *g, struct queue *q, const struct request *rq,
		     const struct answer *ans)
{
	bool gives = rq->op == OP_RELEASE || (rq->op == OP_STATUS && rq->status == READY);

	if (g->on && gives && ans->code == SUCCESS && ans->task && ans->task->status == READY)
		given_back_add(g, q, ans->task->id);
}

static bool takes_next(const struct request *rq)
{
	return rq->op == OP_TAKE || (rq->op == OP_NEXT && !rq->explain) ||
	       (rq->op == OP_DONE && rq->claim_next);
}

void given_back_except(struct given_back *g, struct queue *q, struct request *rq, struct arena *a)
{
	struct arena scratch = { 0 };
	struct strs ids = { 0 };

	if (!g->on || !g->n || !takes_next(rq))
		return;
	for (size_t i = g->n; i-- > 0;) {
		struct given now;

		if (!look(q, g->v[i].id, &now, &scratch) || !same(&g->v[i], &now))
			forget(g, i);
		arena_free(&scratch);
		scratch = (struct arena){ 0 };
	}
	for (size_t i = 0; i < g->n; i++)
		ids = arena_append(a, ids, arena_str(a, g->v[i].id));
	if (ids.n)
		GIVE(rq, except, ids);
}

void given_back_free(struct given_back *g)
{
	while (g->n)
		drop(&g->v[--g->n]);
	free(g->v);
	*g = (struct given_back){ 0 };
}
