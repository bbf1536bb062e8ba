/* prospects: what a loop can still expect of a queue that has no eligible task for it. */
#ifndef QUEUE_PROSPECTS_H
#define QUEUE_PROSPECTS_H

#include "queue/queue.h"

struct forecast {
	int64_t coming; /* open tasks that can become eligible for the caller */
	/* open tasks for the caller that need a person first, or that the caller itself released; one of them */
	int64_t stuck;
	struct str stuck_id;
	int64_t wait_ms; /* time until the next lease or delay is over; 0: there is none */
};

/* rq: an OP_TAKE with its filters and `except`. A task can become eligible by the work of agents and by time. people: a
 * task that waits for a person counts, too. */
enum result queue_forecast(struct queue *q, const struct request *rq, bool people,
			   struct forecast *out, struct answer *ans, struct arena *a);

#endif
