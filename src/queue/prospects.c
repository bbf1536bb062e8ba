/* Can an open task still become work for a loop? The open tasks form a graph: a task waits for its open dependencies
 * and sub-tasks. Progress starts at the tasks that an agent holds or may claim, and is passed on to the tasks that wait
 * for nothing else. A task that progress does not reach needs a person. */
#include "queue/prospects.h"

#include <stdlib.h>

#include "queue/queue_private.h"
#include "queue/remote_queue.h"

#define NOBODY SIZE_MAX

/* An open task. */
struct node {
	struct str key, id, parent;
	struct strs depends;
	int status, lane;
	int64_t eligible_at;
	bool held, wanted, except, moves;
	size_t needs;  /* open tasks that it waits for */
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

/* The graph has no ended task but those that hold others back. */
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

/* May progress begin here: is somebody at work on the task, or may an agent claim it? */
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

/* Each task enters the list once. */
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

/* A task that the loop released is work again only after its dependencies or sub-tasks changed. */
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
