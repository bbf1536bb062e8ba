/*
 * scratch: the queue of a torture. It is created before the agents start and removed after they
 * end. The driver has no handle of it open while it forks.
 */
#ifndef PROOF_TORTURE_SCRATCH_H
#define PROOF_TORTURE_SCRATCH_H

#include "proof/history/history.h"
#include "queue/queue.h"
#include "proof/torture/board.h"

#define SCRATCH_LEASE_MIN 200
#define SCRATCH_KEEPER_TTL 60000 /* a run renews it: if it has expired, no run is at work */

struct policy scratch_policy(const struct torture_plan *plan);
struct queue_config scratch_config(const struct torture_plan *plan, struct str queue);
/* Creates the queue with its tasks, and records all calls in `h`. Sets plan->served. clock_token: the token of the lock
 * that holds the store's clock. made: there is a queue to remove, even if the result is not
 * SUCCESS. */
enum result scratch_make(struct torture_plan *plan, struct str queue, struct str clock_token,
			 struct history *h, bool *made, struct answer *ans, struct arena *a);
/* May a call without a request id take effect twice if its answer is lost on the way from a server? The history has one
 * call then, so the checker could not explain both. */
bool scratch_may_double(const struct torture_plan *plan, enum op op);
/* Writes the answer of a call to the history. */
void scratch_record(struct history *h, uint64_t call, struct answer *ans);
/* Renews that lock for SCRATCH_KEEPER_TTL; false: it could not be done quickly. */
bool scratch_renew(const struct torture_plan *plan, struct str queue, struct str clock_token,
		   struct history *h);
/* Has the run that made the queue ended? */
bool scratch_idle(const struct torture_plan *plan, struct str queue, struct arena *a);
/* Reads every task at the end, the event log's counts, and the store's own check. */
enum result scratch_read(const struct torture_plan *plan, const struct board *b,
			 struct torture_report *report, struct history *h, struct answer *ans,
			 struct arena *a);
enum result scratch_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a);

#endif
