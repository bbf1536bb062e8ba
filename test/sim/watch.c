/*
 * The promises that the answers alone show: fences grow, one holder at a time, one completion for
 * each fence, no write with a stale token, no task lost.
 */
#include "sim.h"

static struct watched *watched(struct sim *s, struct str id)
{
	return &s->tasks[model_find(s->w, MODEL_TASK, id)];
}

/* The caller was granted a lock. */
static bool saw_grant(struct sim *s, const struct model_call *c, const struct task *t,
		      const struct grant *g)
{
	struct watched *x = watched(s, t->id);
	uint32_t token = c->new_token;
	bool gives_way = c->rq->op == OP_STATUS; /* unblock and claim in one call */

	if (g->fence == x->fence && token == x->token)
		return true; /* a repeat, or work begun under a manual lock */
	if (g->fence != x->fence + 1)
		return sim_wrong(s, "%.*s was acquired with fence %lld after %lld", STRF(t->id),
				 (long long)g->fence, (long long)x->fence);
	if (x->token && x->expires_at > s->now && !gives_way)
		return sim_wrong(s, "%.*s has two live holders", STRF(t->id));
	x->fence = g->fence;
	x->token = token;
	x->expires_at = g->expires_at;
	return true;
}

static bool needs_own(const struct request *rq)
{
	switch (rq->op) {
	case OP_HEARTBEAT:
	case OP_RELEASE:
		return !rq->force;
	case OP_BLOCK:
	case OP_ESCALATE:
	case OP_REVIEW:
	case OP_DONE:
	case OP_FAIL:
		return true;
	case OP_STATUS:
		return rq->status == BLOCKED || rq->status == NEEDS_HELP || rq->status == FAILED;
	default:
		return false;
	}
}

/* An accepted write. */
static bool saw_write(struct sim *s, const struct model_call *c, const struct answer *ans)
{
	struct watched *x = watched(s, ans->task->id);
	bool own = c->token && c->token == x->token && s->now < x->expires_at;
	bool takes = c->rq->op == OP_DONE && c->rq->take && ans->task->fence == x->fence + 1;

	if (takes && x->token && s->now < x->expires_at)
		return sim_wrong(s, "%.*s was taken from its holder", STRF(ans->task->id));
	x->fence += takes;

	if (needs_own(c->rq) && !own && !takes)
		return sim_wrong(s, "a stale token was accepted");
	if (c->rq->explicit && c->rq->op != OP_LOCK_RELEASE && c->token && !own)
		return sim_wrong(s, "a stale token that was named was accepted");
	if (c->rq->op == OP_DONE) {
		if (ans->task->fence <= x->done_fence)
			return sim_wrong(s, "fence %lld was completed twice",
					 (long long)ans->task->fence);
		x->done_fence = ans->task->fence;
	}
	return true;
}

/* The task in its present state. */
static bool saw_task(struct sim *s, const struct task *t)
{
	struct watched *x = watched(s, t->id);

	if (!x->there && !model_is_guard(t->id))
		return sim_wrong(s, "%.*s came from nowhere", STRF(t->id));
	if (t->fence != x->fence)
		return sim_wrong(s, "%.*s: its fence went from %lld to %lld", STRF(t->id),
				 (long long)x->fence, (long long)t->fence);
	if (!t->lock.holder.n)
		x->token = 0;
	x->expires_at = t->lock.expires_at;
	return true;
}

static void saw_removal(struct watched *x)
{
	x->there = false;
	x->token = 0;
}

static bool saw_success(struct sim *s, const struct model_call *c, const struct answer *ans)
{
	bool changes = !(op_flags(c->rq->op) & OP_READS) && !ans->repeated;
	bool acquires = ans->lock && ans->lock->token.n;
	bool makes = c->rq->op == OP_CREATE || c->rq->op == OP_UNDO ||
		     (c->rq->op == OP_CLAIM && s->claim_creates);

	if (ans->task && makes)
		watched(s, ans->task->id)->there = true;
	if (acquires && !saw_grant(s, c, ans->task, ans->lock))
		return false;
	if (changes && !acquires && ans->task && !ans->existed && !saw_write(s, c, ans))
		return false;
	if (ans->task && c->rq->op == OP_REMOVE)
		saw_removal(watched(s, ans->task->id));
	else if (ans->task && !saw_task(s, ans->task))
		return false;
	if (ans->next && ans->next_lock->token.n && !saw_grant(s, c, ans->next, ans->next_lock))
		return false;
	for (size_t i = 0; i < ans->n_tasks; i++)
		if (!saw_task(s, &ans->tasks[i]))
			return false;
	return !ans->next || saw_task(s, ans->next);
}

bool watch_call(struct sim *s, const struct model_call *c, const struct answer *ans)
{
	bool as_it_was = ans->repeated && c->request;

	return ans->code != SUCCESS || as_it_was || saw_success(s, c, ans);
}

/* --- the end ------------------------------------------------------------------------------------- */

/* The event log is complete: every change of status, and every fence once. */
static bool check_log(struct sim *s)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans = { 0 };
	int64_t status[SIM_TASKS] = { 0 }, fence[SIM_TASKS] = { 0 };
	size_t overrides = 0;

	queue_call(s->q, &rq, &ans, &s->call);
	for (size_t i = 0; i < ans.n_events; i++) {
		const struct event *e = &ans.events[i];
		uint32_t task = model_find(s->w, MODEL_TASK, e->task);

		if (e->fence < fence[task] || e->fence > fence[task] + 1)
			return sim_wrong(s, "log: %.*s %.*s with fence %lld after %lld",
					 STRF(e->task), STRF(e->name), (long long)e->fence,
					 (long long)fence[task]);
		if (e->to && e->from != status[task])
			return sim_wrong(s, "log: %.*s %.*s from %s, but it was %s", STRF(e->task),
					 STRF(e->name), e->from ? status_name(e->from) : "nothing",
					 status[task] ? status_name(status[task]) : "not there");
		overrides += str_is(e->name, "overridden");
		fence[task] = e->fence;
		if (e->to)
			status[task] = e->to;
		if (str_is(e->name, "removed"))
			status[task] = 0;
	}
	for (uint32_t i = 1; i <= model_count(s->w, MODEL_TASK); i++) {
		const struct model_task *t = model_task(s->m, i);
		struct str id = model_text(s->w, MODEL_TASK, i);

		if (t->status != status[i] || t->fence != fence[i])
			return sim_wrong(s, "log: it leaves %.*s at %s with fence %lld", STRF(id),
					 status[i] ? status_name(status[i]) : "nothing",
					 (long long)fence[i]);
	}
	if (overrides != s->overrides)
		return sim_wrong(s, "log: %zu overrides, but there were %zu", overrides,
				 s->overrides);
	return true;
}

bool watch_end(struct sim *s)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };
	size_t there = 0;

	queue_call(s->q, &rq, &ans, &s->call);
	for (size_t i = 0; i < SIM_TASKS; i++)
		there += s->tasks[i].there;
	if (there != ans.n_tasks)
		return sim_wrong(s, "%zu tasks were made and not removed, %zu are there", there,
				 ans.n_tasks);
	return check_log(s);
}
