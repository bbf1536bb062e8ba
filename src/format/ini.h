/*
 * ini_file: reads the "name = value" lines of a file, by inih, with their line numbers. "[lease]" followed by
 * "min = 1s" is the same as "lease.min = 1s". Leading blanks are ignored, so sections may be indented.
 */
#ifndef FORMAT_INI_H
#define FORMAT_INI_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* The longest line that inih does not split. */
#define INI_LINE_MAX 190

/* `name` and `value` live until the function returns. */
typedef void ini_line_fn(void *ctx, int line, struct str name, struct str value);

/* Calls `fn` for every line that sets a name, in order. 0, or the number of the first invalid line: it is too long, or
 * neither sets a name nor is a section or a comment. */
int ini_file_each(struct str text, ini_line_fn *fn, void *ctx);

/* --- ini edit --------------------------------------------------------------------------------- */

/*
 * ini_edit: changes one setting in the text of a file, and keeps its order, comments and sections.
 */

/* *out is the new text; value NULL: removes the setting. false if ini_file_each() would not read `value` back. */
bool ini_edit(struct buf *out, struct str text, struct str name, const struct str *value,
	      struct arena *a);
bool ini_has(struct str text, struct str name, struct arena *a);

#endif
