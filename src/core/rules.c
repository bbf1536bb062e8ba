#include "core/rules.h"

#include "core/acquire.h"
#include "core/lease.h"
#include "core/override.h"
#include "core/refuse.h"
#include "core/update.h"

/* Effects and conditions of an operation, besides the change of status. */
#define CLEAR 1u   /* clears the lock */
#define GUARD 2u   /* requires that all sub-tasks are Done or Canceled */
#define MANUAL 4u  /* allowed from Ready, too, for the holder of a manual lock */
#define FRESH 8u   /* resets the count of abandoned leases */
#define FINISH 16u /* sets done_at */
#define BLAME 32u  /* stores the reason in blocker_reason */
#define SUMMED 64u /* stores the summary */
#define BACK 128u /* hands work back: clears the lock, others need not wait, and updated_at stays */

struct rule {
	const char *what, *event;
	unsigned from;
	enum status to;
	unsigned flags;
};

#define ON(s) STATUS_BIT(s)

static const struct rule rules[OP_END] = {
	[OP_RELEASE] = { "release", "released", ON(IN_PROGRESS), READY, CLEAR | FRESH },
	[OP_BLOCK] = { "block", "blocked", ON(IN_PROGRESS), BLOCKED, MANUAL | BLAME },
	[OP_UNBLOCK] = { "unblock", "unblocked", ON(BLOCKED) | ON(NEEDS_HELP), IN_PROGRESS,
			 BACK | FRESH },
	[OP_ESCALATE] = { "escalate", "escalated", ON(IN_PROGRESS), NEEDS_HELP,
			  CLEAR | MANUAL | BLAME },
	[OP_REVIEW] = { "review", "review", ON(IN_PROGRESS), REVIEW,
			CLEAR | GUARD | MANUAL | SUMMED },
	[OP_APPROVE] = { "approve", "approved", ON(REVIEW), DONE, CLEAR | FINISH },
	[OP_REWORK] = { "rework", "rework", ON(REVIEW), IN_PROGRESS, BACK | FRESH },
	[OP_DONE] = { "done", "done", ON(IN_PROGRESS), DONE,
		      CLEAR | GUARD | MANUAL | FINISH | SUMMED },
	[OP_FAIL] = { "fail", "failed", ON(IN_PROGRESS), FAILED, CLEAR | MANUAL | BLAME },
	[OP_RETRY] = { "retry", "retried", ON(FAILED), READY, CLEAR | FRESH },
	[OP_REOPEN] = { "reopen", "reopened", ON(DONE) | ON(CANCELED), READY, CLEAR | FRESH },
	[OP_CANCEL] = { "cancel", "canceled",
			ON(BACKLOG) | ON(READY) | ON(IN_PROGRESS) | ON(BLOCKED) | ON(NEEDS_HELP) |
				ON(REVIEW) | ON(FAILED),
			CANCELED, CLEAR | BLAME },
};

void verdict_event(struct verdict *v, const struct call *c, const struct task *t, const char *name,
		   int64_t from, struct str text)
{
	bool moved = from && from != t->status;

	v->events[v->n_events++] = (struct event){
		.name = str_c(name),
		.task = t->id,
		.agent = c->rq->agent,
		.run = c->rq->run,
		.text = text,
		.fence = t->fence,
		.from = moved ? from : 0,
		.to = moved ? t->status : 0,
	};
}

bool rules_free(const struct task *t, const struct call *c, struct verdict *v)
{
	if (c->rq->explicit && !lease_owned(&t->lock, c->proof, c->now))
		refuse_lost(v, c, t);
	else if (!override_needed(t, c) || c->rq->force)
		return true;
	else if (override_possible(c->rq->op) || c->rq->op == OP_STATUS)
		refuse_protected(v, c, t);
	else
		refuse_held(v, c, t);
	return false;
}

static unsigned starts_from(const struct rule *r, const struct task *t)
{
	return r->from | (r->flags & MANUAL && t->lock.manual ? ON(READY) : 0);
}

