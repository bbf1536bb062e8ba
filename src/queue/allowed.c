/*
 * The decisions about the tasks of an answer (struct allowed): the ways that are open to the caller, and the places in the
 * order of `next`. Only the first POSITIONS tasks of the order have a place, so the cost does not grow with the queue.
 */
#include "core/role.h"
#include "core/lease.h"
#include "core/order.h"
#include "queue/read.h"

#define POSITIONS 100

static void allowed_decide(const struct reading *x, const struct task *t, const struct task *paused,
			   struct allowed *out)
{
	struct can_caller by = { .role = x->rq->role, .agent = x->rq->agent };
	const struct call c = { .policy = x->policy, .now = x->now, .paused = paused };

	out->can = out->holder_can = (int64_t)can_do(t, &by, &c);
	out->live = lease_live(&t->lock, x->now);
	if (!out->live)
		return;
	by.holder = true;
	out->holder_can = (int64_t)can_do(t, &by, &c);
}

struct placing {
	struct reading *x;
	int64_t place;
};

/* A record that cannot be used takes a place, too, although `next` passes over it: to find out would mean to read the
 * texts of 100 tasks. */
static int place(const struct record *r, void *ctx)
{
	struct placing *p = ctx;
	struct answer *ans = p->x->ans;
	const struct task *tasks = ans->n_tasks ? ans->tasks : ans->task;

	p->place++;
	for (size_t i = 0; i < ans->n_allowed; i++)
		if (str_eq(tasks[i].id, r->ix.id)) {
			ans->allowed[i].position = p->place;
			break;
		}
	return 0;
}

static int find_places(struct reading *x)
{
	struct request plain = { .op = OP_NEXT };
	struct placing p = { .x = x };
	struct query q;

	select_query(&plain, x->policy, &q);
	q.at = x->now;
	q.limit = POSITIONS;
	return x->store->ops->scan(x->store, &q, place, &p);
}

/* A page of a long list and a task beside an event have no place: the next change could make it wrong. */
static bool wants_places(const struct reading *x)
{
	return x->rq->op != OP_LOG && !HAS(x->rq, after);
}

/* The record of the pause; NULL: the queue is not paused. doctor reports a record that cannot be used. */
static int find_pause(struct reading *x, struct task *pause, const struct task **out)
{
	int r = x->policy->locks_only ? 0 : guard_read(x->store, PAUSE_ID, pause, x->arena);

	*out = !r && pause->lock.holder.n ? pause : NULL;
	return r < 0 ? r : 0;
}

/* For the task that is shown: why it is next, or is not. */
static int allowed_explain(struct reading *x, const struct task *paused)
{
	struct allowed *w = x->ans->allowed;
	const struct task *t = x->ans->task;
	bool eligible;
	int r = read_why(x, t, task_key(x->arena, t->id), x->lane, &w->why, &eligible, x->arena);

	if (r || !eligible)
		return r;
	if (paused)
		w->why = arena_printf(x->arena, "the queue is paused by %.*s",
				      STRF(paused->lock.holder));
	else
		r = find_places(x);
	if (!paused && !r && !w->position)
		w->why = arena_printf(x->arena, "at least %d tasks come first", POSITIONS);
	return r;
}

int read_allowed(struct reading *x)
{
	struct answer *ans = x->ans;
	size_t n = answer_tasks(ans);
	const struct task *tasks = ans->n_tasks ? ans->tasks : ans->task, *paused;
	struct task pause = { 0 };
	int r;

	if (!n || typed_is(x->rq))
		return 0;
	r = find_pause(x, &pause, &paused);
	if (r)
		return r;
	ans->n_allowed = n;
	ans->allowed = arena_array(x->arena, struct allowed, n);
	for (size_t i = 0; i < n; i++)
		allowed_decide(x, &tasks[i], paused, &ans->allowed[i]);
	if (x->rq->op == OP_SHOW)
		return allowed_explain(x, paused);
	return paused || !wants_places(x) ? 0 : find_places(x);
}
