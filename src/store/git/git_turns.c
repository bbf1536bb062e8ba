/*
 * Makes the processes on one machine push one after the other. The protocol alone decides which push wins, but
 * it wastes the losers' work, and all of them try the first task. So they wait at a gate file in the
 * repository. Correctness does not depend on the gate: a process waits there at most POLITE_MS, and without
 * the file it does not wait.
 */
#include <unistd.h>

#include "base/fs.h"
#include "store/git/git.h"
#include "store/git/transport/transport.h"

#define POLITE_MS 10000

static void turns_open(struct gate *g, struct str repository)
{
	struct arena a = { 0 };
	const char *path = arena_cstr(&a, repository);
	int top = beneath_dir(path, ".git");

	if (top < 0)
		top = beneath_dir(path, "");
	if (top >= 0) {
		(void)git_gate_open(g, top, "turn");
		close(top);
	}
	arena_free(&a);
}

bool git_turns_take(struct gate *g, struct str repository, const struct store_env *env)
{
	int64_t ms = env->opt.timeout_ms / 2 < POLITE_MS ? env->opt.timeout_ms / 2 : POLITE_MS;

	if (g->fd < 0)
		turns_open(g, repository);
	return g->fd >= 0 && gate_lock(g, ms, env->opt.who) == 0;
}
