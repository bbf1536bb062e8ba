/* Text in any case: by Unicode's full case folding, so that "STRASSE" is found in "Straße". */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct run {
	uint32_t first, last, step;
	int32_t distance;
};

struct spelled {
	uint32_t c;
	const char *text;
};

#include "base/fold.def"

static int compare_run(const void *key, const void *item)
{
	uint32_t c = *(const uint32_t *)key;
	const struct run *r = item;

	return c < r->first ? -1 : c > r->last;
}

static int compare_spelled(const void *key, const void *item)
{
	uint32_t c = *(const uint32_t *)key, other = ((const struct spelled *)item)->c;

	return c < other ? -1 : c > other;
}

static size_t encode(char *p, uint32_t c)
{
	if (c < 0x80) {
		p[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		p[0] = (char)(0xc0 | c >> 6);
		p[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		p[0] = (char)(0xe0 | c >> 12);
		p[1] = (char)(0x80 | (c >> 6 & 0x3f));
		p[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	p[0] = (char)(0xf0 | c >> 18);
	p[1] = (char)(0x80 | (c >> 12 & 0x3f));
	p[2] = (char)(0x80 | (c >> 6 & 0x3f));
	p[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Writes the folded form of `c` to `p`; 0: it is the character itself. */
static size_t fold(char *p, uint32_t c)
{
	const struct run *r = bsearch(&c, runs, sizeof(runs) / sizeof(*runs), sizeof(*runs),
				      compare_run);
	const struct spelled *s;
	size_t n;

	if (r && (c - r->first) % r->step == 0)
		return encode(p, (uint32_t)((int32_t)c + r->distance));
	s = bsearch(&c, spelled, sizeof(spelled) / sizeof(*spelled), sizeof(*spelled),
		    compare_spelled);
	if (!s)
		return 0;
	n = strlen(s->text);
	memcpy(p, s->text, n);
	return n;
}

/* No character becomes more than three times as long (U+0390 and others: 2 bytes to 6). */
#define GROWTH 3

struct str text_fold(struct arena *a, struct str s)
{
	char *out = arena_alloc(a, s.n * GROWTH + 1), *p = out;

	while (s.n) {
		uint32_t c = (uint8_t)s.p[0];
		size_t n = c < 0x80 ? 1 : text_char(s, &c), folded;

		if (c < 0x80) {
			*p++ = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
		} else if (n && (folded = fold(p, c))) {
			p += folded;
		} else {
			n = n ? n : 1; /* not UTF-8: the byte stays */
			memcpy(p, s.p, n);
			p += n;
		}
		s = str_n(s.p + n, s.n - n);
	}
	return str_n(out, (size_t)(p - out));
}

static bool is_ascii(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] >= 0x80)
			return false;
	return true;
}

bool text_has(struct str s, struct str part)
{
	struct arena a = { 0 };
	struct str in, sought;
	bool found;

	if (is_ascii(s) && is_ascii(part)) /* most texts: nothing to allocate */
		return str_has_nocase(s, part);
	in = text_fold(&a, s);
	sought = text_fold(&a, part);
	found = !sought.n || (in.n && memmem(in.p, in.n, sought.p, sought.n));
	arena_free(&a);
	return found;
}
