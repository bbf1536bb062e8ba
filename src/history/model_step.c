/* One call: what doc/contract.md says that it does. */
#include <stdio.h>
#include <stdlib.h>

#include "history/model_part.h"

#define REQUEST_KEPT (24 * 3600 * INT64_C(1000))

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
	struct model_task *t = step_task(s, task);
	bool waited = t->status == BLOCKED || t->status == NEEDS_HELP;

	if (HAS(s->rq, status) && !may_go(t, s->rq->status))
		return MISCONFIGURED;
	if (step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	step_fields(s, t);
	if (HAS(s->rq, status) && waited) {
		step_unlock(s, t);
		t->abandoned = 0;
	}
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
		return update(s, task);
	default:
		return update(s, task);
	}
}

static enum result depend(const struct step *s, uint32_t task)
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
	if (r == SUCCESS && more)
		step_changed(s, t);
	return r;
}

/* A holder's call again: its last result is kept until the next acquisition. */
static bool did_before(const struct step *s, const struct model_task *t)
{
	enum op did = (enum op)t->last_op;

	if (!s->c->token || t->last_token != s->c->token || step_leads_to(did) == STATUS_END)
		return false;
	if (s->rq->op == OP_STATUS)
		return s->rq->status != IN_PROGRESS && s->rq->status == (int64_t)step_leads_to(did);
	return s->rq->op == did;
}

static enum result one_task(const struct step *s, uint32_t task)
{
	struct model_task *t = step_task(s, task);

	if (did_before(s, t)) {
		s->want->repeated = 1;
		return SUCCESS;
	}
	switch (s->rq->op) {
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
		return update(s, task);
	case OP_DEPEND:
	case OP_UNDEPEND:
		return depend(s, task);
	case OP_COMMENT:
		return s->rq->explicit && !step_own(s, t) ? LOST_LOCK : SUCCESS;
	default:
		return step_move(s, t, s->rq->op);
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
	s->want->task = *step_task(s, task);
	model_count_links(s->m, task, s->want->counts);
}

/* The live task of this token, if an earlier call took one. */
static uint32_t taken_before(const struct step *s)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++)
		if (step_held_by(s, model_task(s->m, i), s->c->new_token))
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
		if (!step_worn(s, step_task(s, task)))
			break;
		(void)step_abandon(s, step_task(s, task));
		swept++;
	}
	if (s->w->whole || (task && task == s->choice.took)) {
		if (task)
			(void)step_claim(s, step_task(s, task));
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
		step_grant(s, step_task(s, task), &s->want->lock);
	} else if (s->want->code == SUCCESS && (s->w->whole || s->want->none_left)) {
		s->want->code = NO_TASKS;
		s->want->wait_ms = model_wait(s->w, s->m, s->c, s->now);
	}
}

static uint32_t next_again(const struct step *s, uint32_t task)
{
	uint32_t next = step_task(s, task)->last_next;
	const struct model_task *t = step_task(s, next);

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
		step_task(s, task)->last_next = next;
	s->want->has_next = 1;
	s->want->next_id = next;
	if (!next && s->want->repeated && !s->w->whole)
		s->want->elsewhere = s->want->none_left = 1;
	if (!next)
		return;
	s->want->next = *step_task(s, next);
	model_count_links(s->m, next, s->want->next_counts);
	step_grant(s, step_task(s, next), &s->want->next_lock);
}

static bool grants(const struct step *s)
{
	enum op op = s->rq->op;

	return op == OP_CLAIM || op == OP_LOCK_ACQUIRE || op == OP_HEARTBEAT ||
	       (op == OP_STATUS && s->rq->status == IN_PROGRESS);
}

/* A task as it begins. What was removed under that id left its fence behind. */
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

/* Where a queue is a folder of lock files, a claim makes the task that it names. */
static bool made_by_claim(const struct step *s)
{
	if (!s->w->policy.claim_creates || s->rq->op != OP_CLAIM || HAS(s->rq, fence))
		return false;
	begin_task(s, s->c->id, s->rq->id);
	return true;
}

