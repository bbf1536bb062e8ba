/*
 * Reads single records, scans, counts, and the clock. While a scan hands out records (`depth`), the
 * store does not read the state again, because that could free the records. If a task's file no
 * longer matches its record, a read of one task retries, and a scan fetches the newer record.
 */
#include <stdlib.h>

#include "format/record_form.h"
#include "format/task_form.h"
#include "store/files/files.h"
#include "store/store_tools.h"

#define TRIES 8

/* --- the clock ---------------------------------------------------------------------------------- */

static void settle_anchor(struct files *s)
{
	const struct anchor *stored = &s->view.anchor;

	if (localclock_fits(&s->clock, stored)) {
		s->anchor = *stored;
		return;
	}
	if (localclock_fits(&s->clock, &s->anchor))
		return; /* an earlier read or refused change made this anchor; keep its time */
	s->anchor = *stored;
	localclock_renew(&s->clock, &s->anchor, s->view.at);
}

/* Is no record waiting for a time? Only then may the clock jump back to the wall clock. */
static bool files_read_idle(struct view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct ent scratch;
		const struct ent *e = files_peek(v, i, &scratch);
		const struct index *ix = &e->ix;

		if (e->dropped)
			continue;
		if (ix->holder.n || ix->token.n || ix->lane == LANE_LATER ||
		    (ix->lane == LANE_GOING && !ix->created_at) ||
		    (lane_waits(ix->lane) && ix->eligible_at))
			return false;
	}
	return true;
}

void files_clock_change(struct files *s)
{
	settle_anchor(s);
	if (localclock_strays(&s->clock, &s->anchor) && files_read_idle(&s->view))
		localclock_heal(&s->clock, &s->anchor);
	s->now = localclock_now(&s->clock, &s->anchor);
}

int64_t files_now(struct store *base)
{
	struct files *s = files_of(base);

	if (s->changing)
		return s->now;
	if (!s->depth)
		/* ignore an error here, because the next call that can report it will fail, too */
		(void)files_refresh(s, NULL);
	settle_anchor(s);
	return localclock_now(&s->clock, &s->anchor);
}

/* Returns the time within a call, without reading the state again. */
static int64_t now_here(struct files *s)
{
	return s->changing ? s->now : localclock_now(&s->clock, &s->anchor);
}

/* --- one record --------------------------------------------------------------------------------- */

static int files_read_enter(struct files *s, bool all)
{
	int rc;

	if (s->changing || s->depth)
		return 0;
	settle_anchor(s); /* files_find_changes() converts other programs' times with the anchor */
	rc = files_find_changes(s, all);
	if (rc == 0)
		settle_anchor(s);
	return rc;
}

int files_body(struct files *s, const struct ent *e, struct arena *a, struct str *out)
{
	struct found f = { .id = e->ix.id, .kind = e->kind, .archived = e->archived };
	int r = e->has_body ? 0 : files_name(f.name, sizeof(f.name), f.id, f.kind);

	if (e->has_body)
		*out = arena_str(a, e->body);
	if (r || e->has_body)
		return r ? 1 : 0;
	r = files_read_found(s, &f, a);
	if (r < 0)
		return files_fail(s, r, f.name);
	if (r || f.bad || !f.form.full || f.form.commit != e->commit)
		return 1;
	f.form.task->id = f.id;
	*out = task_part(f.form.task, BODY, a);
	return 0;
}

static int fail_bad(struct files *s, const struct ent *e)
{
	return store_fail(
		&s->base.env, STORE_FOREIGN,
		"move that file away, repair it, or use another id; to list all such files: pawl doctor",
		"cannot use the task %.*s because of a file in %s: %s", STRF(e->ix.id), s->path,
		e->bad);
}

static void files_read_fill(const struct ent *e, struct record *r)
{
	*r = (struct record){ .key = e->key, .rev = e->rev, .ix = e->ix, .hot = e->hot };
}

/* 1: there is no record; 2: its file has changed, so retry. */
static int try_get(struct files *s, struct str key, struct record *out, struct arena *a)
{
	const struct ent *e;
	struct record r;
	bool changed;
	int rc = files_check_file(s, key, &changed);

	if (rc < 0)
		return rc;
	e = files_find(&s->view, key);
	if (e && e->bad)
		return fail_bad(s, e);
	if (!e || e->dropped || index_gone(&e->ix, now_here(s)))
		return 1;
	files_read_fill(e, &r);
	rc = files_body(s, e, a, &r.body);
	if (rc)
		return rc < 0 ? rc : 2;
	*out = *record_copy(a, &r);
	return 0;
}

