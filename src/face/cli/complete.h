/*
 * complete: the possible completions of the last word of a line at the prompt, from the table of commands.
 */
#ifndef FACE_CLI_COMPLETE_H
#define FACE_CLI_COMPLETE_H

#include "cmd/command.h"

/* Gets the values of a kind that are in the queue: "ids", "labels", ... */
typedef struct strs values_fn(void *ctx, const char *kind, struct arena *a);

/* All candidates that begin with the typed part of the word, which starts at *from. Characters that would split or end a
 * word have a \ before them. Ids match in upper and lower
 * case. */
struct strs complete_line(struct str line, size_t *from, values_fn *values, void *ctx,
			  struct arena *a);

#endif
