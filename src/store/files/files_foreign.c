/*
 * Interprets files that other programs changed. A program or a person that follows the .locks
 * protocol has claimed, renewed, completed, failed, removed or archived a task. Nothing is written
 * here; the next change commits the result. A task's fence never decreases, even if somebody puts
 * back an old file.
 */
#include <stdio.h>

#include "format/record_form.h"
#include "format/task_form.h"
#include "store/files/files.h"
#include "store/store_tools.h"

#define FOREIGN_LEASE (INT64_C(3600) * 1000)

struct sense {
	struct files *s;
	const struct ent *known;
	const struct found *f; /* the file that counts */
	struct task t;
	int64_t shift; /* the store's clock minus the wall clock, which other programs use */
};

/* --- choosing the file that counts -------------------------------------------------------------- */

bool files_left_over(const struct found *f, const struct ent *known)
{
	if (f->bad || !f->form.ours)
		return false;
	return known ? f->form.commit != known->commit : f->kind == FILE_LOCK;
}

static int files_foreign_weight(const struct found *f)
{
	static const int weights[FILE_KINDS] = {
		[FILE_TASK] = 1, [FILE_FAILED] = 2, [FILE_LOCK] = 3, [FILE_DONE] = 4
	};

	return weights[f->kind] * 2 + !f->archived;
}

static struct ent *bad_ent(struct files *s, const struct ent *known, const struct found *f,
			   const char *why)
{
	struct ent *e = arena_new(&s->view.arena, struct ent);

	e->key = arena_str(&s->view.arena, f->key);
	e->ix.id = arena_str(&s->view.arena, f->id);
	e->found = true;
	e->was = known;
	e->bad = arena_printf(&s->view.arena, "%s%s: %s", f->archived ? "archive/" : "", f->name,
			      why)
			 .p;
	s->strange = true;
	return e;
}

/* --- interpreting its content ------------------------------------------------------------------- */

static int64_t files_foreign_wall(const struct sense *x, int64_t ms, int64_t otherwise)
{
	return ms ? ms + x->shift : otherwise;
}

static void files_foreign_edited(struct sense *x, int64_t at)
{
	x->t.version++;
	if (at > x->t.updated_at)
		x->t.updated_at = at;
}

static void files_foreign_unlock(struct sense *x, int64_t now)
{
	if (!x->t.lock.holder.n)
		return;
	x->s->base.env.rules->lock_gone(&x->t, now);
	x->t.free_at = now;
}

/* Another program has claimed the task. */
static void lock_foreign(struct sense *x)
{
	const struct form *d = &x->f->form;
	struct task *t = &x->t;
	int64_t claimed = files_foreign_wall(x, d->claimed_at, x->f->mtime);
	int64_t until = files_foreign_wall(x, d->expires_at, claimed + FOREIGN_LEASE);
	struct str agent = d->agent.n ? d->agent : STR("unknown");

	if (t->lock.foreign && str_eq(t->lock.holder, agent) && t->lock.acquired_at == claimed) {
		t->lock.expires_at = until;
		return;
	}
	t->fence++;
	t->attempts++;
	t->lock = (struct lock){ .holder = agent,
				 .acquired_at = claimed,
				 .expires_at = until,
				 .ttl = until > claimed ? until - claimed : FOREIGN_LEASE,
				 .foreign = 1 };
	t->status = IN_PROGRESS;
	t->last_holder = agent;
	t->run = STR("");
	t->last = (struct last){ 0 };
	t->last_ttl = t->lock.ttl;
	t->free_at = 0;
	t->started_at = claimed;
	if (!t->first_started_at)
		t->first_started_at = claimed;
	files_foreign_edited(x, claimed);
}

/* If the lock still names its holder, another program may have renewed it. If it names another
 * agent, that agent has taken over the task. */
