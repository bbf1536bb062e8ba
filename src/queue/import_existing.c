/*
 * What an import does to tasks that exist already: skip them, update their own fields, merge the fields
 * that changed in the other program, or refuse them. Locks, counts and the claim history stay. A fence
 * never goes back.
 */
#include "core/counts.h"
#include "core/lease.h"
#include "queue/import_private.h"
#include "format/origin.h"

/* Imports only the task's own fields. The lock and the counts stay. The claim history stays,
 * too, because a file from another program often lacks it. */
static void take_fields(struct task *t, const struct task *from, int64_t now)
{
	struct task old = *t;

	*t = *from;
	import_complete(t, now);
	t->lock = old.lock;
	t->last = old.last;
	t->last_holder = old.last_holder;
	t->over = old.over;
	t->chain = old.chain;
	t->last_ttl = old.last_ttl;
	t->free_at = old.free_at;
	t->last_expires_at = old.last_expires_at;
	t->open_subs = old.open_subs;
	t->parent = old.parent;
	if (!from->created_at)
		t->created_at = old.created_at;
	if (!from->first_started_at)
		t->first_started_at = old.first_started_at;
	if (t->attempts < old.attempts)
		t->attempts = old.attempts;
	if (t->fence < old.fence)
		t->fence = old.fence;
	if (t->version <= old.version)
		t->version = old.version + 1;
}

static int move_parent(struct importing *x, struct act *w, struct loaded *l, struct str parent,
		       struct sources *sources)
{
	struct loaded *p;
	int r;

	if (str_eq(task_key(w->call.arena, parent), task_key(w->call.arena, l->task.parent)))
		return 0;
	r = leave_parent(w, l);
	l->task.parent = parent;
	if (r || !parent.n)
		return r;
	r = act_load(w, parent, &p);
	if (r)
		return import_passed_on(x, w, r);
	p->dirty |= graph_sub_moved(&p->task, 0, l->was);
	import_add_source(w, sources, p->key);
	return 0;
}

/* Keeps the changes that were made in this queue. *changed: the import has something new. */
static int import_existing_merge(struct importing *x, struct act *w, const struct loaded *l,
				 struct parcel *p, bool *changed)
{
	enum origin found = origin_merge(&l->task, &p->task, w->call.arena);

	*changed = found == ORIGIN_CHANGED || p->n_comments;
	if (found != ORIGIN_OTHER)
		return 0;
	return import_refuse(
		x, w, CONFLICT,
		arena_printf(w->call.arena, "task %.*s exists already and is another task: %.*s",
			     STRF(l->task.id), STRF(l->task.title)),
		STR("--update changes only tasks that came from the same program; --skip leaves this one as it is"));
}

static int import_existing_update(struct importing *x, struct act *w, struct loaded *l,
				  struct parcel *p)
{
	struct sources sources = { .waits = true };
	struct query waiting = { .depends_on = l->key };
	struct strs keys = { 0 };
	int r = parcel_drop_known(w, l->key, p);

	if (!r && x->im->clash == CLASH_MERGE) {
		bool changed;

		r = import_existing_merge(x, w, l, p, &changed);
		if (!r && !changed) {
			x->im->skipped++;
			return 0;
		}
	}
	if (r)
		return r;
	if (lease_live(&l->task.lock, w->e->now) && l->task.status != BLOCKED)
		return import_refuse(x, w, CONFLICT,
				     arena_printf(w->call.arena, "%.*s is held by %.*s",
						  STRF(l->task.id), STRF(l->task.lock.holder)),
				     STR("import again when it is done, or with --skip"));
	take_fields(&l->task, &p->task, w->e->now);
	l->dirty = true;
	import_add_comments(w, l, p);
	act_log(w, l, "updated", STR("by an import"));
	r = move_parent(x, w, l, p->task.parent, &sources);
	if (!r)
		r = act_keys(w, &waiting, &keys);
	for (size_t i = 0; !r && i < keys.n; i++)
		import_add_source(w, &sources, keys.v[i]);
	if (!r && l->task.parent.n)
		import_add_source(w, &sources, task_key(w->call.arena, l->task.parent));
	if (!r)
		r = import_settle(x, w, l, &sources);
	x->im->updated++;
	x->im->comments += (int64_t)p->n_comments;
	return r;
}

int import_existing(struct importing *x, struct act *w, struct loaded *l, struct parcel *p)
{
	if (x->im->clash == CLASH_UPDATE || x->im->clash == CLASH_MERGE)
		return import_existing_update(x, w, l, p);
	if (x->im->clash == CLASH_SKIP) {
		x->im->skipped++;
		return 0;
	}
	return import_refuse(
		x, w, CONFLICT,
		arena_printf(w->call.arena, "task %.*s exists already", STRF(l->task.id)),
		STR("--skip keeps existing tasks unchanged; --update changes them"));
}
