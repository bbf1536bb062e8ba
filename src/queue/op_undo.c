/*
 * Keeps the state before each change that can be undone, in the change's own commit, and restores it. The record undo/ID
 * belongs to the last such change of the task: a later one replaces it, an undo drops it, and after 30 days it is absent.
 * An undo passes through the same checks as any change: no cycle, no live lock of another agent, no record that pawl
 * would reject.
 */
#include "core/undo_rules.h"

#include "core/counts.h"
#include "core/lease.h"
#include "core/role.h"
#include "format/record_form.h"
#include "format/undo_form.h"
#include "queue/queue_private.h"

/* Enough to find the last change behind some comments. */
#define EVENTS_SEEN 50

/* A change of this request that an undo can take back. */
struct undo_note {
	struct undo_note *next;
	const struct loaded *l;
	struct undo undo;
};

struct str undo_key(struct str task_key, struct arena *a)
{
	struct str id = task_key;

	(void)str_cut(&id, '/');
	return arena_printf(a, "undo/%.*s", STRF(id));
}

static void undo_warn(struct act *w, struct str text)
{
	w->ans->warnings = arena_append(w->call.arena, w->ans->warnings, text);
}

static struct undo *undo_of(const struct record *rec, struct arena *a)
{
	struct undo *u = arena_new(a, struct undo);

	(void)undo_unpack_head(arena_str(a, rec->hot), u, a);
	(void)undo_unpack_rest(arena_str(a, rec->body), u, a);
	return u;
}

/* Reads the record. *out NULL: there is none. REFUSED: it cannot be used. */
static int undo_read(struct act *w, struct str key, struct undo **out)
{
	struct arena *a = w->call.arena;
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	*out = NULL;
	if (r)
		return r < 0 ? r : 0;
	if (record_fault(rec, a))
		return bad_refuse(w->ans, rec, a);
	*out = undo_of(rec, a);
	return 0;
}

/* --- keeping -------------------------------------------------------------------------------------- */

void undo_begin(struct act *w, const struct loaded *l)
{
	enum op op = undo_op(w->call.rq, l->task.status);
	struct undo_note *n;

	if (op == OP_NONE || w->call.policy->locks_only)
		return;
	n = arena_new(w->call.arena, struct undo_note);
	n->l = l;
	n->next = w->notes;
	w->notes = n;
	n->undo = (struct undo){ .op = op,
				 .role = act_role_needed(w, l),
				 .at = w->e->now,
				 .agent = w->call.rq->agent,
				 .was = arena_new(w->call.arena, struct task) };
	*n->undo.was = l->task;
}

static bool undo_depends(const struct task *t, struct str id)
{
	for (size_t i = 0; i < t->depends.n; i++)
		if (str_eq_nocase(t->depends.v[i], id))
			return true;
	return false;
}

/* Finds the link to `id` that a change of another task removed. */
static enum undo_link cut_link(const struct task *old, const struct task *now, struct str id)
{
	if (undo_depends(old, id) && !undo_depends(now, id))
		return UNDO_DEPENDS;
	return str_eq_nocase(old->parent, id) && !now->parent.n ? UNDO_PARENT : UNDO_NO_LINK;
}

void undo_touched(struct act *w, const struct loaded *l)
{
	struct undo *u = &w->notes->undo;
	enum undo_link link = cut_link(&l->old, &l->task, u->was->id);

	if (l == w->notes->l || !l->old.status ||
	    (l->old.status == l->task.status && link == UNDO_NO_LINK))
		return;
	u->others = arena_grow(w->call.arena, u->others, u->n_others, sizeof(*u->others));
	u->others[u->n_others++] =
		(struct undo_other){ .id = l->task.id,
				     .blocker_reason = l->old.blocker_reason,
				     .digest = undo_digest(&l->task, w->call.arena),
				     .status = l->old.status,
				     .updated_at = l->old.updated_at,
				     .link = link };
}

