/* complete: the possible completions of the last word of a line at the prompt. */
#ifndef FACE_CLI_COMPLETE_H
#define FACE_CLI_COMPLETE_H

#include "cmd/completion.h"

/* All candidates that begin with the typed part of the word, which starts at *from, in upper or lower case. Characters
 * that would split or end a word have a \ before them. */
struct strs complete_line(struct str line, size_t *from, values_fn *values, void *ctx,
			  struct arena *a);

#endif
