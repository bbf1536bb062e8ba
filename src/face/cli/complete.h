/*
 * complete: the possible completions of the last word of a line at the prompt, from the table of commands.
 */
#ifndef FACE_CLI_COMPLETE_H
#define FACE_CLI_COMPLETE_H

#include "cmd/command.h"

/* Gets the ids of tasks, for words that are ids. */
typedef struct strs ids_fn(void *ctx, struct arena *a);

/* All candidates that begin with the typed part of the word, which starts at *from. Ids match in upper and lower
 * case. */
struct strs complete_line(struct str line, size_t *from, ids_fn *ids, void *ctx, struct arena *a);

#endif
