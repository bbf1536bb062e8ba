/*
 * git_run: the user's git as a process. Arguments only, no shell; never asks anybody, runs no hooks of this
 * side, uses no helper that a URL may name, and is ended when it takes too long.
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

/* git -C DIR … VERB, in the repository DIR */
void git_args_begin(struct git_args *g, const char *dir, const char *verb);
void git_arg(struct git_args *g, struct str arg);
void git_args_free(struct git_args *g);
/* The program that the first argument names, with these as its files (in < 0: nothing to read): 0 or -errno. */
int git_start(struct git_args *g, int in, int out, int err, pid_t *pid);
/* Its exit code and what it wrote, which lives as long as the arguments; -ETIMEDOUT, -errno. */
int git_run(struct git_args *g, int64_t timeout_ms, struct str *text);

#endif
