/* Loads pawl-proof.so, which has the tests of a store, for the commands that run them. A missing module is a refusal with a
 * hint, never a crash. */
#include <inttypes.h>

#include "base/module.h"
#include "cmd/cmd.h"
#include "cmd/command.h"

const struct proof_ops *proof_load(struct answer *ans, struct arena *a)
{
	const struct module *m;
	char why[300];
	int r = module_load("proof", STR(""), &m, why, sizeof(why));

	if (!r && m->proof)
		return m->proof;
	answer_fail(
		ans, MISCONFIGURED,
		arena_printf(a, "this command needs the module pawl-proof.so: %s%s",
			     r < 0 ? why : "it is not installed in ", r < 0 ? "" : module_dir()),
		STR("to install it: make install; PAWL_MODULE_DIR names another folder of modules"));
	return NULL;
}

void proof_warn(struct session *s, const struct torture_plan *p, struct str queue, struct str why,
		struct reply *out)
{
	struct str store = store_word(s->arena, uri_shown(s->arena, p->uri));

	reply_warn(
		out,
		arena_printf(
			s->arena,
			"cannot remove the scratch queue %.*s (%.*s); to remove it: pawl torture --store %.*s --remove %.*s",
			STRF(queue), STRF(why), STRF(store), STRF(queue)),
		s->arena);
}
