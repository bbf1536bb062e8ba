/* Checks that need only times: the store's clock, and tasks that were surely eligible. A finding is certain: no order of
 * concurrent calls explains it. */
#include <stdlib.h>

#include "proof/check/checker_private.h"

/* --- the clock ----------------------------------------------------------------------------------- */

static int by_answered(const void *a, const void *b)
{
	const struct history_call *x = *(const struct history_call *const *)a,
				  *y = *(const struct history_call *const *)b;

	return (x->answered > y->answered) - (x->answered < y->answered);
}

static bool tells_time(const struct history_call *c)
{
	return c->ans && c->ans->now > 0 && c->ans->code != API_ERROR && c->ans->code != USAGE;
}

/* A store in which nothing is held may follow the wall clock again, even to an earlier time. */
static bool clock_was_set(const struct history_log *log)
{
	for (size_t i = 0; i < log->n_notes; i++)
		if (str_is(log->notes[i].what, "skew"))
			return true;
	return false;
}

void check_clock(struct checking *x)
{
	size_t n = x->log->n_calls, at = 0;
	const struct history_call **done, *latest = NULL;
	bool set = clock_was_set(x->log);

	if (!n)
		return;
	done = mem_alloc(n * sizeof(*done));
	memcpy(done, x->calls, n * sizeof(*done));
	qsort(done, n, sizeof(*done), by_answered);
	for (size_t i = 0; i < n; i++) {
		const struct history_call *c = x->calls[i];

		for (; at < n && call_before(done[at], c); at++)
			if (tells_time(done[at]) &&
			    (!latest || done[at]->ans->now > latest->ans->now))
				latest = done[at];
		if (!latest || !tells_time(c) || c->ans->now >= latest->ans->now)
			continue;
		x->skewed = true;
		if (!set)
			check_add(x, CHECK_CLOCK, c->rq->id,
				  (const struct history_call *const[]){ latest, c }, 2,
				  "the store's time was %lld, and then %lld in a later call",
				  (long long)latest->ans->now, (long long)c->ans->now);
	}
	free(done);
}

/* --- selection ----------------------------------------------------------------------------------- */

#define RANKS ((CLASS_END) * (PRIORITY_MAX + 1))

/* A period in which a task was surely eligible, because its version did not change. */
struct window {
	int64_t from, until;
	uint32_t rank, task;
	const struct history_call *first, *last;
};

struct seen {
	int64_t version;
	int64_t answered, sent;
	const struct touch *touch;
	bool made_it; /* the call created this version */
};

struct selecting {
	struct checking *x;
	struct window *windows;
	size_t n, room;
	struct seen *seen;
	bool *parents;  /* by task: it had sub-tasks at some time, which may have held it back */
	uint32_t *tree; /* segment tree by rank: the window with the latest `until`, + 1 */
};

/* 0 is the best. */
static uint32_t rank_of(const struct task *t)
{
	int64_t c = t->class_rank > 0 && t->class_rank < CLASS_END ? t->class_rank : STANDARD;
	int64_t p = t->priority < 0 ? 0 : t->priority > PRIORITY_MAX ? PRIORITY_MAX : t->priority;

	return (uint32_t)(c * (PRIORITY_MAX + 1) + PRIORITY_MAX - p);
}

static bool check_time_eligible(const struct selecting *s, uint32_t task, const struct task *t,
				int64_t now)
{
	const struct policy *p = &s->x->log->head.policy;

	return t->status == READY && !t->lock.holder.n && t->not_before <= now &&
	       (!t->depends.n || p->ignore_depends) && (!s->parents[task] || p->offer_parents);
}

static void note_parent(struct selecting *s, struct str id)
{
	if (id.n)
		s->parents[task_number(s->x, id)] = true;
}

static void find_parents(struct selecting *s)
{
	const struct checking *x = s->x;

	for (size_t i = 0; i < x->log->n_calls; i++)
		note_parent(s, x->calls[i]->rq->parent);
	for (uint32_t task = 1; task < x->tasks.n; task++)
		for (size_t i = x->first[task]; i < x->first[task + 1]; i++)
			if (x->touches[i].task)
				note_parent(s, x->touches[i].task->parent);
}

static bool always_changes(const struct history_call *c)
{
	enum op op = c->rq->op;

	return call_accepted(c) && !c->ans->existed && !(op_flags(op) & OP_READS) &&
	       op != OP_COMMENT && op != OP_DEPEND && op != OP_UNDEPEND && op != OP_REMOVE;
}

static int by_version(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->version > y->version) - (x->version < y->version);
}

/* -1: the task may have been removed, and versions start again */
static int64_t find_seen(struct selecting *s, uint32_t task)
{
	const struct checking *x = s->x;
	int64_t n = 0;

	for (size_t i = x->first[task]; i < x->first[task + 1]; i++) {
		const struct touch *t = &x->touches[i];
		const struct history_call *c = t->call;

		if (c->rq->op == OP_REMOVE && (call_accepted(c) || call_unanswered(c)))
			return -1;
		/* a repeat by request id shows the task as it was at the first call */
		if (!t->task || !c->ans->now || (c->ans->repeated && c->rq->request_id.n))
			continue;
		s->seen[n++] = (struct seen){ t->task->version, c->answered, c->sent, t,
					      always_changes(c) };
	}
	if (n)
		qsort(s->seen, (size_t)n, sizeof(*s->seen), by_version);
	return n;
}

