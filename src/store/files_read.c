/* Reading: one record, scans, counts, the clock. */
#include <stdlib.h>

#include "core/filecodec.h"
#include "store/files.h"

#define TRIES 8

/* --- the clock ---------------------------------------------------------------------------------- */

static void settle_anchor(struct files *s, bool *unsaved)
{
	const struct anchor *stored = &s->view.anchor;

	*unsaved = strcmp(stored->boot_id, s->clock.boot_id) != 0;
	if (!*unsaved) {
		s->anchor = *stored;
		return;
	}
	if (strcmp(s->anchor.boot_id, s->clock.boot_id) == 0)
		return; /* made before, by a reader or a change that refused: time goes on from it */
	s->anchor = *stored;
	localclock_renew(&s->clock, &s->anchor, s->view.at);
}

/* Does no record wait for a time? */
static bool idle(struct view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct ent scratch;
		const struct ent *e = files_peek(v, i, &scratch);
		const struct index *ix = &e->ix;

		if (e->dropped)
			continue;
		if (ix->holder.n || ix->token.n || ix->lane == LANE_LATER ||
		    ix->lane == LANE_GOING || (ix->lane == LANE_WAITING && ix->eligible_at))
			return false;
	}
	return true;
}

void files_clock_change(struct files *s, bool *unsaved)
{
	settle_anchor(s, unsaved);
	if (localclock_strays(&s->clock, &s->anchor) && idle(&s->view)) {
		localclock_heal(&s->clock, &s->anchor);
		*unsaved = true;
	}
	s->now = localclock_now(&s->clock, &s->anchor);
}

int64_t files_now(struct store *base)
{
	struct files *s = files_of(base);
	bool unsaved;

	if (s->changing)
		return s->now;
	if (!s->depth)
		(void)files_refresh(s, NULL); /* a call that can report will fail as well */
	settle_anchor(s, &unsaved);
	return localclock_now(&s->clock, &s->anchor);
}

/* In the middle of a call: the state stays as it was read. */
static int64_t now_here(struct files *s)
{
	return s->changing ? s->now : localclock_now(&s->clock, &s->anchor);
}

/* --- one record --------------------------------------------------------------------------------- */

static int enter(struct files *s, bool all)
{
	bool unsaved;
	int rc;

	if (s->changing || s->depth)
		return 0;
	rc = files_look(s, all);
	if (rc == 0)
		settle_anchor(s, &unsaved);
	return rc;
}

/* 1: the file is not that of this record any more. */
int files_body(struct files *s, const struct ent *e, struct arena *a, struct str *out)
{
	struct found f = { .id = e->ix.id, .kind = e->kind, .archived = e->archived };

	if (e->has_body) {
		*out = arena_str(a, e->body);
		return 0;
	}
	if (files_name(f.name, sizeof(f.name), f.id, f.kind) || files_read_found(s, &f, a) ||
	    f.bad || !f.form.full)
		return 1;
	f.form.task->id = f.id;
	*out = files_pack(f.form.task, BODY, a);
	return 0;
}

static int fail_bad(struct files *s, const struct ent *e)
{
	return store_fail(
		&s->base.env, STORE_FOREIGN,
		"look at that file, and remove or repair it; `pawl doctor` lists all such files",
		"the task %.*s cannot be used because of a file in %s: %s", STRF(e->ix.id), s->path,
		e->bad);
}

static void fill(const struct ent *e, struct record *r)
{
	*r = (struct record){ .key = e->key, .rev = e->rev, .ix = e->ix, .hot = e->hot };
}

/* 1: there is none; 2: look again. */
static int try_get(struct files *s, struct str key, struct record *out, struct arena *a)
{
	const struct ent *e;
	struct record r;
	bool changed;
	int rc = files_look_at(s, key, &changed);

	if (rc < 0)
		return rc;
	e = files_find(&s->view, key);
	if (e && e->bad)
		return fail_bad(s, e);
	if (!e || e->dropped || index_gone(&e->ix, now_here(s)))
		return 1;
	fill(e, &r);
	rc = files_body(s, e, a, &r.body);
	if (rc)
		return rc < 0 ? rc : 2;
	*out = *record_copy(a, &r);
	return 0;
}

