/* Strings with a length, growing buffers, hex digits and binary search. No function reads beyond
 * the length of a string or writes beyond the limit of a buffer. Files and shared memory contain
 * the results of str_sum() and str_hash(), so neither may change. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hex.h"
#include "base/str.h"

static char str_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

bool str_eq_nocase(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (str_lower(a.p[i]) != str_lower(b.p[i]))
			return false;
	return true;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_eq(str_n(s.p, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && str_eq(str_n(s.p + s.n - suffix.n, suffix.n), suffix);
}

bool str_has_nocase(struct str s, struct str part)
{
	if (!part.n)
		return true;
	for (size_t i = 0; i + part.n <= s.n; i++)
		if (str_eq_nocase(str_n(s.p + i, part.n), part))
			return true;
	return false;
}

static bool str_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct str str_trim(struct str s)
{
	while (s.n && str_blank(s.p[0]))
		s.p++, s.n--;
	while (s.n && str_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

struct str str_cut(struct str *s, char sep)
{
	const char *at = s->n ? memchr(s->p, sep, s->n) : NULL;
	struct str head = *s;

	if (!at) {
		*s = STR("");
		return head;
	}
	head.n = (size_t)(at - s->p);
	*s = str_n(at + 1, s->n - head.n - 1);
	return head;
}

bool str_cut_prefix(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	*s = str_n(s->p + prefix.n, s->n - prefix.n);
	return true;
}

bool str_to_i64(struct str s, int64_t *out)
{
	bool minus = s.n && s.p[0] == '-';
	uint64_t v = 0;
	size_t i = minus;

	if (i == s.n)
		return false;
	for (; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	if (v > INT64_MAX)
		return false;
	*out = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

bool strs_have(struct strs list, struct str s)
{
	for (size_t i = 0; i < list.n; i++)
		if (str_eq(list.v[i], s))
			return true;
	return false;
}

bool strs_eq(struct strs a, struct strs b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (!str_eq(a.v[i], b.v[i]))
			return false;
	return true;
}

uint64_t str_hash(struct str s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
	return h;
}

uint64_t str_sum(uint64_t seed, const void *p, size_t n)
{
	const char *at = p;
	uint64_t h = seed, word;

	for (; n >= 8; at += 8, n -= 8) {
		memcpy(&word, at, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; n; at++, n--)
		h = (h ^ (unsigned char)*at) * 0x100000001b3u;
	return h ^ h >> 32;
}

/* --- buf -------------------------------------------------------------------------------------- */

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

/* --- hex -------------------------------------------------------------------------------------- */

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_bytes(struct str hex, struct str *out, struct arena *a)
{
	char *p = arena_alloc(a, hex.n / 2 + 1);

	if (hex.n % 2)
		return false;
	for (size_t i = 0; i < hex.n; i += 2) {
		int high = hex_digit(hex.p[i]), low = hex_digit(hex.p[i + 1]);

		if (high < 0 || low < 0)
			return false;
		p[i / 2] = (char)(high << 4 | low);
	}
	*out = str_n(p, hex.n / 2);
	return true;
}

/* --- search ----------------------------------------------------------------------------------- */

size_t search_key(const void *list, size_t n, struct str key, search_fn *key_at, bool *found)
{
	size_t low = 0;

	*found = false;
	while (low < n) {
		size_t mid = low + (n - low) / 2;
		int c = str_cmp(key, key_at(list, mid));

		*found = c == 0;
		if (*found)
			return mid;
		if (c < 0)
			n = mid;
		else
			low = mid + 1;
	}
	return low;
}
