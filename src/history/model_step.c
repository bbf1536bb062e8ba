/* One call: what doc/contract.md says that it does. */
#include <stdlib.h>

#include "history/model_part.h"

#define REQUEST_KEPT (24 * 3600 * INT64_C(1000))

struct step {
	struct model_world *w;
	struct model *m;
	const struct model_call *c;
	const struct request *rq;
	int64_t now;
	struct model_choice choice;
	struct model_answer *want;
};

static struct model_task *task_at(const struct step *s, uint32_t name)
{
	if (name >= s->m->n_tasks)
		abort(); /* model_new() was not told of it */
	return model_task(s->m, name);
}

static bool is_there(const struct step *s, uint32_t name)
{
	return name && task_at(s, name)->status;
}

static bool ended(const struct model_task *t)
{
	return t->status == DONE || t->status == CANCELED;
}

/* --- locks --------------------------------------------------------------------------------------- */

static bool held_by(const struct step *s, const struct model_task *t, uint32_t token)
{
	return token && model_live(t, s->now) && t->lock.token == token;
}

static bool is_own(const struct step *s, const struct model_task *t)
{
	return held_by(s, t, s->c->token);
}

static bool ran_out(const struct step *s, const struct model_task *t)
{
	return t->lock.holder && !model_live(t, s->now);
}

/* Where no lock is needed. */
static enum result in_the_way(const struct step *s, const struct model_task *t)
{
	bool left_by_block = t->status == BLOCKED && !t->lock.manual;

	if (s->rq->explicit && !is_own(s, t))
		return LOST_LOCK;
	return model_live(t, s->now) && !is_own(s, t) && !left_by_block ? CONFLICT : SUCCESS;
}

static void changed(const struct step *s, struct model_task *t)
{
	t->version++;
	t->updated_at = s->now;
}

static void unlock(const struct step *s, struct model_task *t)
{
	/* one whose lease ran out is on offer already, and stays so */
	t->free_at = t->status == IN_PROGRESS && ran_out(s, t) ? s->now : s->now + t->last_ttl;
	t->lock = (struct model_lock){ 0 };
	t->run = 0;
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
	t->assignee = s->c->agent;
	t->run = s->c->run;
	t->last_op = t->last_token = t->last_next = 0;
	t->last_ttl = ttl;
	t->free_at = 0;
}

/* Counts a lease that ran out. true: one too many. */
static bool abandoned(const struct step *s, struct model_task *t)
{
	int64_t max = s->w->policy.max_abandoned;

	t->abandoned++;
	if (!max || t->abandoned < max)
		return false;
	unlock(s, t);
	t->status = NEEDS_HELP;
	t->reason = MODEL_SOME_TEXT;
	changed(s, t);
	return true;
}

static bool is_worn(const struct step *s, const struct model_task *t)
{
	int64_t max = s->w->policy.max_abandoned;

	return t->status == IN_PROGRESS && ran_out(s, t) && max && t->abandoned + 1 >= max;
}

static void grant(const struct step *s, const struct model_task *t, struct model_grant *g)
{
	*g = (struct model_grant){ t->fence, t->lock.expires_at, t->lock.ttl,
				   t->lock.token == s->c->new_token ? t->lock.token : 0, 1 };
}

/* --- one task ------------------------------------------------------------------------------------ */

static bool claimable(const struct model_task *t)
{
	return t->status == READY || t->status == IN_PROGRESS || t->status == FAILED;
}

static void begin(const struct step *s, struct model_task *t)
{
	t->status = IN_PROGRESS;
	t->attempts++;
	t->started_at = s->now;
	if (!t->first_started_at)
		t->first_started_at = s->now;
	changed(s, t);
}

static enum result may_resume(const struct step *s, const struct model_task *t)
{
	uint32_t token = s->c->token;

	if (!t->fence || t->fence != s->rq->fence || t->assignee != s->c->agent)
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
	if (!claimable(t))
		return MISCONFIGURED;
	t->lock.manual = 0;
	begin(s, t);
	return SUCCESS;
}

