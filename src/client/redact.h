#ifndef CLIENT_REDACT_H
#define CLIENT_REDACT_H

#include "client/client.h"

/* The text without the folders around this client's store and home, for a caller of this role. A caller on this machine
 * (ROLE_NONE) and an admin get it as it is. */
struct str redact_text(const struct client *c, enum role role, struct str text, struct arena *a);
/* Applies redact_text() to a refusal's message and hint. */
void redact_answer(const struct client *c, enum role role, struct answer *ans, struct arena *a);
/* The store's URI, redacted for this client's caller. */
struct str redact_store(const struct client *c, struct arena *a);

#endif
