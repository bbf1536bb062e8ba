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
/* The same in a files: folder; the .locks protocol, which other programs use there, prescribes it. */
#define LEASE_FILES "1h"
/* After this many abandonments a task goes to Needs Help (the setting max_abandoned). */
#define LEASE_ABANDONED 5
#define LEASE_ABANDONED_DEFAULT LEASE_TEXT(LEASE_ABANDONED)

#define LEASE_TEXT(number) LEASE_TEXT_OF(number)
#define LEASE_TEXT_OF(number) #number

/* A lock is live if it has a token and now < expires_at. A foreign lock needs no token; without an expiry it is
 * live until it is removed. */
bool lease_live(const struct lock *l, int64_t now);
/* Does a live lock keep others from changing the task? The lock that `block` leaves on a task does not. */
bool lease_held(const struct task *t, int64_t now);
/* Is the lock live, and is `hash` the hash of its token? */
bool lease_owned(const struct lock *l, struct str hash, int64_t now);
/* A new acquisition by the request's agent. */
void lease_take(struct task *t, const struct request *r, struct str hash, int64_t ttl, int64_t now);
/* expires_at = max(old, now + ttl) */
void lease_renew(struct task *t, int64_t ttl, int64_t now);
/* The time until a holder should renew a lease that has `left` ms: a third of it. A server may give leases of no length, and
 * must not be asked without a pause. */
int64_t lease_renew_in(int64_t left);
/* Records the process in the request as the holder's process. */
void lease_move(struct task *t, const struct request *r);
/* Is it In Progress under a lock that is not live? Its holder lost it, and no agent has taken it since. */
bool lease_abandoned(const struct task *t, int64_t now);
/* Counts a lease that expired, or whose process died, before the work was done. true: the task has reached
 * max_abandoned, so it needs help. */
bool lease_abandon(struct task *t, const struct policy *p);
/* Clears the lock. For `last_ttl`, an In Progress task is kept for its last agent. It is not kept if its lease
 * expired while it was In Progress. */
void lease_clear(struct task *t, int64_t now);
/* The same for work that a person hands back: everybody may take it at once, or after policy->handback. */
void lease_hand_back(struct task *t, const struct policy *p, int64_t now);

/* Does another's live lock protect the task from the call? The lock that `block` leaves behind protects nothing. */
bool override_needed(const struct task *t, const struct call *c);
/* Does the call change the task over another's live lock? Ask before the change. */
bool override_is(const struct task *t, const struct call *c);
/* Logs who overrides whom, and why. */
void override_log(const struct task *t, struct call *c);
/* The same, and keeps for the holder which fields change. */
void override_note(struct task *t, struct call *c, struct strs fields);
/* false: the call is for another version of the task, and refused. */
bool override_version(const struct task *t, struct call *c);

#endif
