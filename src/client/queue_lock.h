/*
 * queue_lock: the client's side of locks of the whole queue (core/typed.h): acquiring one, and the token with which
 * the holder's own calls pass it.
 */
#ifndef CLIENT_QUEUE_LOCK_H
#define CLIENT_QUEUE_LOCK_H

#include "client/client.h"

/* The name of the system user; "uidN" if it is unknown. */
struct str client_user(struct arena *a);
/* For queue_config.pass: our token for that lock, from this process, PAWL_LOCK_TOKEN or the keyring. Empty: none. */
struct str client_pass(void *client, enum typed kind, struct arena *a);
/* Adds user and operation to a request that takes a lock of the whole queue or declares an emergency. */
void client_sign(struct client *c, struct request *rq);

#endif
