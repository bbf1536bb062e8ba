/* Lists for people: tasks by status, in selection order, each with the tasks that it waits for. Without a filter the cost
 * depends on the number of tasks shown, not on the queue: eligible tasks come from the store in order, the others from the
 * index alone, and texts are read only for the tasks that are shown. A damaged record is left out and counted, so it never
 * hides the other tasks. */
#include <stdlib.h>

#include "core/order.h"
#include "format/task_form.h"
#include "queue/queue_private.h"

#define RANKED_MAX \
	10000 /* sort at most this many tasks of one status; beyond it, the oldest come first */
#define COUNTED_MAX 5000 /* an overview counts at most this many records */
#define NAMED_MAX 3      /* a list names at most this many awaited tasks */
#define CHECKED_MAX 20   /* it reads at most this many dependencies to find them */

#define ENDED (STATUS_BIT(DONE) | STATUS_BIT(FAILED) | STATUS_BIT(CANCELED))

struct found {
	struct str key, title;
	struct index ix;
};

struct browse {
	struct store *store;
	const struct policy *policy;
	const struct request *rq;
	struct answer *ans;
	struct arena *arena;
	size_t *bad;
	enum sort sort;
	bool filtered;      /* a filter needs each record */
	struct found *v;    /* the tasks of one group */
	struct arena names; /* owns the texts of v[] and `last` */
	size_t n, room;
	bool full; /* enough tasks were found: skip any that sorts after `last` */
	struct found last;
	int64_t total;
	bool waits; /* the group has the waiting tasks */
};

/* --- which tasks ------------------------------------------------------------------------------------ */

static bool has_labels(const struct request *rq, struct strs labels)
{
	for (size_t i = 0; i < rq->labels.n; i++)
		if (!strs_have(labels, rq->labels.v[i]))
			return false;
	for (size_t i = 0; i < rq->remove_labels.n; i++)
		if (strs_have(labels, rq->remove_labels.v[i]))
			return false;
	return true;
}

static int64_t latest_change(const struct task *t)
{
	const int64_t times[] = { t->created_at, t->updated_at,  t->started_at,
				  t->done_at,    t->archived_at, t->lock.acquired_at };
	int64_t latest = 0;

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		latest = times[i] > latest ? times[i] : latest;
	return latest;
}

static bool is_mine(const struct request *rq, const struct task *t)
{
	return str_eq(t->lock.holder, rq->agent) || str_eq(t->assignee, rq->agent);
}

bool read_hides(const struct request *rq, const struct task *t, bool below)
{
	return t->archived_at && !(rq->view & VIEW_ARCHIVED) &&
	       (!below || t->status == DONE || t->status == CANCELED);
}

/* Does the task pass the filters? The caller has unpacked every part that they read. */
static bool browse_passes(const struct browse *x, const struct task *t)
{
	const struct request *rq = x->rq;

	return !read_hides(rq, t, rq->parent.n) && (!(rq->view & VIEW_MINE) || is_mine(rq, t)) &&
	       (!rq->due || (t->due && t->due <= rq->due)) &&
	       latest_change(t) >= rq->changed_since && (!rq->text.n || task_has_text(t, rq->text));
}

/* Filters that only the record itself can answer, not the store's index. */
static bool needs_record(const struct request *rq, unsigned statuses)
{
	return rq->view & VIEW_MINE || rq->due || rq->changed_since || rq->text.n ||
	       (!(rq->view & VIEW_ARCHIVED) && statuses & ENDED);
}

static bool needs_body(const struct browse *x)
{
	return x->rq->text.n || x->rq->due || x->sort == SORT_TITLE;
}

/* --- their order ------------------------------------------------------------------------------------ */

#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

static int by_id(const struct found *a, const struct found *b)
{
	return index_id_cmp(a->ix.id, b->ix.id);
}

static int by_offer(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = CMP(a->ix.status, b->ix.status);

	if (c)
		return c;
	if (STATUS_BIT(a->ix.status) & ENDED)
		c = CMP(b->ix.updated_at, a->ix.updated_at);
	return c ? c : index_cmp(&a->ix, &b->ix);
}

static int sort_id(const void *pa, const void *pb)
{
	return by_id(pa, pb);
}

static int sort_created(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = CMP(a->ix.created_at, b->ix.created_at);

	return c ? c : by_id(a, b);
}

static int sort_updated(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = CMP(b->ix.updated_at, a->ix.updated_at);

	return c ? c : by_id(a, b);
}

static int sort_due(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = CMP(!a->ix.due, !b->ix.due);

	if (!c)
		c = CMP(a->ix.due, b->ix.due);
	return c ? c : index_cmp(&a->ix, &b->ix);
}

