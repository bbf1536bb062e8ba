/* The values in the queue that a shell or the prompt completes. */
#ifndef CMD_VALUES_H
#define CMD_VALUES_H

#include "client/client.h"

/* kind: "ids", "labels", "holders" or "queues". Each value once, without values that contain control characters. Empty if
 * the queue cannot be read. Opens the client's queue. */
struct strs values_of(struct client *c, struct str kind, struct arena *a);

#endif
