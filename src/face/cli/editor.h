/*
 * editor: a line typed on a terminal, with history and completion. It lives in a module of its own
 * (pawl-face-interactive.so), since no other command needs its library.
 */
#ifndef FACE_CLI_EDITOR_H
#define FACE_CLI_EDITOR_H

#include "base/arena.h"

struct editor;

/* What the editor is told and may ask. It outlives the editor. */
struct editor_host {
	const char *prompt;
	/* What the last word of the line could become, and where it begins. */
	struct strs (*complete)(void *ctx, struct str line, size_t *from, struct arena *a);
	void *ctx;
};

enum line_end { LINE_WHOLE, LINE_DROPPED, LINE_NONE };

struct editor_ops {
	/* NULL: it cannot be had on this terminal. */
	struct editor *(*open)(const struct editor_host *host);
	/* How it ended: with a whole one in *out (without its newline, until the next call), with Ctrl-C, or with no more. */
	enum line_end (*read)(struct editor *e, struct str *out);
	/* The next line that comes back with the up arrow. */
	void (*remember)(struct editor *e, const char *line);
	void (*close)(struct editor *e);
};

#endif
