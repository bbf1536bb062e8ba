/*
 * proof: gives commands access to the tests of a store, which live in a module.
 */
#ifndef CMD_PROOF_H
#define CMD_PROOF_H

#include "cmd/command.h"
#include "proof/proof.h"

/* NULL if the module is missing, with the reason in *ans. */
const struct proof_ops *proof_load(struct answer *ans, struct arena *a);
/* Reports that the scratch queue was not removed, and why. */
void proof_warn(struct session *s, const struct torture_plan *p, struct str queue, struct str why,
		struct reply *out);

#endif