static int sort_priority(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = CMP(b->ix.priority, a->ix.priority);

	return c ? c : index_cmp(&a->ix, &b->ix);
}

static int sort_title(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = str_cmp(a->title, b->title);

	return c ? c : by_id(a, b);
}

static int (*const orders[SORT_END])(const void *, const void *) = {
	[SORT_OFFER] = by_offer,       [SORT_ID] = sort_id,      [SORT_CREATED] = sort_created,
	[SORT_UPDATED] = sort_updated, [SORT_DUE] = sort_due,    [SORT_PRIORITY] = sort_priority,
	[SORT_TITLE] = sort_title,     [SORT_STATUS] = by_offer,
};

static size_t places_left(const struct browse *x)
{
	size_t limit = (size_t)x->rq->limit;

	if (!limit)
		return SIZE_MAX;
	return limit > x->ans->n_tasks ? limit - x->ans->n_tasks : 0;
}

/* Sorts the tasks and drops those beyond the limit. */
static void browse_settle(struct browse *x)
{
	size_t left = places_left(x);

	if (x->n)
		qsort(x->v, x->n, sizeof(*x->v), orders[x->sort]);
	if (x->n < left)
		return;
	x->n = left;
	x->full = true;
	if (left)
		x->last = x->v[left - 1];
}

static void browse_keep(struct browse *x, const struct record *r, struct str title)
{
	struct found f = { .key = r->key, .title = title, .ix = r->ix };

	if (x->full && (!places_left(x) || orders[x->sort](&f, &x->last) > 0))
		return;
	if (x->n == x->room) {
		x->room = x->room ? 2 * x->room : 64;
		x->v = mem_grow(x->v, x->room * sizeof(*x->v));
	}
	f.key = arena_str(&x->names, f.key);
	f.title = arena_str(&x->names, f.title);
	f.ix.id = arena_str(&x->names, f.ix.id);
	x->v[x->n++] = f; /* no sort order reads the other texts, which go with the record */
}

/* --- numbers ---------------------------------------------------------------------------------------- */

struct counting {
	int64_t n, archived[STATUS_END];
	struct arena scratch;
};

static int count_ready(const struct record *r, void *ctx)
{
	struct counting *c = ctx;

	(void)r;
	c->n++;
	return 0;
}

static int count_waiting(struct store *s, const struct policy *p, struct answer *ans, size_t most)
{
	struct query q = { .pick = PICK_WAITING,
			   .waiting = order_waiting(p),
			   .statuses = STATUS_BIT(READY),
			   .at = ans->now,
			   .limit = most ? most + 1 : 0 };
	struct counting c = { 0 };
	int r = s->ops->scan(s, &q, count_ready, &c);

	ans->waiting_more = most && c.n > (int64_t)most;
	ans->waiting = ans->waiting_more ? (int64_t)most : c.n;
	return r;
}

int read_waiting(struct store *s, const struct policy *p, struct answer *ans)
{
	return ans->counts[READY] ? count_waiting(s, p, ans, COUNTED_MAX) : 0;
}

static int count_archived(const struct record *r, void *ctx)
{
	struct counting *c = ctx;
	struct task t = { 0 };

	if (!task_unpack(r->hot, &t, &c->scratch) && t.archived_at)
		c->archived[r->ix.status % STATUS_END]++;
	arena_free(&c->scratch);
	return 0;
}

int read_archived(struct store *s, struct answer *ans)
{
	struct counting c = { 0 };
	int r = 0;

	for (int i = BACKLOG; !r && i < STATUS_END; i++) {
		struct query q = { .statuses = STATUS_BIT(i) };

		if (STATUS_BIT(i) & ENDED && ans->counts[i] && ans->counts[i] <= COUNTED_MAX)
			r = s->ops->scan(s, &q, count_archived, &c);
	}
	for (int i = BACKLOG; i < STATUS_END; i++)
		ans->archived[i] = c.archived[i];
	return r;
}

/* --- one group -------------------------------------------------------------------------------------- */

static int browse_collect(const struct record *r, void *ctx)
{
	struct browse *x = ctx;
	struct arena scratch = { 0 };
	struct task t = { 0 };
	bool good = has_labels(x->rq, r->ix.labels);
	size_t left = places_left(x);

	if (good && x->filtered)
		good = !task_unpack(r->hot, &t, &scratch) &&
		       (!needs_body(x) || !task_unpack(r->body, &t, &scratch)) &&
		       browse_passes(x, &t);
	if (good) {
		x->total++;
		browse_keep(x, r, needs_body(x) ? t.title : STR(""));
	}
	arena_free(&scratch);
	/* settle only when many have collected: sorting after each task would be quadratic */
	if (left < SIZE_MAX / 4 && x->n >= 2 * left + 1000)
		browse_settle(x);
	return 0;
}