/* Calls that were made together, such as those of `edit`, are one change. A damaged record is replaced. */
static int undo_join(struct act *w, struct str key, struct undo *u)
{
	struct undo *first;
	struct record *rec;
	int r = w->joined ? edit_get(w->e, key, &rec) : 1;

	if (r || record_fault(rec, w->call.arena))
		return r < 0 ? r : 0;
	first = undo_of(rec, w->call.arena);
	if (first->at != u->at || !str_eq(first->agent, u->agent) ||
	    !str_eq(first->digest, undo_digest(u->was, w->call.arena)))
		return 0;
	if (first->op != u->op)
		u->op = OP_UPDATE;
	if (first->role > u->role)
		u->role = first->role;
	u->was = first->was;
	return 0;
}

static int undo_put(struct act *w, struct undo_note *n)
{
	struct record *rec = arena_new(w->call.arena, struct record);
	struct undo *u = &n->undo;
	int r = 0;

	*rec = (struct record){ .key = undo_key(n->l->key, w->call.arena),
				.ix = { .lane = LANE_GOING,
					.eligible_at = u->at + UNDO_KEPT_MS,
					.created_at = u->at },
				.body_changed = true };
	if (u->op != OP_REMOVE) {
		r = undo_join(w, rec->key, u);
		u->digest = undo_digest(&n->l->task, w->call.arena);
	}
	rec->hot = undo_pack_head(u, w->call.arena);
	rec->body = u->n_others > UNDO_OTHERS_MAX ? STR("") : undo_pack_rest(u, w->call.arena);
	if (rec->body.n) {
		edit_put(w->e, rec);
	} else {
		edit_drop(w->e, rec->key);
		undo_warn(w, STR("this change touches too much to be undone"));
	}
	w->writes++;
	return r;
}

int undo_keep(struct act *w)
{
	int r = 0;

	for (struct undo_note *n = w->notes; !r && n; n = n->next)
		if (n->undo.op == OP_REMOVE || n->l->task.version != n->undo.was->version)
			r = undo_put(w, n);
	return r;
}

/* --- finding --------------------------------------------------------------------------------------- */

struct undoing {
	struct act *w;
	struct str key; /* of the record */
	struct loaded *l;
	struct undo *undo;
	struct undo_facts facts;
	bool removed; /* the task does not exist now */
};

struct undo_newest {
	struct act *w;
	struct str id;
	int64_t at;
};

static int undo_newer(const struct record *r, void *ctx)
{
	struct undo_newest *x = ctx;
	struct str id = r->key;
	struct undo u = { 0 };

	if (!str_cut_prefix(&id, UNDO_SPACE) || undo_unpack_head(r->hot, &u, x->w->call.arena) ||
	    !str_eq(u.agent, x->w->call.rq->agent) || u.at < x->at ||
	    (u.at == x->at && index_id_cmp(id, x->id) < 0))
		return 0;
	x->at = u.at;
	x->id = arena_str(x->w->call.arena, id);
	return 0;
}

/* Finds the task of the caller's last change that undo still remembers. */
static int last_changed(struct act *w, struct str *id)
{
	struct query others = { .pick = PICK_OTHERS };
	struct undo_newest x = { .w = w };
	int r = edit_scan(w->e, &others, undo_newer, &x);

	*id = x.id;
	if (r || x.id.n)
		return r;
	return act_refuse(w, MISCONFIGURED,
			  arena_printf(w->call.arena, "there is no change of %.*s to undo",
				       STRF(w->call.rq->agent)),
			  STR("pawl help undo lists the calls that can be undone"));
}

struct last_event {
	struct arena *arena;
	struct event *out;
};

static int undo_see_event(const struct entry *en, void *ctx)
{
	struct last_event *x = ctx;
	struct event ev;

	if (event_keep(en, &ev, x->arena) || str_is(ev.name, "comment"))
		return 0;
	x->out = arena_new(x->arena, struct event);
	*x->out = ev;
	return 0;
}

static int last_event(struct act *w, struct str key, const struct event **out)
{
	struct entry_query q = { .key = key, .last = EVENTS_SEEN };
	struct last_event x = { .arena = w->call.arena };
	int r = edit_entries(w->e, &q, undo_see_event, &x);

	*out = x.out;
	return r;
}

