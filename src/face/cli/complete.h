/*
 * complete: what the last word of a line at the prompt could become, by the table of commands.
 */
#ifndef FACE_CLI_COMPLETE_H
#define FACE_CLI_COMPLETE_H

#include "cmd/command.h"

/* The ids of tasks, for the words that are such. */
typedef struct strs ids_fn(void *ctx, struct arena *a);

/* All that begin with what is there of the word, which begins at *from. Ids fit in any case. */
struct strs complete_line(struct str line, size_t *from, ids_fn *ids, void *ctx, struct arena *a);

#endif
