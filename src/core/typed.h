/*
 * typed: locks on the queue as a whole, by what they are for. Their ids are "@write", "@batch", "@config" and
 * "@maintenance"; each is a lease with holder, token and fence like the lock of a task, and is kept as
 * a task that has nothing but a lock. doc/typed-locks.md has the table of which keeps out which.
 */
#ifndef CORE_TYPED_H
#define CORE_TYPED_H

#include "core/rules.h"

/* Requests and answers that go between processes have it by its number. */
enum typed {
	TYPED_NONE = 0,
	TYPED_WRITE = 1,
	TYPED_BATCH = 2,
	TYPED_CONFIG = 3,
	TYPED_MAINTENANCE = 4,
	TYPED_END
};

#define TYPED_BIT(kind) (1u << (kind))
#define EMERGENCY_ID STR("@emergency")

const char *typed_name(enum typed kind); /* "maintenance" */
/* "@maintenance"; TYPED_NONE: it is the id of no such lock. */
enum typed typed_of(struct str id);
/* Does the request take a lock of the whole queue, or do something with one? */
bool typed_is(const struct request *rq);
/* What is wrong with "@…" as the id in this call; NULL: nothing. */
const char *typed_fault(const struct request *rq);

/* The kinds of locks that keep the request out while others hold them: a set of TYPED_BIT. Reads and
 * heartbeats are kept out by none. */
unsigned typed_bars(const struct request *rq, const struct policy *p);
/* Is it refused while there is an emergency? */
bool typed_changes(const struct request *rq);

/* lock acquire, lock release, lock break and heartbeat of one. */
void typed_apply(struct task *t, const struct call *c, struct verdict *v);
/* "maintenance is held by alice (import, user bob on host h, pid 7) since … until …" */
struct str typed_holder(const struct task *t, int64_t now, struct arena *a);
/* Nobody changes anything until it is over. */
void emergency_apply(struct task *t, const struct call *c, struct verdict *v);
/* A record that keeps everybody out: its refusal. */
void emergency_refuse(const struct task *t, struct arena *a, struct verdict *v);

#endif
