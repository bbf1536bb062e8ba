/*
 * pack: the one compact encoding. A packed thing is a run of fields: tag (one byte), length (varint),
 * bytes; an integer is a zigzag varint. Order is free, an unknown tag is skipped, a tag that repeats is
 * a list. Reading never trusts a length.
 */
#ifndef FORMAT_PACK_H
#define FORMAT_PACK_H

#include "base/buf.h"

void pack_int(struct buf *b, uint8_t tag, int64_t v);
void pack_str(struct buf *b, uint8_t tag, struct str s);

struct unpack {
	struct str rest;
};

/* The next field: 1 and *tag, *value; 0 at the end; -EBADMSG if the bytes are no packed thing. */
int unpack_next(struct unpack *u, uint8_t *tag, struct str *value);
/* The integer in a field's value; -EBADMSG if it is none. */
int unpack_int(struct str value, int64_t *out);

#endif
