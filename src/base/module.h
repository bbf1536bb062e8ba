/*
 * module: stores and faces that need a library of their own live in shared objects. They are loaded
 * only when their URI or command is used, so every other call starts without them.
 *
 * A scheme X is in pawl-store-X.so, a command X in pawl-face-X.so, the tests of a store in
 * pawl-proof.so, TLS for clients in pawl-http-tls.so, the board in pawl-board.so, queues behind a
 * server in pawl-remote.so, a board X of another program in pawl-sync-X.so.
 * The search uses only $PAWL_MODULE_DIR if it is set to an absolute path. Otherwise it tries the
 * folder of the program or library that asks, then the folder given at build time.
 * It loads only a file that no other user could replace: root, the user or the program's owner owns
 * it and all folders above it, and no other user can write there.
 * A module exports one symbol, `pawl_module`, and is refused if its `abi` differs. The modules of
 * stores and of remote queues contain all code that they call, so that programs that use the library
 * can load them. Every other module finds that code in the program.
 */
#ifndef BASE_MODULE_H
#define BASE_MODULE_H

#include "base/str.h"

#define MODULE_ABI 24 /* raise it whenever the interface between modules and the program changes */

struct command;
struct store_ops;
struct editor_ops;
struct proof_ops;
struct serve_ops;
struct http_tls_ops;
struct board_ops;
struct remote_ops;
struct sync_ops;

struct module {
	int abi;
	const struct store_ops *store;         /* NULL: none */
	const struct command *const *commands; /* ends with NULL; NULL: none */
	const struct editor_ops *editor;       /* face/cli/cli.h; NULL: none */
	const struct proof_ops *proof;         /* proof/proof.h; NULL: none */
	const struct serve_ops *serve;         /* cmd/cmd_modules.h; NULL: none */
	const struct http_tls_ops *http_tls;   /* http/tls.h; NULL: none */
	const struct board_ops *board;         /* cmd/cmd_modules.h; NULL: none */
	const struct remote_ops *remote;       /* queue/remote_queue.h; NULL: none */
	const struct sync_ops *sync;           /* sync/sync.h; NULL: none */
};

/* kind: "store", "face", "sync" or "http", or "proof", "board" or "remote" with an empty name.
 * Returns 0 and sets *out; 1: the module does not exist; -1: it exists but cannot be used, and
 * `why` has the reason. */
int module_load(const char *kind, struct str name, const struct module **out, char *why,
		size_t room);

/* The folder that is searched for modules. */
const char *module_dir(void);

#endif
