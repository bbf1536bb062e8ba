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

struct unpack {
	struct str rest;
};

/* The next field: 1 and *tag, *value; 0 at the end; -EBADMSG if the bytes are not packed data. */
int unpack_next(struct unpack *u, uint8_t *tag, struct str *value);
/* The integer in a field's value; -EBADMSG if the value is not an integer. */
int unpack_int(struct str value, int64_t *out);

/* A field of a struct, a text or a number; the other pointer is NULL. The slot at i has the tag i + 1. */
struct pack_slot {
	struct str *text;
	int64_t *number;
};

void pack_slots(struct buf *b, const struct pack_slot *slots, size_t n);
/* Skips the other tags. -EBADMSG if the bytes are not packed data or if a value is not an integer. */
int unpack_slots(struct str bytes, const struct pack_slot *slots, size_t n);

#endif