static int fail_body(struct files *s, struct str key)
{
	return store_fail(&s->base.env, STORE_CORRUPT, "pawl doctor looks at the whole folder",
			  "the file of %.*s in %s is not there or does not fit", STRF(key),
			  s->path);
}

int files_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct files *s = files_of(base);
	int rc = enter(s, false);

	for (int i = 0; rc == 0 && i < TRIES; i++) {
		rc = try_get(s, key, out, a);
		if (rc != 2)
			return rc;
		rc = enter(s, true);
	}
	return rc < 0 ? rc : fail_body(s, key);
}

/* --- scans -------------------------------------------------------------------------------------- */

/* The answer as a heap: a caller that wants only the first pays for no sorting. */
struct heap {
	const struct query *q;
	struct ent **v;
	size_t n;
};

static void sink(struct heap *h, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
		struct ent *e = h->v[i];

		if (child + 1 < h->n && query_cmp(h->q, &h->v[child + 1]->ix, &h->v[child]->ix) < 0)
			child++;
		if (query_cmp(h->q, &e->ix, &h->v[child]->ix) <= 0)
			return;
		h->v[i] = h->v[child];
		h->v[child] = e;
	}
}

static struct ent *pop(struct heap *h)
{
	struct ent *e = h->v[0];

	h->v[0] = h->v[--h->n];
	sink(h, 0);
	return e;
}

static bool wanted(const struct query *q, const struct ent *e, int64_t now)
{
	return !e->dropped && !e->bad && query_matches(q, &e->ix, now);
}

/* After which record of the answer: NULL if from its start. false: nothing can match. */
static bool find_after(struct view *v, const struct query *q, const struct ent **after)
{
	*after = NULL;
	if (q->pick != PICK_ALL || !q->after.n)
		return true;
	*after = files_find(v, q->after);
	return *after && !(*after)->dropped;
}

static bool comes(const struct query *q, const struct ent *e, const struct ent *after, int64_t now)
{
	return wanted(q, e, now) && (!after || query_cmp(q, &e->ix, &after->ix) > 0);
}

static void fill_heap(struct heap *h, struct view *v, const struct ent *after, int64_t now)
{
	h->n = 0;
	h->v = mem_grow(h->v, (v->n + 1) * sizeof(struct ent *));
	for (size_t i = 0; i < v->n; i++) {
		struct ent scratch;

		if (comes(h->q, files_peek(v, i, &scratch), after, now))
			h->v[h->n++] = files_at(v, i);
	}
	for (size_t i = h->n / 2; i-- > 0;)
		sink(h, i);
}

/* The first of the answer, for which nothing else has to be kept; NULL: there is none. */
static struct ent *find_first(struct view *v, const struct query *q, const struct ent *after,
			      int64_t now)
{
	struct ent scratch[2];
	const struct ent *best = NULL;
	size_t at = 0, use = 0;

	for (size_t i = 0; i < v->n; i++) {
		const struct ent *e = files_peek(v, i, &scratch[use]);

		if (!comes(q, e, after, now) || (best && query_cmp(q, &e->ix, &best->ix) >= 0))
			continue;
		best = e;
		at = i;
		if (e == &scratch[use])
			use = !use;
	}
	return best ? files_at(v, at) : NULL;
}

struct scan {
	struct files *s;
	const struct query *q;
	record_fn *fn;
	void *ctx;
	int64_t now;
	size_t sent;
	bool started; /* the first one was handed out, or is gone */
	int tries;
};

/* Records whose file is looked at once more before they are handed out. */
static bool looks(const struct query *q)
{
	return q->pick == PICK_ELIGIBLE || q->body;
}

