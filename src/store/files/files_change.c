/*
 * Changes the queue: takes the gate, runs the edits, appends one frame to the state, then writes
 * the task files. The frame is the commit. A crash before the commit leaves the queue unchanged. If
 * the process dies after the commit, the next writer finishes the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/when.h"
#include "format/record_form.h"
#include "store/files/files.h"

#define TRIES 5       /* attempts before giving up on names that other programs keep taking */
#define MANY_FOUND 16 /* commit this many records found in the folder even without an edit */

/* --- the gate ----------------------------------------------------------------------------------- */

static int still_there(struct files *s)
{
	struct stat st;

	if (stat(s->path, &st) == 0 && st.st_ino == s->place.st_ino && st.st_dev == s->place.st_dev)
		return 0;
	return store_fail(&s->base.env, STORE_UNREACHABLE, NULL,
			  "another program removed or replaced %s while pawl had it open", s->path);
}

int files_lock(struct files *s)
{
	const struct store_env *env = &s->base.env;
	int rc = still_there(s);

	if (rc < 0)
		return rc;
	if (s->gate.fd < 0)
		rc = gate_open_at(&s->gate, s->own, "gate", &s->place);
	if (rc == 0)
		rc = gate_lock(&s->gate, env->opt.timeout_ms,
			       env->opt.who.n ? env->opt.who : STR("a process"));
	if (rc == -ETIMEDOUT)
		return gate_busy(&s->gate, &s->base.env, s->path);
	return rc < 0 ? files_fail(s, rc, ".pawl/gate") : 0;
}

/* --- the set of writes -------------------------------------------------------------------------- */

struct step {
	struct ent *e, *old;
};

struct set {
	struct files *s;
	struct arena a; /* memory for the edits */
	uint64_t commit;
	struct step *steps;
	size_t n, room;
	struct buf log;
	struct ent **items;
	size_t n_items, items_room;
	bool dirty; /* another program has changed the folder */
};

static int too_long(struct files *s, const struct record *r)
{
	const struct index *ix = &r->ix;

	if (r->key.n > 200 || ix->id.n > UINT16_MAX || ix->holder.n > UINT16_MAX ||
	    ix->token.n > UINT16_MAX || ix->parent.n > UINT16_MAX || ix->type.n > UINT16_MAX ||
	    ix->labels.n > UINT16_MAX || ix->depends.n > UINT16_MAX)
		return store_fail(&s->base.env, STORE_UNSUPPORTED, NULL,
				  "a field of %.*s is too long for a files: store", STRF(r->key));
	return 0;
}

static int old_body(struct set *w, const struct ent *old, struct record *r)
{
	int rc;

	if (r->body_changed)
		return 0;
	r->body = (struct str){ 0 };
	if (!old || old->dropped || old->bad || index_gone(&old->ix, w->s->now))
		return 0;
	rc = files_body(w->s, old, &w->a, &r->body);
	return rc > 0 ? files_fail(w->s, -ENOENT, "a task's file") : rc;
}

static void add_step(struct set *w, struct ent *e, struct ent *old)
{
	if (w->n == w->room)
		w->steps = mem_grow(w->steps, (w->room = w->room * 2 + 16) * sizeof(*w->steps));
	w->steps[w->n++] = (struct step){ e, old };
}

/* Returns the record as it was before this change. */
static const struct ent *files_change_before(const struct set *w, const struct ent *old)
{
	return old && old->rev > w->s->view.seq ? old->was : old;
}

static struct replaced files_change_replaced(const struct ent *was)
{
	if (!was || was->dropped || was->bad)
		return (struct replaced){ 0 };
	return (struct replaced){ was->stamp, was->kind, was->archived };
}

