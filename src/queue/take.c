#include "base/when.h"
#include "core/lease.h"
#include "queue/act.h"

void select_query(const struct request *rq, const struct policy *p, struct query *q)
{
	*q = (struct query){
		.pick = PICK_ELIGIBLE,
		.waiting = p->ignore_depends,
		.statuses = p->keep_abandoned ? STATUS_BIT(READY) : 0,
		.class_rank = (int)rq->class_rank,
		.type = rq->type,
		.label = rq->label,
	};
}

int take_next(struct work *w, struct loaded **out)
{
	struct query q;
	int r;

	*out = NULL;
	select_query(w->rq, w->policy, &q);
	for (;;) {
		struct verdict v = { 0 };
		struct record *rec;
		struct loaded *l;

		r = work_flush(w);
		if (!r)
			r = edit_first(w->e, &q, &rec);
		if (r)
			return r < 0 ? r : 0;
		r = work_load(w, rec->ix.id, &l);
		if (r)
			return r;
		rules_apply(OP_CLAIM, &l->task, &w->call, &v);
		if (v.code == SUCCESS) {
			*out = l;
			return work_verdict(w, l, &v);
		}
		if (!v.changed)
			return store_fail(&w->e->store->env, STORE_CORRUPT,
					  "pawl doctor looks at the whole store",
					  "the index offers %.*s, which cannot be claimed: %.*s",
					  STRF(l->task.id), STRF(v.message));
		/* abandoned too often: it goes to Needs Help, and the next one is tried */
		(void)work_verdict(w, l, &v);
		w->ans->task = NULL;
		w->ans->code = SUCCESS;
		w->ans->message = w->ans->hint = STR("");
	}
}

int taken_before(struct work *w, struct loaded **out)
{
	struct query q = { .token = w->call.fresh };
	struct strs keys = { 0 };
	int r = work_keys(w, &q, &keys);

	*out = NULL;
	for (size_t i = 0; !r && !*out && i < keys.n; i++) {
		struct loaded *l;

		r = work_load_key(w, keys.v[i], &l);
		if (!r && lease_owned(&l->task.lock, w->call.fresh, w->e->now))
			*out = l;
	}
	return r;
}

static int nothing(struct work *w)
{
	struct query q;
	struct record *rec;
	int r;

	select_query(w->rq, w->policy, &q);
	q.pick = PICK_LATER;
	r = edit_first(w->e, &q, &rec);
	if (r < 0)
		return r;
	w->ans->kind = ANSWER_TASK;
	w->ans->wait_ms = r ? 0 : rec->ix.eligible_at - w->e->now;
	return work_refuse(w, NO_TASKS, STR("no task is eligible now"),
			   STR("pawl next --explain says why"));
}

int do_take(struct work *w)
{
	struct loaded *l;
	int r = taken_before(w, &l);

	if (r < 0)
		return r;
	if (l) {
		w->ans->repeated = 1;
	} else {
		r = take_next(w, &l);
		if (r)
			return r;
		if (!l)
			return nothing(w);
	}
	work_answer(w, l);
	w->ans->lock = work_grant(w, l);
	return 0;
}
