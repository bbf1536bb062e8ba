/* Removes and archives tasks, cuts the log, and cleans up stale locks. A removal cuts the links
 * to the task and keeps its last fence under gone/, so a later task with that id does not repeat
 * a fence. If a cleanup runs again after a conflict, it ends only task locks that its first run
 * saw. */
#include "base/os.h"
#include "base/when.h"
#include "core/counts.h"
#include "core/lease.h"
#include "core/validate.h"
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

/* A dependent may not be able to start without the removed task, unless that was Done. A person
 * must decide, so a Ready or Backlog dependent goes to Needs Help. */
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

struct loaded *bad_salvage(struct act *w, const struct record *rec)
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
	ev.task = l->task.id;
	ev.text = arena_printf(w->call.arena, "a record that could not be used: %s", fault);
	if (l->task.id.n) {
		r = cut_links(w, l);
		act_event(w, l, &ev);
		gone_put(w, l, FENCE_UNKNOWN);
		/* it has an earlier task with this id */
		edit_drop(w->e, undo_key(l->key, w->call.arena));
	} else {
		r = act_queue_event(w, &ev);
	}
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

/* Ending another agent's lock needs a reason for the log. Cutting links does not. */
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
	undo_begin(w, l);
	act_apply(w, l);
	r = w->call.code != SUCCESS || w->call.n_events ? act_decided(w, l) : 0;
	if (!r)
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
	gone_put(w, l, l->task.fence);
	act_drop(w, l);
	return 0;
}

/* --- archive ---------------------------------------------------------------------------------- */

static void op_archive_run(struct act *w, struct loaded *l)
{
	undo_begin(w, l);
	rules_apply(OP_ARCHIVE, &l->task, &w->call);
	if (!w->call.changed)
		return;
	l->dirty = true;
	act_log(w, l, "archived", STR(""));
	w->ans->tasks[w->ans->n_tasks++] = l->task;
}

static int archive_one(struct act *w)
{
	struct loaded *l;
	int r = act_load(w, w->call.rq->id, &l);

	if (r)
		return r;
	w->ans->tasks = arena_array(w->call.arena, struct task, 1);
	op_archive_run(w, l);
	return w->call.code == SUCCESS ? 0 : act_decided(w, l);
}

static int archive_all(struct act *w)
{
	struct query q = { .statuses = STATUS_ENDED };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	w->ans->tasks = arena_array(w->call.arena, struct task, keys.n);
	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD)
			r = 0;
		else if (!r)
			op_archive_run(w, l);
	}
	return r;
}

/* --- the log -------------------------------------------------------------------------------------- */

static int found_entry(const struct entry *en, void *ctx)
{
	(void)en;
	*(bool *)ctx = true;
	return 1;
}

/* Deletes the events of ended and removed tasks before rq->since. Fences and attempts are in the
 * records, so they stay. The commit adds an event, so the log says where it was cut and is never
 * empty afterwards. */
static int cut_log(struct act *w)
{
	struct store *s = w->e->store;
	struct entry_query q = { .until = w->call.rq->since, .unordered = true };
	struct event ev = { .name = STR("log_cut"),
			    .agent = w->call.rq->agent,
			    .run = w->call.rq->run };
	bool found = false;
	int r = number_get(w, LOG_FROM_KEY, &q.since);

	if (r == BAD)
		q.since = 0;
	else if (r)
		return r;
	if (q.until <= q.since)
		return 0;
	r = s->ops->entries(s, &q, found_entry, &found);
	if (r || !found)
		return r;
	number_put(w, LOG_FROM_KEY, q.until);
	edit_forget(w->e, q.until, LOG_KEPT_FOR);
	w->ans->text = when_text(w->call.arena, q.until);
	ev.text = arena_printf(w->call.arena, "events of ended tasks before %.*s",
			       STRF(w->ans->text));
	return act_queue_event(w, &ev);
}

