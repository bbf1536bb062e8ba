/*
 * own_run: the run of a process that belongs to no session of a coding agent, such as an MCP server whose client names
 * none. Each such process is a run of its own. A process that finds the tokens of a dead one, of the same agent and
 * worktree, continues its run.
 *
 * The process keeps a file in the folder of the keyring locked. The kernel unlocks it when the process dies, so a
 * process is dead exactly if its file can be locked: no pid can be mistaken for another.
 */
#ifndef CLIENT_OWN_RUN_H
#define CLIENT_OWN_RUN_H

#include "client/keyring.h"

struct own_run {
	struct str name; /* "mcp-5f0c1b2a9d8e7f60"; empty: not taken */
	bool continued;  /* it was the run of a process that is dead */
	char *path;      /* NULL: there is no file, since the folder cannot be used */
	int fd;
};

/* The name and the path are in `a`. */
void own_run_take(struct own_run *r, const struct keyring *k, struct arena *a);
/* Keeps the file if tokens are left, for the next process. */
void own_run_end(struct own_run *r, const struct keyring *k);

#endif