static void see_lock(struct sense *x)
{
	const struct form *d = &x->f->form;
	struct lock *l = &x->t.lock;

	bool kept = d->ours || (d->full && !x->known); /* without a record, the state was lost */

	if (!kept || !l->holder.n || !str_eq(l->holder, d->agent))
		lock_foreign(x);
	else if (d->expires_at && d->expires_at != l->expires_at)
		l->expires_at = files_foreign_wall(x, d->expires_at, 0);
}

static void see_end(struct sense *x, enum status status, int64_t at)
{
	const struct form *d = &x->f->form;
	struct task *t = &x->t;

	if (t->status == status)
		return;
	at = files_foreign_wall(x, at, x->f->mtime);
	if (d->agent.n)
		t->last_holder = d->agent;
	files_foreign_unlock(x, at);
	t->status = status;
	if (status == DONE)
		t->done_at = at;
	else
		t->blocker_reason = d->reason;
	files_foreign_edited(x, at);
}

static void see_open(struct sense *x)
{
	if (x->t.lock.holder.n)
		files_foreign_unlock(x, x->f->mtime);
	else if (x->t.status == DONE || x->t.status == FAILED)
		x->t.status = READY;
	else
		return;
	files_foreign_edited(x, x->f->mtime);
}

static void see_archive(struct sense *x)
{
	if (!x->f->archived)
		x->t.archived_at = 0;
	else if (!x->t.archived_at)
		x->t.archived_at = x->f->mtime > x->t.done_at ? x->f->mtime : x->t.done_at;
}

static void files_foreign_see(struct sense *x)
{
	const struct form *d = &x->f->form;

	switch (x->f->kind) {
	case FILE_LOCK:
		see_lock(x);
		break;
	case FILE_DONE:
		see_end(x, DONE, d->completed_at);
		break;
	case FILE_FAILED:
		see_end(x, FAILED, d->failed_at);
		break;
	default:
		see_open(x);
	}
	see_archive(x);
}

/* --- the task before the change ----------------------------------------------------------------- */

static void new_task(struct sense *x)
{
	const struct form *d = &x->f->form;
	enum status said = status_parse(d->status);

	x->t = (struct task){ .id = x->f->id,
			      .title = title_from(d->description, x->f->id),
			      .description = d->description,
			      .class_rank = STANDARD,
			      .priority = PRIORITY_DEFAULT,
			      .status = said == BACKLOG ? BACKLOG : READY,
			      .version = 1,
			      .created_at = files_foreign_wall(x, d->claimed_at, x->f->mtime) };
	x->t.updated_at = x->t.created_at;
}

static int known_task(struct sense *x, const struct found *found, size_t n)
{
	struct view *v = &x->s->view;
	const struct ent *e = x->known;
	struct str body = { 0 };

	if (x->f->form.ours) { /* it may be an old file that a person put back */
		x->t = *x->f->form.task;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!found[i].bad && found[i].form.ours && !files_left_over(&found[i], e)) {
			x->t = *found[i].form.task;
			return 0;
		}
	if (e->has_body)
		body = e->body;
	if (task_unpack(e->hot, &x->t, &v->arena) || task_unpack(body, &x->t, &v->arena))
		return -1;
	if (!x->t.id.n) {
		x->t.id = e->ix.id;
		x->t.title = title_from(x->f->form.description, e->ix.id);
	}
	return 0;
}

/* Returns the fence that a removed task left behind, or 0. */
static int64_t deleted_fence(struct sense *x)
{
	struct str id = x->f->key;
	const struct ent *gone;
	int64_t n = 0;

	(void)str_cut(&id, '/');
	gone = files_find(&x->s->view, arena_printf(&x->s->view.arena, "gone/%.*s", STRF(id)));
	return gone && !gone->dropped && str_to_i64(gone->hot, &n) ? n : 0;
}

/* A file that a person put there may be old or come from another queue. So the fence must
 * not decrease. */
