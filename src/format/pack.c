#include "format/pack.h"

#include <errno.h>

static size_t put_varint(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		p[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	p[n++] = (uint8_t)v;
	return n;
}

static int get_varint(struct str *s, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t c;

		if (!s->n)
			return -EBADMSG;
		c = (uint8_t)*s->p++;
		s->n--;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return -EBADMSG;
}

void pack_str(struct buf *b, uint8_t tag, struct str s)
{
	uint8_t head[11] = { tag };

	buf_add(b, head, 1 + put_varint(head + 1, s.n));
	buf_adds(b, s);
}

void pack_int(struct buf *b, uint8_t tag, int64_t v)
{
	uint8_t bytes[12] = { tag };
	uint64_t zigzag = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
	size_t n = put_varint(bytes + 2, zigzag);

	bytes[1] = (uint8_t)n; /* below 0x80, so it is its own varint */
	buf_add(b, bytes, n + 2);
}

void pack_wrap(struct buf *b, uint8_t tag, size_t at)
{
	uint8_t head[11] = { tag };
	size_t size = b->n - at, n = 1 + put_varint(head + 1, size);

	buf_add(b, head, n); /* makes room */
	if (b->full)
		return;
	memmove(b->p + at + n, b->p + at, size);
	memcpy(b->p + at, head, n);
}

int unpack_next(struct unpack *u, uint8_t *tag, struct str *value)
{
	struct str rest = u->rest; /* a local, since *tag could be a byte of *u to the compiler */
	uint64_t n;

	if (!rest.n)
		return 0;
	*tag = (uint8_t)*rest.p++;
	rest.n--;
	if (get_varint(&rest, &n) || n > rest.n)
		return -EBADMSG;
	*value = str_n(rest.p, (size_t)n);
	u->rest = str_n(rest.p + n, rest.n - (size_t)n);
	return 1;
}

int unpack_int(struct str value, int64_t *out)
{
	uint64_t v;

	if (get_varint(&value, &v) || value.n)
		return -EBADMSG;
	*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return 0;
}
