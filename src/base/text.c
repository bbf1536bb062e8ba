/* Text that people wrote: UTF-8 checks, width, case folding, "did you mean", and output to
 * terminals. Characters that could control a terminal or deceive its reader are spelled out. The
 * locale may be "C", in which libc's functions support only ASCII. So this file avoids them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/fs.h"
#include "base/text.h"

struct range {
	uint32_t first, last;
};

#include "base/width.def"

static bool text_continues(struct str s, size_t i)
{
	return i < s.n && ((uint8_t)s.p[i] & 0xc0) == 0x80;
}

/* The length of the character at the start of `s`, which is not empty; 0 if it is not UTF-8. */
size_t text_char(struct str s, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint8_t c = (uint8_t)s.p[0];
	size_t n;
	uint32_t v;

	if (c < 0x80) {
		*out = c;
		return 1;
	}
	if (c < 0xc2 || c > 0xf4)
		return 0;
	n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	v = c & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (!text_continues(s, i))
			return 0;
		v = v << 6 | ((uint8_t)s.p[i] & 0x3f);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*out = v;
	return n;
}

static struct str text_skip(struct str s, size_t n)
{
	return str_n(s.p + n, s.n - n);
}

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (c > r[mid].last)
			low = mid + 1;
		else if (c < r[mid].first)
			n = mid;
		else
			return true;
	}
	return false;
}

#define IN(c, table) in_ranges((c), (table), sizeof(table) / sizeof((table)[0]))

/* Are these eight bytes ASCII without a NUL? */
static bool plain_ascii(const char *p)
{
	const uint64_t ones = 0x0101010101010101u, highs = ones << 7;
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return !((w | (w - ones)) & highs);
}

bool text_valid(struct str s)
{
	while (s.n) {
		uint32_t c;
		size_t n;

		if (s.n >= 8 && plain_ascii(s.p)) {
			s = text_skip(s, 8);
			continue;
		}
		if (*s.p && (uint8_t)*s.p < 0x80) { /* mostly the last bytes of a text */
			s = text_skip(s, 1);
			continue;
		}
		n = text_char(s, &c);

		if (!n || !c)
			return false;
		s = text_skip(s, n);
	}
	return true;
}

/*
 * Characters that could deceive a reader: controls, changes of direction, invisible ones. U+200C
 * and U+200D stay because Persian and emoji need them; so do U+FE00 to U+FE0F.
 */
static bool text_deceives(uint32_t c)
{
	static const struct range table[] = {
		{ 0x0000, 0x001f },   /* C0 */
		{ 0x007f, 0x009f },   /* DEL, C1 */
		{ 0x00ad, 0x00ad },   /* soft hyphen */
		{ 0x061c, 0x061c },   /* Arabic letter mark */
		{ 0x115f, 0x1160 },   /* Hangul fillers */
		{ 0x180e, 0x180e },   /* Mongolian vowel separator */
		{ 0x200b, 0x200b },   /* zero width space */
		{ 0x200e, 0x200f },   /* direction marks */
		{ 0x2028, 0x202e },   /* line separators, embeddings and overrides */
		{ 0x2060, 0x206f },   /* word joiner, invisible operators, isolates */
		{ 0x3164, 0x3164 },   /* Hangul filler */
		{ 0xfeff, 0xfeff },   /* byte order mark */
		{ 0xffa0, 0xffa0 },   /* Hangul filler */
		{ 0xfff9, 0xfffb },   /* annotations */
		{ 0xe0000, 0xe0fff }, /* tags and more variation selectors: can hide ASCII */
	};

	return IN(c, table);
}

/* The length of the printable ASCII that s begins with, as far as the buffer has room for it. */
static size_t plain_length(const struct buf *b, struct str s)
{
	size_t n = 0, most = s.n < b->max - b->n ? s.n : b->max - b->n;

	while (n < most && (uint8_t)s.p[n] >= 0x20 && (uint8_t)s.p[n] < 0x7f)
		n++;
	return n;
}

void text_visible(struct buf *b, struct str s, bool lines)
{
	while (s.n) {
		uint32_t c;
		size_t n = plain_length(b, s);

		if (n) {
			buf_add(b, s.p, n);
			s = text_skip(s, n);
			continue;
		}
		n = text_char(s, &c);
		if (!n) {
			buf_addf(b, "\\x%02x", (uint8_t)s.p[0]);
			n = 1;
		} else if ((lines && (c == '\n' || c == '\t')) || !text_deceives(c)) {
			buf_add(b, s.p, n);
		} else {
			buf_addf(b, c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
		}
		s = text_skip(s, n);
	}
}

struct str text_line(struct arena *a, struct str s)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str line;

	text_visible(&b, s, false);
	line = arena_str(a, buf_str(&b));
	buf_free(&b);
	return line;
}

/* Terminals usually show a byte that is not UTF-8 as one replacement character. */
static size_t width_at(struct str s, size_t *n)
{
	uint32_t c;

	*n = text_char(s, &c);
	if (!*n) {
		*n = 1;
		return 1;
	}
	if (c >= 0x20 && c < 0x7f)
		return 1;
	if (c < 0xa0 || IN(c, zero_width))
		return 0;
	return IN(c, double_width) ? 2 : 1;
}

size_t text_width(struct str s)
{
	size_t width = 0, n;

	for (; s.n; s = text_skip(s, n))
		width += width_at(s, &n);
	return width;
}