static int fail_body(struct files *s, struct str key)
{
	if (s->depth && !s->changing)
		return store_fail(&s->base.env, STORE_MOVED, "try again",
				  "another process changed %.*s in %s during the read", STRF(key),
				  s->path);
	return store_fail(&s->base.env, STORE_CORRUPT, "to check the whole folder: pawl doctor",
			  "the file of %.*s in %s is missing or does not match the state",
			  STRF(key), s->path);
}

int files_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct files *s = files_of(base);
	int rc = files_read_enter(s, false);

	for (int i = 0; rc == 0 && i < TRIES; i++) {
		rc = try_get(s, key, out, a);
		if (rc != 2)
			return rc;
		if (s->depth && !s->changing)
			break; /* a retry would give the same result */
		rc = files_read_enter(s, true);
	}
	return rc < 0 ? rc : fail_body(s, key);
}

/* --- scans -------------------------------------------------------------------------------------- */

static bool files_read_wanted(const struct query *q, const struct ent *e, int64_t now)
{
	struct query eligible = *q;

	if (e->dropped || e->bad)
		return false;
	if (!e->occupied || (q->pick != PICK_ELIGIBLE && q->pick != PICK_WAITING))
		return query_matches(q, &e->ix, now);
	eligible.pick = PICK_ELIGIBLE; /* a foreign file blocks its lock, so it is waiting */
	return q->pick == PICK_WAITING &&
	       (query_matches(q, &e->ix, now) || query_matches(&eligible, &e->ix, now));
}

/* Finds the record that q->after names; NULL: start at the beginning. false: that record is gone,
 * so the result is empty. */
static bool find_after(struct view *v, const struct query *q, const struct ent **after)
{
	*after = NULL;
	if (q->pick != PICK_ALL || !q->after.n)
		return true;
	*after = files_find(v, q->after);
	return *after && !(*after)->dropped;
}

static bool files_read_comes(const struct query *q, const struct ent *e, const struct ent *after,
			     int64_t now)
{
	return files_read_wanted(q, e, now) && (!after || query_cmp(q, &e->ix, &after->ix) > 0);
}

static void fill_heap(struct heap *h, struct view *v, const struct ent *after, int64_t now)
{
	h->n = 0;
	h->v = mem_grow(h->v, (v->n + 1) * sizeof(*h->v));
	for (size_t i = 0; i < v->n; i++) {
		struct ent scratch;

		if (files_read_comes(h->q, files_peek(v, i, &scratch), after, now))
			h->v[h->n++] = files_at(v, i);
	}
	heap_order(h);
}

