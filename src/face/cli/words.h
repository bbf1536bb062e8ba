/*
 * words: splits a line into words at blanks. '…' and "…" keep blanks, and a backslash keeps the next character;
 * nothing is expanded.
 */
#ifndef FACE_CLI_WORDS_H
#define FACE_CLI_WORDS_H

#include "base/arena.h"

struct words {
	struct strs list; /* each followed by a NUL */
	size_t last;      /* start of the last word; the end of the line if a blank precedes it */
	bool open;        /* a quote is not closed, or nothing follows a backslash */
};

void words_split(struct words *w, struct str line, struct arena *a);

#endif
