/* The tasks around a task: its links and attempts for `show`, the walk for `tree`, and the
 * operations that the caller may do. A walk reads each task once, so a cycle in the links ends
 * it. */
#include "core/counts.h"
#include "core/lease.h"
#include "core/order.h"
#include "core/role.h"
#include "queue/queue_private.h"

#define LINKS_MAX 50    /* links of each kind that are listed */
#define ATTEMPTS_MAX 20 /* the newest attempts that are listed */

/* --- sub-tasks, dependencies, dependents ------------------------------------------------------------- */

struct linking {
	struct related *to;
	struct arena *arena;
	enum link_kind kind;
	int64_t now;
	size_t n;
};

static void add_link(struct linking *x, const struct task *t)
{
	struct related *r = x->to;
	struct task_link *l;

	if (x->n++ >= LINKS_MAX) {
		r->more[x->kind]++;
		return;
	}
	r->links = arena_grow(x->arena, r->links, r->n_links, sizeof(*l));
	l = &r->links[r->n_links++];
	*l = (struct task_link){ .kind = x->kind,
				 .id = t->id,
				 .title = t->title,
				 .status = t->status,
				 .holder = lease_live(&t->lock, x->now) ? t->lock.holder
									: STR("") };
}

static int link_record(const struct record *r, void *ctx)
{
	struct linking *x = ctx;
	struct task t;

	if (x->n >= LINKS_MAX) /* count it without reading it */
		add_link(x, &(struct task){ 0 });
	else if (!task_of(r, &t, x->arena))
		add_link(x, &t);
	return arena_over(x->arena);
}

static int scan_links(struct store *s, struct linking *x, enum link_kind kind, struct str key)
{
	struct query q = { .body = true };

	if (kind == LINK_SUB)
		q.parent = key;
	else
		q.depends_on = key;
	x->kind = kind;
	x->n = 0;
	return s->ops->scan(s, &q, link_record, x);
}

static int read_depends(struct store *s, struct linking *x, struct strs depends)
{
	x->kind = LINK_DEPENDS;
	x->n = 0;
	for (size_t i = 0; i < depends.n; i++) {
		struct task t = { .id = depends.v[i] };
		struct record rec;
		int r = i < LINKS_MAX ? s->ops->get(s, task_key(x->arena, t.id), &rec, x->arena)
				      : 1;

		if (r < 0)
			return r;
		if (r || task_of(&rec, &t, x->arena))
			t = (struct task){ .id = depends.v[i] }; /* status 0: missing or bad */
		add_link(x, &t);
	}
	return 0;
}

int read_related(struct store *s, struct answer *ans, struct arena *a)
{
	struct str key = task_key(a, ans->task->id);
	struct linking x = { .arena = a, .now = ans->now };
	int r;

	x.to = ans->related = arena_new(a, struct related);
	r = scan_links(s, &x, LINK_SUB, key);
	if (!r)
		r = read_depends(s, &x, ans->task->depends);
	return r ? r : scan_links(s, &x, LINK_DEPENDENT, key);
}

/* --- attempts ---------------------------------------------------------------------------------------- */

static bool related_among(struct str name, const char *const *list)
{
	for (; *list; list++)
		if (str_is(name, *list))
			return true;
	return false;
}

static void begin_attempt(struct related *r, const struct event *ev, struct arena *a)
{
	if (r->n_attempts == ATTEMPTS_MAX) {
		memmove(r->attempts, r->attempts + 1, (ATTEMPTS_MAX - 1) * sizeof(*r->attempts));
		r->n_attempts--;
	}
	r->attempts[r->n_attempts++] = (struct task_attempt){ .agent = arena_str(a, ev->agent),
							      .at = ev->at,
							      .fence = ev->fence };
}

void read_attempt(struct related *r, const struct event *ev, struct arena *a)
{
	static const char *const begins[] = { "claimed", "resumed", NULL };
	static const char *const ends[] = { "released", "blocked",    "escalated",   "review",
					    "done",     "failed",     "canceled",    "abandoned",
					    "unlocked", "cleaned_up", "lock_broken", "needs_help",
					    NULL };
	static const char *const decides[] = { "approved", "rework", NULL };
	struct task_attempt *last;

	if (!r->attempts)
		r->attempts = arena_array(a, struct task_attempt, ATTEMPTS_MAX);
	if (related_among(ev->name, begins)) {
		begin_attempt(r, ev, a);
		return;
	}
	if (!r->n_attempts)
		return;
	last = &r->attempts[r->n_attempts - 1];
	if (!last->outcome.n && related_among(ev->name, ends)) {
		last->outcome = arena_str(a, ev->name);
		last->text = arena_str(a, ev->text);
		last->ended_at = ev->at;
	} else if (str_is(last->outcome, "review") && related_among(ev->name, decides)) {
		last->outcome = arena_str(a, ev->name);
	}
}

