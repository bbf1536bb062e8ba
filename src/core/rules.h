/*
 * rules: what each operation needs and does, as one table and a few functions. Pure: a task and a call go
 * in, a changed task and a verdict come out. Who is refused has changed nothing, unless `changed` says so.
 *
 * Order of checks (doc/contract.md): a repeat; where a lock is needed: lock, status, guard; elsewhere:
 * status, then another's live lock.
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
};

#define VERDICT_EVENTS 4

struct verdict {
	enum result code;
	struct str message, hint;
	struct str warning;
	bool repeated; /* nothing was done: it had been done before */
	bool changed;  /* the task is to be stored */
	bool granted;  /* the caller holds the lock now */
	struct event events[VERDICT_EVENTS];
	size_t n_events;
};

/* The operation that brings a task of `now` to `target` (status ID STATUS): OP_NONE if none does. */
enum op rules_for_status(int64_t now, int64_t target);
/* Judges and, if it is allowed, does it. op: any that is about one existing task. */
void rules_apply(enum op op, struct task *t, const struct call *c, struct verdict *v);
/* Clears a lock that nobody can still need: it ran out at least rq->older_than ago, its process is dead
 * (the caller found out), or its task has ended. false: it stays. */
bool rules_cleanup(struct task *t, const struct call *c, bool dead, struct verdict *v);
/* Where no lock is needed (update, depend, approve): a stale token that was named is refused, and so is
 * another's live lock; but the lock that `block` leaves behind keeps nobody from moving the task on. */
bool rules_free(const struct task *t, const struct call *c, struct verdict *v);
/* The task was edited: its version, when, and that it is to be stored. */
void verdict_edited(struct verdict *v, const struct call *c, struct task *t);
/* Adds a line for the log. */
void verdict_event(struct verdict *v, const struct call *c, const struct task *t, const char *name,
		   int64_t from, struct str text);

#endif
