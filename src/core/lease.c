/*
 * Decides whether a lock is live and whether a token proves to hold it; takes, renews and clears
 * it. Each acquisition raises the fence, and nothing here lowers it.
 */
#include "base/secret.h"
#include "core/lease.h"

#define RENEW_LEAST_MS 100

const struct policy policy_default = {
	.lease = LEASE_MINUTES * 60 * 1000,
	.lease_min = 1000,
	.lease_max = 24 * 3600 * 1000,
	.lock_ttl = 300 * 1000,
	.max_abandoned = LEASE_ABANDONED,
};

bool lease_live(const struct lock *l, int64_t now)
{
	if (!l->holder.n)
		return false;
	if (l->foreign)
		return !l->expires_at || now < l->expires_at;
	return l->token.n && now < l->expires_at;
}

bool lease_held(const struct task *t, int64_t now)
{
	return lease_live(&t->lock, now) && (t->status != BLOCKED || t->lock.manual);
}

bool lease_owned(const struct lock *l, struct str hash, int64_t now)
{
	return lease_live(l, now) && hash.n && secret_eq(l->token, hash);
}

bool lease_prove(const struct task *t, struct call *c)
{
	if (lease_owned(&t->lock, c->proof, c->now))
		return true;
	refuse_lost(c, t);
	return false;
}

bool lease_prove_named(const struct task *t, struct call *c)
{
	return !c->rq->explicit || lease_prove(t, c);
}

void lease_take(struct task *t, const struct request *r, struct str hash, int64_t ttl, int64_t now)
{
	t->fence++;
	t->lock = (struct lock){
		.holder = r->agent,
		.host = r->host,
		.token = hash,
		.acquired_at = now,
		.expires_at = now + ttl,
		.ttl = ttl,
		.pid = r->pid,
		.pid_start = r->pid_start,
		.boot_id = r->boot_id,
		.mode = r->mode,
	};
	t->last_holder = r->agent;
	t->run = r->run;
	t->last = (struct last){ 0 };
	t->last_ttl = ttl;
	t->last_expires_at = 0;
	t->free_at = 0;
	t->over = (struct notice){ 0 };
}

void lease_renew(struct task *t, int64_t ttl, int64_t now)
{
	if (now + ttl > t->lock.expires_at)
		t->lock.expires_at = now + ttl;
}

int64_t lease_renew_in(int64_t left)
{
	return left / 3 > RENEW_LEAST_MS ? left / 3 : RENEW_LEAST_MS;
}

void lease_move(struct task *t, const struct request *r)
{
	t->lock.host = r->host;
	t->lock.pid = r->pid;
	t->lock.pid_start = r->pid_start;
	t->lock.boot_id = r->boot_id;
}

/* If the lease has already expired, other agents may claim the task at once. */
void lease_clear(struct task *t, int64_t now)
{
	t->free_at = lease_abandoned(t, now) ? now : now + t->last_ttl;
	if (t->lock.holder.n)
		t->last_expires_at = t->lock.expires_at;
	t->lock = (struct lock){ 0 };
	t->run = STR("");
}

/* free_at is 0, not `now`: a machine whose clock is behind would have to wait until `now`. */
void lease_hand_back(struct task *t, const struct policy *p, int64_t now)
{
	bool reserved = p->handback && !lease_abandoned(t, now);

	lease_clear(t, now);
	t->free_at = reserved ? now + p->handback : 0;
}