static void add_window(struct selecting *s, const struct window *w)
{
	if (w->from >= w->until)
		return;
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->windows = mem_grow(s->windows, s->room * sizeof(*s->windows));
	}
	s->windows[s->n++] = *w;
}

static void check_time_widen(struct window *w, const struct seen *o)
{
	if (o->answered < w->from) {
		w->from = o->answered;
		w->first = o->touch->call;
	}
	if (o->sent > w->until) {
		w->until = o->sent;
		w->last = o->touch->call;
	}
}

static void find_windows(struct selecting *s, uint32_t task)
{
	int64_t n = find_seen(s, task), end;

	for (int64_t i = 0; i < n; i = end) {
		const struct seen *o = &s->seen[i];
		struct window w = { .from = INT64_MAX,
				    .rank = rank_of(o->touch->task),
				    .task = task };
		bool good = check_time_eligible(s, task, o->touch->task, o->touch->call->ans->now);

		for (end = i; end < n && s->seen[end].version == o->version; end++)
			check_time_widen(&w, &s->seen[end]);
		for (int64_t k = end; k < n && s->seen[k].version == o->version + 1; k++)
			if (s->seen[k].made_it && s->seen[k].sent > w.until) {
				w.until = s->seen[k].sent;
				w.last = s->seen[k].touch->call;
			}
		if (good)
			add_window(s, &w);
	}
}

static int by_from(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static uint32_t check_time_longer(const struct selecting *s, uint32_t a, uint32_t b)
{
	if (!a || !b)
		return a ? a : b;
	return s->windows[a - 1].until >= s->windows[b - 1].until ? a : b;
}

static void tree_add(struct selecting *s, uint32_t window)
{
	size_t at = RANKS + s->windows[window - 1].rank;

	for (; at; at /= 2)
		s->tree[at] = check_time_longer(s, s->tree[at], window);
}

/* The window with the latest `until` among the ranks below `rank`. */
static const struct window *tree_best(const struct selecting *s, uint32_t rank)
{
	uint32_t best = 0;

	for (size_t l = RANKS, r = RANKS + rank; l < r; l /= 2, r /= 2) {
		if (l & 1)
			best = check_time_longer(s, best, s->tree[l++]);
		if (r & 1)
			best = check_time_longer(s, best, s->tree[--r]);
	}
	return best ? &s->windows[best - 1] : NULL;
}

/* The rank of the task that a selecting call got. RANKS: it got nothing; 0: the answer proves
 * nothing. */
static uint32_t got_rank(const struct history_call *c)
{
	const struct request *rq = c->rq;
	const struct answer *ans = c->ans;
	bool selects = rq->op == OP_TAKE || (rq->op == OP_NEXT && !rq->explain);

	if (!ans || ans->repeated || ans->paused || rq->class_rank || rq->type.n || rq->label.n ||
	    rq->assignee.n || rq->except.n)
		return 0;
	if (selects && ans->code == NO_TASKS)
		return RANKS;
	if (selects && ans->code == SUCCESS && ans->task)
		return rank_of(ans->task);
	if (rq->op == OP_DONE && ans->code == SUCCESS && ans->has_next)
		return ans->next ? rank_of(ans->next) : RANKS;
	return 0;
}

static void check_selected(struct selecting *s, const struct history_call *c, uint32_t rank)
{
	const struct window *w = tree_best(s, rank);
	const struct history_call *calls[3];
	struct str id;

	if (!w || w->until <= c->answered)
		return;
	id = s->x->tasks.v[w->task];
	calls[0] = w->first;
	calls[1] = c;
	calls[2] = w->last;
	check_add(s->x, CHECK_SELECTED, id, calls, w->last == c || w->last == w->first ? 2 : 3,
		  "%.*s was eligible all the time, but the call got %s", STRF(id),
		  rank == RANKS ? "nothing" : "a task of a lower class or priority");
}

void check_select(struct checking *x)
{
	struct selecting s = { .x = x };
	size_t at = 0;

	s.seen = mem_alloc((x->log->n_calls + 1) * sizeof(*s.seen));
	s.parents = mem_alloc((x->tasks.n + 1) * sizeof(*s.parents));
	memset(s.parents, 0, (x->tasks.n + 1) * sizeof(*s.parents));
	find_parents(&s);
	s.tree = mem_alloc(2 * RANKS * sizeof(*s.tree));
	memset(s.tree, 0, 2 * RANKS * sizeof(*s.tree));
	for (uint32_t i = 1; i < x->tasks.n; i++)
		find_windows(&s, i);
	if (s.n)
		qsort(s.windows, s.n, sizeof(*s.windows), by_from);
	for (size_t i = 0; i < x->log->n_calls; i++) {
		uint32_t rank = got_rank(x->calls[i]);

		for (; at < s.n && s.windows[at].from < x->calls[i]->sent; at++)
			tree_add(&s, (uint32_t)at + 1);
		if (rank)
			check_selected(&s, x->calls[i], rank);
	}
	free(s.windows);
	free(s.seen);
	free(s.parents);
	free(s.tree);
}
