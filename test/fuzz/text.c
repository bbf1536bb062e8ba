/* Arbitrary bytes, made harmless for a terminal: the first byte is the width to cut to. */
#include <jansson.h>

#include "kit.h"
#include "base/text.h"

static struct str visible(struct arena *a, struct str s, bool lines)
{
	struct buf b = BUF_MAX(1 << 20);
	struct str out;

	text_visible(&b, s, lines);
	CHECK(!b.full);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* jansson has its own decoder, to compare with. */
static void check_valid(struct str s)
{
	json_t *o = json_stringn(str_p(s), s.n);

	CHECK(text_valid(s) == (o && !memchr(str_p(s), '\0', s.n)));
	json_decref(o);
}

static void check_visible(struct arena *a, struct str s)
{
	struct str line = visible(a, s, false), lines = visible(a, s, true), rest = lines;

	CHECK(fuzz_harmless(line));
	CHECK(str_eq(visible(a, line, false), line));
	CHECK(str_eq(text_line(a, s), line));
	if (fuzz_harmless(s) && line.n == s.n)
		CHECK(str_eq(line, s));

	CHECK(str_eq(visible(a, lines, true), lines));
	while (rest.n) {
		struct str part = str_cut(&rest, '\n');

		while (part.n)
			CHECK(fuzz_harmless(str_cut(&part, '\t')));
	}
}

static void check_cut(struct arena *a, struct str s, size_t columns)
{
	struct str line = text_line(a, s), cut = text_cut(a, line, columns), end = STR("…");
	size_t width = text_width(line);

	CHECK(width <= line.n);
	CHECK(text_width(cut) <= columns);
	CHECK(fuzz_harmless(cut));
	if (width <= columns) {
		CHECK(str_eq(cut, line));
	} else if (columns) {
		CHECK(str_ends(cut, end));
		CHECK(str_starts(line, str_n(cut.p, cut.n - end.n)));
	} else {
		CHECK(cut.n == 0);
	}
	/* unchanged text: the only promise is that it fits */
	CHECK(text_width(text_cut(a, s, columns)) <= columns);
}

static void check_nearest(struct str s)
{
	static const char *const words[] = { "claim", "cancel", "create", "config", "", "list" };
	const size_t n = sizeof(words) / sizeof(words[0]);
	const char *near = text_nearest(s, words, n);
	size_t i = 0;

	while (near && i < n && near != words[i])
		i++;
	CHECK(i < n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str s = size ? str_n((const char *)data + 1, size - 1) : STR("");

	check_valid(s);
	check_visible(&a, s);
	check_cut(&a, s, size ? data[0] : 0);
	check_nearest(s);
	arena_free(&a);
	return 0;
}
