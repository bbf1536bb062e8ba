/*
 * Changes one task: the operations of core/rules.h. `done --claim-next` takes the next task in the same
 * commit, and a repeated call finds the task that the first call took.
 */
#include "core/counts.h"
#include "core/lease.h"
#include "format/record_form.h"
#include "queue/queue_private.h"

/* For a repeated call: finds the task that the first call took, if its agent still holds it. */
static int next_again(struct act *w, const struct loaded *l, struct loaded **next)
{
	int r = 0;

	*next = NULL;
	if (l->task.last.next.n)
		r = act_load_key(w, task_key(w->call.arena, l->task.last.next), next);
	if (r < 0)
		return r;
	if (*next && (!lease_live(&(*next)->task.lock, w->e->now) ||
		      !str_eq((*next)->task.lock.holder, w->call.rq->agent)))
		*next = NULL;
	return 0;
}

/* done --claim-next: takes the next task in the same commit. If an earlier call with this token
 * lost its answer, it may already have taken a task, which is then returned. */
static int next_too(struct act *w, struct loaded *l)
{
	bool repeated = w->ans->repeated;
	struct loaded *next = NULL;
	int r = repeated ? next_again(w, l, &next) : taken_before(w, &next);

	w->ans->has_next = 1;
	if (!r && !repeated && !next && w->call.paused)
		pause_tell(w->call.paused, w->ans, w->call.arena);
	else if (!r && !repeated && !next)
		r = take_next(w, &next);
	if (!r && !next)
		select_passed_over(w->ans, w->given_back, w->call.arena);
	if (r || !next)
		return r;
	w->ans->next = arena_new(w->call.arena, struct task);
	*w->ans->next = next->task;
	w->ans->next_lock = act_grant(w, next);
	if (!repeated) {
		l->task.last.next = next->task.id;
		l->dirty = true;
	}
	return 0;
}

void settle_canceled(struct act *w, struct loaded *l)
{
	if (!graph_settle(&l->task, STR(""), w->e->now, w->call.arena))
		return;
	act_log(w, l, "needs_help", l->task.blocker_reason);
	w->ans->warnings = arena_append(w->call.arena, w->ans->warnings,
					arena_printf(w->call.arena, "%.*s went to Needs Help: %.*s",
						     STRF(l->task.id),
						     STRF(l->task.blocker_reason)));
}

static bool is_about_lock(enum op op)
{
	return op == OP_LOCK_ACQUIRE || op == OP_LOCK_RELEASE || op == OP_LOCK_BREAK;
}

/* Makes a task for an id that has only a lock. The store writes it only if the call locks the task. */
static int lone_lock(struct act *w, struct loaded **out)
{
	struct loaded *l = act_new(w, w->call.rq->id);

	l->dirty = false;
	l->task.title = l->task.id;
	l->task.status = READY;
	l->task.class_rank = STANDARD;
	l->task.priority = PRIORITY_DEFAULT;
	l->task.created_at = l->task.updated_at = w->e->now;
	l->task.version = 1;
	*out = l;
	return old_fence(w, l, &l->task.fence);
}

/* Some stores keep only locks, and some policies create a task on claim. An unknown id is not an
 * error there. */
static int load_or_make(struct act *w, struct loaded **out)
{
	bool lone = w->call.policy->locks_only && is_about_lock(w->call.rq->op);
	int r = act_load(w, w->call.rq->id, out);

	if (r <= 0 || r == BAD ||
	    (!lone && (w->call.rq->op != OP_CLAIM || !w->call.policy->claim_creates ||
		       HAS(w->call.rq, fence) || HAS(w->call.rq, if_version))))
		return r;
	*w->ans = (struct answer){ .now = w->e->now };
	if (lone)
		return lone_lock(w, out);
	r = new_task(w, w->call.rq->id, out);
	if (!r)
		act_log(w, *out, "created", (*out)->task.title);
	return r;
}

/* Adds the changed fields to the event of an update. set_parent() runs later, so the parent
 * comes from the request. */
static void name_changes(struct act *w, const struct loaded *l)
{
	struct call *c = &w->call;
	struct task now = l->task;

	if (c->code != SUCCESS || w->call.rq->op != OP_UPDATE)
		return;
	if (HAS(w->call.rq, parent))
		now.parent = w->call.rq->parent;
	for (size_t i = 0; i < c->n_events; i++)
		if (str_is(c->events[i].name, "updated"))
			c->events[i].changes = changes_of(&l->old, &now, w->call.arena);
}

int do_change(struct act *w)
{
	struct loaded *l;
	bool granted;
	int r = load_or_make(w, &l);

	if (!r)
		r = act_role(w, l);
	if (r)
		return r;
	undo_begin(w, l);
	act_apply(w, l);
	name_changes(w, l);
	granted = w->call.granted; /* next_too() overwrites it */
	r = act_decided(w, l);
	if (r > 0 && !l->rec && l->dirty)
		w->ans->task = NULL; /* the refused claim did not create it */
	if (!r && w->call.rq->op == OP_UPDATE && HAS(w->call.rq, parent))
		r = set_parent(w, l, w->call.rq->parent);
	if (r)
		return r;
	settle_canceled(w, l);
	r = act_flush(w);
	if (r)
		return r; /* do not answer with a task that was not stored */
	if (w->call.rq->op == OP_DONE && w->call.rq->claim_next)
		r = next_too(w, l);
	act_answer(w, l);
	if (granted)
		w->ans->lock = act_grant(w, l);
	return r;
}
