/*
 * pack: the one compact encoding. Packed data are a sequence of fields: tag (one byte), length (varint), bytes; an
 * integer is a zigzag varint. The order is free, readers skip unknown tags, and a repeated tag is a list. Readers
 * check every length.
 */
#ifndef FORMAT_PACK_H
#define FORMAT_PACK_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
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

/* --- bytes ------------------------------------------------------------------------------------ */

/*
 * bytes: any bytes as JSON, and back. A string, or {"hex": …} for bytes that are not valid text, so
 * no byte is lost.
 */

json_t *bytes_json(struct str s);
bool bytes_parse(const json_t *v, struct str *out, struct arena *a);

/* --- shape ------------------------------------------------------------------------------------ */

/*
 * shape: the description of a struct, by which one engine packs and unpacks it (format/pack.h). Each member has a tag,
 * a kind and an offset, and the order of the members is the order of the packed fields. To add a member is to add a row.
 *
 * Unpacking trusts nothing: it checks every length and number, refuses a tag that repeats without being a list, and
 * refuses bytes that would need far more memory than pawl's own do.
 */

enum shape_kind {
	SHAPE_STR,
	SHAPE_INT,  /* int64_t; with `end`: from 0 to below it */
	SHAPE_RANK, /* int64_t from 1 to below `end` */
	SHAPE_ENUM, /* an enum without negative values; below `end`, unless that is 0 */
	SHAPE_CHAR,
	SHAPE_BOOL,
	SHAPE_LIST,  /* struct strs: one field for each; at most `end`, unless that is 0 */
	SHAPE_ROW,   /* int64_t[end]: one field for each */
	SHAPE_IN,    /* a struct of the shape `of` */
	SHAPE_ONE,   /* a pointer to one; NULL: there is none */
	SHAPE_ARRAY, /* a pointer to an array of them, whose length is a size_t at `count` */
	SHAPE_BESIDE /* an array beside another one, whose length it shares; NULL: there is none */
};

/* When a member is packed. SOME: only if it has a value. ALWAYS: even without one. NEEDED: always,
 * and bytes without it are refused. GIVEN: if its bit is set, even without a value. */
enum shape_when { SHAPE_SOME, SHAPE_ALWAYS, SHAPE_NEEDED, SHAPE_GIVEN };
/* An empty list has no fields. If it is given, a field with this tag contains the list's tag. */
#define SHAPE_EMPTY 254

struct shape_member {
	uint8_t tag, kind, when;
	uint8_t part; /* the parts of the struct that it belongs to; 0: all */
	uint32_t end;
	size_t offset, count;
	const struct shape *of;
};

struct shape {
	const struct shape_member *members;
	size_t n, plain; /* the first `plain` members are not SHAPE_GIVEN, the others are */
	size_t size;     /* size of the struct */
	size_t given;    /* offset of a uint64_t: a bit for each SHAPE_GIVEN member, in order */
	const uint8_t *by_tag; /* 1 + index of the member with a tag; NULL: search the list */
	uint8_t least;         /* smaller tags are of another struct in the same bytes */
};

#define SHAPE_MEMBERS_MAX 96
#define SHAPE_ALL 0xffu /* every part */
/* The compiler refuses a list that is too long for shape_unpack(). */
#define SHAPE_COUNT(list)                   \
	(sizeof(list) / sizeof((list)[0]) + \
	 0 * sizeof(char[sizeof(list) / sizeof((list)[0]) <= SHAPE_MEMBERS_MAX ? 1 : -1]))
#define SHAPE_AMONG(list, type, least)                                                            \
	{                                                                                         \
		(list), SHAPE_COUNT(list), SHAPE_COUNT(list), sizeof(struct type), 0, NULL, least \
	}
#define SHAPE_OF(list, type) SHAPE_AMONG(list, type, 0)

void shape_pack(const struct shape *s, unsigned parts, const void *from, struct buf *out);
/* Sets the members that `bytes` has. Strings point into `bytes`, other memory is from `a`. 0, or -EBADMSG. */
int shape_unpack(const struct shape *s, unsigned parts, struct str bytes, void *to,
		 struct arena *a);

#endif
