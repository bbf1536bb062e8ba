#include "core/order.h"

#include "base/when.h"
#include "core/lease.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* When a lock stops standing in the way: 0 if it does not, -1 if nobody can tell. */
static int64_t lock_ends(const struct lock *l)
{
	if (!l->holder.n)
		return 0;
	if (l->foreign && !l->expires_at)
		return -1;
	return l->expires_at;
}

enum offer order_offer(const struct task *t, int64_t *at)
{
	int64_t ends = lock_ends(&t->lock);

	*at = 0;
	if (ends < 0 || (t->status != READY && t->status != IN_PROGRESS))
		return OFFER_NONE;
	if (t->status == IN_PROGRESS) {
		*at = t->lock.holder.n ? ends : t->free_at;
		return *at ? OFFER_LATER : OFFER_NOW;
	}
	*at = later(ends, t->not_before);
	if (t->open_deps)
		return OFFER_WAITING;
	return *at ? OFFER_LATER : OFFER_NOW;
}

static struct str in_time(const char *what, int64_t at, int64_t now, struct arena *a)
{
	return arena_printf(a, "%s, in %.*s", what, STRF(duration_text(a, at - now)));
}

static struct str why_later(const struct task *t, int64_t at, int64_t now, struct arena *a)
{
	if (lease_live(&t->lock, now) && t->lock.expires_at == at)
		return arena_printf(a, "held by %.*s for another %.*s", STRF(t->lock.holder),
				    STRF(duration_text(a, at - now)));
	if (t->status == IN_PROGRESS)
		return in_time(
			"kept for the agent that knows it until its last lease's length has passed",
			at, now, a);
	return in_time("not before its time", at, now, a);
}

static struct str why_now(const struct task *t)
{
	if (t->status == READY)
		return t->open_deps ? STR("ready; its dependencies are ignored") : STR("ready");
	return t->lock.holder.n ? STR("abandoned: its lease ran out") : STR("left without a lock");
}

struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible)
{
	int64_t at;
	enum offer offer = order_offer(t, &at);

	*eligible = false;
	if (offer == OFFER_NONE && lease_live(&t->lock, now))
		return arena_printf(a, "%s, held by %.*s", status_name(t->status),
				    STRF(t->lock.holder));
	if (offer == OFFER_NONE)
		return arena_printf(a, "its status is %s", status_name(t->status));
	if (offer == OFFER_WAITING && !p->ignore_depends)
		return arena_printf(a, "waits for %lld of its dependencies",
				    (long long)t->open_deps);
	if (at > now)
		return why_later(t, at, now, a);
	if (t->status == IN_PROGRESS && p->keep_abandoned)
		return STR("abandoned, and the setting `abandoned` is keep");
	*eligible = true;
	return why_now(t);
}
