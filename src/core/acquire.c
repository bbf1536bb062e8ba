/*
 * The ways to get a task's lock (claim, claim --resume, lock acquire), and the cleanup of stale
 * locks. A claim never replaces the live lock of another token. When an agent takes over a task
 * that is In Progress, the log records that the last holder abandoned it; after max_abandoned times
 * the task goes to Needs Help instead.
 */
#include "core/rules.h"

#include "core/lease.h"

static bool lease_expired(const struct task *t, const struct call *c)
{
	return t->lock.expires_at && !lease_live(&t->lock, c->now);
}

static const char *acquire_plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* A claim by id succeeds on a task that `next` would not offer yet, so the answer warns of it. */
static void warn_of_open(const struct task *t, struct call *c)
{
	struct str deps = STR(""), subs = STR("");

	if (t->open_deps)
		deps = arena_printf(c->arena, " depends on %lld task%s not done yet",
				    (long long)t->open_deps, acquire_plural(t->open_deps));
	if (t->open_subs)
		subs = arena_printf(c->arena, " has %lld open sub-task%s", (long long)t->open_subs,
				    acquire_plural(t->open_subs));
	if (deps.n || subs.n)
		c->warning = arena_printf(c->arena, "%.*s%.*s%s%.*s", STRF(t->id), STRF(deps),
					  deps.n && subs.n ? " and" : "", STRF(subs));
}

/* Starts the work. The caller must already hold the lock. */
static void acquire_begin(struct task *t, struct call *c, const char *event, struct str text)
{
	int64_t from = t->status;

	t->status = IN_PROGRESS;
	t->attempts++;
	t->started_at = c->now;
	if (!t->first_started_at)
		t->first_started_at = c->now;
	call_edited(c, t);
	c->granted = true;
	warn_of_open(t, c);
	call_event(c, t, event, from, text);
	c->events[c->n_events - 1].expires = t->lock.expires_at;
}

/* The claim's text for the log. A lock without an expiry is not live: the log records that this
 * claim replaced it. */
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

/* The caller already holds the lock. Repeats the answer, or starts work under the manual lock. */
static void claim_own(struct task *t, struct call *c)
{
	if (!t->lock.manual && t->status == IN_PROGRESS) {
		c->repeated = c->granted = true;
		warn_of_open(t, c);
		return;
	}
	if (!(CLAIM_FROM & STATUS_BIT(t->status))) {
		refuse_status(c, t, "claim", CLAIM_FROM);
		return;
	}
	t->lock.manual = 0;
	acquire_begin(t, c, "claimed", STR("under its manual lock"));
}

/* The reason why the caller cannot resume its last claim; empty: it can. */
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

static bool may_resume(const struct task *t, struct call *c)
{
	struct str why = no_resume(t, c);

	if (why.n)
		refuse(c, LOST_LOCK, why, STR("pawl next --claim takes another task"));
	else if (t->status != IN_PROGRESS)
		refuse_status(c, t, "claim --resume", STATUS_BIT(IN_PROGRESS));
	return c->code == SUCCESS;
}

void acquire_claim(struct task *t, struct call *c)
{
	bool resume = c->rq->op == OP_CLAIM && HAS(c->rq, fence);
	struct str text;

	if (lease_owned(&t->lock, c->fresh, c->now)) {
		claim_own(t, c);
		return;
	}
	if (resume && !may_resume(t, c))
		return;
	if (!(CLAIM_FROM & STATUS_BIT(t->status))) {
		refuse_status(c, t, "claim", CLAIM_FROM);
		return;
	}
	if (lease_live(&t->lock, c->now)) {
		refuse_held(c, t);
		return;
	}
	if (c->paused && !resume) {
		refuse_paused(c);
		return;
	}
	if (t->status == IN_PROGRESS && lease_expired(t, c) && !resume && abandon_task(t, c))
		return;
	text = claim_text(t, c);
	lease_take(t, c->rq, c->fresh, asked_ttl(c, c->policy->lease), c->now);
	acquire_begin(t, c, resume ? "resumed" : "claimed", text);
}

void acquire_manual(struct task *t, struct call *c)
{
	const unsigned from = STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED));
	struct str text;

	if (lease_owned(&t->lock, c->fresh, c->now)) {
		c->repeated = c->granted = true;
		return;
	}
	if (status_ended(t->status)) {
		refuse_status(c, t, "lock acquire", from);
		return;
	}
	if (lease_live(&t->lock, c->now)) {
		refuse_held(c, t);
		return;
	}
	if (c->paused) {
		refuse_paused(c);
		return;
	}
	if (t->status == IN_PROGRESS && lease_expired(t, c) && abandon_task(t, c))
		return;
	text = claim_text(t, c);
	lease_take(t, c->rq, c->fresh, asked_ttl(c, c->policy->lock_ttl), c->now);
	t->lock.manual = 1;
	call_edited(c, t);
	c->granted = true;
	call_event(c, t, "locked", 0, text);
	c->events[c->n_events - 1].expires = t->lock.expires_at;
}

bool rules_cleanup(struct task *t, struct call *c, bool dead)
{
	bool over = status_ended(t->status);
	bool old = lease_expired(t, c) && c->now - t->lock.expires_at >= c->rq->older_than;
	const struct lock l = t->lock;

	call_reset(c);
	if (!l.holder.n || !(over || old || dead))
		return false;
	if (t->status == IN_PROGRESS && abandon_task(t, c)) {
		refuse(c, SUCCESS, STR(""), STR(""));
		return true;
	}
	lease_clear(t, c->now);
	t->free_at = c->now;
	call_edited(c, t);
	call_event(c, t, "cleaned_up", 0,
		   over || old ? arena_printf(c->arena, "the lock of %.*s: %s", STRF(l.holder),
					      over ? "the task has ended" : "its lease expired")
			       : process_died(&l, c->arena));
	return true;
}
