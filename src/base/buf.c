#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

void buf_add_slowly(struct buf *b, const void *p, size_t n)
{
	if (b->full || n > b->max - b->n) {
		b->full = true;
		return;
	}
	if (b->room - b->n < n + 1) {
		b->room = (b->n + n + 1) * 2 > 256 ? (b->n + n + 1) * 2 : 256;
		b->p = mem_grow(b->p, b->room);
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
	if (b->drain && b->n >= BUF_DRAIN_AT)
		b->drain(b, b->drain_ctx);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n < sizeof(small)) {
		buf_add(b, small, (size_t)n);
		return;
	}
	char *big = mem_alloc((size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(big, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf_add(b, big, (size_t)n);
	free(big);
}

void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ .max = b->max };
}
