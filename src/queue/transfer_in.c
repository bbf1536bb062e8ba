/* Imports tasks, in one commit or not at all. A task may refer to a task further on in the
 * input. The link is made when that task arrives, and the import is refused if it never does.
 * Locks are not imported, and the fence of an existing or removed task never goes back. */
#include "queue/transfer.h"

#include "core/counts.h"
#include "queue/import_private.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"
#include "format/record_form.h"

#define PIECE 64                            /* tasks in one edit */
#define COUNTER_MOST INT64_C(1000000000000) /* ids with larger numbers do not raise the counter */

/* --- tasks that wait for a task further on in the input ------------------------------------------ */

struct waiter {
	struct waiter *next;  /* in the same hash slot */
	struct waiter *after; /* the next waiter in input order */
	struct str missing, who;
	struct str missing_id, where; /* for a message */
	bool parent;                  /* `missing` is the parent of `who`, not a dependency */
	bool met;
};

#define WAITER_SLOTS 4096
#define REFUSALS 1000 /* a check names at most this many */

static struct waiter **transfer_in_slot(struct importing *x, struct str key)
{
	return &x->waiters[str_hash(key) % WAITER_SLOTS];
}

static void wait_for(struct importing *x, struct str missing, struct str id, struct str who,
		     bool parent)
{
	struct waiter *n = arena_new(&x->own, struct waiter), **at;

	if (!x->waiters)
		x->waiters = arena_array(&x->own, struct waiter *, WAITER_SLOTS);
	at = transfer_in_slot(x, missing);
	*n = (struct waiter){ .next = *at,
			      .missing = arena_str(&x->own, missing),
			      .missing_id = arena_str(&x->own, id),
			      .who = arena_str(&x->own, who),
			      .where = arena_str(&x->own, x->where),
			      .parent = parent };
	*at = n;
	if (x->last)
		x->last->after = n;
	else
		x->first = n;
	x->last = n;
	x->n_waiting++;
}

/* --- one task ------------------------------------------------------------------------------------ */

int import_refuse(struct importing *x, struct act *w, enum result code, struct str text,
		  struct str hint)
{
	if (x->where.n)
		text = arena_printf(w->call.arena, "%.*s: %.*s", STRF(x->where), STRF(text));
	if (!x->n_refusals++)
		return bulk_refuse(&x->bulk, code, text, hint);
	if (x->refusals.n < REFUSALS)
		x->refusals = arena_append(x->bulk.arena, x->refusals,
					   arena_str(x->bulk.arena, text));
	return STORE_UNSUPPORTED;
}

/* A check continues after a refusal: it reports all of them, and the store keeps no change. */
static int go_on(struct importing *x, struct act *w, int r)
{
	if (r != STORE_UNSUPPORTED || !x->im->check || !x->bulk.refused ||
	    x->bulk.ans->code == API_ERROR)
		return r;
	*w->ans = (struct answer){ 0 };
	return 0;
}

int import_passed_on(struct importing *x, struct act *w, int r)
{
	return r > 0 ? import_refuse(x, w, w->ans->code, w->ans->message, w->ans->hint) : r;
}

static bool listed_before(const struct task *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (str_eq_nocase(t->depends.v[k], t->depends.v[i]))
			return true;
	return false;
}

void import_add_source(struct act *w, struct sources *s, struct str key)
{
	s->v = arena_grow(w->call.arena, s->v, s->n, sizeof(*s->v));
	s->v[s->n++] = key;
}

static int meet_depends(struct importing *x, struct act *w, struct loaded *l)
{
	struct task *t = &l->task;
	size_t kept = 0;

	t->open_deps = t->canceled_deps = 0;
	for (size_t i = 0; i < t->depends.n; i++) {
		struct str key = task_key(w->call.arena, t->depends.v[i]);
		struct loaded *dep;
		int r;

		if (listed_before(t, i))
			continue;
		t->depends.v[kept++] = t->depends.v[i];
		r = act_load_key(w, key, &dep);
		if (r < 0)
			return r;
		if (r > 0)
			wait_for(x, key, t->depends.v[i], l->key, false);
		else
			graph_dep_moved(t, 0, dep->task.status);
	}
	t->depends.n = kept;
	return 0;
}

static int meet_parent(struct importing *x, struct act *w, struct loaded *l,
		       struct sources *sources)
{
	struct str key = task_key(w->call.arena, l->task.parent);
	struct loaded *parent;
	int r;

	if (!l->task.parent.n)
		return 0;
	r = act_load_key(w, key, &parent);
	if (r > 0)
		wait_for(x, key, l->task.parent, l->key, true);
	if (r)
		return r < 0 ? r : 0;
	parent->dirty |= graph_sub_moved(&parent->task, 0, l->task.status);
	import_add_source(w, sources, parent->key);
	return 0;
}

