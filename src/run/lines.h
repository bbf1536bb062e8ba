/*
 * lines: turns the output of a program into lines that are safe on a terminal with other programs' lines.
 *
 * Colours pass. All other control characters become visible, so they cannot move the cursor. A carriage return ends a
 * line. A line of more than LINES_MAX bytes is broken.
 */
#ifndef RUN_LINES_H
#define RUN_LINES_H

#include "base/buf.h"

#define LINES_MAX 8192u

struct lines {
	struct buf line; /* the last line, not complete yet */
	bool cr;         /* the last byte was a carriage return, and ended a line */
};

/* Adds each complete line to `out`, as "NAME | LINE\n". */
void lines_add(struct lines *l, struct str name, struct str bytes, struct buf *out);
/* The program writes no more: adds the last line, if it has no newline. */
void lines_end(struct lines *l, struct str name, struct buf *out);

#endif
