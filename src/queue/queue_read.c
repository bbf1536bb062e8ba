/* Answers the requests that change nothing. A read runs in one snapshot and takes the time once,
 * so its answer is consistent. It is retried, at most TRIES times in all, if other processes
 * replace the files. Lists omit bad records and count them in a warning. */
#include "base/text.h"
#include "core/field.h"
#include "core/typed.h"
#include "core/validate.h"
#include "queue/queue_private.h"

#define TRIES 8 /* attempts before a read gives up because other processes keep replacing files */

static int add_task(struct reading *x, const struct record *r)
{
	struct answer *ans = x->ans;

	ans->tasks = arena_grow(x->arena, ans->tasks, ans->n_tasks, sizeof(*ans->tasks));
	if (task_of(r, &ans->tasks[ans->n_tasks], x->arena))
		x->bad++;
	else
		ans->n_tasks++;
	x->bytes += r->hot.n + r->body.n;
	ans->more = HAS(x->rq, after) &&
		    (x->bytes > PAGE_BYTES || (x->limit && ans->n_tasks >= x->limit));
	return ans->more || arena_over(x->arena) || (x->limit && ans->n_tasks >= x->limit);
}

/* The store's limit counts bad records, too. If there were any, scans again without a limit. */
static int scan_good(struct reading *x, struct query *q, record_fn *fn)
{
	int r = x->store->ops->scan(x->store, q, fn, x);

	if (r || !x->bad || !q->limit || arena_over(x->arena))
		return r;
	q->limit = x->bad = x->ans->n_tasks = x->bytes = 0;
	return x->store->ops->scan(x->store, q, fn, x);
}

/* Refuses to show a bad record by its handle. A usable record has an id and no handle. */
static int show_bad(struct reading *x, const struct record *r)
{
	if (record_fault(r, x->arena))
		return bad_refuse(x->ans, r, x->arena);
	not_found(x->ans, x->rq->id, x->arena);
	return REFUSED;
}

static int one_task(struct reading *x)
{
	struct str key = task_key(x->arena, x->rq->id);
	struct record rec;
	int r = 0;

	if (typed_is(x->rq)) {
		x->ans->task = arena_new(x->arena, struct task);
		return guard_kind(x->store, typed_of(x->rq->id), x->ans->task, x->arena);
	}
	if (bad_handle_is(x->rq->id))
		r = bad_find(x->store, NULL, x->rq->id, &key, x->arena);
	if (!r)
		r = x->store->ops->get(x->store, key, &rec, x->arena);
	if (r > 0) {
		not_found(x->ans, x->rq->id, x->arena);
		return REFUSED;
	}
	if (r < 0)
		return r;
	if (bad_handle_is(x->rq->id))
		return show_bad(x, &rec);
	x->lane = rec.ix.lane;
	x->ans->task = arena_new(x->arena, struct task);
	if (!task_of(&rec, x->ans->task, x->arena))
		return 0;
	x->ans->task = NULL;
	return bad_refuse(x->ans, &rec, x->arena);
}

/* --- the log ------------------------------------------------------------------------------------- */

static int add_event(struct reading *x, const struct entry *en)
{
	struct answer *ans = x->ans;

	ans->events = arena_grow(x->arena, ans->events, ans->n_events, sizeof(*ans->events));
	ans->n_events += event_keep(en, &ans->events[ans->n_events], x->arena) == 0;
	return arena_over(x->arena);
}

static int only_comments(const struct entry *en, void *ctx)
{
	struct reading *x = ctx;
	struct event ev;

	if (event_of(en, &ev)) {
		x->bad++;
		return 0;
	}
	if (str_is(ev.name, "comment"))
		return add_event(x, en);
	if (x->ans->related)
		read_attempt(x->ans->related, &ev, x->arena);
	return arena_over(x->arena);
}

#define NEWEST 100 /* entries to show if all of them do not fit */
#define NEWEST_ROOM (2u * NEWEST * TEXT_MAX)