static enum result claim(const struct step *s, struct model_task *t)
{
	bool resume = s->rq->op == OP_CLAIM && HAS(s->rq, fence);

	if (held_by(s, t, s->c->new_token))
		return claim_again(s, t);
	if (resume && may_resume(s, t) != SUCCESS)
		return may_resume(s, t);
	if (!claimable(t))
		return MISCONFIGURED;
	if (model_live(t, s->now))
		return CONFLICT;
	if (t->status == IN_PROGRESS && ran_out(s, t) && !resume && abandoned(s, t))
		return MISCONFIGURED;
	take_lock(s, t, s->w->policy.lease);
	begin(s, t);
	return SUCCESS;
}

static enum result lock_acquire(const struct step *s, struct model_task *t)
{
	if (held_by(s, t, s->c->new_token)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	if (ended(t))
		return MISCONFIGURED;
	if (model_live(t, s->now))
		return CONFLICT;
	if (t->status == IN_PROGRESS && ran_out(s, t) && abandoned(s, t))
		return MISCONFIGURED;
	take_lock(s, t, s->w->policy.lock_ttl);
	t->lock.manual = 1;
	changed(s, t);
	return SUCCESS;
}

static enum result lock_release(const struct step *s, struct model_task *t)
{
	if (!model_live(t, s->now)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	if (!is_own(s, t))
		return LOST_LOCK;
	t->last_op = OP_LOCK_RELEASE;
	t->last_token = s->c->token;
	t->last_next = 0;
	unlock(s, t);
	changed(s, t);
	return SUCCESS;
}

static enum result lock_break(const struct step *s, struct model_task *t)
{
	if (s->rq->explicit && !is_own(s, t))
		return LOST_LOCK;
	if (!t->lock.holder) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	unlock(s, t);
	changed(s, t);
	return SUCCESS;
}

static enum result heartbeat(const struct step *s, struct model_task *t)
{
	int64_t until = s->now + (HAS(s->rq, ttl) ? s->rq->ttl : t->lock.ttl);

	if (!is_own(s, t))
		return LOST_LOCK;
	if (t->status == BLOCKED)
		return MISCONFIGURED;
	if (until > t->lock.expires_at)
		t->lock.expires_at = until;
	t->version++;
	return SUCCESS;
}

static enum status leads_to(enum op op)
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
		return ended(t);
	default: /* cancel */
		return !ended(t);
	}
}

static bool needs_lock(const struct step *s, const struct model_task *t, enum op op)
{
	switch (op) {
	case OP_UNBLOCK:
	case OP_APPROVE:
	case OP_REWORK:
	case OP_RETRY:
	case OP_REOPEN:
		return false;
	case OP_CANCEL:
		return t->status == IN_PROGRESS && model_live(t, s->now);
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
	bool needs = needs_lock(s, t, op);

	if (needs && !is_own(s, t))
		return LOST_LOCK;
	if (!starts_from(t, op))
		return MISCONFIGURED;
	if (!needs && in_the_way(s, t) != SUCCESS)
		return in_the_way(s, t);
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

static enum result move(const struct step *s, struct model_task *t, enum op op)
{
	enum result may = may_move(s, t, op);

	if (may != SUCCESS)
		return may;
	if (is_own(s, t)) {
		t->last_op = op;
		t->last_token = s->c->token;
		t->last_next = 0;
	}
	note_words(s, t, op);
	if (op == OP_BLOCK)
		t->lock.manual = 0;
	else
		unlock(s, t);
	if (op == OP_RELEASE || op == OP_UNBLOCK || op == OP_REWORK || op == OP_RETRY ||
	    op == OP_REOPEN)
		t->abandoned = 0;
	t->status = leads_to(op);
	t->done_at = t->status == DONE ? s->now : 0;
	changed(s, t);
	return SUCCESS;
}

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
			abort(); /* more than the model has room for */
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

static void set_fields(const struct step *s, struct model_task *t)
{
	const struct request *rq = s->rq;

	if (HAS(rq, title))
		t->title = model_name(s->w, MODEL_TEXT, rq->title);
	if (HAS(rq, type))
		t->type = s->c->type;
	if (HAS(rq, class_rank))
		t->class_rank = rq->class_rank;
	if (HAS(rq, priority))
		t->priority = rq->priority;
	if (HAS(rq, not_before))
		t->not_before = rq->not_before;
	if (HAS(rq, delay))
		t->not_before = rq->delay ? s->now + rq->delay : 0;
	set_labels(s, t);
}

/* Would following depends and sub-tasks from `at` lead to `goal`? */
static bool leads(const struct step *s, uint32_t at, uint32_t goal, char *seen)
{
	const struct model_task *t = model_task(s->m, at);

	seen[at] = 1;
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++)
		if (t->depends[i] == goal ||
		    (!seen[t->depends[i]] && leads(s, t->depends[i], goal, seen)))
			return true;
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *sub = model_task(s->m, i);

		if (sub->status && sub->parent == at &&
		    (i == goal || (!seen[i] && leads(s, i, goal, seen))))
			return true;
	}
	return false;
}

