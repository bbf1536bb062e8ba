/*
 * check_split: splits a history into families of tasks and judges each. family.c finds the
 * families, calls.c gives each the calls that concern it, linear.c judges them, excerpt.c reduces a
 * failing family to the calls that conflict.
 */
#ifndef PROOF_CHECK_SPLIT_H
#define PROOF_CHECK_SPLIT_H

#include "proof/check/checker_private.h"
#include "proof/linear/linear.h"
#include "proof/model/model.h"

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

/* family.c: finds the families, and the task on which each open token was seen. */
void split_families(struct split *s);

/* calls.c */
void split_calls(struct split *s);
/* The family plus the calls that may have reached any family. spare: also the answered ones among
 * them. false: there are no such calls. */
bool split_rovers(struct split *s, const struct family *f, bool spare, struct family *out,
		  struct arena *a);

/* excerpt.c: reports a family whose calls no order explains. */
void report_family(struct checking *x, const struct family *f, struct arena *a);

#endif