/* A task must stay readable however many comments it has, so only the newest are shown. */
static int read_newest(struct reading *x, struct entry_query *q)
{
	x->arena->limit = x->arena->held + NEWEST_ROOM;
	x->ans->events = NULL;
	x->ans->n_events = 0;
	if (x->ans->related)
		x->ans->related->n_attempts = 0;
	q->last = NEWEST;
	x->ans->warnings = arena_append(
		x->arena, x->ans->warnings,
		STR("there are too many comments to show: these are the newest; pawl log has all"));
	return x->store->ops->entries(x->store, q, only_comments, x);
}

static int read_show(struct reading *x)
{
	struct entry_query q = { 0 };
	int r = one_task(x);

	if (r)
		return r;
	if (x->rq->view & VIEW_RELATED)
		r = read_related(x->store, x->ans, x->arena);
	if (r || x->rq->view & VIEW_BRIEF)
		return r;
	read_came_back(x->store, x->ans->task, x->ans, x->arena);
	q.key = task_key(x->arena, x->rq->id);
	r = x->store->ops->entries(x->store, &q, only_comments, x);
	return !r && arena_over(x->arena) ? read_newest(x, &q) : r;
}

static int read_log(struct reading *x)
{
	int r;

	x->ans->kind = ANSWER_EVENTS;
	if (HAS(x->rq, id)) {
		r = one_task(x);
		/* a missing task is not an error yet: the log still has the events of a removed task */
		if (r < 0)
			return r;
	}
	r = log_read(x->store, x->rq, x->ans, x->arena, &x->bad);
	if (x->ans->code == NOT_FOUND && x->ans->n_events) {
		x->ans->code = SUCCESS;
		x->ans->message = x->ans->hint = STR("");
	}
	if (!r && HAS(x->rq, expired_after) && (x->ans->task || !HAS(x->rq, id)))
		r = read_expired(x->store, x->rq->expired_after, x->ans->task, x->ans, x->arena);
	x->ans->task = NULL;
	return r;
}

/* --- lists --------------------------------------------------------------------------------------- */

bool task_has_text(const struct task *t, struct str text)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &field_table[i];
		const struct strs *list = field_of(f, t);

		if (!(f->uses & FIELD_FIND))
			continue;
		if (f->kind == FIELD_STR && text_has(*(const struct str *)field_of(f, t), text))
			return true;
		for (size_t k = 0; f->kind == FIELD_LIST && k < list->n; k++)
			if (text_has(list->v[k], text))
				return true;
	}
	return false;
}

static int list_task(const struct record *r, void *ctx)
{
	struct reading *x = ctx;
	struct task t;
	bool found;

	if (!x->rq->text.n)
		return add_task(x, r);
	/* keep only matches, so a search through a large queue needs little memory */
	struct arena scratch = { 0 };
	found = !task_of(r, &t, &scratch) && task_has_text(&t, x->rq->text);
	x->ans->total += found;
	if (found && (!x->limit || x->ans->n_tasks < x->limit))
		(void)add_task(x, r);
	arena_free(&scratch);
	return arena_over(x->arena);
}

static int read_list(struct reading *x)
{
	const struct request *rq = x->rq;

	x->ans->kind = ANSWER_TASKS;
	if (rq->view & VIEW_TREE)
		return read_tree(x->store, rq, x->ans, x->arena, &x->bad);
	if (rq->view & ~(int64_t)VIEW_CAN)
		return read_browse(x->store, x->policy, rq, x->ans, x->arena, &x->bad);

	struct query q = {
		.statuses = (unsigned)rq->statuses,
		.class_rank = (int)rq->class_rank,
		.holder = rq->holder,
		.label = rq->label,
		.type = rq->type,
		.parent = rq->parent.n ? task_key(x->arena, rq->parent) : STR(""),
		.text = rq->text,
		.after = rq->after.n ? task_key(x->arena, rq->after) : STR(""),
		.body = true,
		.limit = rq->text.n ? 0 : x->limit,
	};
	int r = scan_good(x, &q, list_task);

	if (r || rq->text.n)
		return r;
	r = x->store->ops->count(x->store, &q, &x->ans->total);
	x->ans->total -= (int64_t)x->bad;
	return r;
}

static int held_task(const struct record *r, void *ctx)
{
	return add_task(ctx, r);
}

