/* Creating, removing and archiving tasks. */
#include <stdio.h>

#include "proof/model/model_private.h"

/* Initializes a task. A removed task's fence continues under the same id. */
static void begin_task(const struct step *s, uint32_t task, struct str spelled)
{
	struct model_task *t = step_task(s, task);

	*t = (struct model_task){ .status = READY,
				  .class_rank = STANDARD,
				  .priority = PRIORITY_DEFAULT,
				  .fence = t->fence,
				  .version = 1,
				  .created_at = s->now,
				  .updated_at = s->now,
				  .title = model_name(s->w, MODEL_TEXT, spelled),
				  .spelled = model_name(s->w, MODEL_TEXT, spelled) };
	step_fields(s, t);
}

/* In a queue that is a folder of lock files, a claim creates the task that it names. */
bool step_made_by_claim(const struct step *s)
{
	if (!s->w->policy.claim_creates || s->rq->op != OP_CLAIM || HAS(s->rq, fence) ||
	    HAS(s->rq, if_version))
		return false;
	begin_task(s, s->c->id, s->rq->id);
	return true;
}

static void model_make_run(const struct step *s, uint32_t task, struct str spelled)
{
	struct model_task *t = step_task(s, task);
	struct model_task before = *t;
	bool more = false;

	begin_task(s, task, spelled);
	if (HAS(s->rq, status))
		t->status = s->rq->status;
	s->want->code = s->c->parent ? step_parent(s, task) : SUCCESS;
	if (s->want->code == SUCCESS)
		s->want->code = step_add_depends(s, task, &more);
	if (s->want->code != SUCCESS) {
		*t = before;
		return;
	}
	step_settle(s, task);
	step_show(s, task);
}

/* Creates a task with an id of the queue's own, spelled with a lower-case t. */
static void make_any(const struct step *s)
{
	uint32_t task = s->choice.took;
	int64_t counter = s->m->counter;
	char made[ID_MAX + 1];
	struct str id;

	if (s->w->whole)
		task = model_name(s->w, MODEL_TASK,
				  model_next_id(s->w, s->m, &counter, s->w->arena));
	if (!task) {
		s->want->elsewhere = 1;
		return;
	}
	if (step_there(s, task)) {
		s->want->code = -1;
		return;
	}
	id = model_text(s->w, MODEL_TASK, task);
	snprintf(made, sizeof(made), "t%.*s", (int)id.n - 1, id.p + 1);
	model_make_run(s, task, str_c(made));
	if (s->want->code == SUCCESS)
		s->m->counter = counter;
}

void step_create(const struct step *s)
{
	if (HAS(s->rq, status) && s->rq->status != READY && s->rq->status != BACKLOG) {
		s->want->code = USAGE;
	} else if (!HAS(s->rq, id)) {
		make_any(s);
	} else if (step_there(s, s->c->id)) {
		s->want->code = s->rq->if_absent ? SUCCESS : CONFLICT;
		s->want->existed = s->rq->if_absent != 0;
		step_show(s, s->c->id);
	} else {
		model_make_run(s, s->c->id, s->rq->id);
	}
}

static enum result may_remove(const struct step *s, uint32_t task)
{
	const struct model_task *t = step_task(s, task);

	if (step_wrong_version(s, t))
		return CONFLICT;
	if (step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	if (s->rq->force)
		return step_overrides(s, t) && !s->rq->reason.n ? USAGE : SUCCESS;
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *o = model_task(s->m, i);

		if (o->status && (o->parent == task || step_depends_at(o, task) < MODEL_DEPENDS))
			return MISCONFIGURED;
	}
	return SUCCESS;
}

/* Removes t's links to a task that is gone. If t waited for that task, it goes to Needs Help. */
static void cut_off(const struct step *s, struct model_task *t, uint32_t gone)
{
	bool depended = step_depends_at(t, gone) < MODEL_DEPENDS;
	bool open = step_task(s, gone)->status != DONE;

	if (!t->status || (!depended && t->parent != gone))
		return;
	if (depended)
		step_depend_off(t, gone);
	else
		t->parent = 0;
	if (depended && open && (t->status == READY || t->status == BACKLOG)) {
		t->status = NEEDS_HELP;
		t->reason = MODEL_SOME_TEXT;
	}
	step_changed(s, t);
}

void step_drop(const struct step *s)
{
	struct model_task *t = step_task(s, s->c->id);

	if (!step_there(s, s->c->id)) {
		s->want->code = NOT_FOUND;
		return;
	}
	s->want->code = may_remove(s, s->c->id);
	step_show(s, s->c->id);
	if (s->want->code != SUCCESS)
		return;
	s->want->overrode = step_overrides(s, t);
	for (uint32_t i = 1; i < s->m->n_tasks; i++)
		cut_off(s, model_task(s->m, i), s->c->id);
	*t = (struct model_task){ .fence = t->fence };
}

void step_cleanup(const struct step *s)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		struct model_task *t = model_task(s->m, i);

		if (!t->status || !step_ran_out(s, t) ||
		    s->now - t->lock.expires_at < s->rq->older_than)
			continue;
		s->want->touched++;
		if (t->status == IN_PROGRESS && step_abandon(s, t))
			continue;
		step_unlock(s, t);
		t->free_at = s->now;
		step_changed(s, t);
	}
	step_cleanup_guards(s);
}

/* A locked task belongs to its holder and stays. So does a task that is too young or archived
 * already. */
static void put_away(const struct step *s, struct model_task *t)
{
	int64_t since = t->done_at ? t->done_at : t->updated_at;

	if (!step_over(t) || t->archived_at || t->lock.holder || s->now - since < s->rq->older_than)
		return;
	t->archived_at = s->now;
	t->version++;
	s->want->touched++;
}

void step_archive(const struct step *s)
{
	if (!HAS(s->rq, id)) {
		for (uint32_t i = 1; i < s->m->n_tasks; i++)
			put_away(s, model_task(s->m, i));
	} else if (!step_there(s, s->c->id)) {
		s->want->code = NOT_FOUND;
	} else if (step_wrong_version(s, step_task(s, s->c->id))) {
		s->want->code = CONFLICT;
		step_show(s, s->c->id);
	} else if (!step_over(step_task(s, s->c->id))) {
		s->want->code = MISCONFIGURED;
		step_show(s, s->c->id);
	} else {
		put_away(s, step_task(s, s->c->id));
	}
}
