#include "core/graph.h"
#include "queue/work.h"

/* done --claim-next: the next task in the same commit, or the one that the first such call took. */
static int next_too(struct work *w, struct loaded *l)
{
	struct loaded *next = NULL;
	int r;

	w->ans->has_next = 1;
	if (w->ans->repeated && !l->task.last.next.n)
		return 0;
	if (w->ans->repeated)
		r = work_load_key(w, task_key(w->arena, l->task.last.next), &next);
	else
		r = take_next(w, &next);
	if (r < 0 || !next)
		return r < 0 ? r : 0; /* nothing eligible, or it was removed since */
	if (w->ans->repeated && !str_eq(next->task.lock.token, w->call.fresh))
		return 0; /* it was taken from us since */
	w->ans->next = arena_new(w->arena, struct task);
	*w->ans->next = next->task;
	w->ans->next_lock = work_grant(w, next);
	if (!w->ans->repeated) {
		l->task.last.next = next->task.id;
		l->dirty = true;
	}
	return 0;
}

/* A task that becomes Ready with a canceled dependency cannot stay there. */
static void settle(struct work *w, struct loaded *l)
{
	if (!graph_settle(&l->task, STR(""), w->e->now, w->arena))
		return;
	work_log(w, l, "needs_help", l->task.blocker_reason);
	w->ans->warnings = arena_append(w->arena, w->ans->warnings,
					arena_printf(w->arena, "%.*s went to Needs Help: %.*s",
						     STRF(l->task.id),
						     STRF(l->task.blocker_reason)));
}

int do_change(struct work *w)
{
	struct verdict v = { 0 };
	struct loaded *l;
	int r = work_load(w, w->rq->id, &l);

	if (r)
		return r;
	rules_apply(w->rq->op, &l->task, &w->call, &v);
	r = work_verdict(w, l, &v);
	if (!r && w->rq->op == OP_UPDATE && HAS(w->rq, parent))
		r = set_parent(w, l);
	if (r)
		return r;
	settle(w, l);
	r = work_flush(w);
	if (!r && w->rq->op == OP_DONE && w->rq->claim_next)
		r = next_too(w, l);
	work_answer(w, l);
	if (v.granted)
		w->ans->lock = work_grant(w, l);
	return r;
}