/* A refusal leaves the task as it was, unless it went to Needs Help for being abandoned too often. */
static void about_task(const struct step *s)
{
	uint32_t task = s->c->id;
	struct model_task before;
	bool gave_up;

	before = *step_task(s, task);
	if (!before.status && !made_by_claim(s)) {
		s->want->code = NOT_FOUND;
		return;
	}
	s->want->code = one_task(s, task);
	gave_up = before.status == IN_PROGRESS && step_task(s, task)->status == NEEDS_HELP;
	if (s->want->code != SUCCESS && !gave_up)
		*step_task(s, task) = before;
	settle(s, task);
	if (s->want->code == SUCCESS && s->rq->op == OP_DONE && s->rq->claim_next)
		claim_next(s, task);
	show(s, task);
	if (s->want->code == SUCCESS && grants(s))
		step_grant(s, step_task(s, task), &s->want->lock);
}

static void make(const struct step *s, uint32_t task, struct str spelled)
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
	settle(s, task);
	show(s, task);
}

/* An id that the queue makes, whatever spelling others use. */
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
	make(s, task, str_c(made));
	if (s->want->code == SUCCESS)
		s->m->counter = counter;
}

static void create(const struct step *s)
{
	if (HAS(s->rq, status) && s->rq->status != READY && s->rq->status != BACKLOG) {
		s->want->code = USAGE;
	} else if (!HAS(s->rq, id)) {
		make_any(s);
	} else if (step_there(s, s->c->id)) {
		s->want->code = s->rq->if_absent ? SUCCESS : CONFLICT;
		s->want->existed = s->rq->if_absent != 0;
		show(s, s->c->id);
	} else {
		make(s, s->c->id, s->rq->id);
	}
}

static enum result may_remove(const struct step *s, uint32_t task)
{
	const struct model_task *t = step_task(s, task);

	if (s->rq->explicit && step_in_the_way(s, t) != SUCCESS)
		return step_in_the_way(s, t);
	if (s->rq->force)
		return SUCCESS;
	if (model_live(t, s->now))
		return MISCONFIGURED;
	for (uint32_t i = 1; i < s->m->n_tasks; i++) {
		const struct model_task *o = model_task(s->m, i);

		if (o->status && (o->parent == task || step_depends_at(o, task) < MODEL_DEPENDS))
			return MISCONFIGURED;
	}
	return SUCCESS;
}

/* What is left of the links of a task that is gone. */
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

static void drop(const struct step *s)
{
	struct model_task *t = step_task(s, s->c->id);

	if (!step_there(s, s->c->id)) {
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
}

/* One that is locked is somebody's, and stays; so does one that is not old enough, or in the archive already. */
static void put_away(const struct step *s, struct model_task *t)
{
	int64_t since = t->done_at ? t->done_at : t->updated_at;

	if (!step_over(t) || t->archived_at || t->lock.holder || s->now - since < s->rq->older_than)
		return;
	t->archived_at = s->now;
	t->version++;
	s->want->touched++;
}

static void archive(const struct step *s)
{
	if (!HAS(s->rq, id)) {
		for (uint32_t i = 1; i < s->m->n_tasks; i++)
			put_away(s, model_task(s->m, i));
	} else if (!step_there(s, s->c->id)) {
		s->want->code = NOT_FOUND;
	} else if (!step_over(step_task(s, s->c->id))) {
		s->want->code = MISCONFIGURED;
		show(s, s->c->id);
	} else {
		put_away(s, step_task(s, s->c->id));
	}
}

/* --- all ----------------------------------------------------------------------------------------- */

/* The id that would be made next; the counter after it. */
static int64_t show_id(const struct step *s)
{
	int64_t counter = s->m->counter;

	if (s->w->whole)
		s->want->made_id = model_name(s->w, MODEL_TEXT,
					      model_next_id(s->w, s->m, &counter, s->w->arena));
	return counter;
}

static void read_only(const struct step *s)
{
	uint32_t first;

	switch (s->rq->op) {
	case OP_SHOW:
	case OP_LOCK_STATUS:
		if (step_there(s, s->c->id))
			show(s, s->c->id);
		else
			s->want->code = NOT_FOUND;
		return;
	case OP_ID_PEEK:
		(void)show_id(s);
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
	case OP_ARCHIVE:
		archive(s);
		return;
	case OP_ID_CLAIM:
		s->m->counter = show_id(s);
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
	struct step s;

	memset(want, 0, sizeof(*want));
	want->now = now;
	s = (struct step){ w, m, c, c->rq, now, choice, want };
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
	while ((task = model_first(w, s.m, c, now)) && step_worn(&s, step_task(&s, task))) {
		(void)step_abandon(&s, step_task(&s, task));
		n++;
	}
	arena_free(&a);
	return n;
}
