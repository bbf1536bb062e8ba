/*
 * words: a line as words, apart by blanks. '…' and "…" keep blanks together and a backslash the character behind
 * it; nothing is expanded.
 */
#ifndef FACE_CLI_WORDS_H
#define FACE_CLI_WORDS_H

#include "base/arena.h"

struct words {
	struct strs list; /* each with a NUL behind it */
	size_t last; /* where the last word begins; the end of the line, if a blank is behind it */
	bool open;   /* a quote is not closed, or nothing follows a backslash */
};

void words_split(struct words *w, struct str line, struct arena *a);

#endif