/* For a scan that returns tasks in the right order and stops at the limit. */
static int collect_first(const struct record *r, void *ctx)
{
	browse_keep(ctx, r, STR(""));
	return 0;
}

static int browse_load(struct browse *x, const struct found *f)
{
	struct answer *ans = x->ans;
	struct record rec;
	struct standing *st;
	int r = x->store->ops->get(x->store, f->key, &rec, x->arena);

	if (r)
		return r < 0 ? r : 0;
	ans->tasks = arena_grow(x->arena, ans->tasks, ans->n_tasks, sizeof(*ans->tasks));
	ans->standing = arena_grow(x->arena, ans->standing, ans->n_tasks, sizeof(*st));
	st = &ans->standing[ans->n_tasks];
	*st = (struct standing){ .waits = x->waits };
	if (task_of(&rec, &ans->tasks[ans->n_tasks], x->arena)) {
		++*x->bad;
		return 0;
	}
	return read_awaited(x->store, &ans->tasks[ans->n_tasks++], st, x->arena);
}

static int show_found(struct browse *x)
{
	int r = 0;

	for (size_t i = 0; !r && i < x->n && !arena_over(x->arena); i++)
		r = browse_load(x, &x->v[i]);
	free(x->v);
	arena_free(&x->names);
	x->v = NULL;
	x->n = x->room = 0;
	x->full = false;
	return r;
}

static struct query base_query(const struct browse *x, enum pick pick, unsigned statuses)
{
	const struct request *rq = x->rq;

	return (struct query){ .pick = pick,
			       .waiting = order_waiting(x->policy),
			       .statuses = statuses,
			       .class_rank = (int)rq->class_rank,
			       .holder = rq->holder,
			       .type = rq->type,
			       .label = rq->labels.n ? rq->labels.v[0] : rq->label,
			       .parent = rq->parent.n ? task_key(x->arena, rq->parent) : STR(""),
			       .text = rq->text,
			       .at = x->ans->now };
}

static bool is_narrow(const struct query *q)
{
	return q->class_rank || q->holder.n || q->type.n || q->label.n || q->parent.n;
}

static int collect_all(struct browse *x, struct query *q)
{
	int r;

	q->body = needs_body(x);
	x->total = 0;
	r = x->store->ops->scan(x->store, q, browse_collect, x);
	browse_settle(x);
	return r;
}

/* The total is known, so reads only the tasks that are shown. */
static int collect_few(struct browse *x, struct query *q, int64_t total)
{
	size_t left = places_left(x);

	x->total = total;
	if (q->pick == PICK_ALL && total <= RANKED_MAX)
		return collect_all(x, q);
	q->limit = left == SIZE_MAX ? 0 : left;
	return left ? x->store->ops->scan(x->store, q, collect_first, x) : 0;
}

/* Reads one status, or the eligible or waiting part of Ready. */
static int read_group(struct browse *x, enum pick pick, unsigned status, const int64_t *counts)
{
	struct query q = base_query(x, pick, STATUS_BIT(status));
	int64_t *shown = &x->ans->counts[status];
	int64_t waiting = x->ans->waiting, total = counts[status];
	bool known = !is_narrow(&q) && !x->rq->remove_labels.n;
	int r;

	x->filtered = needs_record(x->rq, STATUS_BIT(status));
	x->waits = pick == PICK_WAITING;
	known &= !x->filtered;
	if (pick != PICK_ALL)
		total = x->waits ? waiting : total - waiting;
	if (known && total <= 0)
		return 0;
	r = known ? collect_few(x, &q, total) : collect_all(x, &q);
	*shown += x->total;
	x->ans->total += x->total;
	if (x->waits && !known) {
		x->ans->waiting = x->total;
		x->ans->waiting_more = false;
	}
	return r ? r : show_found(x);
}

static unsigned browse_wanted(const struct request *rq)
{
	unsigned statuses = (unsigned)rq->statuses;

	if (rq->view & (VIEW_READY | VIEW_WAITING))
		statuses |= STATUS_BIT(READY);
	return statuses ? statuses : STATUS_ALL;
}

