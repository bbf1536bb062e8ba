/* `next`: the task that a claim would take, and why it would not take the others. The forecast
 * tells a loop without an eligible task whether one can still come, so that the loop does not
 * wait for a task that only a person can free. */
#include <stdlib.h>

#include "core/order.h"
#include "queue/queue.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

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

/* next --mine: is the task assigned to the caller? */
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
	if (*eligible && lane == LANE_NONE) { /* somebody may be working on it without a lock */
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

	x->bad += bad && wanted; /* both passes read the record: count it once */
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

/* --- forecast --------------------------------------------------------------------------------- */

/* Can an open task still become work for a loop? The open tasks form a graph, in which a task
 * waits for its open dependencies and sub-tasks. Progress starts at the tasks that an agent
 * holds or may claim, and spreads to the tasks that wait for nothing else. A task that progress
 * does not reach needs a person. */

#define NOBODY SIZE_MAX

/* An open task. */
struct node {
	struct str key, id, parent;
	struct strs depends;
	int status, lane;
	int64_t eligible_at;
	bool held, wanted, except, moves;
	size_t needs;  /* number of open tasks that it waits for */
	size_t waiter; /* the first edge to a task that waits for it; NOBODY: none */
};

struct edge {
	size_t to, next;
};

struct graph {
	const struct request *rq;
	const struct policy *policy;
	struct query filter;
	int64_t now;
	struct arena arena;
	struct node *v;
	size_t n, room;
	struct edge *edges;
	size_t n_edges, room_edges;
};

static void *room_for(struct graph *g, void *old, size_t n, size_t *room, size_t size)
{
	char *new;

	if (n < *room)
		return old;
	*room = *room ? *room * 2 : 64;
	new = arena_alloc(&g->arena, *room * size);
	if (n)
		memcpy(new, old, n * size);
	return new;
}

static int add_node(const struct record *r, void *ctx)
{
	struct graph *g = ctx;
	const struct index *ix = &r->ix;

	if (!str_starts(r->key, STR("task/")))
		return 0;
	g->v = room_for(g, g->v, g->n, &g->room, sizeof(*g->v));
	g->v[g->n++] = (struct node){
		.key = arena_str(&g->arena, r->key),
		.id = arena_str(&g->arena, ix->id),
		.parent = arena_str(&g->arena, ix->parent),
		.depends = arena_strs(&g->arena, ix->depends),
		.status = ix->status,
		.lane = ix->lane,
		.eligible_at = ix->eligible_at,
		.held = ix->holder.n && (ix->lane == LANE_NONE || ix->eligible_at > g->now),
		.wanted = query_matches(&g->filter, ix, g->now),
		.except = select_excepts(g->rq, ix->id),
		.waiter = NOBODY,
	};
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(((const struct node *)a)->key, ((const struct node *)b)->key);
}

static struct node *forecast_find(const struct graph *g, struct str key)
{
	struct node wanted = { .key = key };

	return g->n ? bsearch(&wanted, g->v, g->n, sizeof(*g->v), by_key) : NULL;
}

static bool is_work(const struct node *t)
{
	return t->status == READY || t->status == IN_PROGRESS;
}

static void add_edge(struct graph *g, struct node *from, struct node *to)
{
	g->edges = room_for(g, g->edges, g->n_edges, &g->room_edges, sizeof(*g->edges));
	g->edges[g->n_edges] = (struct edge){ (size_t)(to - g->v), from->waiter };
	from->waiter = g->n_edges++;
	to->needs++;
}

static bool waits_deps(const struct graph *g, const struct node *t)
{
	return (t->lane == LANE_WAITING || t->lane == LANE_BOTH) && !g->policy->ignore_depends;
}

static bool waits_subs(const struct graph *g, const struct node *t)
{
	return (t->lane == LANE_PARENT || t->lane == LANE_BOTH) && !g->policy->offer_parents;
}

/* Links the tasks. The only ended tasks in the graph are those that still hold others back. */
static void link_up(struct graph *g)
{
	for (size_t i = 0; i < g->n; i++) {
		struct node *t = &g->v[i],
			    *parent = t->parent.n ? forecast_find(g, t->parent) : NULL;

		for (size_t k = 0; waits_deps(g, t) && k < t->depends.n; k++) {
			struct node *dep = forecast_find(g, t->depends.v[k]);

			if (dep)
				add_edge(g, dep, t);
		}
		if (parent && waits_subs(g, parent))
			add_edge(g, t, parent);
	}
}

/* Can progress start at this task, because an agent holds it or may claim it? */
static bool forecast_begins(const struct graph *g, const struct node *t, bool people)
{
	if (!is_work(t))
		return people &&
		       (t->status == BLOCKED || t->status == NEEDS_HELP || t->status == REVIEW);
	if (t->held)
		return true;
	if (t->status == IN_PROGRESS && g->policy->keep_abandoned)
		return false;
	return !t->except && t->lane != LANE_NONE && !waits_deps(g, t) && !waits_subs(g, t);
}

/* Marks the tasks that can make progress. Each task enters the list once, so a cycle cannot make the loop endless. */
static void forecast_spread(struct graph *g, bool people)
{
	size_t *list = arena_array(&g->arena, size_t, g->n + 1), n = 0;

	for (size_t i = 0; i < g->n; i++)
		if (forecast_begins(g, &g->v[i], people)) {
			g->v[i].moves = true;
			list[n++] = i;
		}
	while (n) {
		const struct node *t = &g->v[list[--n]];

		for (size_t e = t->waiter; e != NOBODY; e = g->edges[e].next) {
			struct node *to = &g->v[g->edges[e].to];

			if (--to->needs || to->moves || !is_work(to))
				continue;
			to->moves = true;
			list[n++] = g->edges[e].to;
		}
	}
}

/* After the loop releases a task, the task is work again only if it waits for a change of other tasks. */
static bool may_come(const struct graph *g, const struct node *t)
{
	return t->wanted && t->moves && (!t->except || waits_deps(g, t) || waits_subs(g, t));
}

static void forecast_decide(const struct graph *g, struct forecast *out, struct arena *a)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct node *t = &g->v[i];
		int64_t left = t->eligible_at - g->now;

		if (t->wanted && may_come(g, t))
			out->coming++;
		else if (t->wanted && t->status != BACKLOG && t->status != FAILED && !out->stuck++)
			out->stuck_id = arena_str(a, t->id);
		if (left > 0 && (!out->wait_ms || left < out->wait_ms))
			out->wait_ms = left;
	}
}

static enum result forecast_check(struct queue *q, const struct request *rq, bool people,
				  struct forecast *out, struct answer *ans, struct arena *a)
{
	struct query open = { .pick = PICK_ALL, .statuses = STATUS_OPEN };
	struct graph g = { .rq = rq,
			   .policy = &q->config.policy,
			   .filter = { .pick = PICK_ALL,
				       .class_rank = (int)rq->class_rank,
				       .type = rq->type,
				       .label = rq->label },
			   .now = queue_now(q) };
	int r = q->store->ops->scan(q->store, &open, add_node, &g);

	if (!r) {
		if (g.n)
			qsort(g.v, g.n, sizeof(*g.v), by_key);
		link_up(&g);
		forecast_spread(&g, people);
		forecast_decide(&g, out, a);
	}
	arena_free(&g.arena);
	return r ? fault_answer(&q->err, ans, a) : SUCCESS;
}

enum result queue_forecast(struct queue *q, const struct request *rq, bool people,
			   struct forecast *out, struct answer *ans, struct arena *a)
{
	*out = (struct forecast){ 0 };
	return q->remote ? q->far->forecast(q->remote, rq, people, out, ans, a)
			 : forecast_check(q, rq, people, out, ans, a);
}
