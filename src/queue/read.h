/* The parts of a read that queue/queue_read.c and queue/read_next.c share. */
#ifndef QUEUE_READ_H
#define QUEUE_READ_H

#include "queue/queue_private.h"

/* A read sees only committed states and never waits. */
struct reading {
	struct store *store;
	const struct policy *policy;
	const struct request *rq;
	struct answer *ans;
	struct arena *arena;
	int64_t now;
	size_t limit;
	size_t bad;             /* number of bad records, which are omitted */
	struct strs given_back; /* eligible tasks that the caller excepted */
	size_t bytes;           /* of the records in the page */
	int lane;               /* of the task that is shown */
};

/* Fills in `paused` of the answer, if the queue is. */
int read_pause(struct reading *x, struct task *pause);
int read_next(struct reading *x);
/* Why `next` would offer the task, or would not. key: that of the task; lane: of its record. */
int read_why(struct reading *x, const struct task *t, struct str key, int lane, struct str *why,
	     bool *eligible, struct arena *a);
/* allowed.c: adds to the answer what the caller may do with its tasks. */
int read_allowed(struct reading *x);

#endif
