/* `take`: claims the first eligible task. A repeated call with the same fresh token gets the
 * task that the earlier call took, so a lost answer does not lock a second task. A task that
 * cannot be used or claimed is passed over, so it does not keep callers from the tasks behind
 * it. */
#include "base/when.h"
#include "core/lease.h"
#include "core/order.h"
#include "queue/queue_private.h"

void select_query(const struct request *rq, const struct policy *p, struct query *q)
{
	*q = (struct query){
		.pick = PICK_ELIGIBLE,
		.waiting = order_waiting(p),
		.statuses = p->keep_abandoned ? STATUS_BIT(READY) : 0,
		.class_rank = (int)rq->class_rank,
		.type = rq->type,
		.label = rq->label,
	};
}

bool select_excepts(const struct request *rq, struct str id)
{
	for (size_t i = 0; i < rq->except.n; i++)
		if (str_eq_nocase(rq->except.v[i], id))
			return true;
	return false;
}

void select_passed_over(struct answer *ans, struct strs ids, struct arena *a)
{
	if (!ids.n)
		return;
	ans->warnings = arena_append(
		a, ans->warnings,
		arena_printf(
			a,
			"%zu eligible task%s passed over, because this session released %s and nobody "
			"has changed %s since: %.*s%s",
			ids.n, ids.n == 1 ? " is" : "s are", ids.n == 1 ? "it" : "them",
			ids.n == 1 ? "it" : "them", STRF(ids.v[0]), ids.n == 1 ? "" : ", …"));
}

/* --- the first eligible task ------------------------------------------------------------------------ */

struct offering {
	struct act *act;
	struct str assignee; /* offer only tasks with this assignee; empty: any */
	struct strs passed_over;
	struct record *found;
};

static int good_offer(const struct record *r, void *ctx)
{
	struct offering *o = ctx;
	struct act *w = o->act;
	struct arena scratch = { 0 };
	struct task t;
	bool read = o->passed_over.n || o->assignee.n;
	bool good = !strs_have(o->passed_over, r->key) && (!read || !task_of(r, &t, &scratch)) &&
		    (!o->assignee.n || str_eq(t.assignee, o->assignee));

	arena_free(&scratch);
	if (good && select_excepts(w->call.rq, r->ix.id)) {
		w->given_back = arena_append(w->call.arena, w->given_back,
					     arena_str(w->call.arena, r->ix.id));
		return 0;
	}
	if (good)
		o->found = record_copy(w->call.arena, r);
	return good;
}

/* Normally reads only the first record. After a bad record, which only another program can have
 * written, it reads and checks every record with its texts. A filter by assignee does so, too,
 * because no store has the assignee in its index. */
static int first_offer(struct act *w, const struct query *q, struct offering *o,
		       struct record **out)
{
	struct query all = *q;
	int r;

	if (!o->passed_over.n && !o->assignee.n && !w->call.rq->except.n)
		return edit_first(w->e, q, out);
	all.body = o->passed_over.n || o->assignee.n;
	o->found = NULL;
	w->given_back = (struct strs){ 0 };
	r = edit_scan(w->e, &all, good_offer, o);
	*out = o->found;
	return r < 0 ? r : !o->found;
}

static void pass_over(struct act *w, struct offering *o, struct str key)
{
	o->passed_over = arena_append(w->call.arena, o->passed_over, key);
}

/* Releases the live locks of processes that died. Only a call that found no eligible task pays for
 * this. *freed: it released at least one, so the caller searches again. */
static int take_from_dead(struct act *w, bool *freed)
{
	struct query q = { .held = true };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	*freed = false;
	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD)
			r = 0;
		else if (!r && lease_live(&l->task.lock, w->e->now) &&
			 lock_died_here(&l->task.lock) && rules_cleanup(&l->task, &w->call, true)) {
			*freed = true;
			r = act_decided(w, l);
		}
	}
	return r;
}

int take_next(struct act *w, struct loaded **out)
{
	bool searched = false, freed;
	struct offering o = { .act = w, .assignee = w->call.rq->assignee };
	struct query q;
	int r;

	*out = NULL;
	select_query(w->call.rq, w->call.policy, &q);
	for (;;) {
		struct record *rec;
		struct loaded *l;

		r = act_flush(w);
		if (!r)
			r = first_offer(w, &q, &o, &rec);
		if (r > 0 && !searched) {
			searched = true;
			r = take_from_dead(w, &freed);
			if (!r && freed)
				continue;
			r = r ? r : 1;
		}
		if (r)
			return r < 0 ? r : 0;
		r = act_load_key(w, rec->key, &l);
		if (r == BAD) {
			pass_over(w, &o, rec->key);
			continue;
		}
		if (r)
			return r;
		rules_apply(OP_CLAIM, &l->task, &w->call);
		if (act_fault(w, l)) { /* its fence is at the limit: try another task */
			l->task = l->old;
			pass_over(w, &o, l->key);
			continue;
		}
		if (w->call.code == SUCCESS) {
			*out = l;
			return act_decided(w, l);
		}
		if (!w->call.changed) { /* the index is wrong: the task itself is not eligible */
			pass_over(w, &o, l->key);
			continue;
		}
		/* abandoned too often: move it to Needs Help and try the next task */
		(void)act_decided(w, l);
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

static int comes_due(const struct record *r, void *ctx)
{
	struct act *w = ctx;
	struct arena scratch = { 0 };
	struct task t;
	bool mine = !w->call.rq->assignee.n ||
		    (!task_of(r, &t, &scratch) && str_eq(t.assignee, w->call.rq->assignee));

	arena_free(&scratch);
	if (!mine || select_excepts(w->call.rq, r->ix.id))
		return 0;
	w->ans->wait_ms = r->ix.eligible_at - w->e->now;
	return 1;
}

static int op_take_nothing(struct act *w)
{
	struct query q;
	int r;

	select_query(w->call.rq, w->call.policy, &q);
	q.pick = PICK_LATER;
	q.body = w->call.rq->assignee.n > 0;
	q.limit = q.body ? 0 : w->call.rq->except.n + 1;
	r = edit_scan(w->e, &q, comes_due, w);
	if (r < 0)
		return r;
	w->ans->kind = ANSWER_TASK;
	select_passed_over(w->ans, w->given_back, w->call.arena);
	return act_refuse(w, NO_TASKS, STR("no task is eligible now"),
			  STR("pawl next --explain says why"));
}

static int op_take_paused(struct act *w)
{
	pause_tell(w->call.paused, w->ans, w->call.arena);
	return act_refuse(w, NO_TASKS, pause_text(w->call.paused, w->call.arena), PAUSE_HINT);
}

int do_take(struct act *w)
{
	struct loaded *l;
	int r = taken_before(w, &l);

	if (r < 0)
		return r;
	if (l) {
		w->ans->repeated = 1;
	} else if (w->call.paused) {
		return op_take_paused(w);
	} else {
		r = take_next(w, &l);
		if (r)
			return r;
		if (!l)
			return op_take_nothing(w);
	}
	act_answer(w, l);
	w->ans->lock = act_grant(w, l);
	return 0;
}
