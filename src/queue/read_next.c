/* `next`: the task that would be taken, and why the others would not. */
#include "core/order.h"
#include "queue/read.h"

#define NAMED 3 /* an explanation names at most three tasks */

struct naming {
	struct arena *arena;
	struct str text;
	size_t n;
};

static void add_name(struct naming *x, struct str id)
{
	x->text = arena_printf(x->arena, "%.*s%s%.*s", STRF(x->text), x->n++ ? ", " : "", STRF(id));
}

static int name_sub(const struct record *r, void *ctx)
{
	add_name(ctx, r->ix.id);
	return 0;
}

static int name_subs(struct reading *x, struct str key, struct naming *names)
{
	struct query q = { .parent = key,
			   .statuses = STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED)),
			   .limit = NAMED };

	return x->store->ops->scan(x->store, &q, name_sub, names);
}

static int name_deps(struct reading *x, const struct task *t, struct naming *names)
{
	for (size_t i = 0; i < t->depends.n && names->n < NAMED; i++) {
		struct record rec;
		int r = x->store->ops->get(x->store, task_key(names->arena, t->depends.v[i]), &rec,
					   names->arena);

		if (r < 0)
			return r;
		if (r || rec.ix.status != DONE)
			add_name(names, t->depends.v[i]);
	}
	return 0;
}

/* Why the task waits, and for which tasks. */
static int name_awaited(struct reading *x, const struct task *t, struct str key, struct str *why,
			struct arena *a)
{
	struct naming names = { .arena = a };
	bool deps = order_waits_deps(t, x->policy), subs = order_waits_subs(t, x->policy);
	int64_t all = (deps ? t->open_deps : 0) + (subs ? t->open_subs : 0);
	int r = deps ? name_deps(x, t, &names) : 0;

	if (!r && subs)
		r = name_subs(x, key, &names);
	if (!r && names.n)
		*why = arena_printf(a, "%.*s: %.*s%s", STRF(*why), STRF(names.text),
				    (int64_t)names.n < all ? ", …" : "");
	return r;
}

/* next --mine: only tasks that are planned for the caller. */
static bool planned_for(const struct reading *x, const struct task *t)
{
	return !x->rq->assignee.n || str_eq(t->assignee, x->rq->assignee);
}

int read_why(struct reading *x, const struct task *t, struct str key, int lane, struct str *why,
	     bool *eligible, struct arena *a)
{
	*why = order_why(t, x->policy, x->now, a, eligible);
	if (*eligible && !planned_for(x, t)) {
		*eligible = false;
		*why = arena_printf(a, "assigned to %s",
				    arena_cstr(a, t->assignee.n ? t->assignee : STR("nobody")));
	}
	if (*eligible && lane == LANE_NONE) { /* others may work without a lock */
		*eligible = false;
		*why = arena_printf(a, "its status is %s", status_name(t->status));
	}
	if (*eligible || !order_waits(t, x->policy, x->now))
		return 0;
	return name_awaited(x, t, key, why, a);
}

/* wanted: true in the pass for eligible tasks, false in the pass for the others. */
static int add_candidate(struct reading *x, const struct record *r, bool wanted)
{
	struct answer *ans = x->ans;
	struct arena scratch = { 0 };
	struct candidate *c;
	struct task t;
	bool eligible = !wanted;
	struct str why = STR("");
	int bad = task_of(r, &t, &scratch), fault = 0;

	x->bad += bad && wanted; /* both passes meet it: count it once */
	if (!bad)
		fault = read_why(x, &t, r->key, r->ix.lane, &why, &eligible, &scratch);
	if (!bad && !fault && eligible == wanted) {
		ans->candidates = arena_grow(x->arena, ans->candidates, ans->n_candidates,
					     sizeof(*c));
		c = &ans->candidates[ans->n_candidates++];
		c->id = arena_str(x->arena, t.id);
		c->title = arena_str(x->arena, t.title);
		c->why = arena_str(x->arena, why);
		c->eligible = eligible;
		c->place = eligible ? (int64_t)ans->n_candidates : 0;
	}
	arena_free(&scratch);
	if (fault)
		return fault;
	return arena_over(x->arena) || (x->limit && ans->n_candidates >= x->limit);
}

static int eligible_candidate(const struct record *r, void *ctx)
{
	return add_candidate(ctx, r, true);
}

static int other_candidate(const struct record *r, void *ctx)
{
	return add_candidate(ctx, r, false);
}

static int read_explain(struct reading *x, struct query *q)
{
	struct query all = *q;
	int r;

	x->ans->kind = ANSWER_CANDIDATES;
	q->body = all.body = true;
	all.pick = PICK_ALL;
	all.statuses = 0;
	r = x->store->ops->scan(x->store, q, eligible_candidate, x);
	if (!r && (!x->limit || x->ans->n_candidates < x->limit))
		r = x->store->ops->scan(x->store, &all, other_candidate, x);
	return r ? r : x->store->ops->count(x->store, &all, &x->ans->total);
}

static int when_due(const struct record *r, void *ctx)
{
	struct reading *x = ctx;
	struct arena scratch = { 0 };
	struct task t;
	bool mine = !x->rq->assignee.n || (!task_of(r, &t, &scratch) && planned_for(x, &t));

	arena_free(&scratch);
	if (!mine || select_excepts(x->rq, r->ix.id))
		return 0;
	x->ans->wait_ms = r->ix.eligible_at - x->now;
	return 1;
}

static int first_task(const struct record *r, void *ctx)
{
	struct reading *x = ctx;

	x->ans->task = arena_new(x->arena, struct task);
	if (task_of(r, x->ans->task, x->arena))
		x->bad++;
	else if (planned_for(x, x->ans->task) && !select_excepts(x->rq, r->ix.id))
		return 1;
	else if (planned_for(x, x->ans->task))
		x->given_back = arena_append(x->arena, x->given_back,
					     arena_str(x->arena, r->ix.id));
	x->ans->task = NULL;
	return 0;
}

int read_next(struct reading *x)
{
	struct task pause = { 0 };
	struct query q;
	int r = read_pause(x, &pause);

	if (r)
		return r;
	select_query(x->rq, x->policy, &q);
	q.at = x->now;
	if (x->rq->explain)
		return read_explain(x, &q);
	if (x->ans->paused) {
		answer_fail(x->ans, NO_TASKS, pause_text(&pause, x->arena), PAUSE_HINT);
		return 0;
	}
	q.body = true;
	r = x->store->ops->scan(x->store, &q, first_task, x);
	if (r || x->ans->task)
		return r;
	q.pick = PICK_LATER;
	answer_fail(x->ans, NO_TASKS, STR("no task is eligible now"),
		    STR("pawl next --explain says why"));
	select_passed_over(x->ans, x->given_back, x->arena);
	return x->store->ops->scan(x->store, &q, when_due, x);
}