/* Held tasks and tasks that need a person come first: they are few and matter most. */
static const struct {
	enum status status;
	enum pick pick;
	unsigned view; /* the VIEW_ bit that selects this part of Ready */
} groups[] = {
	{ IN_PROGRESS, PICK_ALL, 0 },
	{ REVIEW, PICK_ALL, 0 },
	{ BLOCKED, PICK_ALL, 0 },
	{ NEEDS_HELP, PICK_ALL, 0 },
	{ FAILED, PICK_ALL, 0 },
	{ READY, PICK_ELIGIBLE, VIEW_READY },
	{ READY, PICK_WAITING, VIEW_WAITING },
	{ BACKLOG, PICK_ALL, 0 },
	{ DONE, PICK_ALL, 0 },
	{ CANCELED, PICK_ALL, 0 },
};

static bool asked_for(const struct request *rq, size_t i)
{
	unsigned parts = (unsigned)rq->view & (VIEW_READY | VIEW_WAITING);

	return browse_wanted(rq) & STATUS_BIT(groups[i].status) &&
	       (!parts || !groups[i].view || parts & groups[i].view);
}

static int read_groups(struct browse *x)
{
	int64_t counts[STORE_STATUSES] = { 0 };
	int r = x->store->ops->tally(x->store, counts);

	if (!r && counts[READY] && browse_wanted(x->rq) & STATUS_BIT(READY))
		r = count_waiting(x->store, x->policy, x->ans,
				  x->rq->view & (VIEW_READY | VIEW_WAITING) ? 0 : COUNTED_MAX);
	for (size_t i = 0; !r && i < sizeof(groups) / sizeof(*groups); i++)
		if (asked_for(x->rq, i))
			r = read_group(x, groups[i].pick, groups[i].status, counts);
	if ((x->rq->view & (VIEW_READY | VIEW_WAITING)) == VIEW_READY)
		x->ans->waiting = 0;
	if (!(browse_wanted(x->rq) & STATUS_BIT(DONE)))
		x->ans->ended = counts[DONE] + counts[CANCELED];
	return r;
}

/* --sort: one list of all matching tasks. */
static int read_flat(struct browse *x)
{
	unsigned view = (unsigned)x->rq->view;
	enum pick pick = view & VIEW_READY     ? PICK_ELIGIBLE
			 : view & VIEW_WAITING ? PICK_WAITING
					       : PICK_ALL;
	struct query q = base_query(x, pick, browse_wanted(x->rq));
	int r;

	x->filtered = needs_record(x->rq, browse_wanted(x->rq)) || x->sort == SORT_TITLE;
	x->waits = pick == PICK_WAITING;
	r = collect_all(x, &q);
	x->ans->total = x->total;
	return r ? r : show_found(x);
}

int read_browse(struct store *s, const struct policy *p, const struct request *rq,
		struct answer *ans, struct arena *a, size_t *bad)
{
	int64_t sort = VIEW_SORT_OF(rq->view);
	struct browse x = { .store = s, .policy = p, .rq = rq, .ans = ans, .arena = a, .bad = bad };
	int r;

	x.sort = sort > SORT_OFFER && sort < SORT_END ? (enum sort)sort : SORT_OFFER;
	r = rq->view & VIEW_GROUPS ? read_groups(&x) : read_flat(&x);
	free(x.v);
	arena_free(&x.names);
	ans->total -= (int64_t)*bad;
	return r;
}

/* --- what a task waits for -------------------------------------------------------------------------- */

static void add_awaited(struct standing *st, struct str id, struct arena *a)
{
	if (st->on.n < NAMED_MAX)
		st->on = arena_append(a, st->on, arena_str(a, id));
	else
		st->more = true;
}

struct awaiting {
	struct standing *out;
	struct arena *arena;
};

static int await_sub(const struct record *r, void *ctx)
{
	struct awaiting *x = ctx;

	add_awaited(x->out, r->ix.id, x->arena);
	return 0;
}

static int await_depends(struct store *s, const struct task *t, struct standing *out,
			 struct arena *a)
{
	size_t n = t->open_deps ? t->depends.n : 0;

	for (size_t i = 0; i < n && !out->more; i++) {
		struct record rec;
		int r = 0;

		if (i >= CHECKED_MAX)
			out->more = true;
		else
			r = s->ops->get(s, task_key(a, t->depends.v[i]), &rec, a);
		if (r < 0)
			return r;
		if (!out->more && (r || rec.ix.status != DONE))
			add_awaited(out, t->depends.v[i], a);
	}
	return 0;
}

int read_awaited(struct store *s, const struct task *t, struct standing *out, struct arena *a)
{
	struct awaiting x = { out, a };
	struct query q = { .statuses = STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED)),
			   .limit = NAMED_MAX + 1 };
	int r;

	if (status_ended(t->status))
		return 0;
	r = await_depends(s, t, out, a);
	if (r || !t->open_subs || out->more)
		return r;
	q.parent = task_key(a, t->id);
	return s->ops->scan(s, &q, await_sub, &x);
}
