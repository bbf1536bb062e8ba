/*
 * ini_edit: changes one setting in the text of a file, and keeps its order, comments and sections.
 */
#ifndef FORMAT_INI_EDIT_H
#define FORMAT_INI_EDIT_H

#include "base/arena.h"
#include "base/buf.h"

/* *out is the new text; value NULL: removes the setting. false if ini_file_each() would not read `value` back. */
bool ini_edit(struct buf *out, struct str text, struct str name, const struct str *value,
	      struct arena *a);
bool ini_has(struct str text, struct str name, struct arena *a);

#endif
