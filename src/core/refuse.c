/*
 * The messages of refused operations. Each message says what happened and to which task, and its
 * hint gives the next step, so that the caller need not guess which command would succeed.
 */
#include "core/rules.h"

#include "base/when.h"
#include "core/lease.h"
#include "core/typed.h"

void refuse(struct call *c, enum result code, struct str message, struct str hint)
{
	c->code = code;
	c->message = message;
	c->hint = hint;
}

/* "Ready, In Progress or Failed" */
static struct str refuse_names(unsigned set, struct arena *a)
{
	struct str out = STR("");
	int left = __builtin_popcount(set);

	for (int s = BACKLOG; s < STATUS_END; s++) {
		if (!(set & STATUS_BIT(s)))
			continue;
		out = arena_printf(a, "%.*s%s%s", STRF(out), status_name(s),
				   left > 2    ? ", "
				   : left == 2 ? " or "
					       : "");
		left--;
	}
	return out;
}

static const char *const next_steps[] = {
	[BACKLOG] = "make it Ready first: pawl update %.*s --status Ready",
	[READY] = "claim it first: pawl claim %.*s",
	[IN_PROGRESS] =
		"claim it first: pawl claim %.*s, then done, review, block, release or fail",
	[BLOCKED] = "unblock it first: pawl unblock %.*s",
	[NEEDS_HELP] = "unblock it first: pawl unblock %.*s",
	[REVIEW] = "finish its review first: pawl approve %.*s, or pawl rework with a --reason",
	[DONE] = "reopen it first: pawl reopen %.*s --reason TEXT",
	[FAILED] = "retry it first: pawl retry %.*s",
	[CANCELED] = "reopen it first: pawl reopen %.*s --reason TEXT",
};

static struct str refuse_until(const struct task *t, const struct call *c)
{
	const struct lock *l = &t->lock;
	struct str when, left;

	if (!l->expires_at)
		return STR("until it is removed");
	when = when_text(c->arena, l->expires_at);
	left = duration_text(c->arena, l->expires_at - c->now);
	return arena_printf(c->arena, "until %.*s (in %.*s)", STRF(when), STRF(left));
}