/* Finds the first record that matches, without keeping the others. NULL: no record matches. */
static struct ent *find_first(struct view *v, const struct query *q, const struct ent *after,
			      int64_t now)
{
	struct ent scratch[2];
	const struct ent *best = NULL;
	size_t at = 0, use = 0;

	for (size_t i = 0; i < v->n; i++) {
		const struct ent *e = files_peek(v, i, &scratch[use]);

		if (!files_read_comes(q, e, after, now) ||
		    (best && query_cmp(q, &e->ix, &best->ix) >= 0))
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
	struct files *newer; /* a second handle, for records that other processes have changed */
};

/* Must each record's file be checked again before the record is handed out? */
static bool files_read_checks(const struct query *q)
{
	return q->pick == PICK_ELIGIBLE || q->body;
}

static int hand_out(struct scan *x, const struct record *r)
{
	int rc = x->fn(r, x->ctx);

	x->sent++;
	return rc == 0 && x->q->limit && x->sent >= x->q->limit ? 1 : rc;
}

/* Another process has changed the record, and its old file is gone. Sends the current record.
 * During a change we hold the gate, so no other pawl can have changed it. */
static int send_newer(struct scan *x, struct str key)
{
	struct arena a = { 0 };
	struct record r;
	int rc = 0;

	if (x->s->changing)
		return 0;
	if (!x->newer)
		rc = files_twin(x->s, &x->newer);
	if (rc == 0)
		rc = files_get(&x->newer->base, key, &r, &a);
	if (rc == 0 && query_matches(x->q, &r.ix, x->now))
		rc = hand_out(x, &r);
	else if (rc > 0)
		rc = 0;
	arena_free(&a);
	return rc;
}

static int files_read_send(struct scan *x, const struct ent *e)
{
	struct arena a = { 0 };
	struct record r;
	int rc = 0;

	files_read_fill(e, &r);
	if (x->q->body)
		rc = files_body(x->s, e, &a, &r.body);
	if (rc == 0)
		rc = hand_out(x, &r);
	else if (rc > 0)
		rc = send_newer(x, e->key);
	arena_free(&a);
	return rc;
}

#define AGAIN 2

/* Sends the first record, and stores it in *last. 0: continue after it; 1: the limit is reached, or
 * no record matches; AGAIN: the record has changed since it was found. */
static int send_first(struct scan *x, struct ent **last)
{
	const struct ent *after;
	bool changed = false;
	int rc = 0;

	if (!find_after(&x->s->view, x->q, &after))
		return 1;
	*last = find_first(&x->s->view, x->q, after, x->now);
	if (!*last)
		return 1;
	if (files_read_checks(x->q))
		rc = files_check_file(x->s, (*last)->key, &changed);
	if (rc < 0)
		return rc;
	return changed ? AGAIN : files_read_send(x, *last);
}

static int send_next(struct scan *x, const struct ent *e)
{
	bool changed = false;
	int rc = files_read_checks(x->q) ? files_check_file(x->s, e->key, &changed) : 0;

	if (rc < 0)
		return rc;
	if (rc > 0)
		return send_newer(x, e->key);
	if (changed)
		e = files_find(&x->s->view, e->key);
	return e && files_read_wanted(x->q, e, x->now) ? files_read_send(x, e) : 0;
}

static int send_rest(struct scan *x, struct heap *h, const struct ent *last)
{
	int rc = 0;

	fill_heap(h, &x->s->view, last, x->now);
	while (rc == 0 && h->n)
		rc = send_next(x, heap_pop(h));
	return rc;
}

/* PICK_OTHERS selects records that have neither a file nor an order. */
static int send_others(struct scan *x)
{
	struct view *v = &x->s->view;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		struct ent scratch;

		if (files_read_wanted(x->q, files_peek(v, i, &scratch), x->now))
			rc = files_read_send(x, files_at(v, i));
	}
	return rc;
}

static int begin_scan(struct scan *x, struct ent **last)
{
	int rc = AGAIN;

	for (int i = 0; rc == AGAIN && i < TRIES; i++) {
		rc = files_read_enter(x->s, x->q->pick == PICK_ALL && x->q->body);
		if (rc < 0)
			return rc;
		x->now = now_here(x->s);
		x->s->depth++;
		rc = x->q->pick == PICK_OTHERS ? send_others(x) : send_first(x, last);
		if (rc == AGAIN && i == TRIES - 1)
			rc = send_next(x, *last);
		x->s->depth--;
	}
	return rc;
}

int files_snapshot(struct store *base, bool all, int (*fn)(void *ctx), void *ctx)
{
	struct files *s = files_of(base);
	int rc = files_read_enter(s, all);

	if (rc < 0)
		return rc;
	s->depth++;
	rc = fn(ctx);
	s->depth--;
	return rc;
}

int files_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx)
{
	struct scan x = { .s = files_of(base), .q = q, .fn = fn, .ctx = ctx };
	struct heap h = { .q = q, .index = offsetof(struct ent, ix) };
	struct ent *last = NULL;
	int rc = begin_scan(&x, &last);

	x.s->depth++;
	if (rc == 0 && last)
		rc = send_rest(&x, &h, last);
	x.s->depth--;
	free(h.v);
	if (x.newer)
		files_close(&x.newer->base);
	return rc < 0 ? rc : 0;
}

int files_count(struct store *base, const struct query *q, int64_t *n)
{
	struct files *s = files_of(base);
	int rc = files_read_enter(s, true); /* reads the whole folder and the archive */
	int64_t now = now_here(s);

	*n = 0;
	for (size_t i = 0; rc == 0 && i < s->view.n; i++) {
		struct ent scratch;

		*n += files_read_wanted(q, files_peek(&s->view, i, &scratch), now);
	}
	return rc;
}

int files_tally(struct store *base, int64_t *counts)
{
	struct files *s = files_of(base);
	int rc = files_read_enter(s, false);

	memset(counts, 0, STORE_STATUSES * sizeof(*counts));
	for (size_t i = 0; rc == 0 && i < s->view.n; i++) {
		struct ent scratch;
		const struct ent *e = files_peek(&s->view, i, &scratch);

		if (!e->dropped && !e->bad && e->ix.status)
			counts[e->ix.status & (STORE_STATUSES - 1)]++;
	}
	return rc;
}
