/*
 * load: a number of processes, each with a number of operations, on a scratch queue of the store.
 * The report says how many succeeded and how long they took. All must succeed: a store may be slow,
 * but it must not lose a change or starve a process.
 *
 * It takes a torture's plan and uses agents (the number of processes), calls (for each process),
 * uri, timeout and progress.
 */
#ifndef PROOF_TORTURE_TORTURE_LOAD_H
#define PROOF_TORTURE_TORTURE_LOAD_H

#include "proof/proof.h"

/* SUCCESS: it ran; the report has the result. Otherwise *ans says why it could not run; the
 * report's `queue` and `removed` are valid all the same. */
enum result load_run(const struct torture_plan *plan, struct load_report *out, struct answer *ans,
		     struct arena *a);

#endif
