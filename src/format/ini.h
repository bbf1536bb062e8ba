/*
 * ini_file: the "name = value" lines of a file, by inih, with their line numbers. "[lease]" and
 * "min = 1s" is the same as "lease.min = 1s". Blanks in front of a line mean nothing, so that
 * sections may be indented.
 */
#ifndef FORMAT_INI_H
#define FORMAT_INI_H

#include "base/str.h"

/* The longest line that inih takes whole. */
#define INI_LINE_MAX 190

/* What it points to lives until the return. */
typedef void ini_line_fn(void *ctx, int line, struct str name, struct str value);

/* Calls `fn` for every line that sets something, in order. 0, or the first line that is no such
 * line, no section and no comment, or is too long. */
int ini_file_each(struct str text, ini_line_fn *fn, void *ctx);

#endif
