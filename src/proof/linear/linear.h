/*
 * linear: is there an order of these calls that the model agrees with? This is the search of Wing and
 * Gong, with Lowe's memory of tried pairs (set of calls done, state). It runs over the calls of one
 * family: tasks that are linked by parent or depends. See doc/proof/checker.md.
 */
#ifndef PROOF_LINEAR_LINEAR_H
#define PROOF_LINEAR_LINEAR_H

#include "proof/history/history.h"

/* A call as this family sees it. */
struct part {
	const struct history_call *call; /* for reports; NULL: this is the read at the end */
	const struct request *rq;
	const struct answer *ans; /* NULL: unknown; the call happened once after `sent`, or never */
	/* the task that selection gave, or the id that was created; empty: none of this family */
	struct str took;
	int64_t sent, answered, now;
	bool spare; /* its time is known, but it may have changed nothing in this family */
};

struct family {
	struct str *tasks;
	size_t n_tasks;
	struct part *parts; /* sorted by `sent` */
	size_t n_parts;
	const struct policy *policy;
	bool skewed;
	/* a change may become visible later than its own time, because it was still on its way
	 * (git) */
	bool late;
};

enum linear { LINEAR_YES, LINEAR_NO, LINEAR_UNDECIDED };

/* The deepest point that the search reached. */
struct dead_end {
	struct str state; /* of the family's tasks */
	struct str why;   /* why the first answer that would come next is wrong */
	const struct part **done, **stuck;
	size_t n_done, n_stuck; /* only the latest few */
};

/* `end` may be NULL. */
enum linear linear_check(const struct family *f, struct dead_end *end, struct arena *a);

#endif
