/*
 * buf: a growing buffer with a hard limit. Beyond it nothing is added and `full` stays true, so a
 * caller checks once, at the end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
	char *p;
	size_t n, room, max;
	bool full;
	/* Called when the buffer holds much: writes it out and empties it. NULL: keep
	 * everything. */
	void (*drain)(struct buf *b, void *ctx);
	void *drain_ctx;
};

#define BUF_DRAIN_AT (64u << 10)

#define BUF_MAX(limit) ((struct buf){ .max = (limit) })

/* The slow path of buf_add(), for bytes that may not fit without growing or draining the buffer. */
void buf_add_slowly(struct buf *b, const void *p, size_t n);

static inline void buf_add(struct buf *b, const void *p, size_t n)
{
	/* while there is room, b->n is below b->max */
	if (!n || b->room - b->n <= n || b->max - b->n < n || b->full || b->drain) {
		buf_add_slowly(b, p, n);
		return;
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

static inline void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

static inline void buf_adds(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline struct str buf_str(const struct buf *b)
{
	return str_n(b->p, b->n);
}
void buf_free(struct buf *b);

#endif
