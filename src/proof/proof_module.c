/* The functions that pawl-proof.so offers to the program that loads it. The program checks MODULE_ABI first: a change to
 * struct proof_ops or its types must change that number. */
#include "base/module.h"
#include "proof/check/checker.h"
#include "proof/torture/torture.h"
#include "proof/torture/torture_load.h"

static const struct proof_ops ops = {
	.torture = torture_run,
	.check = torture_check,
	.kind_name = check_kind_name,
	.left = torture_left,
	.remove = torture_remove,
	.audit = audit_queue,
	.audit_kind_name = audit_kind_name,
	.load = load_run,
};

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .proof = &ops };