static int undo_find(struct undoing *x)
{
	struct act *w = x->w;
	struct str id = w->call.rq->id, key;
	int r = HAS(w->call.rq, id) ? 0 : last_changed(w, &id);

	if (r)
		return r;
	key = task_key(w->call.arena, id);
	x->key = undo_key(key, w->call.arena);
	r = undo_read(w, x->key, &x->undo);
	if (!r)
		r = act_load_key(w, key, &x->l);
	x->removed = r == 1 && x->undo && x->undo->op == OP_REMOVE;
	if (r && !x->removed) /* for its refusal */
		return r < 0 || w->ans->code != SUCCESS ? r : act_load(w, id, &x->l);
	if (x->removed)
		x->l = act_new_key(w, key, x->undo->was->id);
	x->facts.same = x->removed || (x->undo && str_eq(x->undo->digest,
							 undo_digest(&x->l->task, w->call.arena)));
	return last_event(w, key, &x->facts.last);
}

/* --- checks ---------------------------------------------------------------------------------------- */

/* An approval stays once a task that waited for it was claimed. */
static int check_waited(struct undoing *x)
{
	struct act *w = x->w;
	struct query q = { .depends_on = x->l->key };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	if (!r && x->l->task.parent.n)
		keys = arena_append(w->call.arena, keys,
				    task_key(w->call.arena, x->l->task.parent));
	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *d;

		r = act_load_key(w, keys.v[i], &d);
		if (!r && undo_relied_on(&d->task, x->undo)) {
			undo_refuse_relied(&w->call, &x->l->task, &d->task);
			return act_decided(w, x->l);
		}
		r = r < 0 ? r : 0;
	}
	return r;
}

/* If only the lock of a dead process refused the undo, releases it. */
static bool undo_over_dead(struct undoing *x)
{
	struct call *c = &x->w->call;

	if (x->removed || !c->by_lock || !lock_died_here(&x->l->task.lock))
		return false;
	call_reset(c);
	(void)abandon_by_dead(&x->l->task, c);
	x->undo->was->abandoned = x->l->task.abandoned; /* the undo keeps the count */
	return true;
}

static int undo_check(struct undoing *x)
{
	struct act *w = x->w;
	const struct task *t = x->removed ? x->undo->was : &x->l->task;

	call_reset(&w->call);
	if (!override_version(t, &w->call) ||
	    (!undo_allowed(t, x->undo, &x->facts, x->removed, &w->call) && !undo_over_dead(x))) {
		int r = act_decided(w, x->l);

		if (x->removed)
			w->ans->task = NULL;
		return r;
	}
	if (role_refuse(w->call.rq->role, undo_role(x->undo), w->ans, w->call.arena) != SUCCESS)
		return REFUSED;
	if (undo_unfinished(t, x->undo)) {
		refuse_subtasks(&w->call, t);
		return act_decided(w, x->l);
	}
	if (x->removed)
		return 0;
	x->facts.fields = changes_names(changes_of(t, x->undo->was, w->call.arena), w->call.arena);
	return undo_unapproves(t, x->undo) ? check_waited(x) : 0;
}

/* --- restoring --------------------------------------------------------------------------------------- */

static struct str no_cycle_text(struct undoing *x, struct str other)
{
	return arena_printf(x->w->call.arena,
			    "the undo would make %.*s and %.*s wait for each other",
			    STRF(x->undo->was->id), STRF(other));
}

static int drop_depend(struct act *w, struct loaded *l, struct str id)
{
	struct loaded *dep;
	int r = act_load_key(w, task_key(w->call.arena, id), &dep);

	l->task.depends = arena_without(w->call.arena, l->task.depends, id);
	if (!r)
		graph_dep_moved(&l->task, dep->task.status, 0);
	return r < 0 ? r : 0;
}