static bool waits_for_itself(const struct step *s, uint32_t task)
{
	char *seen = calloc(s->m->n_tasks, 1);
	bool cycle;

	if (!seen)
		abort();
	cycle = leads(s, task, task, seen);
	free(seen);
	return cycle;
}

static enum result set_parent(const struct step *s, uint32_t task)
{
	struct model_task *t = task_at(s, task);

	t->parent = 0;
	if (!s->c->parent)
		return SUCCESS;
	if (!is_there(s, s->c->parent))
		return NOT_FOUND;
	if (ended(task_at(s, s->c->parent)))
		return MISCONFIGURED;
	t->parent = s->c->parent;
	return waits_for_itself(s, task) ? MISCONFIGURED : SUCCESS;
}

static int depends_at(const struct model_task *t, uint32_t on)
{
	int i = 0;

	while (i < MODEL_DEPENDS && t->depends[i] != on)
		i++;
	return i;
}

static enum result add_depends(const struct step *s, uint32_t task, bool *more)
{
	struct model_task *t = task_at(s, task);

	for (size_t k = 0; k < s->rq->depends.n; k++) {
		uint32_t on = s->c->depends[k];

		if (depends_at(t, on) < MODEL_DEPENDS)
			continue;
		if (!is_there(s, on))
			return NOT_FOUND;
		if (depends_at(t, 0) == MODEL_DEPENDS)
			abort(); /* more than the model has room for */
		t->depends[depends_at(t, 0)] = on;
		if (waits_for_itself(s, task))
			return MISCONFIGURED;
		*more = true;
	}
	return SUCCESS;
}

static void depend_off(struct model_task *t, uint32_t on)
{
	int i = depends_at(t, on);

	for (; i < MODEL_DEPENDS - 1; i++)
		t->depends[i] = t->depends[i + 1];
	if (i < MODEL_DEPENDS)
		t->depends[i] = 0;
}

static enum result remove_depends(const struct step *s, uint32_t task, bool *more)
{
	struct model_task *t = task_at(s, task);

	for (size_t k = 0; k < s->rq->depends.n; k++) {
		uint32_t on = s->c->depends[k];

		if (!is_there(s, on) || depends_at(t, on) == MODEL_DEPENDS)
			return NOT_FOUND;
		depend_off(t, on);
		*more = true;
	}
	return SUCCESS;
}

/* --- calls about one task ------------------------------------------------------------------------ */

static bool may_go(const struct model_task *t, int64_t target)
{
	if (target == BACKLOG)
		return t->status == BACKLOG || t->status == READY;
	return target == READY && (t->status == BACKLOG || t->status == READY ||
				   t->status == BLOCKED || t->status == NEEDS_HELP);
}

static enum result update(const struct step *s, uint32_t task)
{
	struct model_task *t = task_at(s, task);
	bool waited = t->status == BLOCKED || t->status == NEEDS_HELP;

