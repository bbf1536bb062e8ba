/*
 * ini_edit: changes one setting in the text of a file, and nothing else: order, comments and sections stay.
 */
#ifndef FORMAT_INI_EDIT_H
#define FORMAT_INI_EDIT_H

#include "base/arena.h"
#include "base/buf.h"

/* The text as it shall be; value NULL: without it. false if a reader would not get `value` back from it. */
bool ini_edit(struct buf *out, struct str text, struct str name, const struct str *value,
	      struct arena *a);
bool ini_has(struct str text, struct str name, struct arena *a);

#endif
