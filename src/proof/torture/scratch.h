/*
 * scratch: the queue that is tortured. Made before the agents come and removed when they are gone; no handle
 * of the driver is open while it forks.
 */
#ifndef TORTURE_SCRATCH_H
#define TORTURE_SCRATCH_H

#include "proof/history/history.h"
#include "queue/queue.h"
#include "proof/torture/board.h"

#define SCRATCH_LEASE_MIN 200
#define SCRATCH_KEEPER_TTL 60000 /* a run renews it: where it is over, nobody is at work */

struct policy scratch_policy(const struct torture_plan *plan);
struct queue_config scratch_config(const struct torture_plan *plan, struct str queue);
/* The queue with its tasks, all recorded in `h`. keeper: the token of the lock that keeps the store's clock.
 * made: there is a queue to remove, whatever the result. */
enum result scratch_make(const struct torture_plan *plan, struct str queue, struct str keeper,
			 struct history *h, bool *made, struct answer *ans, struct arena *a);
/* That lock is there for SCRATCH_KEEPER_TTL from now on: false if it could not be done in a moment. */
bool scratch_renew(const struct torture_plan *plan, struct str queue, struct str keeper,
		   struct history *h);
/* Is no run at work on it? */
bool scratch_idle(const struct torture_plan *plan, struct str queue, struct arena *a);
/* Every task as it is at the end, what the log counts, and what the store says of itself. */
enum result scratch_read(const struct torture_plan *plan, const struct board *b,
			 struct torture_report *report, struct history *h, struct answer *ans,
			 struct arena *a);
enum result scratch_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a);

#endif