	if (HAS(s->rq, status) && !may_go(t, s->rq->status))
		return MISCONFIGURED;
	if (in_the_way(s, t) != SUCCESS)
		return in_the_way(s, t);
	set_fields(s, t);
	if (HAS(s->rq, status) && waited) {
		unlock(s, t);
		t->abandoned = 0;
	}
	if (HAS(s->rq, status))
		t->status = s->rq->status;
	changed(s, t);
	return s->rq->op == OP_UPDATE && HAS(s->rq, parent) ? set_parent(s, task) : SUCCESS;
}

static enum result start_by_status(const struct step *s, struct model_task *t)
{
	int64_t version = t->version;
	enum result r = SUCCESS;

	if (t->status == REVIEW && !s->rq->reason.n)
		return USAGE;
	if (t->status == REVIEW)
		r = move(s, t, OP_REWORK);
	else if (t->status == BLOCKED || t->status == NEEDS_HELP)
		r = move(s, t, OP_UNBLOCK);
	if (r == SUCCESS)
		r = claim(s, t);
	if (t->version > version)
		t->version = version + 1;
	return r;
}

static enum result by_status(const struct step *s, uint32_t task)
{
	struct model_task *t = task_at(s, task);

	switch (s->rq->status) {
	case IN_PROGRESS:
		return start_by_status(s, t);
	case REVIEW:
		return move(s, t, OP_REVIEW);
	case DONE:
		return move(s, t, t->status == REVIEW ? OP_APPROVE : OP_DONE);
	case BLOCKED:
		return move(s, t, OP_BLOCK);
	case NEEDS_HELP:
		return move(s, t, OP_ESCALATE);
	case FAILED:
		return move(s, t, OP_FAIL);
	case CANCELED:
		return move(s, t, OP_CANCEL);
	case READY:
		if (t->status == IN_PROGRESS || t->status == FAILED)
			return move(s, t, t->status == FAILED ? OP_RETRY : OP_RELEASE);
		return update(s, task);
	default:
		return update(s, task);
	}
}

static enum result depend(const struct step *s, uint32_t task)
{
	struct model_task *t = task_at(s, task);
	bool more = false;
	enum result r;

	if (ended(t))
		return MISCONFIGURED;
	if (in_the_way(s, t) != SUCCESS)
		return in_the_way(s, t);
	r = s->rq->op == OP_DEPEND ? add_depends(s, task, &more) : remove_depends(s, task, &more);
	if (r == SUCCESS && more)
		changed(s, t);
	return r;
}

/* A holder's call again: its last result is kept until the next acquisition. */
static bool did_before(const struct step *s, const struct model_task *t)
{
	enum op did = (enum op)t->last_op;

	if (!s->c->token || t->last_token != s->c->token || leads_to(did) == STATUS_END)
		return false;
	if (s->rq->op == OP_STATUS)
		return s->rq->status != IN_PROGRESS && s->rq->status == (int64_t)leads_to(did);
	return s->rq->op == did;
}

static enum result one_task(const struct step *s, uint32_t task)
{
	struct model_task *t = task_at(s, task);

	if (did_before(s, t)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	switch (s->rq->op) {
	case OP_CLAIM:
		return claim(s, t);
	case OP_HEARTBEAT:
		return heartbeat(s, t);
	case OP_LOCK_ACQUIRE:
		return lock_acquire(s, t);
	case OP_LOCK_RELEASE:
		return lock_release(s, t);
	case OP_LOCK_BREAK:
		return lock_break(s, t);
	case OP_STATUS:
		return by_status(s, task);
	case OP_UPDATE:
		return update(s, task);
	case OP_DEPEND:
	case OP_UNDEPEND:
		return depend(s, task);
	case OP_COMMENT:
		return s->rq->explicit && !is_own(s, t) ? LOST_LOCK : SUCCESS;
	default:
		return move(s, t, s->rq->op);
	}
}

/* --- several tasks ------------------------------------------------------------------------------- */

/* A Ready task that depends on a canceled one waits for a person. */
static void settle(const struct step *s, uint32_t about)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		struct model_task *t = model_task(s->m, i);
		bool stuck = false;

