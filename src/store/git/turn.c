/*
 * Lets the processes of one machine take turns. The protocol decides which push wins, but the others then
 * have worked in vain, and all of them try the first task. So they wait at a gate file in the repository. No
 * promise depends on it: nobody waits there for long, and without the file there is no waiting.
 */
#include <unistd.h>

#include "base/fs.h"
#include "store/git/folder.h"
#include "store/git/transport/raw.h"

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