/* Links the earlier tasks of the input that refer to this task. */
static int meet_waiters(struct importing *x, struct act *w, struct loaded *l,
			struct sources *sources)
{
	int r = 0;

	for (struct waiter *n = x->n_waiting ? *transfer_in_slot(x, l->key) : NULL; !r && n;
	     n = n->next) {
		struct loaded *who;

		if (n->met || !str_eq(n->missing, l->key))
			continue;
		r = act_load_key(w, n->who, &who);
		if (r)
			break;
		n->met = true;
		x->n_waiting--;
		if (n->parent) {
			sources->waits = true;
			l->dirty |= graph_sub_moved(&l->task, 0, who->task.status);
			continue;
		}
		import_add_source(w, sources, n->who);
		who->dirty |= graph_dep_moved(&who->task, 0, l->task.status);
		if (graph_settle(&who->task, l->task.id, w->e->now, w->call.arena))
			act_log(w, who, "needs_help", who->task.blocker_reason);
	}
	return r;
}

void import_add_comments(struct act *w, struct loaded *l, const struct parcel *p)
{
	for (size_t i = 0; i < p->n_comments; i++) {
		struct event ev = p->comments[i];

		ev.name = STR("comment");
		ev.task = l->task.id;
		act_event_at(w, l, ev.at && ev.at < w->e->now ? ev.at : w->e->now, &ev);
	}
	if (p->n_comments)
		number_put(w, RELOGGED_KEY, w->e->now);
}

/* Raises the counter, so that new ids do not collide with imported ids. */
static void note_number(struct importing *x, struct str id)
{
	int64_t n;

	if (id.n > 1 && (id.p[0] == 't' || id.p[0] == 'T') &&
	    str_to_i64(str_n(id.p + 1, id.n - 1), &n) && n > x->counter && n <= COUNTER_MOST)
		x->counter = n;
}

void import_complete(struct task *t, int64_t now)
{
	t->open_deps = t->canceled_deps = t->open_subs = 0;
	t->lock = (struct lock){ 0 };
	t->last = (struct last){ 0 };
	t->over = (struct notice){ 0 };
	t->last_ttl = t->free_at = t->last_expires_at = 0;
	if (t->archived_at && t->archived_at < t->done_at)
		t->archived_at = t->done_at;
	if (!t->created_at)
		t->created_at = now;
	if (!t->updated_at)
		t->updated_at = t->created_at;
	if (!t->version)
		t->version = 1;
}

static int check_cycles(struct importing *x, struct act *w, struct loaded *l,
			const struct sources *s)
{
	int r = act_flush(w);

	for (size_t i = 0; !r && i < s->n; i++)
		r = no_cycle(w, l->key, s->v[i],
			     arena_printf(w->call.arena, "%.*s would wait for itself",
					  STRF(l->task.id)));
	return import_passed_on(x, w, r);
}

int import_settle(struct importing *x, struct act *w, struct loaded *l, struct sources *sources)
{
	int r = meet_depends(x, w, l);

	if (!r)
		r = meet_waiters(x, w, l, sources);
	if (r)
		return r;
	if (graph_settle(&l->task, STR(""), w->e->now, w->call.arena))
		act_log(w, l, "needs_help", l->task.blocker_reason);
	sources->waits |= l->task.depends.n > 0;
	return sources->n && sources->waits ? check_cycles(x, w, l, sources) : 0;
}

static int transfer_in_create(struct importing *x, struct act *w, const struct parcel *p)
{
	struct loaded *l = act_new(w, p->task.id);
	struct sources sources = { 0 };
	struct str chain;
	int64_t fence;
	int r = old_fence(w, l, &fence);

	if (r)
		return r;
	chain = l->task.chain;
	l->task = p->task;
	l->task.chain = chain;
	import_complete(&l->task, w->e->now);
	if (fence > l->task.fence)
		l->task.fence = fence;
	l->was = l->task.status; /* import_settle() updates others: some are not read yet */
	l->logged = l->task.status;
	import_add_comments(w, l, p);
	act_log(w, l, "imported", l->task.title);
	r = meet_parent(x, w, l, &sources);
	if (!r)
		r = import_settle(x, w, l, &sources);
	x->im->created++;
	x->im->comments += (int64_t)p->n_comments;
	return r;
}

