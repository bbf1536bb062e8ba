/* Text in any case: by Unicode's full case folding, so that "STRASSE" is found in "Straße". */
#include "base/text.h"

#include <utf8proc.h>

#define FOLDED_MAX 3 /* a character folds into at most three */
/* No character becomes more than three times as long (U+0390 and others: 2 bytes to 6). */
#define GROWTH 3

/* Writes the folded form of a character of n bytes to `p`. 0: it is the character itself. */
static size_t text_fold_char(char *p, uint32_t c, size_t n)
{
	utf8proc_int32_t folded[FOLDED_MAX];
	utf8proc_uint8_t form[4 * FOLDED_MAX];
	utf8proc_ssize_t many = utf8proc_decompose_char((utf8proc_int32_t)c, folded, FOLDED_MAX,
							UTF8PROC_CASEFOLD, &(int){ 0 });
	size_t length = 0;

	if (many < 1 || many > FOLDED_MAX)
		return 0;
	for (utf8proc_ssize_t i = 0; i < many; i++)
		length += (size_t)utf8proc_encode_char(folded[i], form + length);
	if (length > n * GROWTH)
		return 0;
	memcpy(p, form, length);
	return length;
}

struct str text_fold(struct arena *a, struct str s)
{
	char *out = arena_alloc(a, s.n * GROWTH + 1), *p = out;

	while (s.n) {
		uint32_t c = (uint8_t)s.p[0];
		size_t n = c < 0x80 ? 1 : text_char(s, &c), folded;

		if (c < 0x80) {
			*p++ = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
		} else if (n && (folded = text_fold_char(p, c, n))) {
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
