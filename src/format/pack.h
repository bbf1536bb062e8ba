/*
 * pack: the one compact encoding. Packed data are a sequence of fields: tag (one byte), length (varint), bytes; an
 * integer is a zigzag varint. The order is free, readers skip unknown tags, and a repeated tag is a list. Readers
 * check every length.
 */
#ifndef FORMAT_PACK_H
#define FORMAT_PACK_H

#include "base/buf.h"

void pack_int(struct buf *b, uint8_t tag, int64_t v);
void pack_str(struct buf *b, uint8_t tag, struct str s);
/* Makes one field of the bytes from `at` on: a nested struct is packed in place. */
void pack_wrap(struct buf *b, uint8_t tag, size_t at);

struct unpack {
	struct str rest;
};

/* The next field: 1 and *tag, *value; 0 at the end; -EBADMSG if the bytes are not packed data. */
int unpack_next(struct unpack *u, uint8_t *tag, struct str *value);
/* The integer in a field's value; -EBADMSG if the value is not an integer. */
int unpack_int(struct str value, int64_t *out);

#endif
