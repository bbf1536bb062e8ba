/*
 * Taking turns where all are on one machine: the protocol decides who was first, but those who were not have worked
 * for nothing, and all of them go for the first task. A file in the repository is the place to wait at; it is no more
 * than politeness, so nobody waits there for long, and where it cannot be made there is none.
 */
#include <sys/stat.h>

#include "base/fs.h"
#include "store/git/transport/raw.h"

#define POLITE_MS 10000

static void turn_open(struct gate *g, struct str repository)
{
	struct arena a = { 0 };
	struct stat like;
	const char *top = fs_join(&a, repository, STR(".git"));

	if (!fs_is_dir(top))
		top = arena_cstr(&a, repository);
	if (stat(fs_join(&a, str_c(top), STR("objects")), &like) == 0 &&
	    fs_make_dirs(fs_join(&a, str_c(top), STR("pawl")), 0777) == 0) {
		like.st_mode &= (mode_t)~0111;
		(void)gate_open(g, fs_join(&a, str_c(top), STR("pawl/turn")), &like);
	}
	arena_free(&a);
}

bool git_turn_take(struct gate *g, struct str repository, const struct store_env *env)
{
	int64_t ms = env->timeout_ms / 2 < POLITE_MS ? env->timeout_ms / 2 : POLITE_MS;

	if (g->fd < 0)
		turn_open(g, repository);
	return g->fd >= 0 && gate_lock(g, ms, env->who) == 0;
}
