/*
 * undo: encodes the record from which an undo restores a task. `head` decides who may take the change back and is small;
 * the rest has the task as it was.
 */
#ifndef FORMAT_UNDO_FORM_H
#define FORMAT_UNDO_FORM_H

#include "base/arena.h"
#include "core/undo_rules.h"

/* Empty: the record would be too large. */
struct str undo_pack_head(const struct undo *u, struct arena *a);
struct str undo_pack_rest(const struct undo *u, struct arena *a);
/* Strings point into the bytes, other memory is from `a`. 0, or -EBADMSG. */
int undo_unpack_head(struct str bytes, struct undo *out, struct arena *a);
int undo_unpack_rest(struct str bytes, struct undo *out, struct arena *a);
/* Equal digests: nobody changed the task in between (undo_compared()). */
struct str undo_digest(const struct task *t, struct arena *a);

#endif
