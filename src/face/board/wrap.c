#include "face/board/board.h"

#include "base/text.h"

/* The bytes at the start of `s` that fit into `width`; at least one character. */
static size_t board_wrap_fits(struct str s, size_t width)
{
	size_t n = 0, used = 0;

	while (n < s.n) {
		uint32_t c;
		size_t len = text_char(str_n(s.p + n, s.n - n), &c);
		size_t wide = text_width(str_n(s.p + n, len ? len : 1));

		if (used + wide > width && n)
			break;
		used += wide;
		n += len ? len : 1;
	}
	return n;
}

static size_t board_wrap_leading(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] == ' ')
		n++;
	return n;
}

/* Goes back to the last space, unless the line is one long word. */
static size_t at_space(struct str s, size_t n)
{
	for (size_t i = n; i > board_wrap_leading(s); i--)
		if (s.p[i] == ' ')
			return i;
	return n;
}

static void board_wrap_push(struct arena *a, struct strs *out, struct str line)
{
	out->v = arena_grow(a, out->v, out->n, sizeof(*out->v));
	out->v[out->n++] = line;
}

/* Every line keeps the indentation of the first. */
static void wrap_one(struct arena *a, struct strs *out, struct str line, size_t width)
{
	size_t indent = board_wrap_leading(line) < width / 2 ? board_wrap_leading(line) : 0;

	line = str_n(line.p + indent, line.n - indent);
	do {
		size_t n = board_wrap_fits(line, width - indent), end;

		if (n < line.n)
			n = at_space(line, n);
		for (end = n; end > 0 && line.p[end - 1] == ' '; end--)
			;
		board_wrap_push(a, out,
				arena_printf(a, "%*s%.*s", (int)indent, "", (int)end, line.p));
		line = str_n(line.p + n, line.n - n);
		n = board_wrap_leading(line);
		line = str_n(line.p + n, line.n - n);
	} while (line.n);
}

struct strs wrap_lines(struct arena *a, struct str text, size_t width)
{
	struct strs out = { 0 };

	if (width < 1)
		width = 1;
	while (text.n)
		wrap_one(a, &out, str_cut(&text, '\n'), width);
	return out;
}
