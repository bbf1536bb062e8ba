/*
 * caller: the name and the run of a caller that gave none. The name is the coding agent, recognised by its environment or
 * by the name in its MCP `clientInfo`, else the system user; then "@host", and in a linked git worktree "/WORKTREE".
 * The run is that coding agent's session.
 */
#ifndef CLIENT_CALLER_H
#define CLIENT_CALLER_H

#include "base/arena.h"
#include "client/keyring.h"

struct caller {
	struct str name; /* "claude@vm/parser" */
	struct str why;  /* "CLAUDECODE is set" */
};

/* client: the name from `clientInfo`, or empty. worktree: the name of the linked worktree, or NULL. */
struct caller caller_find(struct str client, struct str host, const char *worktree,
			  struct arena *a);
/* The user of the system, as far as known. */
struct str client_user(struct arena *a);
/* Did a coding agent start this process, known or not, or `pawl run`? *why: the variable that says so. */
bool caller_is_agent(struct str *why, struct arena *a);
/* Can it be the name of an agent, a run or a queue: one line of 1 to NAME_MAX_BYTES bytes? */
bool caller_good_name(struct str s);

struct caller_run {
	struct str name; /* empty: the caller belongs to no session */
	struct str why;  /* "CODEX_THREAD_ID names it" */
	bool made;       /* by pawl: nobody passed --run or PAWL_RUN */
};

/* told: the session that the client named in this call (a hook's session_id, _meta.threadId), or empty. */
struct caller_run caller_run_find(struct str told, struct arena *a);

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