/* The longest prefix that fits, including the accents of its last character. */
static struct str text_fitting(struct str s, size_t columns)
{
	size_t at = 0, width = 0, n;

	while (at < s.n) {
		width += width_at(text_skip(s, at), &n);
		if (width > columns)
			break;
		at += n;
	}
	return str_n(s.p, at);
}

struct str text_cut(struct arena *a, struct str s, size_t columns)
{
	struct str head = text_fitting(s, columns);

	if (head.n == s.n)
		return arena_str(a, s);
	if (columns == 0)
		return STR("");
	head = text_fitting(s, columns - 1);
	return arena_printf(a, "%.*s…", STRF(head));
}

struct str text_quote(struct arena *a, struct str line)
{
	struct str out = arena_printf(a, "\"%.*s\"", STRF(line));
	char *p = (char *)out.p;

	for (size_t i = 1; i + 1 < out.n; i++)
		if (p[i] == '"')
			p[i] = '\'';
	return out;
}

#define WORD_MAX 64

static char text_low(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits between two words (Damerau-Levenshtein): a letter added, missing or wrong, or two
 * swapped. */
static size_t text_distance(struct str a, struct str b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b.n; j++)
		now[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t *spare = before;

		before = last;
		last = now;
		now = spare;
		now[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			char x = text_low(a.p[i - 1]), y = text_low(b.p[j - 1]);

			now[j] = least_of(last[j - 1] + (x != y),
					  least_of(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && x == text_low(b.p[j - 2]) &&
			    y == text_low(a.p[i - 2]))
				now[j] = least_of(now[j], before[j - 2] + 1);
		}
	}
	return now[b.n];
}

/* The distance in edits; SIZE_MAX if too far. An abbreviation beats any edit. */
static size_t how_far(struct str word, struct str candidate)
{
	size_t longer = word.n > candidate.n ? word.n : candidate.n, far;

	if (word.n > WORD_MAX || candidate.n > WORD_MAX)
		return SIZE_MAX;
	if (word.n > 1 && candidate.n >= word.n && str_eq_nocase(word, str_n(candidate.p, word.n)))
		return 0;
	far = text_distance(word, candidate);
	return far <= 2 && far <= longer / 2 ? far : SIZE_MAX;
}

const char *text_nearest(struct str word, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t best_far = SIZE_MAX, best_len = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		struct str candidate = str_c(candidates[i]);
		size_t far = word.n && candidate.n ? how_far(word, candidate) : SIZE_MAX;
		bool shorter = far == 0 && candidate.n < best_len;

		if (far < best_far || (far == best_far && shorter)) {
			best = candidates[i];
			best_far = far;
			best_len = candidate.n;
		}
	}
	return best;
}

/* --- text fold -------------------------------------------------------------------------------- */

/* Uses Unicode's full case folding, so that a search for "STRASSE" finds "Straße". */

#define FOLDED_MAX 3 /* a character folds into at most three */
/* No character becomes more than three times as long (U+0390 and others: 2 bytes to 6). */
#define GROWTH 3

/* Writes the folded form of an n-byte character to `p`. 0: the character has no folded form. */
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

/* --- tty -------------------------------------------------------------------------------------- */

#define SAFE_MAX (SIZE_MAX / 4)

/* The length of a colour at the start of `s`: ESC [ 1 ; 31 m; 0: there is none. */
static size_t tty_colour(struct str s)
{
	size_t n = 2;

	if (s.n < 3 || s.p[0] != '\033' || s.p[1] != '[')
		return 0;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';'))
		n++;
	return n < s.n && s.p[n] == 'm' ? n + 1 : 0;
}

/* The length of the text before the next escape character, or of that character. */
static size_t without_escape(struct str s)
{
	const char *at = memchr(s.p, '\033', s.n);

	return !at ? s.n : at == s.p ? 1 : (size_t)(at - s.p);
}

static void add_plain(struct buf *b, struct str s)
{
	text_visible(b, s, true);
}

static void add_painted(struct buf *b, struct str s)
{
	while (s.n) {
		size_t n = tty_colour(s);

		if (n) {
			buf_add(b, s.p, n);
		} else {
			n = without_escape(s);
			text_visible(b, str_n(s.p, n), true);
		}
		s = str_n(s.p + n, s.n - n);
	}
}

static int write_safe(int fd, struct str text, void (*add)(struct buf *, struct str))
{
	struct buf b = BUF_MAX(SAFE_MAX);
	int r;

	if (!isatty(fd))
		return fs_write_all(fd, text);
	add(&b, text);
	r = fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	return r;
}

int tty_write(int fd, struct str text)
{
	return write_safe(fd, text, add_plain);
}

int tty_write_painted(int fd, struct str text)
{
	return write_safe(fd, text, add_painted);
}

void tty_print(int fd, const char *fmt, ...)
{
	struct buf b = BUF_MAX(SAFE_MAX);
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	text_visible(&b, str_n(text, (size_t)n), true);
	(void)fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	free(text);
}

void tty_line(struct str text)
{
	struct buf b = BUF_MAX(SAFE_MAX);

	buf_adds(&b, STR("\r\033[K"));
	text_visible(&b, text, false);
	(void)fs_write_all(STDERR_FILENO, buf_str(&b));
	buf_free(&b);
}

void tty_clear(void)
{
	(void)fs_write_all(STDOUT_FILENO, STR("\033[H\033[2J"));
}
