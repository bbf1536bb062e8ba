/*
 * module: stores and faces that need a library of their own live in shared objects that are loaded when
 * their URI or command is used, so that every other call starts without them.
 *
 * Scheme X is looked for in pawl-store-X.so, command X in pawl-face-X.so, in $PAWL_MODULE_DIR if that is
 * set (an absolute path), else in the folder given at build time. A module exports one symbol,
 * `pawl_module`, and is refused if its `abi` is another. A store's module brings along what it calls, so that it
 * can be loaded by programs that use the library; a face's finds it in the program.
 */
#ifndef BASE_MODULE_H
#define BASE_MODULE_H

#include "base/str.h"

#define MODULE_ABI 5 /* one more whenever what modules share with the program changes */

struct command;
struct store_ops;
struct editor_ops;

struct module {
	int abi;
	const struct store_ops *store;         /* NULL: none */
	const struct command *const *commands; /* ends with NULL; NULL: none */
	const struct editor_ops *editor;       /* face/cli/editor.h; NULL: none */
};

/* kind: "store" or "face". 0 and *out; 1 if there is no such module; -1 if it is there and cannot be
 * used, with the reason in `why`. */
int module_load(const char *kind, struct str name, const struct module **out, char *why,
		size_t room);

/* Where modules are looked for. */
const char *module_dir(void);

#endif
