/* One task's lock and status changes, as doc/contract.md states them. Each function checks first and changes the task only if
 * the call is accepted. */
#include "proof/model/model_private.h"

/* --- locks --------------------------------------------------------------------------------------- */

bool step_held_by(const struct step *s, const struct model_task *t, uint32_t token)
{
	return token && model_live(t, s->now) && t->lock.token == token;
}

bool step_own(const struct step *s, const struct model_task *t)
{
	return step_held_by(s, t, s->c->token);
}

bool step_ran_out(const struct step *s, const struct model_task *t)
{
	return t->lock.holder && !model_live(t, s->now);
}

static bool model_move_protected(const struct step *s, const struct model_task *t)
{
	bool left_by_block = t->status == BLOCKED && !t->lock.manual;

	return model_live(t, s->now) && !step_own(s, t) && !left_by_block;
}

/* Checks a call that needs no lock. */
enum result step_in_the_way(const struct step *s, const struct model_task *t)
{
	if (s->rq->explicit && !step_own(s, t))
		return LOST_LOCK;
	return model_move_protected(s, t) && !s->rq->force ? CONFLICT : SUCCESS;
}

bool step_overrides(const struct step *s, const struct model_task *t)
{
	return s->rq->force && model_move_protected(s, t);
}

void step_override(const struct step *s, struct model_task *t)
{
	s->want->overrode = 1;
	t->over_by = s->c->agent;
	t->over_token = t->lock.token;
}

bool step_wrong_version(const struct step *s, const struct model_task *t)
{
	return HAS(s->rq, if_version) && s->rq->if_version != t->version;
}

void step_changed(const struct step *s, struct model_task *t)
{
	t->version++;
	t->updated_at = s->now;
	if (!step_over(t))
		t->archived_at = 0;
}

void step_unlock(const struct step *s, struct model_task *t)
{
	/* a task whose lease expired is eligible already, and stays so */
	t->free_at = t->status == IN_PROGRESS && step_ran_out(s, t) ? s->now : s->now + t->last_ttl;
	t->lock = (struct model_lock){ 0 };
	t->run = 0;
}

/* A person hands the task back: other agents need not wait, and the task keeps its place in the order. */
static void hand_back(const struct step *s, struct model_task *t)
{
	bool reserved = s->w->policy.handback && !(t->status == IN_PROGRESS && step_ran_out(s, t));

	step_unlock(s, t);
	t->free_at = reserved ? s->now + s->w->policy.handback : 0;
}

static void take_lock(const struct step *s, struct model_task *t, int64_t ttl)
{
	if (HAS(s->rq, ttl))
		ttl = s->rq->ttl;
	t->fence++;
	t->lock = (struct model_lock){ .acquired_at = s->now,
				       .expires_at = s->now + ttl,
				       .ttl = ttl,
				       .token = s->c->new_token,
				       .holder = s->c->agent };
	t->last_holder = s->c->agent;
	t->over_by = t->over_token = 0;
	t->run = s->c->run;
	t->last_op = t->last_token = t->last_next = 0;
	t->last_ttl = ttl;
	t->free_at = 0;
}

/* Counts an expired lease. true: the task was abandoned too often. */
bool step_abandon(const struct step *s, struct model_task *t)
{
	int64_t max = s->w->policy.max_abandoned;

	t->abandoned++;
	if (!max || t->abandoned < max)
		return false;
	step_unlock(s, t);
	t->status = NEEDS_HELP;
	t->reason = MODEL_SOME_TEXT;
	step_changed(s, t);
	return true;
}

bool step_worn(const struct step *s, const struct model_task *t)
{
	int64_t max = s->w->policy.max_abandoned;

	return t->status == IN_PROGRESS && step_ran_out(s, t) && max && t->abandoned + 1 >= max;
}

void step_grant(const struct step *s, const struct model_task *t, struct model_grant *g)
{
	*g = (struct model_grant){ t->fence, t->lock.expires_at, t->lock.ttl,
				   t->lock.token == s->c->new_token ? t->lock.token : 0, 1 };
}

/* --- one task ------------------------------------------------------------------------------------ */

static enum result refuse_paused(const struct step *s)
{
	s->want->paused = 1;
	return CONFLICT;
}

static bool model_move_claimable(const struct model_task *t)
{
	return t->status == READY || t->status == IN_PROGRESS || t->status == FAILED;
}

