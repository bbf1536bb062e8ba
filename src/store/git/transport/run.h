/*
 * git_run: runs the user's git as a process, with arguments and no shell. git asks nobody for anything, runs
 * no hooks of this side, uses no helper that a URL may name, and is killed when it takes too long.
 */
#ifndef STORE_GIT_TRANSPORT_RUN_H
#define STORE_GIT_TRANSPORT_RUN_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

struct git_args {
	char **v;
	size_t n;
	struct arena a;
};

/* git -C DIR … VERB, in the repository DIR. */
void git_args_begin(struct git_args *g, const char *dir, const char *verb);
void git_arg(struct git_args *g, struct str arg);
void git_args_free(struct git_args *g);
/* Starts the program that the first argument names, with these descriptors (in < 0: empty input): 0 or
 * -errno. */
int git_start(struct git_args *g, int in, int out, int err, pid_t *pid);
/* Returns the exit code, -ETIMEDOUT or -errno. `text` is the output, and lives as long as the arguments. */
int git_run(struct git_args *g, int64_t timeout_ms, struct str *text);

#endif