static int files_change_stage(struct set *w, const struct edit_item *it)
{
	struct view *v = &w->s->view;
	struct ent *old = files_find(v, it->rec.key), e = { .key = it->rec.key };
	struct record r = it->rec;
	struct task t;
	int rc = too_long(w->s, &r);

	if (it->dropped && !old)
		return 0;
	if (rc == 0 && !it->dropped)
		rc = old_body(w, old, &r);
	if (rc < 0)
		return rc;
	e.rev = v->seq + 1;
	e.commit = w->commit;
	e.fresh = true;
	e.was = files_change_before(w, old);
	e.old = files_change_replaced(e.was);
	e.had = files_names(files_committed(e.was));
	if (it->dropped) {
		e.dropped = true;
		e.ix.id = old->ix.id;
	} else {
		e.ix = r.ix;
		e.hot = r.hot;
		e.body = r.body;
		e.has_body = true;
		e.kind = (uint8_t)files_form_kind(w->s->base.env.rules, &r, &t, &w->a);
		e.archived = e.kind != FILE_NONE && e.kind != FILE_LOCK && t.archived_at;
	}
	old = files_set(v, files_ent_copy(v, &e));
	add_step(w, files_find(v, it->rec.key), old);
	return 0;
}

static int run_edits(struct set *w, struct change *changes, size_t n)
{
	struct edit_entry **last = &w->s->base.uncommitted;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		struct edit e;

		rc = edit_run(&e, &w->s->base, &w->a, w->s->now, &changes[i]);
		if (rc != 0)
			continue;
		for (const struct edit_item *it = e.items; rc == 0 && it; it = it->next)
			rc = files_change_stage(w, it);
		for (const struct edit_entry *l = e.entries; l; l = l->next)
			files_log_add(&w->log, &l->entry);
		if (e.entries) {
			*last = e.entries;
			last = e.last;
		}
	}
	w->s->base.uncommitted = NULL;
	return rc < 0 ? rc : 0;
}

static void files_change_undo(struct set *w)
{
	struct view *v = &w->s->view;

	for (size_t i = w->n; i-- > 0;) {
		if (w->steps[i].old)
			files_set(v, w->steps[i].old);
		else
			files_unset(v, w->steps[i].e->key);
	}
	for (size_t i = 0; i < w->n_items; i++)
		files_take_back(w->s, w->items[i]);
	w->n = w->n_items = 0;
}

/* --- the content of the frame ------------------------------------------------------------------- */

static void add_item(struct set *w, struct ent *e)
{
	if (w->n_items == w->items_room)
		w->items = mem_grow(w->items, (w->items_room = w->items_room * 2 + 16) *
						      sizeof(struct ent *));
	w->items[w->n_items++] = e;
}

static int add_found(struct set *w, struct ent *e)
{
	struct view *v = &w->s->view;
	struct ent *c = files_ent_copy(v, e);
	int rc = 0;

	c->found = false;
	c->fresh = true;
	c->was = e;
	c->rev = v->seq + 1;
	if (c->rewrite && !c->has_body)
		rc = files_body(w->s, e, &v->arena, &c->body);
	if (rc)
		/* another program is changing the file; the next change commits the record */
		return rc < 0 ? rc : 0;
	if (c->rewrite) {
		c->has_body = true;
		c->commit = w->commit;
	}
	add_item(w, c);
	return 0;
}

static bool is_found(const struct ent *e)
{
	return e && e->found && !e->bad;
}

static int files_change_collect(struct set *w)
{
	struct view *v = &w->s->view;
	int rc = 0;

	for (size_t i = 0; i < w->n; i++)
		if (files_find(v, w->steps[i].e->key) == w->steps[i].e)
			add_item(w, w->steps[i].e);
	for (size_t i = 0; rc == 0 && i < v->n; i++)
		if (is_found(v->v[i].e))
			rc = add_found(w, v->v[i].e);
	return rc;
}

static size_t count_found(const struct view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += is_found(v->v[i].e);
	return n;
}

/* --- the commit --------------------------------------------------------------------------------- */

static bool needs_file(const struct set *w, const struct ent *e)
{
	return !e->dropped && e->kind != FILE_NONE && e->commit == w->commit;
}

static int files_change_prepare(struct set *w, struct ent *e, size_t number)
{
	struct record r = { .key = e->key, .ix = e->ix, .hot = e->hot, .body = e->body };
	struct task t;

	if (!needs_file(w, e))
		return 0;
	if (files_form_kind(w->s->base.env.rules, &r, &t, &w->a) == FILE_NONE)
		return files_fail(w->s, -EIO, "a task's file");
	return files_prepare(w->s, e, &t, number);
}

static bool has_lock_file(const struct ent *e)
{
	return e && !e->dropped && e->kind == FILE_LOCK;
}