int do_archive(struct act *w)
{
	int r = HAS(w->call.rq, id) ? archive_one(w) : archive_all(w);

	if (!r && HAS(w->call.rq, since))
		r = cut_log(w);
	if (r)
		return r;
	w->ans->kind = ANSWER_TASKS;
	w->ans->total = (int64_t)w->ans->n_tasks;
	return 0;
}

/* --- cleanup ---------------------------------------------------------------------------------- */

bool lock_dead(const struct lock *l)
{
	return l->pid && proc_life(l->host, l->boot_id, l->pid, l->pid_start) == PROC_DEAD;
}

bool lock_died_here(const struct lock *l)
{
	return l->pid && proc_died_here(l->host, l->boot_id, l->pid, l->pid_start);
}

void lock_check(struct lock *l)
{
	static const int lives[] = {
		[PROC_UNKNOWN] = LIFE_UNKNOWN, [PROC_ALIVE] = LIFE_ALIVE, [PROC_DEAD] = LIFE_DEAD
	};

	if (l->holder.n)
		l->life = lives[proc_life(l->host, l->boot_id, l->pid, l->pid_start)];
}

static bool same_lock(const struct lock *a, const struct lock *b)
{
	return str_eq(a->holder, b->holder) && str_eq(a->host, b->host) &&
	       str_eq(a->token, b->token) && a->acquired_at == b->acquired_at &&
	       a->expires_at == b->expires_at;
}

/* The change runs again after a conflict. Skips a lock that was re-acquired after the first run. */
static bool op_cleanup_reacquired(const struct act *w, const struct task *t)
{
	const struct decided *j = &w->decided;

	for (size_t i = 0; i < j->n; i++)
		if (str_eq(j->v[i].id, t->id))
			return !same_lock(&j->v[i].lock, &t->lock);
	return true;
}

static int op_cleanup_validate(struct act *w, struct strs keys)
{
	struct decided *j = &w->decided;
	int r = 0;

	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD) {
			r = 0;
			continue;
		}
		if (r)
			break;
		j->v = arena_grow(w->call.arena, j->v, j->n, sizeof(*j->v));
		j->v[j->n++] = l->task;
	}
	j->done = !r;
	return r;
}

static void warn_of_age(struct act *w, const struct task *t)
{
	int64_t age = w->e->now - t->lock.acquired_at;

	if (!w->call.policy->warn_after || !t->lock.acquired_at || age < w->call.policy->warn_after)
		return;
	w->ans->warnings = arena_append(
		w->call.arena, w->ans->warnings,
		arena_printf(w->call.arena,
			     "%.*s has been locked by %.*s for %s; if its holder is gone: "
			     "pawl lock break %.*s --reason TEXT",
			     STRF(t->id), STRF(t->lock.holder),
			     arena_cstr(w->call.arena, duration_text(w->call.arena, age)),
			     STRF(t->id)));
}

int do_cleanup(struct act *w)
{
	struct strs held = { 0 };
	struct query q = { .held = true };
	bool again = w->decided.done;
	int r = act_keys(w, &q, &held);

	if (!r && !again)
		r = op_cleanup_validate(w, held);
	w->ans->kind = ANSWER_TASKS;
	w->ans->tasks = arena_array(w->call.arena, struct task, held.n + TYPED_END);
	for (size_t i = 0; !r && i < held.n; i++) {
		struct loaded *l;

		r = act_load_key(w, held.v[i], &l);
		if (r) {
			r = r == BAD ? 0 : r;
			continue;
		}
		if ((again && op_cleanup_reacquired(w, &l->task)) ||
		    !rules_cleanup(&l->task, &w->call, lock_dead(&l->task.lock))) {
			warn_of_age(w, &l->task);
			continue;
		}
		r = act_decided(w, l);
		w->ans->tasks[w->ans->n_tasks++] = l->task;
	}
	if (!r)
		r = guard_cleanup(w);
	w->ans->total = (int64_t)w->ans->n_tasks;
	return r;
}
