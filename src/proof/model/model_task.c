/* A call about one task, as doc/contract.md defines it. */
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

/* Does the acquisition repeat one that has the lock? */
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