/* Not as it was when the heap was made: *again if all of it has to be made anew. */
static int look_first(struct scan *x, struct ent **e, bool *again)
{
	bool changed;
	int rc = files_look_at(x->s, (*e)->key, &changed);

	*again = false;
	if (rc < 0 || !changed)
		return rc;
	if (!x->started && x->tries++ < TRIES) {
		*again = true;
		return 0;
	}
	*e = files_find(&x->s->view, (*e)->key);
	if (*e && !wanted(x->q, *e, x->now))
		*e = NULL;
	return 0;
}

static int send(struct scan *x, const struct ent *e)
{
	struct arena a = { 0 };
	struct record r;
	int rc = 0;

	fill(e, &r);
	if (x->q->body)
		rc = files_body(x->s, e, &a, &r.body);
	if (rc == 0) {
		x->sent++;
		rc = x->fn(&r, x->ctx);
		if (rc == 0 && x->q->limit && x->sent >= x->q->limit)
			rc = 1;
	} else if (rc > 0) {
		rc = 0; /* it went while we looked */
	}
	arena_free(&a);
	return rc;
}

/* 0: go on with those behind *e; 1: enough, or nothing there */
static int send_first(struct scan *x, struct ent **last)
{
	const struct ent *after;
	bool again = true;
	int rc = 0;

	if (!find_after(&x->s->view, x->q, &after))
		return 1;
	while (rc == 0 && again) {
		struct ent *e = *last = find_first(&x->s->view, x->q, after, x->now);

		again = false;
		if (!e)
			return 1;
		if (looks(x->q))
			rc = look_first(x, &e, &again);
		if (rc == 0 && !again && e)
			rc = send(x, e);
	}
	return rc;
}

static int send_rest(struct scan *x, struct heap *h, const struct ent *last)
{
	int rc = 0;

	fill_heap(h, &x->s->view, last, x->now);
	while (rc == 0 && h->n) {
		struct ent *e = pop(h);
		bool again = false;

		if (looks(x->q))
			rc = look_first(x, &e, &again);
		if (rc == 0 && e)
			rc = send(x, e);
	}
	return rc;
}

int files_snapshot(struct store *base, int (*fn)(void *ctx), void *ctx)
{
	struct files *s = files_of(base);
	int rc = enter(s, true);

	if (rc < 0)
		return rc;
	s->depth++;
	rc = fn(ctx);
	s->depth--;
	return rc;
}

/* They have no file of their own, and no order. */
static int send_others(struct scan *x)
{
	struct view *v = &x->s->view;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		struct ent scratch;

		if (wanted(x->q, files_peek(v, i, &scratch), x->now))
			rc = send(x, files_at(v, i));
	}
	return rc;
}

int files_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx)
{
	struct scan x = { .s = files_of(base), .q = q, .fn = fn, .ctx = ctx };
	struct heap h = { .q = q };
	struct ent *last = NULL;
	int rc = enter(x.s, q->pick == PICK_ALL && q->body);

	if (rc < 0)
		return rc;
	x.now = now_here(x.s);
	x.s->depth++;
	rc = q->pick == PICK_OTHERS ? send_others(&x) : send_first(&x, &last);
	x.started = true;
	if (rc == 0 && last)
		rc = send_rest(&x, &h, last);
	x.s->depth--;
	free(h.v);
	return rc < 0 ? rc : 0;
}

int files_count(struct store *base, const struct query *q, int64_t *n)
{
	struct files *s = files_of(base);
	int rc = enter(s, false);
	int64_t now = now_here(s);

	*n = 0;
	for (size_t i = 0; rc == 0 && i < s->view.n; i++) {
		struct ent scratch;

		*n += wanted(q, files_peek(&s->view, i, &scratch), now);
	}
	return rc;
}

int files_tally(struct store *base, int64_t *counts)
{
	struct files *s = files_of(base);
	int rc = enter(s, false);

	memset(counts, 0, 16 * sizeof(*counts));
	for (size_t i = 0; rc == 0 && i < s->view.n; i++) {
		struct ent scratch;
		const struct ent *e = files_peek(&s->view, i, &scratch);

		if (!e->dropped && !e->bad && e->ix.status)
			counts[e->ix.status & 15]++;
	}
	return rc;
}
