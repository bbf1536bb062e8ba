/*
 * linear: is there an order of these calls that the model agrees with? The search of Wing and Gong with
 * Lowe's memory of what was tried (set of calls done, state), over the calls of one family of tasks: all that
 * are linked by parent or depends. See doc/proof/checker.md.
 */
#ifndef HISTORY_LINEAR_H
#define HISTORY_LINEAR_H

#include "proof/history/history.h"

/* A call as this family sees it. */
struct part {
	const struct history_call *call; /* for people; NULL: the look at the end */
	const struct request *rq;
	const struct answer *ans; /* NULL: nobody knows; it happened once after `sent`, or never */
	struct str took; /* what selection gave, or what id was made; empty: none of this family */
	int64_t sent, answered, now;
	bool spare; /* with a known time, but it may have done nothing here */
};

struct family {
	struct str *tasks;
	size_t n_tasks;
	struct part *parts; /* by `sent` */
	size_t n_parts;
	const struct policy *policy;
	bool skewed;
	bool late; /* a change can be seen later than its own time: it was on its way */
};

enum linear { LINEAR_YES, LINEAR_NO, LINEAR_UNDECIDED };

/* Where the search came to its end, at the deepest point. */
struct dead_end {
	struct str state; /* of the family's tasks */
	struct str why;   /* what is wrong with the first answer that would come next */
	const struct part **done, **stuck;
	size_t n_done, n_stuck; /* the latest few */
};

/* end may be NULL. */
enum linear linear_check(const struct family *f, struct dead_end *end, struct arena *a);

#endif
