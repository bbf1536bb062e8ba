/*
 * line: "name=value" in the files of the keyring and of trust.
 */
#ifndef CLIENT_LINE_H
#define CLIENT_LINE_H

#include "base/arena.h"
#include "base/buf.h"

/* A path may contain any byte: a newline is written as %0a. */
void line_add(struct buf *b, const char *name, struct str value);
/* Decodes the value of such a line. */
struct str line_value(struct str coded, struct arena *a);

#endif