static void keep_fence(struct sense *x, const struct task *old)
{
	bool replaced = x->t.lock.holder.n && !str_eq(x->t.lock.token, old->lock.token);
	int64_t least = old->fence ? old->fence : deleted_fence(x);

	if (x->t.fence < least + replaced)
		x->t.fence = least + replaced;
}

static int base_task(struct sense *x, const struct found *found, size_t n)
{
	struct task old = { 0 };

	if (x->known && !x->known->dropped) {
		if (task_unpack(x->known->hot, &old, &x->s->view.arena) || known_task(x, found, n))
			return -1;
	} else if (x->f->form.full) {
		x->t = *x->f->form.task;
	} else {
		new_task(x);
	}
	x->t.id = x->f->id;
	keep_fence(x, &old);
	return 0;
}

static struct ent *make_ent(struct files *s, const struct ent *known, struct str key,
			    const struct task *t)
{
	struct arena *a = &s->view.arena;
	struct ent *e = arena_new(a, struct ent);
	struct index ix;

	s->base.env.rules->index(t, &ix, a);
	*e = (struct ent){ .key = key,
			   .ix = ix,
			   .hot = task_part(t, HOT, a),
			   .body = task_part(t, BODY, a),
			   .has_body = true,
			   .found = true,
			   .was = known };
	if (known) {
		e->rev = known->rev;
		e->commit = known->commit;
		e->stranger = known->stranger;
	}
	return files_ent_copy(&s->view, e);
}

static const struct ent *from_file(struct files *s, const struct ent *known, const struct found *f,
				   struct found *found, size_t n)
{
	struct sense x = { .s = s, .known = known, .f = f };
	struct ent *e;

	if (localclock_strays(&s->clock, &s->anchor))
		x.shift = localclock_ahead(&s->clock, &s->anchor);
	if (base_task(&x, found, n))
		return bad_ent(s, known, f, "its record is damaged");
	files_foreign_see(&x);
	e = make_ent(s, known, f->key, &x.t);
	e->kind = (uint8_t)f->kind;
	e->archived = f->archived;
	e->stamp = f->stamp;
	if (!known || known->dropped)
		e->stranger = !f->form.full;
	e->commit = f->form.commit; /* 0: foreign */
	return e;
}

/* --- files that are gone ------------------------------------------------------------------------ */

/* A program that removes a lock releases the task, and pawl keeps the task's data. A program that
 * removes any other file removes the task. A task that existed only as a foreign lock goes with its
 * lock. */
static const struct ent *files_foreign_vanished(struct files *s, const struct ent *known)
{
	struct sense x = { .s = s, .known = known };
	struct ent *e;

	if (!known || known->dropped || known->kind == FILE_NONE)
		return known;
	if (known->kind == FILE_LOCK && !known->stranger && known->has_body &&
	    !task_unpack(known->hot, &x.t, &s->view.arena) &&
	    !task_unpack(known->body, &x.t, &s->view.arena)) {
		int64_t now = s->changing ? s->now : localclock_now(&s->clock, &s->anchor);

		files_foreign_unlock(&x, now);
		files_foreign_edited(&x, now);
		e = make_ent(s, known, known->key, &x.t);
		e->kind = FILE_TASK;
		e->rewrite = true;
		return e;
	}
	e = files_ent_copy(&s->view, known);
	e->found = e->dropped = true;
	e->was = known;
	return e;
}

bool files_in_place(const struct found *f, const struct ent *known)
{
	return known && !known->dropped && f->kind == known->kind && f->archived == known->archived;
}

static bool is_as_known(const struct ent *known, const struct found *f)
{
	return files_in_place(f, known) && files_stamp_eq(&known->stamp, &f->stamp);
}

/* A file that counts outweighs a bad one. Otherwise the kind and the folder decide. */
static bool files_foreign_outweighs(const struct found *f, const struct found *other)
{
	if (!other || !f->bad != !other->bad)
		return !other || !f->bad;
	return files_foreign_weight(f) > files_foreign_weight(other);
}

