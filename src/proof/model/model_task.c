/* A call about one task, as doc/contract.md defines it. */
#include <stdio.h>
#include <stdlib.h>

#include "proof/model/model_private.h"

static bool may_go(const struct model_task *t, int64_t target)
{
	if (target == BACKLOG)
		return t->status == BACKLOG || t->status == READY;
	return target == READY &&
	       (t->status == BACKLOG || t->status == READY || t->status == BLOCKED ||
		t->status == NEEDS_HELP || t->status == IN_PROGRESS);
}

static enum result model_one_update(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);
	bool left = t->status == IN_PROGRESS && HAS(s->rq, status);
	bool waited = t->status == BLOCKED || t->status == NEEDS_HELP || left;
	bool over = step_overrides(s, t);

	if (HAS(s->rq, status) && !may_go(t, s->rq->status))
		return MISCONFIGURED;
	if (step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	if (left && model_live(t, s->now))
		return step_own(s, t) ? MISCONFIGURED : CONFLICT;
	if (over)
		step_override(s, t);
	step_fields(s, t);
	if (HAS(s->rq, status) && waited && !over)
		step_unlock(s, t);
	if (HAS(s->rq, status) && waited)
		t->abandoned = 0;
	if (HAS(s->rq, status))
		t->status = s->rq->status;
	step_changed(s, t);
	return s->rq->op == OP_UPDATE && HAS(s->rq, parent) ? step_parent(s, task) : SUCCESS;
}

static enum result start_by_status(const struct step *s, struct model_task *t)
{
	int64_t version = t->version;
	enum result r = SUCCESS;

	if (t->status == REVIEW && !s->rq->reason.n)
		return USAGE;
	if (step_paused(s) &&
	    (t->status == REVIEW || t->status == BLOCKED || t->status == NEEDS_HELP)) {
		s->want->paused = 1;
		return CONFLICT;
	}
	if (t->status == REVIEW)
		r = step_move(s, t, OP_REWORK);
	else if (t->status == BLOCKED || t->status == NEEDS_HELP)
		r = step_move(s, t, OP_UNBLOCK);
	if (r == SUCCESS)
		r = step_claim(s, t);
	if (t->version > version)
		t->version = version + 1;
	return r;
}

static enum result by_status(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);

	switch (s->rq->status) {
	case IN_PROGRESS:
		return start_by_status(s, t);
	case REVIEW:
		return step_move(s, t, OP_REVIEW);
	case DONE:
		return step_move(s, t, t->status == REVIEW ? OP_APPROVE : OP_DONE);
	case BLOCKED:
		return step_move(s, t, OP_BLOCK);
	case NEEDS_HELP:
		return step_move(s, t, OP_ESCALATE);
	case FAILED:
		return step_move(s, t, OP_FAIL);
	case CANCELED:
		return step_move(s, t, OP_CANCEL);
	case READY:
		if (t->status == IN_PROGRESS || t->status == FAILED)
			return step_move(s, t, t->status == FAILED ? OP_RETRY : OP_RELEASE);
		return model_one_update(s, task);
	default:
		return model_one_update(s, task);
	}
}

static enum result model_one_depend(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);
	bool more = false;
	enum result r;

	if (step_ended(t))
		return MISCONFIGURED;
	if (step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	r = s->rq->op == OP_DEPEND ? step_add_depends(s, task, &more)
				   : step_remove_depends(s, task, &more);
	if (r == SUCCESS && more) {
		if (step_overrides(s, t))
			step_override(s, t);
		step_changed(s, t);
	}
	return r;
}

/* The holder repeats its last call: the result is kept until the next acquisition. */
static bool did_before(const struct step *s, const struct model_task *t)
{
	enum op did = (enum op)t->last_op;

	bool own = s->c->token && t->last_token == s->c->token;
	bool took = s->rq->take && s->c->new_token && t->last_token == s->c->new_token;

	if ((!own && !took) || step_leads_to(did) == STATUS_END)
		return false;
	if (s->rq->op == OP_STATUS)
		return s->rq->status != IN_PROGRESS && s->rq->status == (int64_t)step_leads_to(did);
	return s->rq->op == did;
}

/* Does the acquisition repeat the acquisition that has the lock? */
static bool has_already(const struct step *s, const struct model_task *t)
{
	if (!step_held_by(s, t, s->c->new_token) || s->rq->op == OP_DONE)
		return false;
	return s->rq->op == OP_LOCK_ACQUIRE || (t->status == IN_PROGRESS && !t->lock.manual);
}

enum result step_one_task(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);

	if (did_before(s, t)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	if (step_wrong_version(s, t) && !has_already(s, t))
		return CONFLICT;
	switch (s->rq->op) {
	case OP_DONE:
		return step_done(s, t);
	case OP_RELEASE:
		return step_release(s, t);
	case OP_CLAIM:
		return step_claim(s, t);
	case OP_HEARTBEAT:
		return step_heartbeat(s, t);
	case OP_LOCK_ACQUIRE:
		return step_lock_acquire(s, t);
	case OP_LOCK_RELEASE:
		return step_lock_release(s, t);
	case OP_LOCK_BREAK:
		return step_lock_break(s, t);
	case OP_STATUS:
		return by_status(s, task);
	case OP_UPDATE:
		return model_one_update(s, task);
	case OP_DEPEND:
	case OP_UNDEPEND:
		return model_one_depend(s, task);
	case OP_COMMENT:
		return s->rq->explicit && !step_own(s, t) ? LOST_LOCK : SUCCESS;
	default:
		return step_move(s, t, s->rq->op);
	}
}

/* --- link ------------------------------------------------------------------------------------- */

