/* board: the interface of pawl-board.so, the module that shows the board in a terminal. */
#ifndef CMD_CMD_MODULES_H
#define CMD_CMD_MODULES_H

#include "cmd/command.h"

struct board_command_args {
	struct args args;
	int64_t web;
	struct str export;
};

struct board_ops {
	/* Shows the board until the user leaves it. The queue is open. */
	enum result (*run)(struct session *s, struct reply *out);
};

/* --- mcp -------------------------------------------------------------------------------------- */

/*
 * mcp: the arguments of the command, for the face that serves it.
 */

struct mcp_args {
	struct args args;
	struct str profile;
	int64_t max_hold, release_on_exit;
};

/* --- serve ------------------------------------------------------------------------------------ */

/*
 * serve: the arguments of `pawl serve`, and the module that serves (pawl-serve.so).
 */

struct serve_args {
	struct args args;
	struct strs listen, host_names;
	struct str tls_cert, tls_key, auth, log;
	int64_t behind_proxy, read_only;
	bool board; /* for one person: a token that is valid for this run only, and its address on standard output */
};

struct serve_ops {
	/* Serves until a signal ends it. */
	enum result (*run)(struct session *s, const struct serve_args *a, struct reply *out);
	/* Writes the board, with the queue's tasks, to a file. */
	enum result (*board_export)(struct session *s, struct str file, struct reply *out);
};

/* Loads the module. NULL: *out has the reason. */
const struct serve_ops *serve_load(struct session *s, struct reply *out);
/* Loads the module and serves. */
enum result serve_with(struct session *s, const struct serve_args *a, struct reply *out);

#endif