static void model_move_begin(const struct step *s, struct model_task *t)
{
	t->status = IN_PROGRESS;
	t->attempts++;
	t->started_at = s->now;
	if (!t->first_started_at)
		t->first_started_at = s->now;
	step_changed(s, t);
}

static enum result may_resume(const struct step *s, const struct model_task *t)
{
	uint32_t token = s->c->token;

	if (!t->fence || t->fence != s->rq->fence || t->last_holder != s->c->agent)
		return LOST_LOCK;
	if (token && t->lock.token && token != t->lock.token)
		return LOST_LOCK;
	return t->status == IN_PROGRESS ? SUCCESS : MISCONFIGURED;
}

static enum result claim_again(const struct step *s, struct model_task *t)
{
	if (t->status == IN_PROGRESS && !t->lock.manual) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	if (!model_move_claimable(t))
		return MISCONFIGURED;
	t->lock.manual = 0;
	model_move_begin(s, t);
	return SUCCESS;
}

enum result step_claim(const struct step *s, struct model_task *t)
{
	bool resume = s->rq->op == OP_CLAIM && HAS(s->rq, fence);

	if (step_held_by(s, t, s->c->new_token))
		return claim_again(s, t);
	if (resume && may_resume(s, t) != SUCCESS)
		return may_resume(s, t);
	if (!model_move_claimable(t))
		return MISCONFIGURED;
	if (model_live(t, s->now))
		return CONFLICT;
	if (step_paused(s) && !resume)
		return refuse_paused(s);
	if (t->status == IN_PROGRESS && step_ran_out(s, t) && !resume && step_abandon(s, t))
		return MISCONFIGURED;
	take_lock(s, t, s->w->policy.lease);
	model_move_begin(s, t);
	return SUCCESS;
}

enum result step_lock_acquire(const struct step *s, struct model_task *t)
{
	if (step_held_by(s, t, s->c->new_token)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	if (step_ended(t))
		return MISCONFIGURED;
	if (model_live(t, s->now))
		return CONFLICT;
	if (step_paused(s) && !model_is_guard(s->rq->id))
		return refuse_paused(s);
	if (t->status == IN_PROGRESS && step_ran_out(s, t) && step_abandon(s, t))
		return MISCONFIGURED;
	take_lock(s, t, s->w->policy.lock_ttl);
	t->lock.manual = 1;
	step_changed(s, t);
	return SUCCESS;
}

enum result step_lock_release(const struct step *s, struct model_task *t)
{
	if (!model_live(t, s->now)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	if (!step_own(s, t))
		return LOST_LOCK;
	t->last_op = OP_LOCK_RELEASE;
	t->last_token = s->c->token;
	t->last_next = 0;
	step_unlock(s, t);
	step_changed(s, t);
	return SUCCESS;
}

enum result step_lock_break(const struct step *s, struct model_task *t)
{
	if (s->rq->explicit && !step_own(s, t))
		return LOST_LOCK;
	if (!t->lock.holder) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	hand_back(s, t);
	t->version++;
	return SUCCESS;
}

enum result step_heartbeat(const struct step *s, struct model_task *t)
{
	int64_t until = s->now + (HAS(s->rq, ttl) ? s->rq->ttl : t->lock.ttl);

	if (!step_own(s, t))
		return LOST_LOCK;
	if (t->status == BLOCKED)
		return MISCONFIGURED;
	if (until > t->lock.expires_at)
		t->lock.expires_at = until;
	t->version++;
	return SUCCESS;
}

enum status step_leads_to(enum op op)
{
	switch (op) {
	case OP_RELEASE:
	case OP_RETRY:
	case OP_REOPEN:
		return READY;
	case OP_BLOCK:
		return BLOCKED;
	case OP_UNBLOCK:
	case OP_REWORK:
		return IN_PROGRESS;
	case OP_ESCALATE:
		return NEEDS_HELP;
	case OP_REVIEW:
		return REVIEW;
	case OP_APPROVE:
	case OP_DONE:
		return DONE;
	case OP_FAIL:
		return FAILED;
	case OP_CANCEL:
		return CANCELED;
	default:
		return STATUS_END;
	}
}

static bool starts_from(const struct model_task *t, enum op op)
{
	switch (op) {
	case OP_BLOCK:
	case OP_ESCALATE:
	case OP_REVIEW:
	case OP_DONE:
	case OP_FAIL:
		return t->status == IN_PROGRESS || (t->status == READY && t->lock.manual);
	case OP_RELEASE:
		return t->status == IN_PROGRESS;
	case OP_UNBLOCK:
		return t->status == BLOCKED || t->status == NEEDS_HELP;
	case OP_APPROVE:
	case OP_REWORK:
		return t->status == REVIEW;
	case OP_RETRY:
		return t->status == FAILED;
	case OP_REOPEN:
		return step_ended(t);
	default: /* cancel */
		return !step_ended(t);
	}
}

static bool needs_lock(enum op op)
{
	switch (op) {
	case OP_UNBLOCK:
	case OP_APPROVE:
	case OP_REWORK:
	case OP_RETRY:
	case OP_REOPEN:
	case OP_CANCEL:
		return false;
	default:
		return true;
	}
}

static bool has_open_subs(const struct step *s, const struct model_task *t)
{
	int64_t counts[4];

	model_count_links(s->m, (uint32_t)(t - model_task(s->m, 0)), counts);
	return counts[2] > 0;
}

static enum result may_move(const struct step *s, const struct model_task *t, enum op op)
{
	bool needs = needs_lock(op);