static bool has_same_name(const struct ent *e, const struct ent *was)
{
	return was && !was->dropped && was->kind == e->kind && was->archived == e->archived;
}

static int prepare_all(struct set *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->n_items; i++)
		rc = files_change_prepare(w, w->items[i], i);
	for (size_t i = 0; rc == 0 && i < w->n_items; i++) {
		struct ent *e = w->items[i];

		if (e->prepared && e->kind == FILE_LOCK && !has_lock_file(e->was))
			rc = files_reserve(w->s, e);
		else if (e->prepared && !has_same_name(e, e->was))
			rc = files_check_name(w->s, e);
	}
	return rc;
}

/* A trial must fail where files_change_commit() would, but must not make a file. */
static int check_names(struct set *w)
{
	int rc = files_change_collect(w);

	for (size_t i = 0; rc == 0 && i < w->n_items; i++) {
		const struct ent *e = w->items[i];

		if (needs_file(w, e) && !has_same_name(e, e->was))
			rc = files_check_name(w->s, w->items[i]);
	}
	return rc;
}

/* If the folder's mtime is not the one that pawl set or last saw, another program has changed the
 * folder. */
static void expect_folder(struct set *w, int64_t mtime)
{
	w->dirty |= files_folder_time(w->s) != mtime;
}

/* Writes the committed files. If some fail, the note keeps the old number, so the next writer
 * retries them. */
static void files_change_follow(struct set *w, bool synced)
{
	struct files *s = w->s;
	bool done = s->applied == s->view.seq - 1;
	int64_t mark;

	for (size_t i = 0; i < w->n_items; i++) {
		int r = files_apply(s, w->items[i], w->items[i]->was);

		w->dirty |= r != 0;
		done &= r >= 0;
	}
	mark = files_mark_folder(s);
	if (!synced || s->unsynced)
		files_write_note(s, 0, FILES_UNSYNCED);
	else
		files_write_note(s, w->dirty || s->strange ? 0 : mark,
				 done ? s->view.seq : s->applied);
	s->folder = 0;
}

/* 1: another program took a name first; retry the whole change. */
static int files_change_commit(struct set *w)
{
	struct files *s = w->s;
	int64_t mark;
	int rc;

	expect_folder(w, s->checked);
	rc = files_change_collect(w);
	if (rc == 0)
		rc = prepare_all(w);
	if (rc)
		return rc;
	mark = files_mark_folder(s);
	rc = files_append(s, w->items, w->n_items, buf_str(&w->log));
	if (rc < 0 && s->base.env.err->applied == 'n')
		return rc;
	if (files_refresh(s, NULL) == 0) { /* on failure, the next writer writes the files */
		if (mark)
			expect_folder(w, mark);
		files_change_follow(w, rc == 0);
	}
	w->n = w->n_items = 0;
	return rc;
}

static int files_change_attempt(struct files *s, struct change *changes, size_t n, bool again)
{
	struct set w = { .s = s, .commit = files_random() | 1, .log = BUF_MAX(UINT32_MAX) };
	int rc = files_begin_change(s, again);

	if (rc == 0)
		rc = run_edits(&w, changes, n);
	if (rc == 0 && (w.n || w.log.n || count_found(&s->view) >= MANY_FOUND))
		rc = s->base.env.trial ? check_names(&w) : files_change_commit(&w);
	files_change_undo(&w); /* nothing to undo after a commit */
	s->changing = false;
	free(w.steps);
	free(w.items);
	buf_free(&w.log);
	arena_free(&w.a);
	return rc;
}

int files_modify(struct store *base, struct change *changes, size_t n)
{
	struct files *s = files_of(base);
	int rc = store_may_write(&base->env, s->path, s->changing || s->depth);

	if (rc == 0)
		rc = files_lock(s);
	if (rc < 0)
		return rc;
	for (int i = 0; i < TRIES; i++) {
		rc = files_change_attempt(s, changes, n, i > 0);
		if (rc <= 0)
			break;
	}
	gate_unlock(&s->gate);
	if (rc > 0)
		return store_fail(&base->env, STORE_BUSY, "try again",
				  "another program keeps making locks in %s before pawl can",
				  s->path);
	return rc;
}
