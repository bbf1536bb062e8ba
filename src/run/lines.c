#include "run/lines.h"

#include "base/text.h"

/* The length of a sequence at the start of `s` that sets colours: ESC [ 1 ; 31 m. 0: it is none. */
static size_t colour_at(struct str s)
{
	size_t n = 2;

	if (s.n < 3 || s.p[0] != '\x1b' || s.p[1] != '[')
		return 0;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';' || s.p[n] == ':'))
		n++;
	return n < s.n && s.p[n] == 'm' ? n + 1 : 0;
}

static void add_line(struct str name, struct str line, struct buf *out)
{
	bool coloured = false;
	size_t at = 0, n;

	text_visible(out, name, false);
	buf_adds(out, STR(" | "));
	while (at < line.n) {
		struct str rest = str_n(line.p + at, line.n - at);
		const char *escape = memchr(rest.p + 1, '\x1b', rest.n - 1);

		n = colour_at(rest);
		if (n) {
			buf_add(out, rest.p, n);
			coloured = true;
		} else {
			n = escape ? (size_t)(escape - rest.p) : rest.n;
			text_visible(out, str_n(rest.p, n), true);
		}
		at += n;
	}
	/* a colour must not reach the lines of others */
	buf_adds(out, coloured ? STR("\x1b[0m\n") : STR("\n"));
}

/* Does a character of more than one byte begin in the last bytes, and end after them? Its length so far. */
static size_t begun_char(struct str s)
{
	for (size_t n = 1; n < 4 && n <= s.n; n++) {
		uint8_t c = (uint8_t)s.p[s.n - n];

		if (c >= 0xc0)
			return n < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? n : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

static void end_line(struct lines *l, struct str name, struct buf *out)
{
	add_line(name, buf_str(&l->line), out);
	l->line.n = 0;
}

static void break_line(struct lines *l, struct str name, struct buf *out)
{
	size_t tail = begun_char(buf_str(&l->line));
	struct str line = str_n(l->line.p, l->line.n - tail);

	add_line(name, line, out);
	memmove(l->line.p, l->line.p + line.n, tail);
	l->line.n = tail;
}

void lines_add(struct lines *l, struct str name, struct str bytes, struct buf *out)
{
	l->line.max = LINES_MAX;
	for (size_t i = 0; i < bytes.n; i++) {
		char c = bytes.p[i];

		if (c == '\r' || (c == '\n' && !l->cr))
			end_line(l, name, out);
		else if (c != '\n')
			buf_addc(&l->line, c);
		l->cr = c == '\r';
		if (l->line.n >= LINES_MAX)
			break_line(l, name, out);
	}
}

void lines_end(struct lines *l, struct str name, struct buf *out)
{
	if (l->line.n)
		end_line(l, name, out);
	buf_free(&l->line);
	*l = (struct lines){ 0 };
}