		if (t->status != READY)
			continue;
		for (int k = 0; k < MODEL_DEPENDS && t->depends[k]; k++)
			stuck |= model_task(s->m, t->depends[k])->status == CANCELED;
		if (!stuck)
			continue;
		t->status = NEEDS_HELP;
		t->reason = MODEL_SOME_TEXT;
		t->updated_at = s->now;
		t->version += i != about;
	}
}

static void show(const struct step *s, uint32_t task)
{
	s->want->id = task;
	s->want->task = *task_at(s, task);
	model_count_links(s->m, task, s->want->counts);
}

/* The live task of this token, if an earlier call took one. */
static uint32_t taken_before(const struct step *s)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++)
		if (held_by(s, model_task(s->m, i), s->c->new_token))
			return i;
	return 0;
}

/* Takes the first in order; those that were abandoned too often go to Needs Help on the way. 0: none. */
static uint32_t take_first(const struct step *s)
{
	uint32_t swept = 0, task;

	for (;;) {
		task = model_first(s->w, s->m, s->c, s->now);
		if (!s->w->whole && !s->choice.took && swept == s->choice.swept)
			break;
		if (!task)
			break;
		if (!is_worn(s, task_at(s, task)))
			break;
		(void)abandoned(s, task_at(s, task));
		swept++;
	}
	if (s->w->whole || (task && task == s->choice.took)) {
		if (task)
			(void)claim(s, task_at(s, task));
		return task;
	}
	if (s->choice.took || swept != s->choice.swept)
		s->want->code = -1;
	s->want->elsewhere = 1;
	s->want->none_left = !task;
	return 0;
}

static void take(const struct step *s)
{
	uint32_t task = taken_before(s);

	if (task)
		s->want->repeated = 1;
	else
		task = take_first(s);
	if (task) {
		show(s, task);
		grant(s, task_at(s, task), &s->want->lock);
	} else if (s->want->code == SUCCESS && (s->w->whole || s->want->none_left)) {
		s->want->code = NO_TASKS;
		s->want->wait_ms = model_wait(s->w, s->m, s->c, s->now);
	}
}

static uint32_t next_again(const struct step *s, uint32_t task)
{
	uint32_t next = task_at(s, task)->last_next;
	const struct model_task *t = task_at(s, next);

	return next && t->status && model_live(t, s->now) && t->lock.holder == s->c->agent ? next
											   : 0;
}

static void claim_next(const struct step *s, uint32_t task)
{
	uint32_t next;

	if (s->want->repeated)
		next = next_again(s, task);
	else if (!(next = taken_before(s)))
		next = take_first(s);
	if (!s->want->repeated)
		task_at(s, task)->last_next = next;
	s->want->has_next = 1;
	s->want->next_id = next;
	if (!next && s->want->repeated && !s->w->whole)
		s->want->elsewhere = s->want->none_left = 1;
	if (!next)
		return;
	s->want->next = *task_at(s, next);
	model_count_links(s->m, next, s->want->next_counts);
	grant(s, task_at(s, next), &s->want->next_lock);
}

static bool grants(const struct step *s)
{
	enum op op = s->rq->op;

	return op == OP_CLAIM || op == OP_LOCK_ACQUIRE || op == OP_HEARTBEAT ||
	       (op == OP_STATUS && s->rq->status == IN_PROGRESS);
}

/* A refusal leaves the task as it was, unless it went to Needs Help for being abandoned too often. */
static void about_task(const struct step *s)
{
	uint32_t task = s->c->id;
	struct model_task before;
	bool gave_up;

	if (!is_there(s, task)) {
		s->want->code = NOT_FOUND;
		return;
	}
	before = *task_at(s, task);
	s->want->code = one_task(s, task);
	gave_up = before.status == IN_PROGRESS && task_at(s, task)->status == NEEDS_HELP;
	if (s->want->code != SUCCESS && !gave_up)
		*task_at(s, task) = before;
	settle(s, task);
	if (s->want->code == SUCCESS && s->rq->op == OP_DONE && s->rq->claim_next)
		claim_next(s, task);
	show(s, task);
	if (s->want->code == SUCCESS && grants(s))
		grant(s, task_at(s, task), &s->want->lock);
}

