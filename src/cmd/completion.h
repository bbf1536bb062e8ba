/* complete: finds the words that can come next on a command line, from the table of commands and
 * from the queue. */
#ifndef CMD_COMPLETION_H
#define CMD_COMPLETION_H

#include "cmd/command.h"

/* Gets the values of a kind that are in the queue: "ids", "labels", "holders" or "queues". */
typedef struct strs values_fn(void *ctx, const char *kind, struct arena *a);

struct candidates {
	struct strs words, about; /* about: what each word means; "": no explanation */
	bool folders;             /* the caller's own folders are candidates, too */
};

/* The candidates for the last of the words, each followed by a NUL, without the name of the program. The last word may be
 * empty. If it begins with '-', the candidates are options. They need not begin with the last word: each caller compares
 * them in its own way. */
struct candidates complete_words(struct strs words, values_fn *values, void *ctx, struct arena *a);

/* A values_fn: the values in the queue of a caller with these client_options. Each value once, without values that contain
 * control characters. Empty if the queue cannot be read. The queue is closed afterwards. */
struct strs values_of(void *client_options, const char *kind, struct arena *a);

#endif
