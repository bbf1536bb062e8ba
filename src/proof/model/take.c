/* Calls that take the first task in order. */
#include "proof/model/model_private.h"

/* The live task that an earlier call took with this token. */
static uint32_t taken_before(const struct step *s)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++)
		if (step_held_by(s, model_task(s->m, i), s->c->new_token))
			return i;
	return 0;
}

/* Takes the first task in order. Tasks that were abandoned too often go to Needs Help on the way.
 * 0: none. */
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

void step_take(const struct step *s)
{
	uint32_t task = taken_before(s);

	if (task)
		s->want->repeated = 1;
	else if (step_paused(s))
		s->want->paused = 1;
	else
		task = take_first(s);
	if (s->want->paused) {
		s->want->code = NO_TASKS;
		s->want->elsewhere = !s->w->whole; /* a repeat holds a task of another world */
	} else if (task) {
		step_show(s, task);
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

void step_claim_next(const struct step *s, uint32_t task)
{
	uint32_t next;

	if (s->want->repeated)
		next = next_again(s, task);
	else if (!(next = taken_before(s)) && step_paused(s))
		s->want->paused = 1;
	else if (!next)
		next = take_first(s);
	if (!s->want->repeated)
		step_task(s, task)->last_next = next;
	s->want->has_next = 1;
	s->want->next_id = next;
	if (!next && (s->want->repeated || s->want->paused) && !s->w->whole)
		s->want->elsewhere = s->want->none_left = 1;
	if (!next)
		return;
	s->want->next = *step_task(s, next);
	model_count_links(s->m, next, s->want->next_counts);
	step_grant(s, step_task(s, next), &s->want->next_lock);
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
	if (c->rq->op == OP_DONE) /* the tasks that wait for this one are eligible next */
		step_task(&s, c->id)->status = DONE;
	while ((task = model_first(w, s.m, c, now)) && step_worn(&s, step_task(&s, task))) {
		(void)step_abandon(&s, step_task(&s, task));
		n++;
	}
	arena_free(&a);
	return n;
}
