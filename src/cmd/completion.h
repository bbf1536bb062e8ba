/* complete: finds the words that can come next on a command line, from the table of commands and
 * from the queue. */
#ifndef CMD_COMPLETION_H
#define CMD_COMPLETION_H

#include "cmd/command.h"

/* Gets the values of a kind that are in the queue: "ids", "labels", "holders" or "queues". */
typedef struct strs values_fn(void *ctx, const char *kind, struct arena *a);

struct candidates {
	struct strs words, about; /* about: the meaning of each word; "": no explanation */
	bool folders;             /* the caller's own folders are candidates, too */
};

/* The candidates for the last of the words, which may be empty. Each word ends with a NUL; the
 * program's name is not among them. If the last word begins with '-', the candidates are options.
 * They need not begin with the last word, because each caller compares them in its own way. */
struct candidates complete_words(struct strs words, values_fn *values, void *ctx, struct arena *a);

/* --- values ----------------------------------------------------------------------------------- */

/* values: finds the values in the queue that a shell or the prompt completes. */

/* A values_fn for a caller with these client_options. Each value appears once; values with control
 * characters are left out. Empty if the queue cannot be read. The queue is closed afterwards. */
struct strs values_of(void *client_options, const char *kind, struct arena *a);

#endif
