/*
 * recall: the lines that were typed at the prompt, in a file of mode 0600 beside the saved tokens, oldest
 * first. A line that could hold a secret is not kept.
 */
#ifndef FACE_CLI_RECALL_H
#define FACE_CLI_RECALL_H

#include "client/client.h"

/* The lines kept so far, at most the last 1,000; no more of them stay in the file. */
struct strs recall_load(const struct keyring *k, struct arena *a);
/* Not if it may not be kept; that it cannot be is no failure. */
void recall_add(const struct keyring *k, struct str line);
/* Does it hold a token, or a password? */
bool recall_secret(struct str line);

#endif
