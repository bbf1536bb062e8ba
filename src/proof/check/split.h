/*
 * check_split: how a history is judged family by family. check_family.c finds the families of tasks,
 * check_calls.c gives each the calls that are about it, check_linear.c judges them, check_excerpt.c cuts one that
 * fails to what is wrong.
 */
#ifndef HISTORY_CHECK_SPLIT_H
#define HISTORY_CHECK_SPLIT_H

#include "proof/check/part.h"
#include "proof/linear/linear.h"
#include "proof/model/model.h"

struct split {
	struct checking *x;
	uint32_t *boss; /* by task: union-find, then the family's number */
	size_t n_families;
	struct family *families;
	struct tally tokens, ids; /* of acquisitions; request ids */
	uint32_t *uses, *user;    /* how often each is used, and a task that it is used on */
	uint32_t *evidence;       /* by open token: a task that it was seen on */
	uint32_t *orphans;        /* tasks that a call without an answer may have made */
	size_t n_orphans;
	struct part *rovers; /* what may have passed by any family */
	size_t n_rovers;
	bool fill; /* else: only counts */
	size_t *count;
	int64_t end; /* the time of the look at the end */
};

/* About all tasks, whatever they are. */
static inline bool sweeps(const struct request *rq)
{
	return rq->op == OP_LOCK_CLEANUP || (rq->op == OP_ARCHIVE && !HAS(rq, id));
}

static inline bool makes_id(const struct history_call *c)
{
	return c->rq->op == OP_CREATE && !HAS(c->rq, id);
}

/* The task that a call is about; 0: none, or nobody knows. */
static inline uint32_t about(const struct split *s, const struct history_call *c)
{
	struct str id = model_about(c->rq);

	if (id.n)
		return task_number(s->x, id);
	return c->ans && c->ans->task ? task_number(s->x, c->ans->task->id) : 0;
}

/* check_family.c: who belongs together, and which task an open token was seen on. */
void split_families(struct split *s);

/* check_calls.c */
void split_calls(struct split *s);
/* The family with what may have passed by any; spare: also calls that were answered. false: nothing else. */
bool split_rovers(struct split *s, const struct family *f, bool spare, struct family *out,
		  struct arena *a);

/* check_excerpt.c: a family whose calls no order explains. */
void report_family(struct checking *x, const struct family *f, struct arena *a);

#endif