static bool allowed(const struct rule *r, const struct task *t, const struct call *c, bool own,
		    struct verdict *v)
{
	if (own && !lease_owned(&t->lock, c->proof, c->now)) {
		refuse_lost(v, c, t);
		return false;
	}
	if (!(starts_from(r, t) & STATUS_BIT(t->status))) {
		refuse_status(v, c, t, r->what, r->from);
		return false;
	}
	if (!own && !rules_free(t, c, v))
		return false;
	if (r->flags & GUARD && t->open_subs) {
		refuse_subtasks(v, c, t);
		return false;
	}
	return true;
}

static struct str words(enum op op, const struct task *t, const struct call *c)
{
	const struct request *rq = c->rq;

	if (op == OP_APPROVE && t->open_subs)
		return arena_printf(c->arena, "despite %lld open sub-task%s",
				    (long long)t->open_subs, t->open_subs == 1 ? "" : "s");
	if (op == OP_REVIEW || op == OP_DONE)
		return rq->summary;
	return op == OP_APPROVE || op == OP_REWORK ? STR("") : rq->reason;
}

static void set_fields(const struct rule *r, struct task *t, const struct call *c)
{
	const struct request *rq = c->rq;

	if (r->flags & BLAME)
		t->blocker_reason = rq->reason;
	if (r->to == BLOCKED) {
		t->unblock_action = rq->unblock_action;
		t->next_check = rq->next_check;
		t->lock.manual = 0;
	}
	if (r->flags & SUMMED && rq->summary.n)
		t->summary = rq->summary;
	if (r->flags & FRESH)
		t->abandoned = 0;
	t->done_at = r->flags & FINISH ? c->now : 0;
	if (r->flags & CLEAR)
		lease_clear(t, c->now);
	if (r->flags & BACK)
		lease_hand_back(t, c->policy, c->now);
}

/* Edited, but as old as before: it goes where it was in the order. */
static void handed_back(struct verdict *v, struct task *t)
{
	t->version++;
	v->changed = true;
}

/* The obstacle of an earlier attempt is gone: the work that goes to review has solved it or made it moot. */
static void forget_reason(enum op op, struct task *t)
{
	if (op != OP_REVIEW && op != OP_DONE && op != OP_APPROVE && op != OP_REWORK &&
	    op != OP_REOPEN)
		return;
	t->blocker_reason = t->unblock_action = STR("");
	t->next_check = 0;
}

void verdict_edited(struct verdict *v, const struct call *c, struct task *t)
{
	t->version++;
	t->updated_at = c->now;
	v->changed = true;
}

static void move(enum op op, struct task *t, const struct call *c, struct verdict *v)
{
	const struct rule *r = &rules[op];
	bool own = lease_owned(&t->lock, c->proof, c->now);
	struct str comment = op == OP_REWORK    ? c->rq->reason
			     : op == OP_APPROVE ? c->rq->summary
						: STR("");
	int64_t from = t->status;

	if (override_is(t, c))
		override_note(t, c, v, (struct strs){ &(struct str){ "status", 6 }, 1 });
	set_fields(r, t, c);
	forget_reason(op, t);
	if (own)
		t->last = (struct last){ .op = op, .token = c->proof };
	t->status = r->to;
	if (r->flags & BACK)
		handed_back(v, t);
	else
		verdict_edited(v, c, t);
	verdict_event(v, c, t, r->event, from, words(op, t, c));
	if (comment.n)
		verdict_event(v, c, t, "comment", 0, comment);
}

/* Has this holder done the operation already? `last` remembers it after the lock has ended. A claim is not checked
 * here: it is recognised by its new token. `last.op` may be unknown, because a newer pawl may have written it. */
static bool is_repeat(enum op op, const struct task *t, const struct call *c)
{
	int64_t did = t->last.op;
	/* done --take knows itself by the token that it took the task with */
	bool took = c->rq->take && c->fresh.n && str_eq(t->last.token, c->fresh);

	if (did <= OP_NONE || did >= OP_END ||
	    !(took || (c->proof.n && str_eq(t->last.token, c->proof))))
		return false;
	if (op == OP_STATUS)
		return c->rq->status != IN_PROGRESS && (int64_t)rules[did].to == c->rq->status;
	return did == (int64_t)op;
}