static void make(const struct step *s, uint32_t task, struct str spelled)
{
	struct model_task *t = task_at(s, task);
	struct model_task before = *t;
	bool more = false;

	*t = (struct model_task){ .status = READY,
				  .class_rank = STANDARD,
				  .priority = PRIORITY_DEFAULT,
				  .fence = before.fence,
				  .version = 1,
				  .created_at = s->now,
				  .updated_at = s->now,
				  .spelled = model_name(s->w, MODEL_TEXT, spelled) };
	set_fields(s, t);
	if (HAS(s->rq, status))
		t->status = s->rq->status;
	s->want->code = s->c->parent ? set_parent(s, task) : SUCCESS;
	if (s->want->code == SUCCESS)
		s->want->code = add_depends(s, task, &more);
	if (s->want->code != SUCCESS) {
		*t = before;
		return;
	}
	settle(s, task);
	show(s, task);
}

/* An id that the queue makes. */
static void make_any(const struct step *s)
{
	uint32_t task = s->choice.took;
	int64_t counter = s->m->counter;

	if (s->w->whole)
		task = model_name(s->w, MODEL_TASK,
				  model_next_id(s->w, s->m, &counter, s->w->arena));
	if (!task) {
		s->want->elsewhere = 1;
		return;
	}
	if (is_there(s, task)) {
		s->want->code = -1;
		return;
	}
	make(s, task, model_text(s->w, MODEL_TASK, task));
	if (s->want->code == SUCCESS)
		s->m->counter = counter;
}

static void create(const struct step *s)
{
	if (HAS(s->rq, status) && s->rq->status != READY && s->rq->status != BACKLOG) {
		s->want->code = USAGE;
	} else if (!HAS(s->rq, id)) {
		make_any(s);
	} else if (is_there(s, s->c->id)) {
		s->want->code = s->rq->if_absent ? SUCCESS : CONFLICT;
		s->want->existed = s->rq->if_absent != 0;
		show(s, s->c->id);
	} else {
		make(s, s->c->id, s->rq->id);
	}
}

static enum result may_remove(const struct step *s, uint32_t task)
{
	const struct model_task *t = task_at(s, task);

	if (s->rq->explicit && in_the_way(s, t) != SUCCESS)
		return in_the_way(s, t);
	if (s->rq->force)
		return SUCCESS;
	if (model_live(t, s->now))
		return MISCONFIGURED;
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *o = model_task(s->m, i);

		if (o->status && (o->parent == task || depends_at(o, task) < MODEL_DEPENDS))
			return MISCONFIGURED;
	}
	return SUCCESS;
}

/* What is left of the links of a task that is gone. */
static void cut_off(const struct step *s, struct model_task *t, uint32_t gone)
{
	bool depended = depends_at(t, gone) < MODEL_DEPENDS;
	bool open = task_at(s, gone)->status != DONE;

	if (!t->status || (!depended && t->parent != gone))
		return;
	if (depended)
		depend_off(t, gone);
	else
		t->parent = 0;
	if (depended && open && (t->status == READY || t->status == BACKLOG)) {
		t->status = NEEDS_HELP;
		t->reason = MODEL_SOME_TEXT;
	}
	changed(s, t);
}

static void drop(const struct step *s)
{
	struct model_task *t = task_at(s, s->c->id);

	if (!is_there(s, s->c->id)) {
		s->want->code = NOT_FOUND;
		return;
	}
	s->want->code = may_remove(s, s->c->id);
	show(s, s->c->id);
	if (s->want->code != SUCCESS)
		return;
	for (uint32_t i = 1; i < s->m->n_tasks; i++)
		cut_off(s, model_task(s->m, i), s->c->id);
	*t = (struct model_task){ .fence = t->fence };
}