static int import_one(struct importing *x, struct act *w, struct parcel *p)
{
	struct str key = task_key(w->call.arena, p->task.id);
	struct loaded *l;
	int r = act_load_key(w, key, &l);

	x->where = p->where;
	note_number(x, p->task.id);
	for (size_t i = 0; i < p->task.depends.n; i++)
		if (str_eq_nocase(p->task.depends.v[i], p->task.id))
			return import_refuse(x, w, MISCONFIGURED,
					     arena_printf(w->call.arena, "%.*s depends on itself",
							  STRF(p->task.id)),
					     STR(""));
	if (r == BAD)
		return import_refuse(x, w, MISCONFIGURED,
				     arena_printf(w->call.arena,
						  "the record of %.*s cannot be used",
						  STRF(p->task.id)),
				     STR("pawl doctor says why, and how to remove it"));
	if (r > 0)
		return transfer_in_create(x, w, p);
	if (r < 0)
		return r;
	return import_existing(x, w, l, p);
}

/* --- the whole import ------------------------------------------------------------------------- */

static int read_failed(struct importing *x, struct act *w, int r)
{
	x->where = STR("");
	return import_refuse(x, w, API_ERROR,
			     arena_printf(w->call.arena, "cannot read the input of the import: %s",
					  strerror(-r)),
			     STR("nothing was changed: import again"));
}

static void start_again(struct importing *x)
{
	arena_free(&x->own);
	x->waiters = NULL;
	x->first = x->last = NULL;
	x->refusals = (struct strs){ 0 };
	x->n_refusals = 0;
	x->n_waiting = 0;
	x->counter = 0;
	x->done = 0;
	x->im->created = x->im->updated = x->im->skipped = x->im->comments = 0;
	x->im->rewind(x->im->ctx);
}

struct piece {
	struct importing *x;
	bool first, last;
};

static int transfer_in_unmet(struct importing *x, struct act *w)
{
	int r = 0;

	for (const struct waiter *n = x->first; n && !r; n = n->after) {
		if (n->met)
			continue;
		x->where = n->where;
		r = import_refuse(
			x, w, NOT_FOUND,
			arena_printf(w->call.arena,
				     "its %s %.*s is neither in the queue nor in the import",
				     n->parent ? "parent" : "dependency", STRF(n->missing_id)),
			STR("add that task, or remove the reference to it"));
		r = go_on(x, w, r);
	}
	return r;
}

static int transfer_in_finish(struct importing *x, struct act *w)
{
	int64_t counter;
	int r = x->n_waiting ? transfer_in_unmet(x, w) : 0;

	if (!r)
		r = number_get(w, COUNTER_KEY, &counter);
	if (!r && x->counter > counter)
		number_put(w, COUNTER_KEY, x->counter);
	return r;
}

static int import_piece(struct edit *e, void *ctx)
{
	struct piece *piece = ctx;
	struct importing *x = piece->x;
	struct request rq = { .op = OP_CREATE };
	struct answer said = { 0 };
	struct act w = bulk_act(&x->bulk, e, &rq, &said);
	int r = 0;

	GIVE(&rq, part_of, TYPED_BATCH);
	if (piece->first) {
		start_again(x);
		r = bulk_begin(&x->bulk, &w);
	}
	for (int i = 0; !r && i < PIECE; i++) {
		struct parcel p = { 0 };

		int got = x->im->next(x->im->ctx, &p, e->arena);

		if (got > 0)
			break;
		r = got < 0 ? read_failed(x, &w, got) : go_on(x, &w, import_one(x, &w, &p));
		x->done++;
	}
	if (!r && piece->last)
		r = transfer_in_finish(x, &w);
	if (!r)
		r = go_on(x, &w, import_passed_on(x, &w, act_flush(&w)));
	if (!r && x->im->progress)
		x->im->progress(x->im->progress_ctx, x->done);
	if (!r && piece->last && x->n_refusals)
		return STORE_UNSUPPORTED;
	return r ? r : w.writes ? 0 : REFUSED;
}

enum result queue_import(struct queue *q, struct import *im, struct answer *ans, struct arena *a)
{
	size_t n = im->n / PIECE + 1;
	struct change *changes = arena_array(a, struct change, n);
	struct piece *pieces = arena_array(a, struct piece, n);
	struct importing x = { .bulk = { .q = q,
					 .agent = im->agent,
					 .run = im->run,
					 .ans = ans,
					 .arena = a,
					 .trial = im->check },
			       .im = im };
	enum result code;

	if (q->remote)
		return q->far->import(q->remote, im, ans, a);
	for (size_t i = 0; i < n; i++) {
		pieces[i] = (struct piece){ &x, i == 0, i + 1 == n };
		changes[i] = (struct change){ .fn = import_piece, .ctx = &pieces[i] };
	}
	code = bulk_run(&x.bulk, changes, n, im->check ? 0 : HEALTH_IMPORT);
	arena_free(&x.own);
	if (x.n_refusals > x.refusals.n + 1)
		x.refusals = arena_append(
			a, x.refusals,
			arena_printf(a, "%zu more refusals", x.n_refusals - x.refusals.n - 1));
	if (x.n_refusals)
		ans->warnings = x.refusals;
	return code;
}
