/*
 * rules: the conditions and effects of each operation, as one table and a few functions. They are
 * pure: they take a task and a call, change the task and put their decision into the call. A
 * refusal changes nothing unless `changed` is set.
 *
 * Order of checks (doc/contract.md): first, is the call a repeat? If the operation needs a lock:
 * lock, status, guard. Otherwise: status, then a live lock of another agent.
 */
#ifndef CORE_RULES_H
#define CORE_RULES_H

#include "core/event.h"
#include "core/request.h"

#define CALL_EVENTS 4

/* One request on one task: the input, then the decision. */
struct call {
	const struct request *rq;
	const struct policy *policy;
	int64_t now;
	struct str proof; /* hash of rq->token, or empty */
	struct str fresh; /* hash of rq->new_token, or empty */
	struct arena *arena;
	const struct task *paused; /* the pause record; NULL: the queue is not paused */

	/* the decision; call_reset() empties it */
	enum result code;
	struct str message, hint;
	struct str warning;
	bool repeated; /* nothing was done: an earlier call did it */
	bool changed;  /* the caller must store the task */
	bool granted;  /* the caller holds the lock now */
	bool by_pause; /* refused because the queue is paused */
	bool by_lock;  /* refused because another agent holds the task */
	struct event events[CALL_EVENTS];
	size_t n_events;
};

/* The operation of `status ID STATUS`: it moves a task from `now` to `target`. OP_UPDATE if no
 * other operation does. */
enum op rules_for_status(int64_t now, int64_t target);
/* The operation that must precede a claim of a task with this status; OP_NONE: none. */
enum op rules_first_step(int64_t now);
/* The status that the operation leads to; 0: it changes no status, or several are possible. */
enum status rules_to(enum op op);
/* Can an event of this name have changed a status so? from, to: 0 if the event does not say. An unknown name may be a
 * newer pawl's, so it fits. */
bool rules_event_fits(struct str name, int64_t from, int64_t to);
/* Checks the operation and, if it is allowed, applies it. op: any operation on one existing
 * task. For depend, undepend and remove it only makes the checks. The queue makes the change,
 * because it concerns other tasks. */
void rules_apply(enum op op, struct task *t, struct call *c);
/* For a call that rules_apply() refused by a lock (c->by_lock) whose process provably died: releases
 * that lock, logs it, and applies the operation. If that is refused, too, the task and the first
 * refusal stay; only a claim of a task that was abandoned too often moves it to Needs Help. */
void rules_apply_over_dead(enum op op, struct task *t, struct call *c);
/* Clears a stale lock. A lock is stale if it expired at least rq->older_than ago, if its process
 * is dead (`dead`), or if its task has ended. false: there is no stale lock. */
bool rules_cleanup(struct task *t, struct call *c, bool dead);
/* For operations that need no lock (update, depend, approve): refuses an explicit token that is
 * stale, and a task under a live lock of another agent, unless the caller overrides it. The lock
 * that `block` leaves on a task does not count. */
bool rules_free(const struct task *t, struct call *c);
/* Empties the decision. rules_apply(), rules_cleanup() and the *_apply() functions in typed.h
 * call it themselves. */
void call_reset(struct call *c);
/* Marks the task as edited: raises its version, sets updated_at and c->changed. */
void call_edited(struct call *c, struct task *t);
/* Adds an event. `from`: the status before the change, or 0. */
void call_event(struct call *c, const struct task *t, const char *name, int64_t from,
		struct str text);

/* --- acquire ---------------------------------------------------------------------------------- */

/*
 * acquire: the ways to get a lock (claim, claim --resume, lock acquire), and the cleanup of
 * abandoned locks.
 */

#define CLAIM_FROM (STATUS_BIT(READY) | STATUS_BIT(IN_PROGRESS) | STATUS_BIT(FAILED))

void acquire_claim(struct task *t, struct call *c);
void acquire_manual(struct task *t, struct call *c);
/* Records that the holder lost the task. true: it was abandoned max_abandoned times and now needs
 * help. */
bool abandon_task(struct task *t, struct call *c);
/* "the lock of ann: process 718 died" */
struct str process_died(const struct lock *l, struct arena *a);
/* Releases the lock of a process that died and logs it. false: the task was abandoned too often. */
bool abandon_by_dead(struct task *t, struct call *c);

/* --- updates ---------------------------------------------------------------------------------- */

/*
 * update: sets the fields of a task from a request, for create and update. It skips `parent` and
 * `depends`: they concern other tasks, so src/queue changes them.
 */

/* Does the request name any field to change? */
bool update_any(const struct request *r);
void update_fields(struct task *t, const struct request *r, int64_t now, struct arena *a);
/* The operation `update`. */
void update_apply(struct task *t, struct call *c);

/* --- refusals --------------------------------------------------------------------------------- */

/*
 * refuse: the messages of refused operations. Each says what happened, to which task, and what to
 * do next.
 */

void refuse_status(struct call *c, const struct task *t, const char *what, unsigned from);
void refuse_held(struct call *c, const struct task *t);
/* Another agent holds the task, and only an operator may override its lock. */
void refuse_protected(struct call *c, const struct task *t);
/* The queue is paused. */
void refuse_paused(struct call *c);
void refuse_lost(struct call *c, const struct task *t);
void refuse_subtasks(struct call *c, const struct task *t);
void refuse(struct call *c, enum result code, struct str message, struct str hint);

#endif
