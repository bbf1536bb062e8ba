#include "core/graph.h"
#include "core/lease.h"
#include "queue/act.h"

static int refuse_held_task(struct work *w, const struct loaded *l)
{
	return work_refuse(w, MISCONFIGURED,
			   arena_printf(w->arena, "%.*s is held by %.*s", STRF(l->task.id),
					STRF(l->task.lock.holder)),
			   arena_printf(w->arena,
					"pawl cancel ends it; pawl remove %.*s --force removes it "
					"all the same",
					STRF(l->task.id)));
}

static int refuse_needed(struct work *w, const struct loaded *l, struct strs keys, const char *why)
{
	struct loaded *first;
	int r = work_load_key(w, keys.v[0], &first);

	if (r)
		return r;
	return work_refuse(w, MISCONFIGURED,
			   arena_printf(w->arena, "%zu task%s %s %.*s, such as %.*s", keys.n,
					keys.n == 1 ? "" : "s", why, STRF(l->task.id),
					STRF(first->task.id)),
			   arena_printf(w->arena,
					"pawl cancel keeps the links; pawl remove %.*s --force "
					"cuts them",
					STRF(l->task.id)));
}

/* Those who waited for it cannot tell any more whether they may start: a person must look. */
static int cut_dependents(struct work *w, struct loaded *l, struct strs keys)
{
	for (size_t i = 0; i < keys.n; i++) {
		struct loaded *d;
		int r = work_load_key(w, keys.v[i], &d);
		bool stuck;

		if (r)
			return r;
		d->task.depends = arena_without(w->arena, d->task.depends, l->task.id);
		graph_dep_moved(&d->task, l->was, 0);
		work_edited(w, d);
		stuck = l->was != DONE && (d->task.status == READY || d->task.status == BACKLOG);
		if (stuck) {
			d->task.status = NEEDS_HELP;
			d->task.blocker_reason =
				arena_printf(w->arena, "%.*s, which it depended on, was removed",
					     STRF(l->task.id));
		}
		work_log(w, d, stuck ? "needs_help" : "undepends", l->task.id);
	}
	return 0;
}

static int cut_children(struct work *w, struct strs keys)
{
	for (size_t i = 0; i < keys.n; i++) {
		struct loaded *child;
		int r = work_load_key(w, keys.v[i], &child);

		if (r)
			return r;
		child->task.parent = STR("");
		work_edited(w, child);
	}
	return 0;
}

static int may_remove(struct work *w, struct loaded *l, struct strs *deps, struct strs *subs)
{
	struct query by_dep = { .depends_on = l->key }, by_parent = { .parent = l->key };
	int r = work_keys(w, &by_dep, deps);

	if (!r)
		r = work_keys(w, &by_parent, subs);
	if (r || w->rq->force)
		return r;
	if (lease_live(&l->task.lock, w->e->now))
		return refuse_held_task(w, l);
	if (deps->n)
		return refuse_needed(w, l, *deps, deps->n == 1 ? "depends on" : "depend on");
	if (subs->n)
		return refuse_needed(w, l, *subs,
				     subs->n == 1 ? "is a sub-task of" : "are sub-tasks of");
	return 0;
}

int do_remove(struct work *w)
{
	struct strs deps = { 0 }, subs = { 0 };
	struct verdict v = { 0 };
	struct loaded *l;
	int r = work_load(w, w->rq->id, &l);

	if (r)
		return r;
	work_answer(w, l);
	if (w->rq->explicit && !rules_free(&l->task, &w->call, &v))
		return work_verdict(w, l, &v);
	r = may_remove(w, l, &deps, &subs);
	if (!r)
		r = cut_dependents(w, l, deps);
	if (!r)
		r = cut_children(w, subs);
	if (!r)
		r = leave_parent(w, l);
	if (r)
		return r;
	work_log(w, l, "removed", w->rq->reason);
	number_put(w, gone_key(w, l), l->task.fence);
	work_drop(w, l);
	return 0;
}