static int read_locks(struct reading *x)
{
	struct query q = { .held = true, .holder = x->rq->holder, .body = true, .limit = x->limit };
	int r = scan_good(x, &q, held_task);

	x->ans->kind = ANSWER_LOCKS;
	for (size_t i = 0; i < x->ans->n_tasks; i++)
		lock_check(&x->ans->tasks[i].lock);
	if (!r)
		r = x->store->ops->count(x->store, &q, &x->ans->total);
	x->ans->total -= (int64_t)x->bad;
	return r;
}

int read_pause(struct reading *x, struct task *pause)
{
	int r = x->policy->locks_only ? 0 : guard_read(x->store, PAUSE_ID, pause, x->arena);

	if (!r && pause->lock.holder.n)
		pause_tell(pause, x->ans, x->arena);
	return r;
}

static int read_overview(struct reading *x)
{
	int64_t counts[STORE_STATUSES] = { 0 };
	struct task pause = { 0 };
	int r = x->store->ops->tally(x->store, counts);

	if (!r)
		r = read_pause(x, &pause);

	if (!x->limit)
		x->limit = 50;
	if (!r)
		r = read_locks(x);
	x->ans->kind = ANSWER_OVERVIEW;
	x->ans->held = x->ans->total;
	x->ans->total = 0;
	for (int s = BACKLOG; s < STATUS_END; s++)
		x->ans->total += x->ans->counts[s] = counts[s];
	if (!r)
		r = read_waiting(x->store, x->policy, x->ans);
	return r ? r : read_archived(x->store, x->ans);
}

/* --- others -------------------------------------------------------------------------------------- */

/* In a store that keeps only locks, an id without a lock is free, even if no task has that id. */
static int no_lock(struct reading *x)
{
	*x->ans = (struct answer){ .now = x->now };
	x->ans->task = arena_new(x->arena, struct task);
	*x->ans->task = (struct task){ .id = x->rq->id,
				       .title = x->rq->id,
				       .status = READY,
				       .class_rank = STANDARD,
				       .priority = PRIORITY_DEFAULT };
	return 0;
}

static int read_lock(struct reading *x)
{
	int r = one_task(x);

	if (r == REFUSED && x->policy->locks_only)
		r = no_lock(x);

	x->ans->kind = ANSWER_LOCK;
	if (!r)
		lock_check(&x->ans->task->lock);
	return r;
}

/* Reads all locks of the whole queue, including expired ones. */
static int read_typed(struct reading *x)
{
	struct answer *ans = x->ans;
	int r = 0;

	ans->kind = ANSWER_TYPED;
	ans->tasks = arena_array(x->arena, struct task, TYPED_END);
	for (int k = TYPED_WRITE; !r && k < TYPED_END; k++) {
		struct task *t = &ans->tasks[ans->n_tasks];

		r = guard_kind(x->store, (enum typed)k, t, x->arena);
		if (r == BAD) {
			x->bad++;
			r = 0;
			continue;
		}
		lock_check(&t->lock);
		ans->n_tasks += t->lock.holder.n > 0;
	}
	ans->total = (int64_t)ans->n_tasks;
	return r;
}

static int read_emergency(struct reading *x)
{
	x->ans->task = arena_new(x->arena, struct task);
	return guard_read(x->store, EMERGENCY_ID, x->ans->task, x->arena);
}

/* Reads the id that the next `create` would use, unless another process uses it first. */
static int read_id(struct reading *x)
{
	struct record rec;
	int unusable = 0;
	int64_t n = 0;
	int r = x->store->ops->get(x->store, COUNTER_KEY, &rec, x->arena);

	x->ans->kind = ANSWER_ID;
	if (r < 0)
		return r;
	if (!r && !number_valid(rec.hot, &n))
		return bad_refuse(x->ans, &rec, x->arena);
	do {
		x->ans->text = arena_printf(x->arena, "t%lld", (long long)++n);
		r = x->store->ops->get(x->store, task_key(x->arena, x->ans->text), &rec, x->arena);
	} while (id_is_taken(r, &unusable));
	return r < 0 ? r : 0;
}

static void warn_of_bad(const struct reading *x)
{
	if (x->bad)
		x->ans->warnings = arena_append(x->arena, x->ans->warnings,
						bad_warning(x->bad, x->arena));
}