/* --- the tree ---------------------------------------------------------------------------------------- */

/* Tasks in the order in which a walk reaches them. Each is read once, so a cycle ends the walk. */
struct walk {
	struct store *store;
	const struct request *rq;
	struct answer *ans;
	struct arena *arena;
	size_t *bad;
	struct strs keys; /* tasks already read, then those still to read */
	struct graph_seen seen;
	size_t limit;
	bool more;
};

static void related_reach(struct walk *w, struct str key)
{
	struct str kept = arena_str(w->arena, key);

	if (!graph_seen_add(&w->seen, kept))
		return;
	if (w->limit && w->keys.n >= w->limit) {
		w->more = true;
		return;
	}
	w->keys.v = arena_grow(w->arena, w->keys.v, w->keys.n, sizeof(*w->keys.v));
	w->keys.v[w->keys.n++] = kept;
}

static int reach_record(const struct record *r, void *ctx)
{
	struct walk *w = ctx;

	related_reach(w, r->key);
	return w->more || arena_over(w->arena);
}

/* Adds the task and reaches the tasks below it. The tree of one task also shows its ended tasks,
 * so the reader sees its progress. */
static int related_walk(struct walk *w, struct str key, bool first)
{
	struct query q = { .parent = key };
	struct answer *ans = w->ans;
	struct record rec;
	struct task *t;
	int r = w->store->ops->get(w->store, key, &rec, w->arena);

	if (r)
		return r < 0 ? r : 0;
	ans->tasks = arena_grow(w->arena, ans->tasks, ans->n_tasks, sizeof(*t));
	t = &ans->tasks[ans->n_tasks];
	if (task_of(&rec, t, w->arena)) {
		++*w->bad;
		return 0;
	}
	if (!first && read_hides(w->rq, t, HAS(w->rq, id)))
		return 0;
	ans->n_tasks++;
	if (!HAS(w->rq, id))
		return 0;
	r = w->store->ops->scan(w->store, &q, reach_record, w);
	for (size_t i = 0; !r && i < t->depends.n; i++)
		related_reach(w, task_key(w->arena, t->depends.v[i]));
	return r;
}

int read_tree(struct store *s, const struct request *rq, struct answer *ans, struct arena *a,
	      size_t *bad)
{
	struct walk w = {
		.store = s,
		.rq = rq,
		.ans = ans,
		.arena = a,
		.bad = bad,
		.limit = (size_t)rq->limit,
		.seen = { .arena = a },
	};
	struct query open = { .statuses = rq->view & VIEW_ARCHIVED
						  ? STATUS_ALL
						  : STATUS_ALL & ~(STATUS_BIT(DONE) |
								   STATUS_BIT(CANCELED)) };
	int r = 0;

	if (HAS(rq, id))
		related_reach(&w, task_key(a, rq->id));
	else
		r = s->ops->scan(s, &open, reach_record, &w);
	for (size_t i = 0; !r && i < w.keys.n && !arena_over(a); i++)
		r = related_walk(&w, w.keys.v[i], i == 0 && HAS(rq, id));
	if (!r && HAS(rq, id) && !ans->n_tasks) {
		not_found(ans, rq->id, a);
		return REFUSED;
	}
	if (!r && !HAS(rq, id))
		r = s->ops->count(s, &open, &ans->total);
	if (HAS(rq, id) || !w.more)
		ans->total = (int64_t)ans->n_tasks + w.more;
	return r;
}

/* --- allowed ---------------------------------------------------------------------------------- */

/*
 * Fills in struct allowed for each task of an answer: the operations that the caller may do, and
 * the task's position in the order of `next`. Only the first POSITIONS tasks have a position, so
 * the cost does not grow with the queue.
 */

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

/* A record that cannot be used takes a position, too, although `next` passes over it, because
 * detecting it would mean reading the texts of 100 tasks. */
static int allowed_place(const struct record *r, void *ctx)
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
	return x->store->ops->scan(x->store, &q, allowed_place, &p);
}

/* A page of a long list and a task beside an event have no position, because the next change
 * could make it wrong. */
static bool wants_places(const struct reading *x)
{
	return x->rq->op != OP_LOG && !HAS(x->rq, after);
}

/* Reads the pause; *out NULL: the queue is not paused. A bad record is left to doctor. */
static int find_pause(struct reading *x, struct task *pause, const struct task **out)
{
	int r = x->policy->locks_only ? 0 : guard_read(x->store, PAUSE_ID, pause, x->arena);

	*out = !r && pause->lock.holder.n ? pause : NULL;
	return r < 0 ? r : 0;
}

/* Explains why the shown task is next, or why it is not. */
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
