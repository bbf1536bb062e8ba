/*
 * A holder that lost its task: its lease expired, or its process died, before the work was done. The
 * log names it, and after max_abandoned times the task goes to Needs Help instead of to the next
 * agent.
 */
#include "base/when.h"
#include "core/lease.h"
#include "core/rules.h"

bool lease_abandon(struct task *t, const struct policy *p)
{
	t->abandoned++;
	return p->max_abandoned && t->abandoned >= p->max_abandoned;
}

bool lease_abandoned(const struct task *t, int64_t now)
{
	return t->status == IN_PROGRESS && t->lock.holder.n && !lease_live(&t->lock, now);
}

struct str process_died(const struct lock *l, struct arena *a)
{
	return arena_printf(a, "the lock of %.*s: process %lld died", STRF(l->holder),
			    (long long)l->pid);
}

static struct str abandon_text(const struct lock *l, const struct call *c)
{
	if (lease_live(l, c->now))
		return arena_printf(c->arena, "process %lld died; found by %.*s", (long long)l->pid,
				    STRF(c->rq->agent));
	return arena_printf(c->arena, "its lease expired at %s; found by %.*s",
			    arena_cstr(c->arena, when_text(c->arena, l->expires_at)),
			    STRF(c->rq->agent));
}

/* The log names the agent that lost the task. The caller only found the lock. */
static void abandon_log(const struct task *t, struct call *c)
{
	struct event *e = &c->events[c->n_events];

	call_event(c, t, "abandoned", 0, abandon_text(&t->lock, c));
	e->agent = t->lock.holder;
	e->run = t->run;
}

bool abandon_task(struct task *t, struct call *c)
{
	bool too_often = lease_abandon(t, c->policy);
	int64_t from = t->status;

	abandon_log(t, c);
	if (!too_often)
		return false;
	t->status = NEEDS_HELP;
	t->blocker_reason = arena_printf(
		c->arena, "abandoned %lld times: each agent lost its lease before it finished",
		(long long)t->abandoned);
	lease_clear(t, c->now);
	call_edited(c, t);
	call_event(c, t, "needs_help", from, t->blocker_reason);
	refuse(c, MISCONFIGURED,
	       arena_printf(c->arena, "%.*s was abandoned %lld times and now needs help",
			    STRF(t->id), (long long)t->abandoned),
	       arena_printf(c->arena,
			    "pawl show %.*s shows the task; pawl unblock %.*s offers it again",
			    STRF(t->id), STRF(t->id)));
	return true;
}

/* An operator's change is not a claim, so it does not move the task to Needs Help. */
static bool abandon_counts_death(const struct call *c)
{
	return op_flags(c->rq->op) & OP_TAKES &&
	       (c->rq->op != OP_STATUS || c->rq->status == IN_PROGRESS);
}

bool abandon_by_dead(struct task *t, struct call *c)
{
	bool resume = c->rq->op == OP_CLAIM && HAS(c->rq, fence);

	if (t->status != IN_PROGRESS || resume) {
		call_event(c, t, "cleaned_up", 0, process_died(&t->lock, c->arena));
	} else if (abandon_counts_death(c)) {
		if (abandon_task(t, c))
			return false;
	} else {
		(void)lease_abandon(t, c->policy);
		abandon_log(t, c);
	}
	lease_clear(t, c->now);
	t->free_at = c->now;
	return true;
}
