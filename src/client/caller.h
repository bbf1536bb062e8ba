/*
 * caller: the name of a caller that gave none. The coding agent by its environment or by the name in its MCP
 * `clientInfo`, else the user of the system; then "@host", and in a linked git worktree "/WORKTREE".
 */
#ifndef CLIENT_CALLER_H
#define CLIENT_CALLER_H

#include "base/arena.h"

struct caller {
	struct str name; /* "claude@vm/parser" */
	struct str why;  /* "CLAUDECODE is set" */
	struct str
		user; /* "ann@vm": the name that versions before this rule gave to every caller */
};

/* client: the name from `clientInfo`, or empty. worktree: the name of the linked worktree, or NULL. */
struct caller caller_find(struct str client, struct str host, const char *worktree,
			  struct arena *a);
/* The user of the system, as far as known. */
struct str client_user(struct arena *a);
/* The short name of the coding agent that calls itself `name` in `clientInfo` or AI_AGENT; empty: it is unknown. */
struct str caller_of_client(struct str name);

#endif
