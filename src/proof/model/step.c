/* One call, and the answer that is kept for repeats. */
#include "proof/model/model_private.h"

/* A Ready task that depends on a canceled task goes to Needs Help. */
void step_settle(const struct step *s, uint32_t about)
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

void step_show(const struct step *s, uint32_t task)
{
	s->want->id = task;
	s->want->task = *step_task(s, task);
	if (!s->want->task.spelled) /* a lock of the whole queue */
		s->want->task.spelled = model_name(s->w, MODEL_TEXT,
						   model_text(s->w, MODEL_TASK, task));
	model_count_links(s->m, task, s->want->counts);
	if (s->c->token && s->want->task.over_token == s->c->token &&
	    !(op_flags(s->rq->op) & OP_READS))
		s->want->changed = s->want->task.over_by;
}

static bool model_step_grants(const struct step *s)
{
	enum op op = s->rq->op;

	return op == OP_CLAIM || op == OP_LOCK_ACQUIRE || op == OP_HEARTBEAT ||
	       (op == OP_STATUS && s->rq->status == IN_PROGRESS);
}

/* A refused call changes nothing, unless the task went to Needs Help for being abandoned too
 * often. */
static void about_task(const struct step *s)
{
	uint32_t task = s->c->id;
	struct model_task before;
	bool gave_up;

	before = *step_task(s, task);
	if (!before.status && !step_made_by_claim(s)) {
		s->want->code = NOT_FOUND;
		return;
	}
	s->want->code = step_one_task(s, task);
	gave_up = before.status == IN_PROGRESS && step_task(s, task)->status == NEEDS_HELP;
	if (s->want->code != SUCCESS && !gave_up)
		*step_task(s, task) = before;
	step_settle(s, task);
	if (s->want->code == SUCCESS && s->rq->op == OP_DONE && s->rq->claim_next)
		step_claim_next(s, task);
	step_show(s, task);
	if (s->want->code == SUCCESS && model_step_grants(s))
		step_grant(s, step_task(s, task), &s->want->lock);
}

/* --- the whole step ------------------------------------------------------------------------------ */

/* Shows the id that would be created next; returns the counter after it. */
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
	case OP_EMERGENCY:
		step_show(s, s->c->id);
		return;
	case OP_SHOW:
	case OP_LOCK_STATUS:
		if (model_is_guard(s->rq->id) || step_there(s, s->c->id))
			step_show(s, s->c->id);
		else
			s->want->code = NOT_FOUND;
		return;
	case OP_ID_PEEK:
		(void)show_id(s);
		return;
	case OP_NEXT:
		if (s->rq->explain)
			return;
		if (step_paused(s)) {
			s->want->code = NO_TASKS;
			s->want->paused = 1;
			return;
		}
		first = model_first(s->w, s->m, s->c, s->now);
		s->want->elsewhere = !s->w->whole;
		s->want->none_left = !first;
		if (first) {
			step_show(s, first);
		} else {
			s->want->code = NO_TASKS;
			s->want->wait_ms = model_wait(s->w, s->m, s->c, s->now);
		}
		return;
	default:
		return;
	}
}

static void model_step_change(const struct step *s)
{
	if (model_is_guard(model_text(s->w, MODEL_TASK, s->c->id))) {
		step_about_guard(s);
		return;
	}
	switch (s->rq->op) {
	case OP_CREATE:
		step_create(s);
		return;
	case OP_TAKE:
		step_take(s);
		return;
	case OP_REMOVE:
		step_drop(s);
		return;
	case OP_LOCK_CLEANUP:
		step_cleanup(s);
		return;
	case OP_ARCHIVE:
		step_archive(s);
		return;
	case OP_ID_CLAIM:
		s->m->counter = show_id(s);
		return;
	default:
		about_task(s);
	}
}

/* A repeat within a day gets the first answer. */
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
		.until = s->now + MODEL_KEPT,
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
		abort(); /* model_new() was given no room for it */
	if (op_flags(c->rq->op) & OP_READS) {
		read_only(&s);
	} else if (!answered_before(&s) && !step_kept_out(&s)) {
		model_step_change(&s);
		keep_answer(&s);
	}
}