static void heartbeat(struct task *t, const struct call *c, struct verdict *v)
{
	if (!lease_owned(&t->lock, c->proof, c->now)) {
		refuse_lost(v, c, t);
		return;
	}
	if (t->status == BLOCKED) {
		refuse(v, MISCONFIGURED,
		       arena_printf(c->arena, "%.*s is Blocked, so its lease cannot be renewed",
				    STRF(t->id)),
		       arena_printf(c->arena, "pawl unblock %.*s, then claim it again",
				    STRF(t->id)));
		return;
	}
	lease_renew(t, HAS(c->rq, ttl) ? c->rq->ttl : t->lock.ttl, c->now);
	if (HAS(c->rq, pid))
		lease_move(t, c->rq);
	t->version++;
	v->changed = v->granted = true;
}

/* In a store of locks only, other programs write locks without tokens, so the name of the agent identifies the
 * holder. They also respect a lock after it expired, so the holder may remove an expired lock. */
static bool may_remove(const struct task *t, const struct call *c)
{
	if (!c->policy->locks_only || !t->lock.holder.n)
		return false;
	return t->lock.foreign ? str_eq(t->lock.holder, c->rq->agent)
			       : c->proof.n && str_eq(t->lock.token, c->proof);
}

static void unlock(struct task *t, const struct call *c, struct verdict *v)
{
	bool removable = may_remove(t, c);

	if (!lease_live(&t->lock, c->now) && !removable) {
		v->repeated = true;
		return;
	}
	if (!lease_owned(&t->lock, c->proof, c->now) && !removable) {
		refuse_lost(v, c, t);
		return;
	}
	t->last = (struct last){ .op = OP_LOCK_RELEASE, .token = c->proof };
	lease_clear(t, c->now);
	verdict_edited(v, c, t);
	verdict_event(v, c, t, "unlocked", 0, c->rq->reason);
}

static void break_lock(struct task *t, const struct call *c, struct verdict *v)
{
	struct str holder = t->lock.holder;

	if (c->rq->explicit && !lease_owned(&t->lock, c->proof, c->now)) {
		refuse_lost(v, c, t);
		return;
	}
	if (!holder.n) {
		v->repeated = true;
		return;
	}
	lease_hand_back(t, c->policy, c->now);
	handed_back(v, t);
	verdict_event(v, c, t, "lock_broken", 0,
		      arena_printf(c->arena, "the lock of %.*s: %.*s", STRF(holder),
				   STRF(c->rq->reason)));
}

static void comment(struct task *t, const struct call *c, struct verdict *v)
{
	if (c->rq->explicit && !lease_owned(&t->lock, c->proof, c->now))
		refuse_lost(v, c, t);
	else
		verdict_event(v, c, t, "comment", 0, c->rq->text);
}

enum op rules_for_status(int64_t now, int64_t target)
{
	switch (target) {
	case IN_PROGRESS:
		return OP_CLAIM;
	case REVIEW:
		return OP_REVIEW;
	case DONE:
		return now == REVIEW ? OP_APPROVE : OP_DONE;
	case BLOCKED:
		return OP_BLOCK;
	case NEEDS_HELP:
		return OP_ESCALATE;
	case FAILED:
		return OP_FAIL;
	case CANCELED:
		return OP_CANCEL;
	case READY:
		return now == IN_PROGRESS ? OP_RELEASE : now == FAILED ? OP_RETRY : OP_UPDATE;
	default:
		return OP_UPDATE;
	}
}

enum op rules_first_step(int64_t now)
{
	if (now == REVIEW)
		return OP_REWORK;
	return now == BLOCKED || now == NEEDS_HELP ? OP_UNBLOCK : OP_NONE;
}

static void apply(enum op op, struct task *t, const struct call *c, struct verdict *v);

