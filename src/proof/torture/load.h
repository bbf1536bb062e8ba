/*
 * load: so many processes, each with so many operations, on a scratch queue of the store; how many went well, and
 * how long each took. All have to: a store may be slow, but it loses nothing, and nobody waits in vain.
 *
 * The plan is that of a torture: of it count agents (the processes), calls (of each), uri, timeout and progress.
 */
#ifndef TORTURE_LOAD_H
#define TORTURE_LOAD_H

#include "proof/torture/torture.h"

#define LOAD_CALLS_MAX 100000
#define LOAD_ALL_MAX 10000000 /* processes × operations */

struct load_report {
	int64_t ms, calls, succeeded, codes[TORTURE_CODES];
	int64_t mean_us, p50_us, p95_us, p99_us, longest_us; /* from the call to its answer */
	struct str failure; /* the message of the first call that failed */
	struct strs
		faults; /* what is missing in the queue, though it was acknowledged; or too much */
	struct str queue;
	bool removed;
	struct str stayed; /* why it is not */
	bool interrupted;
};

/* SUCCESS: it ran, and the report says how it went. Else why it could not, in *ans; the report's queue and
 * `removed` count all the same. */
enum result load_run(const struct torture_plan *plan, struct load_report *out, struct answer *ans,
		     struct arena *a);

#endif
