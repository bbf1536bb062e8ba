/* check_part: declarations that the checker's files share. */
#ifndef PROOF_CHECK_CHECKER_PRIVATE_H
#define PROOF_CHECK_CHECKER_PRIVATE_H

#include "proof/check/checker.h"
#include "proof/history/history.h"
#include "proof/linear/linear.h"
#include "proof/model/model.h"

/* One call as it concerns one task. `next`: the task is the one that `done --claim-next` took. */
struct touch {
	const struct history_call *call;
	const struct task *task; /* as the answer shows it; NULL: the answer does not show it */
	const struct grant *lock;
	bool next;
};

struct checking {
	const struct history_log *log;
	struct check_report *out;
	struct arena *arena;
	struct tally tasks;                /* numbers from 1; ids in lower case */
	struct tally open_tokens;          /* tokens of acquisitions without an answer */
	const struct history_call **calls; /* sorted by time sent */
	struct touch *touches;             /* grouped by task; each group is sorted by time sent */
	/* where each task's group begins; first[n + 1] is the end */
	size_t *first;
	const struct history_end **ends; /* by task; NULL: no line says how the task ended */
	bool *spoiled;                   /* by task: its end is already known to be wrong */
	bool skewed;                     /* the store's time went backwards, legitimately or not */
};

/* 0: no task has this id. */
uint32_t task_number(const struct checking *x, struct str id);

/* Did the call succeed, other than as a repeat of an earlier one? */
static inline bool call_accepted(const struct history_call *c)
{
	return c->ans && c->ans->code == SUCCESS && !c->ans->repeated;
}

/* Might the call have taken effect although no answer says so? */
static inline bool call_unanswered(const struct history_call *c)
{
	return !(op_flags(c->rq->op) & OP_READS) &&
	       (!c->ans || (c->ans->code == API_ERROR && c->ans->applied != 'n'));
}

static inline bool call_before(const struct history_call *a, const struct history_call *b)
{
	return a->answered < b->sent;
}

void check_add(struct checking *x, enum check_kind kind, struct str task,
	       const struct history_call *const *calls, size_t n, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

void check_locks(struct checking *x);  /* fence, holders, stale, done */
void check_guards(struct checking *x); /* closed */
void check_ends(struct checking *x);   /* lost, stuck */
void check_clock(struct checking *x);
void check_twice(struct checking *x);
/* Checks that a task is completed once under each fence. done: room for n_touches pointers. */
void check_done(struct checking *x, struct str task, const struct touch *touches, size_t n_touches,
		const struct touch **done);
void check_select(struct checking *x); /* selected */
void check_linear(struct checking *x);
void check_driver(struct checking *x); /* all that can be decided of a driver's history */

/* --- split ------------------------------------------------------------------------------------ */

/*
 * check_split: splits a history into families of tasks and checks each. check_calls.c finds the
 * families, check_calls.c gives each the calls that concern it, checker.c checks them, checker.c reduces a
 * failing family to the calls that conflict.
 */

struct split {
	struct checking *x;
	uint32_t *boss; /* by task: union-find, then the family's number */
	size_t n_families;
	struct family *families;
	struct tally tokens, ids; /* tokens of acquisitions; request ids */
	/* by request id: how often it is used, and one task that it is used on */
	uint32_t *uses, *user;
	bool *untold;       /* by request id: a call that names no task uses it, too */
	uint32_t *evidence; /* by open token: a task on which it was seen */
	uint32_t *orphans;  /* tasks that an unanswered call may have created */
	size_t n_orphans;
	struct part *rovers; /* calls that may have reached any family */
	size_t n_rovers;
	bool fill; /* false: the first pass, which only counts */
	size_t *count;
	int64_t end; /* the time at which the final states were read */
};

/* Is the call about all tasks? */
static inline bool call_sweeps(const struct request *rq)
{
	return rq->op == OP_LOCK_CLEANUP || (rq->op == OP_ARCHIVE && !HAS(rq, id));
}

static inline bool makes_id(const struct history_call *c)
{
	return c->rq->op == OP_CREATE && !HAS(c->rq, id);
}

/* The task that the call is about; 0: none, or unknown. */
static inline uint32_t call_about(const struct split *s, const struct history_call *c)
{
	struct str id = model_about(c->rq);

	if (id.n)
		return task_number(s->x, id);
	return c->ans && c->ans->task ? task_number(s->x, c->ans->task->id) : 0;
}

/* check_calls.c: finds the families, and the task on which each open token was seen. */
void split_families(struct split *s);

/* check_calls.c */
void split_calls(struct split *s);
/* The family plus the calls that may have reached any family. spare: including answered calls.
 * false: no call was added. */
bool split_rovers(struct split *s, const struct family *f, bool spare, struct family *out,
		  struct arena *a);

/* checker.c: reports a family whose calls no order explains. */
void report_family(struct checking *x, const struct family *f, struct arena *a);

#endif
