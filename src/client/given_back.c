/* Compares a released task with its state now. If a read fails, the loop forgets the task. It may then claim the task once too
 * often, but it never skips a task permanently. */
#include "client/given_back.h"

#include <stdlib.h>

static struct str given_back_own(struct str s)
{
	char *p = mem_alloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	return str_n(p, s.n);
}

static void given_back_drop(struct given *t)
{
	free((char *)t->id.p);
	free((char *)t->comment.p);
	free((char *)t->last.p);
}

/* Reads the task as it is now; its strings are in `a`. false: it is gone, or cannot be read. */
static bool given_back_check(struct queue *q, struct str id, struct given *out, struct arena *a)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans;
	int64_t left;

	GIVE(&rq, id, id);
	queue_call(q, &rq, &ans, a);
	if (ans.code != SUCCESS || !ans.task)
		return false;
	left = ans.task->lock.holder.n ? ans.task->lock.expires_at - ans.now : 0;
	*out = (struct given){ .id = ans.task->id,
			       .held_ms = left > 0 ? left : 0,
			       .comment = ans.n_events ? ans.events[ans.n_events - 1].cursor
						       : STR(""),
			       .status = ans.task->status,
			       .version = ans.task->version,
			       .open_deps = ans.task->open_deps,
			       .canceled_deps = ans.task->canceled_deps,
			       .open_subs = ans.task->open_subs };
	return true;
}

/* The cursor of the task's last event; empty: the log cannot be read. */
static struct str last_event(struct queue *q, struct str id, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans;

	GIVE(&rq, id, id);
	GIVE(&rq, limit, 1);
	queue_call(q, &rq, &ans, a);
	return ans.code == SUCCESS && ans.n_events ? ans.events[ans.n_events - 1].cursor : STR("");
}

/* Did others only take the task, and perhaps release it? If that counted as a change, two waiting loops would hand the
 * task to each other forever. */
static bool only_taken(struct queue *q, const struct given *t, struct arena *a)
{
	static const char *const idle[] = { "claimed", "resumed", "released" };
	struct request rq = { .op = OP_LOG };
	struct answer ans;
	bool only;

	if (!t->last.n)
		return false;
	GIVE(&rq, id, t->id);
	GIVE(&rq, after, t->last);
	queue_call(q, &rq, &ans, a);
	only = ans.code == SUCCESS && ans.n_events;
	for (size_t i = 0; only && i < ans.n_events; i++) {
		size_t k = 0;

		while (k < sizeof(idle) / sizeof(*idle) && !str_is(ans.events[i].name, idle[k]))
			k++;
		only = k < sizeof(idle) / sizeof(*idle);
	}
	return only;
}

static bool given_back_same(struct queue *q, const struct given *a, const struct given *b,
			    struct arena *s)
{
	return str_eq(a->comment, b->comment) && a->open_deps == b->open_deps &&
	       a->canceled_deps == b->canceled_deps && a->open_subs == b->open_subs &&
	       (a->version == b->version || only_taken(q, a, s));
}

static void given_back_forget(struct given_back *g, size_t i)
{
	given_back_drop(&g->v[i]);
	memmove(g->v + i, g->v + i + 1, (--g->n - i) * sizeof(*g->v));
}

void given_back_add(struct given_back *g, struct queue *q, struct str id)
{
	struct arena a = { 0 };
	struct given t;

	for (size_t i = g->n; i-- > 0;)
		if (str_eq_nocase(g->v[i].id, id))
			given_back_forget(g, i);
	if (given_back_check(q, id, &t, &a)) {
		if (g->n == GIVEN_BACK_MAX)
			given_back_forget(g, 0);
		g->v = mem_grow(g->v, (g->n + 1) * sizeof(*g->v));
		t.id = given_back_own(t.id);
		t.comment = given_back_own(t.comment);
		t.last = given_back_own(last_event(q, id, &a));
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

int64_t given_back_except(struct given_back *g, struct queue *q, struct request *rq, bool held,
			  struct arena *a)
{
	struct arena scratch = { 0 };
	struct strs ids = { 0 };
	int64_t first = 0;

	if (!g->on || !g->n || !takes_next(rq))
		return 0;
	for (size_t i = g->n; i-- > 0;) {
		struct given now;

		if (!given_back_check(q, g->v[i].id, &now, &scratch) ||
		    !given_back_same(q, &g->v[i], &now, &scratch)) {
			given_back_forget(g, i);
		} else if (now.status == READY || (held && now.held_ms)) {
			ids = arena_append(a, ids, arena_str(a, g->v[i].id));
			if (now.held_ms && (!first || now.held_ms < first))
				first = now.held_ms;
		} /* else its holder's lease has expired, so the task needs an agent */
		arena_free(&scratch);
		scratch = (struct arena){ 0 };
	}
	if (ids.n)
		GIVE(rq, except, ids);
	return first;
}

void given_back_free(struct given_back *g)
{
	while (g->n)
		given_back_drop(&g->v[--g->n]);
	free(g->v);
	*g = (struct given_back){ 0 };
}
