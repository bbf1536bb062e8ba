#include "core/acquire.h"

#include "base/when.h"
#include "core/lease.h"
#include "core/refuse.h"

static struct str how_it_ended(const struct lock *l, const struct call *c)
{
	if (lease_live(l, c->now))
		return arena_printf(c->arena, "its process is dead; found by %.*s",
				    STRF(c->rq->agent));
	return arena_printf(c->arena, "its lease expired at %s; found by %.*s",
			    arena_cstr(c->arena, when_text(c->arena, l->expires_at)),
			    STRF(c->rq->agent));
}

/* The log names the agent that lost the task. The caller only found the lock. */
static void log_abandoned(const struct task *t, const struct call *c, struct verdict *v)
{
	struct event *e = &v->events[v->n_events];

	verdict_event(v, c, t, "abandoned", 0, how_it_ended(&t->lock, c));
	e->agent = t->lock.holder;
	e->run = t->run;
}

/* Records that the holder lost the task. true: this happened max_abandoned times, so the task needs help. */
static bool abandon(struct task *t, const struct call *c, struct verdict *v)
{
	bool too_often = lease_abandon(t, c->policy);
	int64_t from = t->status;

	log_abandoned(t, c, v);
	if (!too_often)
		return false;
	t->status = NEEDS_HELP;
	t->blocker_reason = arena_printf(
		c->arena, "abandoned %lld times: each agent lost its lease before it finished",
		(long long)t->abandoned);
	lease_clear(t, c->now);
	verdict_edited(v, c, t);
	verdict_event(v, c, t, "needs_help", from, t->blocker_reason);
	refuse(v, MISCONFIGURED,
	       arena_printf(c->arena, "%.*s was abandoned %lld times and now needs help",
			    STRF(t->id), (long long)t->abandoned),
	       arena_printf(c->arena,
			    "pawl show %.*s shows the task; pawl unblock %.*s offers it again",
			    STRF(t->id), STRF(t->id)));
	return true;
}

static bool lease_expired(const struct task *t, const struct call *c)
{
	return t->lock.expires_at && !lease_live(&t->lock, c->now);
}

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* `next` would not have offered it. */
static void warn_of_open(const struct task *t, const struct call *c, struct verdict *v)
{
	struct str deps = STR(""), subs = STR("");

	if (t->open_deps)
		deps = arena_printf(c->arena, " depends on %lld task%s not done yet",
				    (long long)t->open_deps, plural(t->open_deps));
	if (t->open_subs)
		subs = arena_printf(c->arena, " has %lld open sub-task%s", (long long)t->open_subs,
				    plural(t->open_subs));
	if (deps.n || subs.n)
		v->warning = arena_printf(c->arena, "%.*s%.*s%s%.*s", STRF(t->id), STRF(deps),
					  deps.n && subs.n ? " and" : "", STRF(subs));
}

/* Starts the work. The caller has taken the lock already. */
static void begin(struct task *t, const struct call *c, struct verdict *v, const char *event,
		  struct str text)
{
	int64_t from = t->status;

	t->status = IN_PROGRESS;
	t->attempts++;
	t->started_at = c->now;
	if (!t->first_started_at)
		t->first_started_at = c->now;
	verdict_edited(v, c, t);
	v->granted = true;
	warn_of_open(t, c, v);
	verdict_event(v, c, t, event, from, text);
}

/* A lock without an expiry is not live. The log records that this claim replaced it. */
static struct str claim_text(const struct task *t, const struct call *c)
{
	if (!t->lock.holder.n || t->lock.expires_at)
		return c->rq->description;
	return arena_printf(c->arena, "replaced a lock of %.*s that had no expiry",
			    STRF(t->lock.holder));
}

static int64_t asked_ttl(const struct call *c, int64_t otherwise)
{
	return HAS(c->rq, ttl) ? c->rq->ttl : otherwise;
}

/* The caller holds the lock already: repeat the answer, or start work under the manual lock. */
static void claim_own(struct task *t, const struct call *c, struct verdict *v)
{
	if (!t->lock.manual && t->status == IN_PROGRESS) {
		v->repeated = v->granted = true;
		warn_of_open(t, c, v);
		return;
	}
	if (!(CLAIM_FROM & STATUS_BIT(t->status))) {
		refuse_status(v, c, t, "claim", CLAIM_FROM);
		return;
	}
	t->lock.manual = 0;
	begin(t, c, v, "claimed", STR("under its manual lock"));
}

