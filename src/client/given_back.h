/*
 * given_back: the tasks that a loop took and released. The loop would take a released task again at once, as the first in
 * the order, and spin. So its next calls skip the task until somebody changes the task itself, its comments,
 * dependencies or sub-tasks. A claim and release by another agent does not count as a change. The list lives in one
 * process: `pawl run --loop`, or one MCP session.
 */
#ifndef CLIENT_GIVEN_BACK_H
#define CLIENT_GIVEN_BACK_H

#include "core/answer.h"
#include "queue/queue.h"

#define GIVEN_BACK_MAX DEPENDS_MAX /* the limit of `except` in a request */

/* A task as it was when the loop released it. */
struct given {
	struct str id, comment, last; /* the cursors of the last comment and of the last event */
	int64_t status, version, open_deps, canceled_deps, open_subs;
	int64_t held_ms; /* until its holder's lease expires; 0: nobody holds it */
};

struct given_back {
	bool on; /* the process is a loop */
	struct given *v;
	size_t n;
};

/* Call it after each call: remembers the task if the call released one. */
void given_back_note(struct given_back *g, struct queue *q, const struct request *rq,
		     const struct answer *ans);
/* Remembers a task that the loop, or a program that it started, released. */
void given_back_add(struct given_back *g, struct queue *q, struct str id);
/* Call it before a call that takes the next task: excludes the tasks that nobody has changed since, and forgets the
 * others. held: also excludes tasks that another agent holds now, because it may release them before the call. Returns the
 * time until the first of their leases expires; 0: nobody holds any of them. */
int64_t given_back_except(struct given_back *g, struct queue *q, struct request *rq, bool held,
			  struct arena *a);
void given_back_free(struct given_back *g);

#endif