static void cleanup(const struct step *s)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		struct model_task *t = model_task(s->m, i);

		if (!t->status || !ran_out(s, t) || s->now - t->lock.expires_at < s->rq->older_than)
			continue;
		s->want->cleaned++;
		if (t->status == IN_PROGRESS && abandoned(s, t))
			continue;
		unlock(s, t);
		t->free_at = s->now;
		changed(s, t);
	}
}

/* --- all ----------------------------------------------------------------------------------------- */

static void read_only(const struct step *s)
{
	uint32_t first;

	switch (s->rq->op) {
	case OP_SHOW:
	case OP_LOCK_STATUS:
		if (is_there(s, s->c->id))
			show(s, s->c->id);
		else
			s->want->code = NOT_FOUND;
		return;
	case OP_NEXT:
		if (s->rq->explain)
			return;
		first = model_first(s->w, s->m, s->c, s->now);
		s->want->elsewhere = !s->w->whole;
		s->want->none_left = !first;
		if (first) {
			show(s, first);
		} else {
			s->want->code = NO_TASKS;
			s->want->wait_ms = model_wait(s->w, s->m, s->c, s->now);
		}
		return;
	default:
		return;
	}
}

static void change(const struct step *s)
{
	switch (s->rq->op) {
	case OP_CREATE:
		create(s);
		return;
	case OP_TAKE:
		take(s);
		return;
	case OP_REMOVE:
		drop(s);
		return;
	case OP_LOCK_CLEANUP:
		cleanup(s);
		return;
	case OP_ID_CLAIM:
		if (s->w->whole)
			(void)model_next_id(s->w, s->m, &s->m->counter, s->w->arena);
		return;
	default:
		about_task(s);
	}
}

/* The first answer, kept for a day. */
static bool answered_before(const struct step *s)
{
	const struct model_kept *k = model_kept(s->m, s->c->request);
	struct model_answer *want = s->want;

	if (!s->c->request || s->now >= k->until)
		return false;
	if (k->call != s->c->same) {
		want->code = CONFLICT;
		return true;
	}
	memcpy(want, model_text(s->w, MODEL_TEXT, k->answer).p, sizeof(*want));
	want->repeated = 1;
	want->now = s->now;
	want->next_lock.token = want->next_lock.given && want->next.lock.token == s->c->new_token
					? s->c->new_token
					: 0;
	return true;
}

static void keep_answer(const struct step *s)
{
	if (!s->c->request || s->want->code != SUCCESS)
		return;
	*model_kept(s->m, s->c->request) = (struct model_kept){
		.until = s->now + REQUEST_KEPT,
		.call = s->c->same,
		.answer = model_name(s->w, MODEL_TEXT,
				     str_n((const char *)s->want, sizeof(*s->want))),
	};
}

void model_step(struct model_world *w, struct model *m, const struct model_call *c, int64_t now,
		struct model_choice choice, struct model_answer *want)
{
	struct step s = { w, m, c, c->rq, now, choice, want };

	memset(want, 0, sizeof(*want));
	want->now = now;
	if (c->request >= m->n_kept)
		abort(); /* model_new() was not told of it */
	if (op_flags(c->rq->op) & OP_READS) {
		read_only(&s);
	} else if (!answered_before(&s)) {
		change(&s);
		keep_answer(&s);
	}
}

uint32_t model_worn(const struct model_world *w, const struct model *m, const struct model_call *c,
		    int64_t now)
{
	struct model_answer want;
	uint32_t n = 0, task;
	struct arena a = { 0 };
	struct step s = { NULL, model_copy(m, &a), c, c->rq, now, { 0 }, &want };
	struct model_world copy = *w;

	s.w = &copy;
	while ((task = model_first(w, s.m, c, now)) && is_worn(&s, task_at(&s, task))) {
		(void)abandoned(&s, task_at(&s, task));
		n++;
	}
	arena_free(&a);
	return n;
}
