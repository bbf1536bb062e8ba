/* Checks that no call gets past another agent's lock of the whole queue, or an emergency. It reports only calls that were made
 * while the queue was certainly closed. */

#include "proof/check/checker_private.h"
#include "proof/model/model.h"

/* A period in which the queue is certainly closed: to calls that were sent after `from` and answered
 * before `until`. */
struct closure {
	const struct history_call *by;
	struct str id;
	int64_t from, until;
	int64_t expires_at; /* store time */
};

static bool check_guard_happened(const struct history_call *c)
{
	return call_accepted(c) || call_unanswered(c);
}

static bool is_of(const struct history_call *c, struct str id)
{
	return str_eq_nocase(model_about(c->rq), id);
}

/* Could the call have reopened the queue? A cleanup ends a dead process's lock before its lease
 * expires. */
static bool check_guard_opens(const struct history_call *c, const struct closure *x)
{
	const struct request *rq = c->rq;

	if (!check_guard_happened(c) || (!call_unanswered(c) && call_before(c, x->by)))
		return false;
	if (rq->op == OP_LOCK_CLEANUP)
		return HAS(x->by->rq, pid);
	if (rq->op == OP_LOCK_RELEASE)
		return is_of(c, x->id) && str_eq(rq->token, x->by->rq->new_token);
	return (rq->op == OP_LOCK_BREAK || rq->op == OP_EMERGENCY_OFF || rq->op == OP_RESUME) &&
	       is_of(c, x->id);
}

static bool check_guard_closes(const struct history_call *c, struct closure *out)
{
	bool emergency = c->rq->op == OP_EMERGENCY_ON || c->rq->op == OP_PAUSE;

	*out = (struct closure){ c, model_about(c->rq), c->answered, HISTORY_NEVER, INT64_MAX };
	if (!call_accepted(c) || !model_is_guard(out->id))
		return false;
	if (!emergency && c->ans->lock)
		out->expires_at = c->ans->lock->expires_at;
	return emergency || (c->rq->op == OP_LOCK_ACQUIRE && c->ans->lock);
}

/* Was the task's lock acquired after `at`? A history may lack that time; then a new lease shows it. */
static bool check_guard_acquired(const struct task *t, const struct grant *lock, int64_t at)
{
	if (!t || !lock)
		return false;
	return (t->lock.acquired_at ? t->lock.acquired_at : lock->expires_at - lock->ttl) > at;
}

static bool past_pause(const struct closure *by, const struct history_call *c)
{
	const struct answer *ans = c->ans;
	bool resumes = c->rq->op == OP_CLAIM && HAS(c->rq, fence);

	if (ans->repeated || resumes || model_is_guard(c->rq->id) || c->rq->op == OP_HEARTBEAT)
		return false;
	return check_guard_acquired(ans->task, ans->lock, by->by->ans->now) ||
	       check_guard_acquired(ans->next, ans->next_lock, by->by->ans->now);
}

static bool kept_out(const struct checking *x, const struct closure *by,
		     const struct history_call *c)
{
	if (by->by->rq->op == OP_EMERGENCY_ON)
		return model_guarded(c->rq);
	if (by->by->rq->op == OP_PAUSE)
		return past_pause(by, c);
	return !x->skewed && c->ans->now < by->expires_at && !str_eq(c->agent, by->by->agent) &&
	       model_bars(&x->log->head.policy, by->id, c->rq);
}

static void check_closure(struct checking *x, struct closure *by)
{
	for (size_t i = 0; i < x->log->n_calls; i++)
		if (x->calls[i]->sent < by->until && check_guard_opens(x->calls[i], by))
			by->until = x->calls[i]->sent;
	for (size_t i = 0; i < x->log->n_calls && x->calls[i]->sent < by->until; i++) {
		const struct history_call *c = x->calls[i];

		if (c->sent <= by->from || c->answered >= by->until || !call_accepted(c) ||
		    !kept_out(x, by, c))
			continue;
		check_add(x, CHECK_CLOSED, c->rq->id,
			  (const struct history_call *const[]){ by->by, c }, 2,
			  "%.*s kept others out, but %s succeeded", STRF(by->id),
			  op_name(c->rq->op));
		return;
	}
}

void check_guards(struct checking *x)
{
	struct closure by;

	for (size_t i = 0; i < x->log->n_calls; i++)
		if (check_guard_closes(x->calls[i], &by))
			check_closure(x, &by);
}
