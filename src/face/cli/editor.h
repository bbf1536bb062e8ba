/*
 * editor: reads a line from a terminal, with history and completion. It is a module of its own
 * (pawl-face-interactive.so), because no other command needs its library.
 */
#ifndef FACE_CLI_EDITOR_H
#define FACE_CLI_EDITOR_H

#include "base/arena.h"

struct editor;

/* Callbacks for the editor. They must outlive it. */
struct editor_host {
	const char *prompt;
	/* Finds the completions of the last word of the line, and where it starts. */
	struct strs (*complete)(void *ctx, struct str line, size_t *from, struct arena *a);
	void *ctx;
};

enum line_end { LINE_WHOLE, LINE_DROPPED, LINE_NONE };

struct editor_ops {
	/* NULL: this terminal does not support it. */
	struct editor *(*open)(const struct editor_host *host);
	/* How the read ended: with a whole line in *out (without its newline, valid until the next call), with
	 * Ctrl-C, or at the end of the input. */
	enum line_end (*read)(struct editor *e, struct str *out);
	/* Adds a line to the history of the up arrow. */
	void (*remember)(struct editor *e, const char *line);
	void (*close)(struct editor *e);
};

#endif