/* A task's fields and its links to other tasks. No task may wait for itself, directly or through others. */

/* --- fields -------------------------------------------------------------------------------------- */

static void label_off(struct model_task *t, uint32_t label)
{
	int n = 0;

	for (int i = 0; i < MODEL_LABELS; i++)
		if (t->labels[i] != label)
			t->labels[n++] = t->labels[i];
	while (n < MODEL_LABELS)
		t->labels[n++] = 0;
}

static void labels_on(const struct step *s, struct model_task *t, struct strs list)
{
	for (size_t k = 0; k < list.n; k++) {
		uint32_t label = model_name(s->w, MODEL_TEXT, list.v[k]);
		int i = 0;

		while (i < MODEL_LABELS && t->labels[i] && t->labels[i] != label)
			i++;
		if (i == MODEL_LABELS)
			abort(); /* beyond the model's limit */
		t->labels[i] = label;
	}
}

static void set_labels(const struct step *s, struct model_task *t)
{
	if (HAS(s->rq, labels))
		memset(t->labels, 0, sizeof(t->labels));
	labels_on(s, t, s->rq->labels);
	labels_on(s, t, s->rq->add_labels);
	for (size_t i = 0; i < s->rq->remove_labels.n; i++)
		label_off(t, model_name(s->w, MODEL_TEXT, s->rq->remove_labels.v[i]));
}

void step_fields(const struct step *s, struct model_task *t)
{
	const struct request *rq = s->rq;

	if (HAS(rq, title))
		t->title = model_name(s->w, MODEL_TEXT, rq->title);
	if (HAS(rq, type))
		t->type = s->c->type;
	if (HAS(rq, assignee))
		t->assignee = s->c->assignee;
	if (HAS(rq, class_rank))
		t->class_rank = rq->class_rank;
	if (HAS(rq, priority))
		t->priority = rq->priority;
	if (HAS(rq, due))
		t->due = rq->due;
	if (HAS(rq, not_before))
		t->not_before = rq->not_before;
	if (HAS(rq, delay))
		t->not_before = rq->delay ? s->now + rq->delay : 0;
	set_labels(s, t);
}

/* Would following depends and sub-tasks from `at` lead to `goal`? */
static bool model_link_leads(const struct step *s, uint32_t at, uint32_t goal, char *seen)
{
	const struct model_task *t = model_task(s->m, at);

	seen[at] = 1;
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++)
		if (t->depends[i] == goal ||
		    (!seen[t->depends[i]] && model_link_leads(s, t->depends[i], goal, seen)))
			return true;
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *sub = model_task(s->m, i);

		if (sub->status && sub->parent == at &&
		    (i == goal || (!seen[i] && model_link_leads(s, i, goal, seen))))
			return true;
	}
	return false;
}

bool step_waits_for_itself(const struct step *s, uint32_t task)
{
	char *seen = calloc(s->m->n_tasks, 1);
	bool cycle;

	if (!seen)
		abort();
	cycle = model_link_leads(s, task, task, seen);
	free(seen);
	return cycle;
}

enum result step_parent(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);

	t->parent = 0;
	if (!s->c->parent)
		return SUCCESS;
	if (!step_there(s, s->c->parent))
		return NOT_FOUND;
	if (step_ended(step_task(s, s->c->parent)))
		return MISCONFIGURED;
	t->parent = s->c->parent;
	return step_waits_for_itself(s, task) ? MISCONFIGURED : SUCCESS;
}

int step_depends_at(const struct model_task *t, uint32_t on)
{
	int i = 0;

	while (i < MODEL_DEPENDS && t->depends[i] != on)
		i++;
	return i;
}

enum result step_add_depends(const struct step *s, uint32_t task, bool *more)
{
	struct model_task *t = step_task(s, task);

	for (size_t k = 0; k < s->rq->depends.n; k++) {
		uint32_t on = s->c->depends[k];

		if (step_depends_at(t, on) < MODEL_DEPENDS)
			continue;
		if (!step_there(s, on))
			return NOT_FOUND;
		if (step_depends_at(t, 0) == MODEL_DEPENDS)
			abort(); /* beyond the model's limit */
		t->depends[step_depends_at(t, 0)] = on;
		if (step_waits_for_itself(s, task))
			return MISCONFIGURED;
		*more = true;
	}
	return SUCCESS;
}

void step_depend_off(struct model_task *t, uint32_t on)
{
	int i = step_depends_at(t, on);

	for (; i < MODEL_DEPENDS - 1; i++)
		t->depends[i] = t->depends[i + 1];
	if (i < MODEL_DEPENDS)
		t->depends[i] = 0;
}

enum result step_remove_depends(const struct step *s, uint32_t task, bool *more)
{
	struct model_task *t = step_task(s, task);

	for (size_t k = 0; k < s->rq->depends.n; k++) {
		uint32_t on = s->c->depends[k];

		if (!step_there(s, on) || step_depends_at(t, on) == MODEL_DEPENDS)
			return NOT_FOUND;
		step_depend_off(t, on);
		*more = true;
	}
	return SUCCESS;
}

/* --- make ------------------------------------------------------------------------------------- */

/* Creating, removing and archiving tasks. A removed task keeps its fence, so a later task with its id continues from there. */

/* Initializes a task. A removed task's fence continues under the same id. */
static void begin_task(const struct step *s, uint32_t task, struct str spelled)
{
	struct model_task *t = step_task(s, task);

	*t = (struct model_task){ .status = READY,
				  .class_rank = STANDARD,
				  .priority = PRIORITY_DEFAULT,
				  .fence = t->fence,
				  .undo = t->undo,
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

/* Archives the task, unless it is locked, too young or already archived. A locked task belongs to its
 * holder. */
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
