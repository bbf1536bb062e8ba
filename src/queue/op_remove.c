#include "core/validate.h"
#include "core/counts.h"
#include "core/lease.h"
#include "queue/queue_private.h"

static int refuse_needed(struct act *w, const struct loaded *l, struct strs keys, const char *why)
{
	struct str first = bad_name(keys.v[0], w->call.arena);

	return act_refuse(w, MISCONFIGURED,
			  arena_printf(w->call.arena, "%zu task%s %s %.*s, such as %.*s", keys.n,
				       keys.n == 1 ? "" : "s", why, STRF(l->task.id), STRF(first)),
			  arena_printf(w->call.arena,
				       "pawl cancel keeps these links; pawl remove %.*s --force "
				       "removes them, too",
				       STRF(l->task.id)));
}

static struct strs without_key(struct act *w, struct strs list, struct str key)
{
	struct strs out = { arena_array(w->call.arena, struct str, list.n), 0 };

	for (size_t i = 0; i < list.n; i++)
		if (!str_eq(task_key(w->call.arena, list.v[i]), key))
			out.v[out.n++] = list.v[i];
	return out;
}

/* A dependent of an unfinished task may not be able to start without it: a person must decide. */
static int cut_dependents(struct act *w, struct loaded *l, struct strs keys)
{
	for (size_t i = 0; i < keys.n; i++) {
		struct loaded *d;
		int r = act_load_key(w, keys.v[i], &d);
		bool stuck;

		if (r == BAD)
			continue;
		if (r)
			return r;
		d->task.depends = without_key(w, d->task.depends, l->key);
		graph_dep_moved(&d->task, l->was, 0);
		act_edited(w, d);
		stuck = l->was != DONE && (d->task.status == READY || d->task.status == BACKLOG);
		if (stuck) {
			d->task.status = NEEDS_HELP;
			d->task.blocker_reason = arena_printf(
				w->call.arena, "its dependency %.*s was removed", STRF(l->task.id));
		}
		act_log(w, d, stuck ? "needs_help" : "undepends", l->task.id);
	}
	return 0;
}

static int cut_children(struct act *w, struct strs keys)
{
	for (size_t i = 0; i < keys.n; i++) {
		struct loaded *child;
		int r = act_load_key(w, keys.v[i], &child);

		if (r == BAD)
			continue;
		if (r)
			return r;
		child->task.parent = STR("");
		act_edited(w, child);
	}
	return 0;
}

static int may_remove(struct act *w, struct loaded *l, struct strs *deps, struct strs *subs)
{
	struct query by_dep = { .depends_on = l->key }, by_parent = { .parent = l->key };
	int r = act_keys(w, &by_dep, deps);

	if (!r)
		r = act_keys(w, &by_parent, subs);
	if (r || w->call.rq->force)
		return r;
	if (deps->n)
		return refuse_needed(w, l, *deps, deps->n == 1 ? "depends on" : "depend on");
	if (subs->n)
		return refuse_needed(w, l, *subs,
				     subs->n == 1 ? "is a sub-task of" : "are sub-tasks of");
	return 0;
}

/* --- records that cannot be used ------------------------------------------------------------------- */

/* Recovers the reliable parts of a bad task: the id in its key, and the status in its index. */
static struct loaded *bad_salvage(struct act *w, const struct record *rec)
{
	struct loaded *l = arena_new(w->call.arena, struct loaded);
	struct str id = rec->key;

	l->key = arena_str(w->call.arena, rec->key);
	if (!key_fault(rec->key) && str_cut_prefix(&id, STR("task/")) && !id_fault(id) &&
	    str_eq(rec->key, task_key(w->call.arena, id)))
		l->task.id = arena_str(w->call.arena, id);
	l->was = rec->ix.status > 0 && rec->ix.status < STATUS_END ? rec->ix.status : READY;
	return l;
}

static int cut_links(struct act *w, struct loaded *l)
{
	struct query by_dep = { .depends_on = l->key }, by_parent = { .parent = l->key };
	struct strs deps = { 0 }, subs = { 0 };
	int r = act_keys(w, &by_dep, &deps);

	if (!r)
		r = act_keys(w, &by_parent, &subs);
	if (!r)
		r = cut_dependents(w, l, deps);
	return r ? r : cut_children(w, subs);
}

int bad_remove(struct act *w, struct str key)
{
	struct event ev = { .name = STR("removed"),
			    .agent = w->call.rq->agent,
			    .run = w->call.rq->run };
	struct record *rec;
	struct loaded *l;
	const char *fault;
	int r = edit_get(w->e, key, &rec);

	if (r)
		return r;
	fault = record_fault(rec, w->call.arena);
	l = bad_salvage(w, rec);
	*w->ans = (struct answer){ .now = w->e->now };
	w->ans->task = arena_new(w->call.arena, struct task);
	*w->ans->task = (struct task){ .id = bad_name(key, w->call.arena),
				       .status = l->was,
				       .class_rank = STANDARD };
	if (l->task.id.n) {
		r = cut_links(w, l);
		number_put(w, gone_key(w, l), FENCE_UNKNOWN);
	}
	ev.task = l->task.id;
	ev.text = arena_printf(w->call.arena, "a record that could not be used: %s", fault);
	act_event(w, &ev);
	edit_drop(w->e, l->key);
	w->writes++;
	return r;
}

static int remove_handle(struct act *w)
{
	struct record *rec;
	struct str key;
	int r = bad_find(NULL, w->e, w->call.rq->id, &key, w->call.arena);

	if (!r)
		r = edit_get(w->e, key, &rec);
	if (r < 0)
		return r;
	if (r > 0 || !record_fault(rec, w->call.arena)) {
		not_found(w->ans, w->call.rq->id, w->call.arena);
		return REFUSED;
	}
	return w->call.rq->force ? bad_remove(w, key) : bad_refuse(w->ans, rec, w->call.arena);
}

/* To end another's lock needs a reason; to cut links does not. */
static int op_remove_override(struct act *w, struct loaded *l)
{
	if (!override_is(&l->task, &w->call))
		return 0;
	if (!str_trim(w->call.rq->reason).n)
		return act_refuse(w, USAGE,
				  arena_printf(w->call.arena,
					       "%.*s is held by %.*s: --force needs a reason for "
					       "the log",
					       STRF(l->task.id), STRF(l->task.lock.holder)),
				  arena_printf(w->call.arena,
					       "pawl remove %.*s --force --reason TEXT",
					       STRF(l->task.id)));
	override_log(&l->task, &w->call);
	return act_decided(w, l);
}

int do_remove(struct act *w)
{
	struct strs deps = { 0 }, subs = { 0 };
	struct loaded *l;
	int r;

	if (bad_handle_is(w->call.rq->id))
		return remove_handle(w);
	r = act_load(w, w->call.rq->id, &l);
	if (r == BAD && w->call.rq->force)
		return bad_remove(w, task_key(w->call.arena, w->call.rq->id));
	if (r)
		return r;
	act_answer(w, l);
	rules_apply(OP_REMOVE, &l->task, &w->call);
	if (w->call.code != SUCCESS)
		return act_decided(w, l);
	r = may_remove(w, l, &deps, &subs);
	if (!r)
		r = op_remove_override(w, l);
	if (!r)
		r = cut_dependents(w, l, deps);
	if (!r)
		r = cut_children(w, subs);
	if (!r)
		r = leave_parent(w, l);
	if (r)
		return r;
	act_log(w, l, "removed", w->call.rq->reason);
	number_put(w, gone_key(w, l), l->task.fence);
	act_drop(w, l);
	return 0;
}