static bool refuse_holds(const struct task *t, const struct call *c)
{
	return str_eq(t->lock.holder, c->rq->agent);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static struct str next_step(const struct task *t, const struct call *c)
{
	if (t->status != IN_PROGRESS || !lease_live(&t->lock, c->now))
		return arena_printf(c->arena, next_steps[t->status], STRF(t->id));
	if (refuse_holds(t, c))
		return arena_printf(c->arena,
				    "pawl done %.*s, or review, block, release or fail it",
				    STRF(t->id));
	return arena_printf(c->arena, "it is held by %.*s %s", STRF(t->lock.holder),
			    arena_cstr(c->arena, refuse_until(t, c)));
}
#pragma GCC diagnostic pop

void refuse_status(struct call *c, const struct task *t, const char *what, unsigned from)
{
	refuse(c, MISCONFIGURED,
	       arena_printf(c->arena, "%.*s is %s; %s needs a task that is %s", STRF(t->id),
			    status_name(t->status), what,
			    arena_cstr(c->arena, refuse_names(from, c->arena))),
	       next_step(t, c));
}

static struct str refuse_where(const struct lock *l, struct arena *a)
{
	return l->host.n ? arena_printf(a, " on %.*s", STRF(l->host)) : STR("");
}

/* A foreign lock may not contain the time of its acquisition. */
static struct str refuse_since(const struct lock *l, struct arena *a)
{
	struct str when;

	if (!l->acquired_at)
		return STR("");
	when = when_text(a, l->acquired_at);
	return arena_printf(a, " since %.*s", STRF(when));
}

/* When many agents claim one task, all but one get this text, so each part is formatted only
 * once. */
static struct str who_holds(const struct task *t, const struct call *c)
{
	struct str from = refuse_since(&t->lock, c->arena), host = refuse_where(&t->lock, c->arena),
		   to = refuse_until(t, c);

	return arena_printf(c->arena, "%.*s is held by %.*s%.*s%.*s %.*s", STRF(t->id),
			    STRF(t->lock.holder), STRF(from), STRF(host), STRF(to));
}

/* The command with which an operator can force the change that the call asks for. */
static const char *refuse_forcible(const struct call *c)
{
	switch (c->rq->op) {
	case OP_DEPEND:
		return "depend";
	case OP_UNDEPEND:
		return "undepend";
	case OP_REMOVE:
		return "remove";
	case OP_UNDO:
		return "undo";
	case OP_CANCEL:
		return "cancel";
	case OP_STATUS:
		return c->rq->status == CANCELED ? "cancel" : "update";
	default:
		return "update";
	}
}

void refuse_protected(struct call *c, const struct task *t)
{
	refuse(c, CONFLICT, who_holds(t, c),
	       arena_printf(c->arena,
			    "an operator overrides the holder with --force --reason TEXT: pawl %s "
			    "%.*s … --force --reason TEXT",
			    refuse_forcible(c), STRF(t->id)));
	c->by_lock = true;
}

void refuse_paused(struct call *c)
{
	refuse(c, CONFLICT, pause_text(c->paused, c->arena), PAUSE_HINT);
	c->by_pause = true;
}

void refuse_held(struct call *c, const struct task *t)
{
	refuse(c, CONFLICT, who_holds(t, c),
	       arena_printf(
		       c->arena,
		       "pawl next --claim takes another task; pawl lock status %.*s shows this lock",
		       STRF(t->id)));
	c->by_lock = true;
}

static void lost_lease(struct call *c, const struct task *t)
{
	refuse(c, LOST_LOCK,
	       arena_printf(c->arena, "the lease on %.*s expired at %s", STRF(t->id),
			    arena_cstr(c->arena, when_text(c->arena, t->lock.expires_at))),
	       arena_printf(
		       c->arena,
		       "if no other agent has claimed it, resume: pawl claim %.*s --resume %lld",
		       STRF(t->id), (long long)t->fence));
}

static void lost_to_another(struct call *c, const struct task *t)
{
	refuse(c, LOST_LOCK,
	       arena_printf(c->arena, "%.*s is held by %.*s%s %s, and %s", STRF(t->id),
			    STRF(t->lock.holder),
			    refuse_holds(t, c) ? " (in another run or worktree)" : "",
			    arena_cstr(c->arena, refuse_until(t, c)),
			    c->proof.n ? "this token is stale" : "this call has no token for it"),
	       STR("pawl next --claim takes another task; if you hold this one, pass its --token"));
}

/* Two calls have a shorter way than claiming first: `done` on a Ready task, and `release` on a
 * task that is still In Progress after its lock was lost. */
static struct str no_lock_hint(const struct task *t, const struct call *c)
{
	if (c->rq->op == OP_DONE && t->status == READY)
		return arena_printf(c->arena,
				    "pawl done %.*s --take claims and completes it in one step",
				    STRF(t->id));
	if (c->rq->op == OP_RELEASE && t->status == IN_PROGRESS)
		return arena_printf(c->arena, "pawl release %.*s --force makes it Ready",
				    STRF(t->id));
	return next_step(t, c);
}

static void lost_to_nobody(struct call *c, const struct task *t)
{
	if (c->proof.n && str_eq(t->over.token, c->proof))
		refuse(c, LOST_LOCK,
		       arena_printf(c->arena,
				    "%.*s is %s, and its lock is gone: %.*s overrode it: %.*s",
				    STRF(t->id), status_name(t->status), STRF(t->over.by),
				    STRF(t->over.reason)),
		       STR("pawl next --claim takes another task"));
	else if (status_ended(t->status))
		refuse(c, LOST_LOCK,
		       arena_printf(c->arena, "%.*s is already %s, so nobody holds it", STRF(t->id),
				    status_name(t->status)),
		       STR("pawl next --claim takes another task"));
	else
		refuse(c, LOST_LOCK,
		       arena_printf(c->arena, "%.*s is %s and not held by anyone%s", STRF(t->id),
				    status_name(t->status),
				    c->proof.n ? "; this token is stale" : ""),
		       no_lock_hint(t, c));
}

void refuse_lost(struct call *c, const struct task *t)
{
	bool same = c->proof.n && str_eq(c->proof, t->lock.token);

	if (lease_live(&t->lock, c->now))
		lost_to_another(c, t);
	else if (t->lock.expires_at && (same || refuse_holds(t, c)))
		lost_lease(c, t);
	else
		lost_to_nobody(c, t);
}

void refuse_subtasks(struct call *c, const struct task *t)
{
	refuse(c, INCOMPLETE_SUBTASKS,
	       arena_printf(c->arena, "%.*s has %lld open sub-task%s", STRF(t->id),
			    (long long)t->open_subs, t->open_subs == 1 ? "" : "s"),
	       arena_printf(c->arena,
			    "pawl list --parent %.*s shows them; finish or cancel them first",
			    STRF(t->id)));
}