static int queue_read_dispatch(struct reading *x)
{
	switch (x->rq->op) {
	case OP_SHOW:
		return read_show(x);
	case OP_LIST:
		return read_list(x);
	case OP_LOG:
		return read_log(x);
	case OP_NEXT:
		return read_next(x);
	case OP_OVERVIEW:
		return read_overview(x);
	case OP_LOCKS:
		return read_locks(x);
	case OP_LOCK_STATUS:
		return read_lock(x);
	case OP_TYPED:
		return read_typed(x);
	case OP_EMERGENCY:
		return read_emergency(x);
	default:
		return read_id(x);
	}
}

/* Runs in a snapshot and takes the time once, so the answer is consistent. */
static int read_all(void *ctx)
{
	struct reading *x = ctx;
	int r;

	x->now = x->ans->now = x->store->ops->now(x->store);
	r = queue_read_dispatch(x);
	/* with a brief, tasks[] has the tasks that the caller holds */
	if (!r && (x->rq->view & (VIEW_CAN | VIEW_BRIEF)) == VIEW_CAN && !arena_over(x->arena))
		r = read_allowed(x);
	return r ? r : read_brief(x->store, NULL, x->rq, x->ans, x->arena);
}

/* Does the read need many records, or only one? */
static bool reads_many(const struct request *rq)
{
	switch (rq->op) {
	case OP_NEXT:
		return rq->explain || rq->view & VIEW_BRIEF;
	case OP_LOCK_STATUS:
	case OP_TYPED:
	case OP_EMERGENCY:
		return false;
	default:
		return true;
	}
}

void queue_read(struct store *s, const struct policy *p, const struct request *rq,
		struct answer *ans, struct arena *a)
{
	struct reading x = { s, p, rq, ans, a, ans->now, (size_t)rq->limit, 0, { 0 }, 0, 0 };
	struct store_error *err = s->env.err;
	int r = STORE_MOVED;

	for (int i = 0; r == STORE_MOVED && i < TRIES; i++) {
		*err = (struct store_error){ 0 };
		*ans = (struct answer){ .now = x.now };
		x.bad = x.bytes = 0;
		x.given_back = (struct strs){ 0 };
		r = s->ops->snapshot(s, reads_many(rq), read_all, &x);
	}
	if (r == BAD) {
		*ans = (struct answer){ .now = x.now }; /* discard the parts of the bad record */
		answer_fail(ans, MISCONFIGURED, STR("the record of this lock cannot be used"),
			    STR("pawl doctor names it and says how to remove it"));
	}
	if (r >= 0 && arena_over(a)) {
		*ans = (struct answer){ .now = x.now };
		answer_too_long(ans);
		return;
	}
	if (r >= 0)
		warn_of_bad(&x);
	if (r >= 0)
		return;
	*ans = (struct answer){ .now = x.now };
	read_fault_answer(s, r, ans, a);
}

/* --- wants ------------------------------------------------------------------------------------ */

/*
 * wants: the records that a request is likely to read, for a store that asks a server. A record
 * missing here costs one more round trip, and a needless one costs some bytes. Neither changes an
 * answer.
 */

#define QUERIES 4
#define OFFERS \
	3 /* `done --claim-next` puts up to two records before it takes; each may hide an offer */

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
	if ((rq->op == OP_UNDO || rq->op == OP_STATUS || op_flags(rq->op) & OP_UNDOABLE) &&
	    rq->id.n)
		wants_key(l, undo_key(task_key(l->a, rq->id), l->a));
	if ((rq->op == OP_CREATE || rq->op == OP_UNDO) && rq->id.n) {
		struct str k = task_key(l->a, rq->id);

		(void)str_cut(&k, '/');
		wants_key(l, arena_printf(l->a, "gone/%.*s", STRF(k)));
	}
	wants_task(l, rq->parent);
	for (size_t i = 0; i < rq->depends.n; i++)
		wants_task(l, rq->depends.v[i]);
}

/* May the request end or reopen the task? If so, the counts in its parent and dependents change. */
static bool ends_task(const struct request *rq)
{
	if (rq->op == OP_STATUS)
		return status_ended(rq->status);
	return rq->op == OP_DONE || rq->op == OP_CANCEL || rq->op == OP_APPROVE ||
	       rq->op == OP_REOPEN || rq->op == OP_REMOVE || rq->op == OP_UNDO;
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
