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

/* --- the first eligible task ------------------------------------------------------------------------ */

struct offer {
	struct arena *arena;
	struct strs passed_over;
	struct record *found;
};

static int good_offer(const struct record *r, void *ctx)
{
	struct offer *o = ctx;
	struct arena scratch = { 0 };
	struct task t;
	bool good = !strs_have(o->passed_over, r->key) && !task_of(r, &t, &scratch);

	arena_free(&scratch);
	if (good)
		o->found = record_copy(o->arena, r);
	return good;
}

/* Normally reads only the first record. After a bad record, which only another program can have written, it reads
 * and checks all texts. */
static int first_offer(struct act *w, const struct query *q, struct offer *o, struct record **out)
{
	struct query all = *q;
	int r;

	if (!o->passed_over.n)
		return edit_first(w->e, q, out);
	all.body = true;
	o->found = NULL;
	r = edit_scan(w->e, &all, good_offer, o);
	*out = o->found;
	return r < 0 ? r : !o->found;
}

static void pass_over(struct act *w, struct offer *o, struct str key)
{
	o->passed_over = arena_append(w->arena, o->passed_over, key);
}

int take_next(struct act *w, struct loaded **out)
{
	struct offer o = { .arena = w->arena };
	struct query q;
	int r;

	*out = NULL;
	select_query(w->rq, w->policy, &q);
	for (;;) {
		struct verdict v = { 0 };
		struct record *rec;
		struct loaded *l;

		r = act_flush(w);
		if (!r)
			r = first_offer(w, &q, &o, &rec);
		if (r)
			return r < 0 ? r : 0;
		r = act_load_key(w, rec->key, &l);
		if (r == BAD) {
			pass_over(w, &o, rec->key);
			continue;
		}
		if (r)
			return r;
		rules_apply(OP_CLAIM, &l->task, &w->call, &v);
		if (act_fault(w, l)) { /* its fence is at the limit: try another task */
			l->task = l->old;
			pass_over(w, &o, l->key);
			continue;
		}
		if (v.code == SUCCESS) {
			*out = l;
			return act_verdict(w, l, &v);
		}
		if (!v.changed) { /* the index is wrong: the task itself is not eligible */
			pass_over(w, &o, l->key);
			continue;
		}
		/* abandoned too often: move it to Needs Help and try the next task */
		(void)act_verdict(w, l, &v);
		w->ans->task = NULL;
		w->ans->code = SUCCESS;
		w->ans->message = w->ans->hint = STR("");
	}
}

int taken_before(struct act *w, struct loaded **out)
{
	struct query q = { .token = w->call.fresh };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	*out = NULL;
	for (size_t i = 0; !r && !*out && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD)
			r = 0;
		else if (!r && lease_owned(&l->task.lock, w->call.fresh, w->e->now))
			*out = l;
	}
	return r;
}

static int nothing(struct act *w)
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
	return act_refuse(w, NO_TASKS, STR("no task is eligible now"),
			  STR("pawl next --explain says why"));
}

int do_take(struct act *w)
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
	act_answer(w, l);
	w->ans->lock = act_grant(w, l);
	return 0;
}
