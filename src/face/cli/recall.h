/*
 * recall: the history of the prompt, in a file of mode 0600 beside the saved tokens, oldest line first. A line
 * that may hold a secret is not kept.
 */
#ifndef FACE_CLI_RECALL_H
#define FACE_CLI_RECALL_H

#include "client/client.h"

/* Reads the history, at most the last 1,000 lines; the file keeps no more. */
struct strs recall_load(const struct keyring *k, struct arena *a);
/* Appends a line, unless it may hold a secret; a failed write is ignored. */
void recall_add(const struct keyring *k, struct str line);
/* Does it hold a token, or a password? */
bool recall_secret(struct str line);

#endif