static int restore_depends(struct undoing *x)
{
	const struct task *was = x->undo->was;
	struct loaded *l = x->l;
	struct strs now = l->task.depends;
	int r = 0;

	for (size_t i = 0; !r && i < now.n; i++)
		if (!undo_depends(was, now.v[i]))
			r = drop_depend(x->w, l, now.v[i]);
	for (size_t i = 0; !r && i < was->depends.n; i++)
		r = add_depend(x->w, l, was->depends.v[i]);
	if (!r)
		l->task.depends = was->depends; /* in their old order */
	return r;
}

static void name_restored(struct act *w, const struct task *old, const struct task *now)
{
	for (size_t i = 0; i < w->call.n_events; i++)
		if (str_is(w->call.events[i].name, "undone"))
			w->call.events[i].changes = changes_of(old, now, w->call.arena);
}

static int restore_task(struct undoing *x)
{
	struct act *w = x->w;
	struct task old = x->l->task;
	int r = 0;

	undo_apply(&x->l->task, x->undo, &x->facts, &w->call);
	if (x->undo->op == OP_UPDATE)
		name_restored(w, &old, x->undo->was);
	(void)act_decided(w, x->l);
	if (!str_eq_nocase(old.parent, x->undo->was->parent))
		r = set_parent(w, x->l, x->undo->was->parent);
	if (!r)
		r = restore_depends(x);
	if (!r)
		settle_canceled(w, x->l);
	return r ? r : act_flush(w);
}

/* --- restoring a removed task -------------------------------------------------------------------------- */

/* The dependency was removed, too. If the caller did that, the caller can undo it first. */
static int depend_is_gone(struct undoing *x, struct str id)
{
	struct act *w = x->w;
	struct task *t = &x->l->task;
	struct undo *u;
	int r = undo_read(w, undo_key(task_key(w->call.arena, id), w->call.arena), &u);

	if (r)
		return r;
	if (u && u->op == OP_REMOVE && str_eq(u->agent, w->call.rq->agent))
		return act_refuse(w, MISCONFIGURED,
				  arena_printf(w->call.arena,
					       "%.*s depends on %.*s, which you removed, too",
					       STRF(t->id), STRF(id)),
				  arena_printf(w->call.arena, "restore that first: pawl undo %.*s",
					       STRF(id)));
	undo_warn(w, arena_printf(w->call.arena, "%.*s depended on %.*s, which is gone",
				  STRF(t->id), STRF(id)));
	if (t->status == READY || t->status == BACKLOG) {
		t->status = NEEDS_HELP;
		t->blocker_reason = arena_printf(w->call.arena, "its dependency %.*s was removed",
						 STRF(id));
	}
	return 0;
}

static int removed_depends(struct undoing *x)
{
	const struct strs was = x->undo->was->depends;
	struct task *t = &x->l->task;
	int r = 0;

	for (size_t i = 0; !r && i < was.n; i++) {
		struct loaded *dep;

		r = act_load_key(x->w, task_key(x->w->call.arena, was.v[i]), &dep);
		if (r > 0) {
			r = depend_is_gone(x, was.v[i]);
			continue;
		}
		t->depends = arena_append(x->w->call.arena, t->depends, dep->task.id);
		graph_dep_moved(t, 0, dep->task.status);
	}
	return r;
}

static int removed_parent(struct undoing *x)
{
	struct act *w = x->w;
	struct str id = x->undo->was->parent;
	struct loaded *parent;
	int r = id.n ? act_load_key(w, task_key(w->call.arena, id), &parent) : 1;

	if (r > 0 && id.n)
		undo_warn(w, arena_printf(w->call.arena, "its parent %.*s is gone", STRF(id)));
	if (r)
		return r < 0 ? r : 0;
	r = no_cycle(w, x->l->key, parent->key, no_cycle_text(x, parent->task.id));
	if (r)
		return r;
	x->l->task.parent = parent->task.id;
	x->l->dirty = true;
	parent->dirty |= graph_sub_moved(&parent->task, 0, x->l->task.status);
	return 0;
}

