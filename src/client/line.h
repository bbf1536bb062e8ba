/*
 * line: "name=value" in the files of the keyring and of trust.
 */
#ifndef CLIENT_LINE_H
#define CLIENT_LINE_H

#include "base/arena.h"
#include "base/buf.h"

/* A path may hold any byte: one that would end the line goes as %0a. */
void line_add(struct buf *b, const char *name, struct str value);
/* The value of such a line, as it was. */
struct str line_value(struct str coded, struct arena *a);

#endif
