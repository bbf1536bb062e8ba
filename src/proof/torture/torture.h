/*
 * torture: does a store let exactly one agent hold each task? Agents are real processes that work
 * on a scratch queue of the store. They are killed, stopped, given a wrong time, and lose answers.
 * Every call and answer is recorded and checked (proof/check/checker.h).
 *
 * Only the scratch queue is touched. It is always removed at the end; if that fails, the report has
 * its name.
 */
#ifndef PROOF_TORTURE_TORTURE_H
#define PROOF_TORTURE_TORTURE_H

#include "proof/proof.h"

/* SUCCESS: it ran and was checked; the report has the result. Otherwise *ans says why it could not
 * run; the report's `queue` and `removed` are valid all the same. */
enum result torture_run(const struct torture_plan *plan, struct torture_report *out,
			struct answer *ans, struct arena *a);
/* Checks a history without touching a store. USAGE if the file is not a history. */
enum result torture_check(const char *path, struct torture_verdict *out, struct answer *ans,
			  struct arena *a);
/* Was this queue left behind by a run that has ended? Looks only in the plan's store. */
bool torture_left(const struct torture_plan *plan, struct str queue, struct arena *a);
/* Removes a scratch queue that was left behind. */
enum result torture_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a);

#endif