static const struct ent *from_best(struct files *s, const struct ent *known, const struct found *f,
				   struct found *found, size_t n)
{
	if (!f)
		return files_foreign_vanished(s, known);
	if (is_as_known(known, f))
		return known;
	if (f->bad && known && known->kind == FILE_LOCK && f->kind == FILE_LOCK) {
		s->strange = true; /* a program may be writing the lock, so check again next time */
		return known;
	}
	return f->bad ? bad_ent(s, known, f, f->bad) : from_file(s, known, f, found, n);
}

const struct ent *files_understand(struct files *s, const struct ent *known, struct found *found,
				   size_t n)
{
	const struct found *f = NULL;
	const struct ent *e;
	bool occupied = false;

	for (size_t i = 0; i < n; i++) {
		bool other = !str_eq(found[i].id, known ? known->ix.id : found[0].id);

		if (files_left_over(&found[i], known) && !files_in_place(&found[i], known))
			continue;
		s->strange |= other || found[i].bad;
		if (other && !known)
			return bad_ent(s, known, &found[i],
				       "the name of another file differs only in case");
		if (!other && files_foreign_outweighs(&found[i], f))
			f = &found[i];
		occupied |= found[i].bad && found[i].kind == FILE_LOCK && !found[i].archived;
	}
	e = from_best(s, known, f, found, n);
	if (e)
		((struct ent *)e)->occupied = occupied && f && !f->bad;
	return e;
}

/* --- tasks that wait for others ----------------------------------------------------------------- */

static void add_all(struct recount *c, struct view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct ent scratch;
		const struct ent *e = files_peek(v, i, &scratch);

		if (!e->dropped)
			recount_add(c, e->key, e->ix.parent, e->ix.status);
	}
}

static void files_foreign_recount(struct files *s, struct recount *counts, struct ent *e)
{
	struct arena *a = &s->view.arena;
	struct task t = { 0 };
	struct index ix;
	struct str hot;
	struct ent *c;

	if (!e || e->kind == FILE_NONE || e->dropped || e->bad || task_unpack(e->hot, &t, a))
		return;
	if (!counts->n)
		add_all(counts, &s->view);
	(void)recount_task(counts, e->key, e->ix.depends, &t);
	hot = task_part(&t, HOT, a);
	if (str_eq(hot, e->hot))
		return;
	c = files_ent_copy(&s->view, e);
	c->hot = hot;
	if (!c->found) {
		c->found = true;
		c->was = e;
	}
	c->rewrite = c->rewrite || c->commit; /* a foreign file stays as it is */
	s->base.env.rules->index(&t, &ix, a); /* the hot part determines the next two fields */
	c->ix.lane = ix.lane;
	c->ix.eligible_at = ix.eligible_at;
	files_set(&s->view, c);
}

static bool waits_for_moved(struct view *v, const struct ent *e)
{
	for (size_t i = 0; i < e->ix.depends.n; i++) {
		const struct ent *dep = files_find(v, e->ix.depends.v[i]);

		if (!dep || dep->moved)
			return true;
	}
	return false;
}

void files_recount(struct files *s)
{
	struct recount counts = { .rules = s->base.env.rules };
	struct view *v = &s->view;

	for (size_t i = 0; i < v->n; i++) {
		struct ent scratch;
		const struct ent *e = files_peek(v, i, &scratch);

		if (e->moved && e->ix.parent.n)
			files_foreign_recount(s, &counts, files_find(v, e->ix.parent));
		if (e->ix.depends.n && waits_for_moved(v, e))
			files_foreign_recount(s, &counts, files_at(v, i));
		else if (e->moved && e->was) /* it may have had sub-tasks, so recount it, too */
			files_foreign_recount(s, &counts, files_at(v, i));
	}
	recount_free(&counts);
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].e)
			v->v[i].e->moved = false;
}