static void to_status(struct task *t, const struct call *c, struct verdict *v)
{
	enum op op = rules_for_status(t->status, c->rq->status);
	enum op first = op == OP_CLAIM ? rules_first_step(t->status) : OP_NONE;
	int64_t version = t->version;

	if (first == OP_REWORK && !c->rq->reason.n) {
		refuse(v, USAGE, STR("taking a task back from Review needs a reason"),
		       arena_printf(c->arena, "pawl status %.*s in-progress --reason TEXT",
				    STRF(t->id)));
		return;
	}
	if (first && c->paused) { /* before the first step: a refusal changes nothing */
		refuse_paused(v, c);
		return;
	}
	if (first)
		apply(first, t, c, v);
	if (v->code == SUCCESS)
		apply(op, t, c, v);
	if (v->changed)
		t->version = version + 1; /* two steps are one change */
}

static void move_if_allowed(enum op op, struct task *t, const struct call *c, struct verdict *v)
{
	if (allowed(&rules[op], t, c, op_flags(op) & OP_OWN, v))
		move(op, t, c, v);
}

static bool takes_first(const struct task *t, const struct call *c)
{
	return c->rq->take && !c->rq->explicit && t->status == READY &&
	       !lease_owned(&t->lock, c->proof, c->now);
}

/* done --take: nobody has to claim a task that is finished already. */
static void take_and_finish(struct task *t, const struct call *c, struct verdict *v)
{
	struct call own = *c;
	int64_t version = t->version;

	if (t->open_subs) {
		refuse_subtasks(v, c, t);
		return;
	}
	acquire_claim(t, c, v);
	if (v->code != SUCCESS)
		return;
	own.proof = c->fresh;
	move(OP_DONE, t, &own, v);
	v->granted = false;
	t->version = version + 1;
}

/* release --force: a task that its lost lock left In Progress. A live lock has to be broken first. */
static void release_free(struct task *t, const struct call *c, struct verdict *v)
{
	if (t->status != IN_PROGRESS) {
		refuse_status(v, c, t, "release", ON(IN_PROGRESS));
		return;
	}
	if (lease_live(&t->lock, c->now)) {
		refuse_held(v, c, t);
		v->hint = arena_printf(
			c->arena, "pawl lock break %.*s --reason TEXT ends this lock", STRF(t->id));
		return;
	}
	move(OP_RELEASE, t, c, v);
}

static void apply(enum op op, struct task *t, const struct call *c, struct verdict *v)
{
	switch (op) {
	case OP_CLAIM:
		acquire_claim(t, c, v);
		return;
	case OP_LOCK_ACQUIRE:
		acquire_manual(t, c, v);
		return;
	case OP_HEARTBEAT:
		heartbeat(t, c, v);
		return;
	case OP_LOCK_RELEASE:
		unlock(t, c, v);
		return;
	case OP_LOCK_BREAK:
		break_lock(t, c, v);
		return;
	case OP_STATUS:
		to_status(t, c, v);
		return;
	case OP_UPDATE:
		update_apply(t, c, v);
		return;
	case OP_COMMENT:
		comment(t, c, v);
		return;
	case OP_DONE:
		if (takes_first(t, c))
			take_and_finish(t, c, v);
		else
			move_if_allowed(op, t, c, v);
		return;
	case OP_RELEASE:
		if (c->rq->force && !lease_owned(&t->lock, c->proof, c->now))
			release_free(t, c, v);
		else
			move_if_allowed(op, t, c, v);
		return;
	default:
		move_if_allowed(op, t, c, v);
	}
}

/* Would the acquisition only be told again that it has the lock? */
static bool is_held_already(enum op op, const struct task *t, const struct call *c)
{
	bool claim = op == OP_CLAIM || (op == OP_STATUS && c->rq->status == IN_PROGRESS);

	if ((!claim && op != OP_LOCK_ACQUIRE) || !lease_owned(&t->lock, c->fresh, c->now))
		return false;
	return !claim || (t->status == IN_PROGRESS && !t->lock.manual);
}

void rules_apply(enum op op, struct task *t, const struct call *c, struct verdict *v)
{
	if ((rules[op].what || op == OP_STATUS) && is_repeat(op, t, c))
		v->repeated = true;
	else if (op != c->rq->op || is_held_already(op, t, c) || override_version(t, c, v))
		apply(op, t, c, v);
}
