/*
 * Checks each operation on a task and applies it. A call that repeats the last operation of the
 * same token is answered as repeated and not applied again. One call raises the version at most
 * once, even if it takes two steps.
 */
#include "core/rules.h"

#include "core/lease.h"

/* The effects; core/op.def explains them. */
enum {
	CLEAR = 1,
	GUARD = 2,
	MANUAL = 4,
	FRESH = 8,
	FINISH = 16,
	BLAME = 32,
	SUMMED = 64,
	BACK = 128,
	SOLVED = 256
};

struct rule {
	const char *event; /* NULL: the operation is not a move */
	unsigned from;
	enum status to;
	unsigned flags;
};

#define ON(s) STATUS_BIT(s)

static const struct rule rules[OP_END] = {
#define MOVE(number, name, flags, role, timeout, from, to, effects, event) \
	[OP_##name] = { event, from, to, effects },
#include "core/op.def"
};

void call_reset(struct call *c)
{
	c->code = SUCCESS;
	c->message = c->hint = c->warning = STR("");
	c->repeated = c->changed = c->granted = c->by_pause = c->by_lock = false;
	c->n_events = 0;
}

void call_event(struct call *c, const struct task *t, const char *name, int64_t from,
		struct str text)
{
	bool moved = from && from != t->status;

	c->events[c->n_events++] = (struct event){
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

bool rules_free(const struct task *t, struct call *c)
{
	if (!lease_prove_named(t, c))
		return false;
	if (!override_needed(t, c) || c->rq->force)
		return true;
	if (op_flags(c->rq->op) & OP_FORCE || c->rq->op == OP_STATUS)
		refuse_protected(c, t);
	else
		refuse_held(c, t);
	return false;
}

static unsigned starts_from(const struct rule *r, const struct task *t)
{
	return r->from | (r->flags & MANUAL && t->lock.manual ? ON(READY) : 0);
}

static bool rules_allowed(enum op op, const struct task *t, struct call *c)
{
	const struct rule *r = &rules[op];
	bool own = op_flags(op) & OP_OWN;

	if (own && !lease_prove(t, c))
		return false;
	if (!(starts_from(r, t) & STATUS_BIT(t->status))) {
		refuse_status(c, t, op_words(op, c->arena), r->from);
		return false;
	}
	if (!own && !rules_free(t, c))
		return false;
	if (r->flags & GUARD && t->open_subs) {
		refuse_subtasks(c, t);
		return false;
	}
	return true;
}

static struct str rules_words(enum op op, const struct task *t, const struct call *c)
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
	if (r->flags & SOLVED)
		t->next_check = 0; /* the reason and the action stay: people typed them */
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

/* Handing back keeps updated_at, so the task keeps its place in the order. */
static void handed_back(struct call *c, struct task *t)
{
	t->version++;
	c->changed = true;
}

void call_edited(struct call *c, struct task *t)
{
	t->version++;
	t->updated_at = c->now;
	c->changed = true;
}

static void rules_move(enum op op, struct task *t, struct call *c)
{
	const struct rule *r = &rules[op];
	bool own = lease_owned(&t->lock, c->proof, c->now);
	struct str comment = op == OP_REWORK    ? c->rq->reason
			     : op == OP_APPROVE ? c->rq->summary
						: STR("");
	int64_t from = t->status;

	if (override_is(t, c))
		override_note(t, c, (struct strs){ &(struct str){ "status", 6 }, 1 });
	set_fields(r, t, c);
	if (own)
		t->last = (struct last){ .op = op, .token = c->proof };
	t->status = r->to;
	if (r->flags & BACK)
		handed_back(c, t);
	else
		call_edited(c, t);
	call_event(c, t, r->event, from, rules_words(op, t, c));
	if (r->to == BLOCKED)
		c->events[c->n_events - 1].unblock_action = c->rq->unblock_action;
	if (comment.n)
		call_event(c, t, "comment", 0, comment);
}

/* Has this holder already done the operation? `last` keeps it after the lock was cleared. A
 * claim is not checked here, because its new token identifies it. `last.op` may be unknown,
 * because a newer pawl may have written it. */
static bool is_repeat(enum op op, const struct task *t, const struct call *c)
{
	int64_t did = t->last.op;
	/* a repeated done --take has the token with which the first call took the task */
	bool took = c->rq->take && c->fresh.n && str_eq(t->last.token, c->fresh);

	if (did <= OP_NONE || did >= OP_END ||
	    !(took || (c->proof.n && str_eq(t->last.token, c->proof))))
		return false;
	if (op == OP_STATUS)
		return c->rq->status != IN_PROGRESS && (int64_t)rules[did].to == c->rq->status;
	return did == (int64_t)op;
}

static void rules_heartbeat(struct task *t, struct call *c)
{
	if (!lease_prove(t, c))
		return;
	if (t->status == BLOCKED) {
		refuse(c, MISCONFIGURED,
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
	c->changed = c->granted = true;
}

/* In a store that keeps only locks, other programs write locks without tokens, so the agent name
 * identifies the holder. They also respect expired locks, so the holder may remove an expired
 * lock. */
static bool may_remove(const struct task *t, const struct call *c)
{
	if (!c->policy->locks_only || !t->lock.holder.n)
		return false;
	return t->lock.foreign ? str_eq(t->lock.holder, c->rq->agent)
			       : c->proof.n && str_eq(t->lock.token, c->proof);
}

static void rules_unlock(struct task *t, struct call *c)
{
	bool removable = may_remove(t, c);

	if (!lease_live(&t->lock, c->now) && !removable) {
		c->repeated = true;
		return;
	}
	if (!removable && !lease_prove(t, c))
		return;
	t->last = (struct last){ .op = OP_LOCK_RELEASE, .token = c->proof };
	lease_clear(t, c->now);
	call_edited(c, t);
	call_event(c, t, "unlocked", 0, c->rq->reason);
}

static void break_lock(struct task *t, struct call *c)
{
	struct str holder = t->lock.holder;

	if (!lease_prove_named(t, c))
		return;
	if (!holder.n) {
		c->repeated = true;
		return;
	}
	lease_hand_back(t, c->policy, c->now);
	handed_back(c, t);
	call_event(c, t, "lock_broken", 0,
		   arena_printf(c->arena, "the lock of %.*s: %.*s", STRF(holder),
				STRF(c->rq->reason)));
}

static void rules_comment(struct task *t, struct call *c)
{
	if (lease_prove_named(t, c))
		call_event(c, t, "comment", 0, c->rq->text);
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

/* The events of moves that are no row of op.def. */
static const struct rule others[] = {
	{ "claimed", CLAIM_FROM, IN_PROGRESS, 0 },
	{ "resumed", CLAIM_FROM, IN_PROGRESS, 0 },
	{ "needs_help", ON(READY) | ON(BACKLOG) | ON(IN_PROGRESS), NEEDS_HELP, 0 },
};

bool rules_event_fits(struct str name, int64_t from, int64_t to)
{
	const struct rule *found = NULL;

	for (size_t i = 0; i < OP_END; i++)
		if (rules[i].event && str_is(name, rules[i].event))
			found = &rules[i];
	if (found)
		return (int64_t)found->to == to &&
		       (found->from | (found->flags & MANUAL ? ON(READY) : 0)) >> from & 1;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (str_is(name, others[i].event))
			return !to ||
			       (others[i].to == (enum status)to && others[i].from >> from & 1);
	return true;
}

enum status rules_to(enum op op)
{
	return op == OP_CLAIM ? IN_PROGRESS : rules[op].to;
}

enum op rules_first_step(int64_t now)
{
	if (now == REVIEW)
		return OP_REWORK;
	return now == BLOCKED || now == NEEDS_HELP ? OP_UNBLOCK : OP_NONE;
}

static void rules_apply_op(enum op op, struct task *t, struct call *c);

static void to_status(struct task *t, struct call *c)
{
	enum op op = rules_for_status(t->status, c->rq->status);
	enum op first = op == OP_CLAIM ? rules_first_step(t->status) : OP_NONE;
	int64_t version = t->version;

	if (first == OP_REWORK && !c->rq->reason.n) {
		refuse(c, USAGE, STR("taking a task back from Review needs a reason"),
		       arena_printf(c->arena, "pawl status %.*s in-progress --reason TEXT",
				    STRF(t->id)));
		return;
	}
	if (first &&
	    c->paused) { /* checked before the first step, because a refusal must change nothing */
		refuse_paused(c);
		return;
	}
	if (first)
		rules_apply_op(first, t, c);
	if (c->code == SUCCESS)
		rules_apply_op(op, t, c);
	if (c->changed)
		t->version = version + 1; /* two steps count as one change */
}

static void move_if_allowed(enum op op, struct task *t, struct call *c)
{
	if (rules_allowed(op, t, c))
		rules_move(op, t, c);
}

static bool takes_first(const struct task *t, const struct call *c)
{
	return c->rq->take && !c->rq->explicit && t->status == READY &&
	       !lease_owned(&t->lock, c->proof, c->now);
}

/* done --take: claims and completes a task in one call, for work that is already finished. */
static void take_and_finish(struct task *t, struct call *c)
{
	struct str proof = c->proof;
	int64_t version = t->version;

	if (t->open_subs) {
		refuse_subtasks(c, t);
		return;
	}
	acquire_claim(t, c);
	if (c->code != SUCCESS)
		return;
	c->proof = c->fresh;
	rules_move(OP_DONE, t, c);
	c->proof = proof;
	c->granted = false;
	t->version = version + 1;
}

/* release --force: releases a task that is still In Progress after its lock was lost. An
 * operator must break a live lock first. */
static void release_free(struct task *t, struct call *c)
{
	if (t->status != IN_PROGRESS) {
		refuse_status(c, t, "release", ON(IN_PROGRESS));
		return;
	}
	if (lease_live(&t->lock, c->now)) {
		refuse_held(c, t);
		c->hint = arena_printf(
			c->arena, "pawl lock break %.*s --reason TEXT ends this lock", STRF(t->id));
		return;
	}
	rules_move(OP_RELEASE, t, c);
}

/* Only checks the call; the queue changes the lists of both tasks. */
static void rules_depend(const struct task *t, struct call *c)
{
	if (!status_ended(t->status)) {
		(void)rules_free(t, c);
		return;
	}
	refuse(c, MISCONFIGURED,
	       arena_printf(c->arena, "%.*s is %s, so its dependencies cannot change", STRF(t->id),
			    status_name(t->status)),
	       arena_printf(c->arena, "reopen it first: pawl reopen %.*s --reason TEXT",
			    STRF(t->id)));
}

/* Skips a task that still has a lock; `lock cleanup` must clear a stale lock first. */
static void rules_archive(struct task *t, struct call *c)
{
	int64_t ended_at = t->done_at ? t->done_at : t->updated_at;

	if (!(STATUS_ENDED & STATUS_BIT(t->status))) {
		refuse(c, MISCONFIGURED,
		       arena_printf(c->arena, "%.*s is %s and has not ended", STRF(t->id),
				    status_name(t->status)),
		       STR("only tasks that are Done, Failed or Canceled can be archived"));
		return;
	}
	if (t->archived_at || t->lock.holder.n || c->now - ended_at < c->rq->older_than) {
		c->repeated = true;
		return;
	}
	/* another program's clock may be ahead, so done_at may be later than `now` */
	t->archived_at = c->now > t->done_at ? c->now : t->done_at;
	t->version++;
	c->changed = true;
}

static void rules_apply_op(enum op op, struct task *t, struct call *c)
{
	switch (op) {
	case OP_CLAIM:
		acquire_claim(t, c);
		return;
	case OP_LOCK_ACQUIRE:
		acquire_manual(t, c);
		return;
	case OP_HEARTBEAT:
		rules_heartbeat(t, c);
		return;
	case OP_LOCK_RELEASE:
		rules_unlock(t, c);
		return;
	case OP_LOCK_BREAK:
		break_lock(t, c);
		return;
	case OP_STATUS:
		to_status(t, c);
		return;
	case OP_UPDATE:
		update_apply(t, c);
		return;
	case OP_COMMENT:
		rules_comment(t, c);
		return;
	case OP_DEPEND:
	case OP_UNDEPEND:
		rules_depend(t, c);
		return;
	case OP_REMOVE:
		(void)rules_free(t, c);
		return;
	case OP_ARCHIVE:
		rules_archive(t, c);
		return;
	case OP_DONE:
		if (takes_first(t, c))
			take_and_finish(t, c);
		else
			move_if_allowed(op, t, c);
		return;
	case OP_RELEASE:
		if (c->rq->force && !lease_owned(&t->lock, c->proof, c->now))
			release_free(t, c);
		else
			move_if_allowed(op, t, c);
		return;
	default:
		move_if_allowed(op, t, c);
	}
}

/* Does the caller already hold the lock that it asks for? Then the call is only a repeat. */
static bool is_held_already(enum op op, const struct task *t, const struct call *c)
{
	bool claim = op == OP_CLAIM || (op == OP_STATUS && c->rq->status == IN_PROGRESS);

	if ((!claim && op != OP_LOCK_ACQUIRE) || !lease_owned(&t->lock, c->fresh, c->now))
		return false;
	return !claim || (t->status == IN_PROGRESS && !t->lock.manual);
}

void rules_apply(enum op op, struct task *t, struct call *c)
{
	call_reset(c);
	if ((rules[op].event || op == OP_STATUS) && is_repeat(op, t, c))
		c->repeated = true;
	else if (op != c->rq->op || is_held_already(op, t, c) || override_version(t, c))
		rules_apply_op(op, t, c);
}

void rules_apply_over_dead(enum op op, struct task *t, struct call *c)
{
	struct task was = *t;
	struct call refusal = *c;

	call_reset(c);
	if (abandon_by_dead(t, c))
		rules_apply_op(op, t, c);
	if (c->code == SUCCESS || c->changed) {
		c->changed = true;
		t->version = was.version + 1; /* the release and the operation are one change */
		return;
	}
	*t = was;
	*c = refusal;
}
