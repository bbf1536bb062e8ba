/*
 * typed: locks of the whole queue, one for each kind of work: "@write", "@batch", "@config",
 * "@maintenance", and "@sync", which keeps only other syncs out. Each has a lease, a holder, a
 * token and a fence, like a task's lock. The store keeps it as a task that has only a lock.
 * Comments call it a queue lock. doc/typed-locks.md has the table of conflicts.
 */
#ifndef CORE_TYPED_H
#define CORE_TYPED_H

#include "core/rules.h"

/* Requests and answers between processes contain these numbers. */
enum typed {
	TYPED_NONE = 0,
	TYPED_WRITE = 1,
	TYPED_BATCH = 2,
	TYPED_CONFIG = 3,
	TYPED_MAINTENANCE = 4,
	TYPED_SYNC = 5,
	TYPED_END
};

/* Stored numbers contain these bits. Bit 5 belongs to the pause. */
#define TYPED_BIT(kind) (1u << ((kind) == TYPED_SYNC ? 6 : (int)(kind)))
#define EMERGENCY_ID STR("@emergency")
#define PAUSE_ID STR("@pause")
#define PAUSE_HINT STR("pawl resume lets agents claim tasks again; holders keep working")

const char *typed_name(enum typed kind); /* "maintenance" */
/* Parses "@maintenance"; TYPED_NONE: it is not the id of a lock of the whole queue. */
enum typed typed_of(struct str id);
/* Does the request concern a lock of the whole queue? */
bool typed_is(const struct request *rq);
/* Checks the "@…" id of this call. Returns NULL or the fault. */
const char *typed_fault(const struct request *rq);

/* The queue locks that refuse the request while other callers hold them: a set of TYPED_BIT. No
 * queue lock refuses reads and heartbeats. */
unsigned typed_bars(const struct request *rq, const struct policy *p);
/* Does the request change the queue, so that an emergency refuses it? */
bool typed_changes(const struct request *rq);

/* Applies lock acquire, lock release, lock break or heartbeat to a lock of the whole queue. */
void typed_apply(struct task *t, struct call *c);
/* Releases a lock whose process provably died, so that it refuses nobody. */
void typed_died(struct task *t, struct call *c);
/* "@maintenance is held by alice (import, user bob on h, pid 7) since …, for at most another …" */
struct str typed_holder(const struct task *t, int64_t now, struct arena *a);
/* Pauses the queue or resumes it. While the queue is paused, no agent can acquire a task's lock. */
void pause_apply(struct task *t, struct call *c);
/* "bob paused it at …: reason" */
struct str pause_text(const struct task *t, struct arena *a);
/* Can a pause refuse the request? */
bool pause_concerns(const struct request *rq);
/* Declares or ends the emergency. During an emergency the queue refuses changes. */
void emergency_apply(struct task *t, struct call *c);
/* Refuses a change during an emergency. */
void emergency_refuse(const struct task *t, struct call *c);

#endif