	if (needs && !step_own(s, t))
		return LOST_LOCK;
	if (!starts_from(t, op))
		return MISCONFIGURED;
	if (!needs && step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	if ((op == OP_REVIEW || op == OP_DONE) && has_open_subs(s, t))
		return INCOMPLETE_SUBTASKS;
	return SUCCESS;
}

static void note_words(const struct step *s, struct model_task *t, enum op op)
{
	if (op == OP_BLOCK || op == OP_ESCALATE || op == OP_FAIL || op == OP_CANCEL)
		t->reason = model_name(s->w, MODEL_TEXT, s->rq->reason);
	if (op == OP_BLOCK)
		t->unblock_action = model_name(s->w, MODEL_TEXT, s->rq->unblock_action);
	if ((op == OP_REVIEW || op == OP_DONE) && s->rq->summary.n)
		t->summary = model_name(s->w, MODEL_TEXT, s->rq->summary);
}

static void model_move_run(const struct step *s, struct model_task *t, enum op op)
{
	if (step_overrides(s, t))
		step_override(s, t);
	if (step_own(s, t)) {
		t->last_op = op;
		t->last_token = s->c->token;
		t->last_next = 0;
	}
	note_words(s, t, op);
	if (op == OP_BLOCK)
		t->lock.manual = 0;
	else if (op == OP_UNBLOCK || op == OP_REWORK)
		hand_back(s, t);
	else
		step_unlock(s, t);
	if (op == OP_RELEASE || op == OP_UNBLOCK || op == OP_REWORK || op == OP_RETRY ||
	    op == OP_REOPEN)
		t->abandoned = 0;
	t->status = step_leads_to(op);
	t->done_at = t->status == DONE ? s->now : 0;
	if (op == OP_UNBLOCK || op == OP_REWORK)
		t->version++;
	else
		step_changed(s, t);
}

enum result step_move(const struct step *s, struct model_task *t, enum op op)
{
	enum result may = may_move(s, t, op);

	if (may == SUCCESS)
		model_move_run(s, t, op);
	return may;
}

/* `done --take` claims a Ready task first; the claim and the completion are one change. */
enum result step_done(const struct step *s, struct model_task *t)
{
	struct model_call as_holder = *s->c;
	struct step own = *s;
	int64_t version = t->version;
	enum result r;

	if (!s->rq->take || s->rq->explicit || t->status != READY || step_own(s, t))
		return step_move(s, t, OP_DONE);
	if (has_open_subs(s, t))
		return INCOMPLETE_SUBTASKS;
	r = step_claim(s, t);
	if (r != SUCCESS)
		return r;
	as_holder.token = s->c->new_token;
	own.c = &as_holder;
	model_move_run(&own, t, OP_DONE);
	t->version = version + 1;
	return SUCCESS;
}

/* release --force is for a task that is In Progress without a live lock. */
enum result step_release(const struct step *s, struct model_task *t)
{
	if (!s->rq->force || step_own(s, t))
		return step_move(s, t, OP_RELEASE);
	if (t->status != IN_PROGRESS)
		return MISCONFIGURED;
	if (model_live(t, s->now))
		return CONFLICT;
	model_move_run(s, t, OP_RELEASE);
	return SUCCESS;
}
