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
/* The name of the system user; "uidN" if it is unknown. */
struct str client_user(struct arena *a);
/* Did a coding agent (even one that pawl does not know by name) or `pawl run` start this process? *why: the variable that
 * shows it. */
bool caller_is_agent(struct str *why, struct arena *a);
/* Can the text name an agent, a run or a queue? It must be one line of 1 to NAME_MAX_BYTES bytes. */
bool caller_good_name(struct str s);

struct caller_run {
	struct str name; /* empty: the caller belongs to no session */
	struct str why;  /* "CODEX_THREAD_ID names it" */
	bool made;       /* by pawl: nobody passed --run or PAWL_RUN */
};

/* told: the session that the client named in this call (a hook's session_id, _meta.threadId), or empty. */
struct caller_run caller_run_find(struct str told, struct arena *a);

/* --- own run ---------------------------------------------------------------------------------- */

/*
 * own_run: the run of a process that belongs to no coding agent's session, such as an MCP server whose client names no
 * session. Each such process is its own run. A process that finds tokens of a dead process of the same agent and
 * worktree continues that run.
 *
 * The process keeps a file in the keyring's folder locked. The kernel unlocks it when the process dies, so a
 * process is dead exactly if its file can be locked. A reused pid cannot mislead us.
 */

struct own_run {
	struct str name; /* "mcp-5f0c1b2a9d8e7f60"; empty: not taken */
	bool continued;  /* the run began in a process that is dead */
	char *path;      /* NULL: there is no file, since the folder cannot be used */
	int fd;
};

/* Continues a dead process's run, or begins a new one. The name and the path are in `a`. */
void own_run_take(struct own_run *r, const struct keyring *k, struct arena *a);
/* Ends the run. If tokens are left, the file stays for the next process. */
void own_run_end(struct own_run *r, const struct keyring *k);

#endif
