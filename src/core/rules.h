/*
 * rules: the conditions and effects of each operation, as one table and a few functions. They are pure: they take
 * a task and a call, and give a changed task and a verdict. A refusal changes nothing unless `changed` is set.
 *
 * Order of checks (doc/contract.md): first, is the call a repeat? If the operation needs a lock: lock, status,
 * guard. Otherwise: status, then a live lock of another agent.
 */
#ifndef CORE_RULES_H
#define CORE_RULES_H

#include "core/event.h"
#include "core/request.h"

struct call {
	const struct request *rq;
	const struct policy *policy;
	int64_t now;
	struct str proof; /* hash of rq->token, or empty */
	struct str fresh; /* hash of rq->new_token, or empty */
	struct arena *arena;
	const struct task *paused; /* the record of the pause; NULL: the queue is not paused */
};

#define VERDICT_EVENTS 4

struct verdict {
	enum result code;
	struct str message, hint;
	struct str warning;
	bool repeated; /* nothing was done: an earlier call did it */
	bool changed;  /* the caller must store the task */
	bool granted;  /* the caller holds the lock now */
	bool paused;   /* refused because the queue is paused */
	struct event events[VERDICT_EVENTS];
	size_t n_events;
};

/* The operation of `status ID STATUS`: it moves a task from `now` to `target`. OP_UPDATE if no other does. */
enum op rules_for_status(int64_t now, int64_t target);
/* The operation that must come before a claim of a task with this status; OP_NONE: none. */
enum op rules_first_step(int64_t now);
/* Checks the operation and, if it is allowed, applies it. op: any operation on one existing task. */
void rules_apply(enum op op, struct task *t, const struct call *c, struct verdict *v);
/* Clears a stale lock: it expired at least rq->older_than ago, its process is dead (`dead`), or its task has
 * ended. false: the lock is not stale and stays. */
bool rules_cleanup(struct task *t, const struct call *c, bool dead, struct verdict *v);
/* For operations that need no lock (update, depend, approve): refuses an explicit token that is stale, and a task
 * under a live lock of another agent, unless the caller overrides it. The lock that `block` leaves on a task does not count. */
bool rules_free(const struct task *t, const struct call *c, struct verdict *v);
/* Marks the task as edited: raises its version, sets updated_at and v->changed. */
void verdict_edited(struct verdict *v, const struct call *c, struct task *t);
/* Adds an event. `from`: the status before the change, or 0. */
void verdict_event(struct verdict *v, const struct call *c, const struct task *t, const char *name,
		   int64_t from, struct str text);

#endif
