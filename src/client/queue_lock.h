/*
 * queue_lock: the client's side of locks of the whole queue (core/typed.h): who takes one, and by which token
 * its own calls get past it.
 */
#ifndef CLIENT_QUEUE_LOCK_H
#define CLIENT_QUEUE_LOCK_H

#include "client/client.h"

/* The user of the system, as far as known. */
struct str client_user(struct arena *a);
/* For the queue: our token of that lock, from this process, PAWL_LOCK_TOKEN or the keyring. Empty: none. */
struct str client_pass(void *client, enum typed kind, struct arena *a);
/* Who takes such a lock, or declares an emergency, is named with user and operation. */
void client_sign(struct client *c, struct request *rq);

#endif
