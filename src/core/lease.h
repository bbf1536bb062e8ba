/*
 * lease: the lock of a task, as arithmetic. The fence only ever goes up, by one at every acquisition.
 */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include "core/request.h"

/* How long a claim holds if neither the call nor a setting says it. The settings, the help and the
 * documentation take it from here. */
#define LEASE_MINUTES 15
#define LEASE_DEFAULT LEASE_TEXT(LEASE_MINUTES) "m"
/* The same in a files: folder, by the protocol of the other programs that lock there. */
#define LEASE_FILES "1h"
/* After this many abandonments a task goes to Needs Help (the setting max_abandoned). */
#define LEASE_ABANDONED 5
#define LEASE_ABANDONED_DEFAULT LEASE_TEXT(LEASE_ABANDONED)

#define LEASE_TEXT(number) LEASE_TEXT_OF(number)
#define LEASE_TEXT_OF(number) #number

/* Live: a token and now < expires_at; another program's lock until its own expiry, if it has one. */
bool lease_live(const struct lock *l, int64_t now);
/* Is `hash` the live lock's token? */
bool lease_owned(const struct lock *l, struct str hash, int64_t now);
/* A new acquisition by the request's agent. */
void lease_take(struct task *t, const struct request *r, struct str hash, int64_t ttl, int64_t now);
/* expires_at = max(old, now + ttl) */
void lease_renew(struct task *t, int64_t ttl, int64_t now);
/* From now on the process that the request names is the holder's. */
void lease_move(struct task *t, const struct request *r);
/* Counts a lease that expired, or whose process died, before its work was done. true: the task has reached
 * max_abandoned, so it has to wait for a person. */
bool lease_abandon(struct task *t, const struct policy *p);
/* Clears the lock. An agent that knows the task has `last_ttl` to come back before others may take it, but
 * not if it was In Progress and its lease had already run out. */
void lease_clear(struct task *t, int64_t now);

#endif
