/*
 * lease: when a task's lock is live, and how it changes. Each acquisition raises the fence by one;
 * nothing here lowers it.
 */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include "core/request.h"
#include "core/rules.h"

/* The lease of a claim if neither the call nor a setting gives one. The settings, the help and the
 * documentation take the value from here. */
#define LEASE_MINUTES 15
#define LEASE_DEFAULT LEASE_TEXT(LEASE_MINUTES) "m"
/* The default lease in a files: folder. The .locks protocol, which other programs use there,
 * prescribes it. */
#define LEASE_FILES "1h"
/* After this many abandonments a task goes to Needs Help (the setting max_abandoned). */
#define LEASE_ABANDONED 5
#define LEASE_ABANDONED_DEFAULT LEASE_TEXT(LEASE_ABANDONED)

#define LEASE_TEXT(number) LEASE_TEXT_OF(number)
#define LEASE_TEXT_OF(number) #number

/* A lock is live if it has a token and now < expires_at. A foreign lock needs no token; without
 * an expiry it is live until it is removed. */
bool lease_live(const struct lock *l, int64_t now);
/* Does a live lock keep others from changing the task? The lock that `block` leaves on a task
 * does not. */
bool lease_held(const struct task *t, int64_t now);
/* Is the lock live, and is `hash` the hash of its token? */
bool lease_owned(const struct lock *l, struct str hash, int64_t now);
/* Does the call's token prove that its caller holds the task? false: the token is stale, and the call
 * was refused. */
bool lease_prove(const struct task *t, struct call *c);
/* True if the caller named no token; else the result of lease_prove(). */
bool lease_prove_named(const struct task *t, struct call *c);
/* Gives the lock to the request's agent: a new acquisition. */
void lease_take(struct task *t, const struct request *r, struct str hash, int64_t ttl, int64_t now);
/* expires_at = max(old, now + ttl) */
void lease_renew(struct task *t, int64_t ttl, int64_t now);
/* The time until a holder should renew a lease that has `left` ms: a third of it, but at least
 * 100 ms. Without the minimum, a server that grants leases of 0 ms would be called in a busy
 * loop. */
int64_t lease_renew_in(int64_t left);
/* Records the process in the request as the holder's process. */
void lease_move(struct task *t, const struct request *r);
/* Is the task In Progress under a lock that is not live? Its holder lost it, and no agent has
 * claimed it since. */
bool lease_abandoned(const struct task *t, int64_t now);
/* Counts a lease that expired, or whose process died, before the work was done. true: the task
 * has reached max_abandoned, so it needs help. */
bool lease_abandon(struct task *t, const struct policy *p);
/* Clears the lock. An In Progress task stays reserved for its last agent for `last_ttl`, unless
 * the lease has already expired. */
void lease_clear(struct task *t, int64_t now);
/* Clears the lock of a task that is handed back. Any agent may claim it at once, or after
 * policy->handback. */
void lease_hand_back(struct task *t, const struct policy *p, int64_t now);

/* --- override --------------------------------------------------------------------------------- */

/*
 * override: changes that an operator makes to a task that another agent holds (--force), and the
 * check of the task version that a call expects (--if-version).
 */

/* Does another agent's live lock protect the task from the call? The lock that `block` leaves
 * protects nothing. */
bool override_needed(const struct task *t, const struct call *c);
/* Does the call override another agent's live lock? Call this before the change, which may clear
 * the lock. */
bool override_is(const struct task *t, const struct call *c);
/* Logs the caller, the holder that it overrides, and the reason. */
void override_log(const struct task *t, struct call *c);
/* Logs the override and stores a notice that tells the holder which fields changed. */
void override_note(struct task *t, struct call *c, struct strs fields);
/* false: the call expects another version of the task and was refused. */
bool override_version(const struct task *t, struct call *c);

#endif