/* Why the caller cannot resume its last claim; empty: it can. */
static struct str no_resume(const struct task *t, const struct call *c)
{
	bool other = c->proof.n && t->lock.token.n && !str_eq(c->proof, t->lock.token);

	if (!t->fence)
		return arena_printf(c->arena, "%.*s was never claimed", STRF(t->id));
	if (t->fence != c->rq->fence)
		return arena_printf(c->arena, "the fence of %.*s is %lld, not %lld", STRF(t->id),
				    (long long)t->fence, (long long)c->rq->fence);
	if (other || !str_eq(t->last_holder, c->rq->agent))
		return arena_printf(c->arena,
				    "the last claim of %.*s was by %.*s, with another token",
				    STRF(t->id), STRF(t->last_holder));
	return STR("");
}

static bool may_resume(const struct task *t, const struct call *c, struct verdict *v)
{
	struct str why = no_resume(t, c);

	if (why.n)
		refuse(v, LOST_LOCK, why, STR("pawl next --claim takes another task"));
	else if (t->status != IN_PROGRESS)
		refuse_status(v, c, t, "claim --resume", STATUS_BIT(IN_PROGRESS));
	return v->code == SUCCESS;
}

void acquire_claim(struct task *t, const struct call *c, struct verdict *v)
{
	bool resume = c->rq->op == OP_CLAIM && HAS(c->rq, fence);
	struct str text;

	if (lease_owned(&t->lock, c->fresh, c->now)) {
		claim_own(t, c, v);
		return;
	}
	if (resume && !may_resume(t, c, v))
		return;
	if (!(CLAIM_FROM & STATUS_BIT(t->status))) {
		refuse_status(v, c, t, "claim", CLAIM_FROM);
		return;
	}
	if (lease_live(&t->lock, c->now)) {
		refuse_held(v, c, t);
		return;
	}
	if (c->paused && !resume) {
		refuse_paused(v, c);
		return;
	}
	if (t->status == IN_PROGRESS && lease_expired(t, c) && !resume && abandon(t, c, v))
		return;
	text = claim_text(t, c);
	lease_take(t, c->rq, c->fresh, asked_ttl(c, c->policy->lease), c->now);
	begin(t, c, v, resume ? "resumed" : "claimed", text);
}

void acquire_manual(struct task *t, const struct call *c, struct verdict *v)
{
	const unsigned from = STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED));
	struct str text;

	if (lease_owned(&t->lock, c->fresh, c->now)) {
		v->repeated = v->granted = true;
		return;
	}
	if (status_ended(t->status)) {
		refuse_status(v, c, t, "lock acquire", from);
		return;
	}
	if (lease_live(&t->lock, c->now)) {
		refuse_held(v, c, t);
		return;
	}
	if (c->paused) {
		refuse_paused(v, c);
		return;
	}
	if (t->status == IN_PROGRESS && lease_expired(t, c) && abandon(t, c, v))
		return;
	text = claim_text(t, c);
	lease_take(t, c->rq, c->fresh, asked_ttl(c, c->policy->lock_ttl), c->now);
	t->lock.manual = 1;
	verdict_edited(v, c, t);
	v->granted = true;
	verdict_event(v, c, t, "locked", 0, text);
}

bool rules_cleanup(struct task *t, const struct call *c, bool dead, struct verdict *v)
{
	bool over = status_ended(t->status);
	bool old = lease_expired(t, c) && c->now - t->lock.expires_at >= c->rq->older_than;
	struct str holder = t->lock.holder;

	if (!holder.n || !(over || old || dead))
		return false;
	if (t->status == IN_PROGRESS && abandon(t, c, v)) {
		refuse(v, SUCCESS, STR(""), STR(""));
		return true;
	}
	lease_clear(t, c->now);
	t->free_at = c->now;
	verdict_edited(v, c, t);
	verdict_event(v, c, t, "cleaned_up", 0,
		      arena_printf(c->arena, "the lock of %.*s: %s", STRF(holder),
				   over  ? "the task has ended"
				   : old ? "its lease expired"
					 : "its process is dead"));
	return true;
}
