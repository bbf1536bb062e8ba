/* Changes the links of a task: its parent and its dependencies. A link that would make a task wait
 * for itself is refused, because the task could never become eligible. */
#include "core/counts.h"
#include "core/lease.h"
#include "core/role.h"
#include "queue/queue_private.h"

/* --- waiting tasks -------------------------------------------------------------------------------- */

/* Lists the keys of the tasks that this task waits for: its dependencies and its sub-tasks. */
static int waits_for(void *ctx, struct str key, struct strs *out)
{
	struct act *w = ctx;
	struct query q = { .parent = key };
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	if (r)
		return r < 0 ? r : 0;
	r = act_keys(w, &q, out);
	for (size_t i = 0; !r && i < rec->ix.depends.n; i++)
		*out = arena_append(w->call.arena, *out, rec->ix.depends.v[i]);
	return r;
}

int no_cycle(struct act *w, struct str from, struct str to, struct str message)
{
	int r = graph_reaches(from, to, waits_for, w, w->call.arena);

	if (r <= 0)
		return r;
	return act_refuse(
		w, MISCONFIGURED, message,
		STR("a task cannot wait for itself: pawl show ID shows parent and depends"));
}

/* --- parent -------------------------------------------------------------------------------------- */

int leave_parent(struct act *w, struct loaded *l)
{
	struct loaded *old;
	int r;

	if (!l->task.parent.n || !l->was)
		return 0;
	r = act_load_key(w, task_key(w->call.arena, l->task.parent), &old);
	if (!r)
		old->dirty |= graph_sub_moved(&old->task, l->was, 0);
	return r < 0 ? r : 0;
}

/* May the caller make the task wait for one more sub-task? */
static int may_get_subtask(struct act *w, const struct task *t)
{
	enum role need = role_for_parent(t, w->call.rq->agent, w->e->now);

	if (role_refuse(w->call.rq->role, need, w->ans, w->call.arena) == SUCCESS)
		return 0;
	w->ans->message = arena_printf(
		w->call.arena, "%.*s is held by %.*s, so a new sub-task of it needs the role %s",
		STRF(t->id), STRF(t->lock.holder), role_name(need));
	return REFUSED;
}

int set_parent(struct act *w, struct loaded *l, struct str id)
{
	struct loaded *parent;
	int r = leave_parent(w, l);

	l->task.parent = STR("");
	if (r || !id.n)
		return r;
	r = act_load(w, id, &parent);
	if (r)
		return r;
	if (status_ended(parent->task.status))
		return act_refuse(
			w, MISCONFIGURED,
			arena_printf(w->call.arena, "%.*s is %s and cannot get new sub-tasks",
				     STRF(parent->task.id), status_name(parent->task.status)),
			arena_printf(w->call.arena,
				     "reopen it first: pawl reopen %.*s --reason TEXT",
				     STRF(parent->task.id)));
	r = may_get_subtask(w, &parent->task);
	if (!r)
		r = no_cycle(
			w, l->key, parent->key,
			arena_printf(w->call.arena,
				     "%.*s cannot be a sub-task of %.*s: it would wait for itself",
				     STRF(l->task.id), STRF(parent->task.id)));
	if (r)
		return r;
	l->task.parent = parent->task.id;
	/* a task that this call is creating is counted by act_flush() */
	if (l->was)
		parent->dirty |= graph_sub_moved(&parent->task, 0, l->was);
	return 0;
}

/* --- depends ------------------------------------------------------------------------------------- */

static bool depends_on(const struct task *t, struct str id)
{
	for (size_t i = 0; i < t->depends.n; i++)
		if (str_eq_nocase(t->depends.v[i], id))
			return true;
	return false;
}

/* Refuses a dependency that would make `l`, or its new parent, wait for itself. */
static int check_depend(struct act *w, struct loaded *l, struct loaded *dep)
{
	struct str message = arena_printf(w->call.arena,
					  "%.*s cannot depend on %.*s: it would wait for itself",
					  STRF(l->task.id), STRF(dep->task.id));
	int r = no_cycle(w, dep->key, l->key, message);

	if (!r && !l->was && l->task.parent.n)
		r = no_cycle(w, dep->key, task_key(w->call.arena, l->task.parent), message);
	return r;
}

int add_depend(struct act *w, struct loaded *l, struct str id)
{
	struct loaded *dep;
	int r;

	if (depends_on(&l->task, id))
		return 0;
	r = act_load(w, id, &dep);
	if (!r)
		r = check_depend(w, l, dep);
	if (r)
		return r;
	l->task.depends = arena_append(w->call.arena, l->task.depends, dep->task.id);
	graph_dep_moved(&l->task, 0, dep->task.status);
	l->dirty = true;
	if (graph_settle(&l->task, dep->task.id, w->e->now, w->call.arena))
		act_log(w, l, "needs_help", l->task.blocker_reason);
	return 0;
}

int add_depends(struct act *w, struct loaded *l)
{
	int r = 0;

	for (size_t i = 0; !r && i < w->call.rq->depends.n; i++)
		r = add_depend(w, l, w->call.rq->depends.v[i]);
	return r;
}

static int remove_depend(struct act *w, struct loaded *l, struct str id)
{
	struct loaded *dep;
	int r = act_load(w, id, &dep);

	if (r)
		return r;
	if (!depends_on(&l->task, id))
		return act_refuse(w, NOT_FOUND,
				  arena_printf(w->call.arena, "%.*s does not depend on %.*s",
					       STRF(l->task.id), STRF(dep->task.id)),
				  arena_printf(w->call.arena,
					       "pawl show %.*s lists its dependencies",
					       STRF(l->task.id)));
	l->task.depends = arena_without(w->call.arena, l->task.depends, dep->task.id);
	graph_dep_moved(&l->task, dep->task.status, 0);
	l->dirty = true;
	return 0;
}

static struct str op_link_listed(struct act *w)
{
	struct str out = STR("");

	for (size_t i = 0; i < w->call.rq->depends.n; i++)
		out = arena_printf(w->call.arena, "%.*s%s%.*s", STRF(out), i ? ", " : "",
				   STRF(w->call.rq->depends.v[i]));
	return out;
}

static int change_depends(struct act *w, struct loaded *l)
{
	int r = 0;

	if (w->call.rq->op == OP_DEPEND)
		return add_depends(w, l);
	for (size_t i = 0; !r && i < w->call.rq->depends.n; i++)
		r = remove_depend(w, l, w->call.rq->depends.v[i]);
	return r;
}

int do_depend(struct act *w)
{
	struct str field = STR("depends");
	struct loaded *l;
	int64_t version;
	int r = act_load(w, w->call.rq->id, &l);

	if (!r)
		r = act_role(w, l);
	if (r)
		return r;
	act_answer(w, l);
	undo_begin(w, l);
	version = l->task.version;
	act_apply(w, l);
	if (w->call.code != SUCCESS)
		return act_decided(w, l);
	r = change_depends(w, l);
	if (r)
		return r;
	if (l->dirty) {
		if (override_is(&l->task, &w->call))
			override_note(&l->task, &w->call, (struct strs){ &field, 1 });
		(void)act_decided(w, l);
		act_edited(w, l);
		l->task.version = version + 1; /* also if it released the lock of a dead process */
		act_log(w, l, w->call.rq->op == OP_DEPEND ? "depends" : "undepends",
			op_link_listed(w));
	}
	r = act_flush(w);
	act_answer(w, l);
	return r;
}
