/* The values in the queue that a shell or the prompt completes. */
#ifndef CMD_VALUES_H
#define CMD_VALUES_H

#include "cmd/completion.h"

/* A values_fn: the values in the queue of a caller with these client_options. Each value once, without values that contain
 * control characters. Empty if the queue cannot be read. The queue is closed afterwards. */
struct strs values_of(void *client_options, const char *kind, struct arena *a);

#endif