static int restore_removed(struct undoing *x)
{
	struct act *w = x->w;
	struct loaded *l = x->l;
	struct str key = gone_key(w, l), chain;
	int64_t fence;
	int r = old_fence(w, l, &fence);

	if (r)
		return r;
	/* The record of the fence stays: it tells a git store that the log begins before the task's first commit. */
	number_put(w, key, fence);
	chain = l->task.chain;
	undo_restore(&l->task, x->undo, fence);
	l->task.chain = chain;
	l->dirty = true;
	r = removed_depends(x);
	if (r)
		return r;
	act_log(w, l, "undone", STR("remove"));
	settle_canceled(w, l);
	r = act_flush(w); /* no_cycle() reads the write-set */
	return r ? r : removed_parent(x);
}

/* --- restoring other tasks -------------------------------------------------------------------------------- */

static int restore_link(struct undoing *x, struct loaded *d, int64_t link)
{
	struct act *w = x->w;
	struct loaded *l = x->l;
	bool sub = link == UNDO_PARENT;
	int r = no_cycle(w, sub ? d->key : l->key, sub ? l->key : d->key,
			 no_cycle_text(x, d->task.id));

	if (r)
		return r;
	if (sub) {
		d->task.parent = l->task.id;
		l->dirty |= graph_sub_moved(&l->task, 0, d->task.status);
	} else {
		d->task.depends = arena_append(w->call.arena, d->task.depends, l->task.id);
		graph_dep_moved(&d->task, 0, l->task.status);
	}
	return 0;
}

/* Can the link still be restored? */
static bool link_is_free(const struct undoing *x, const struct task *t, int64_t link)
{
	if (link == UNDO_PARENT)
		return !t->parent.n;
	return link == UNDO_DEPENDS && !undo_depends(t, x->l->task.id);
}

/* Gives the task its link back, and its status if nobody changed it since. */
static int restore_other(struct undoing *x, const struct undo_other *o)
{
	struct act *w = x->w;
	struct loaded *d;
	int r = act_load_key(w, task_key(w->call.arena, o->id), &d);
	bool same = !r && str_eq(o->digest, undo_digest(&d->task, w->call.arena));
	bool links = !r && (same || !status_ended(d->task.status)) &&
		     link_is_free(x, &d->task, o->link);

	if (r < 0)
		return r;
	if (!same)
		undo_warn(w, arena_printf(w->call.arena,
					  r ? "%.*s is gone"
					    : "%.*s has changed since and keeps its status",
					  STRF(o->id)));
	r = links ? restore_link(x, d, o->link) : 0;
	if (r || !(same || links))
		return r;
	if (same)
		undo_other(&d->task, o, &w->call);
	else
		act_edited(w, d);
	d->dirty = true;
	act_log(w, d, "undone", x->l->task.id);
	settle_canceled(w, d);
	return 0;
}

/* Sub-tasks come last: the check for cycles must see who waits for the task again. */
static int restore_others(struct undoing *x)
{
	int r = 0;

	for (int subs = 0; !r && subs < 2; subs++) {
		for (size_t i = 0; !r && i < x->undo->n_others; i++)
			if ((x->undo->others[i].link == UNDO_PARENT) == subs)
				r = restore_other(x, &x->undo->others[i]);
		if (!r)
			r = act_flush(x->w);
	}
	return r;
}

int do_undo(struct act *w)
{
	struct undoing x = { .w = w };
	int r;

	if (w->call.policy->locks_only)
		return act_refuse(w, MISCONFIGURED,
				  STR("a branch of lock files keeps no earlier state to restore"),
				  STR("the file of the task is in git: git log shows its changes"));
	r = undo_find(&x);
	if (!r)
		r = undo_check(&x);
	if (!r)
		r = x.removed ? restore_removed(&x) : restore_task(&x);
	if (!r)
		r = restore_others(&x);
	if (r)
		return r;
	edit_drop(w->e, x.key);
	w->writes++;
	act_answer(w, x.l);
	w->ans->undone = arena_new(w->call.arena, struct notice);
	*w->ans->undone =
		(struct notice){ .by = x.undo->agent,
				 .reason = str_c(op_words((enum op)x.undo->op, w->call.arena)),
				 .at = x.undo->at };
	return 0;
}
