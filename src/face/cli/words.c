#include "face/cli/words.h"

#include "base/buf.h"

static bool words_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* In "…" a backslash escapes only '"' and '\'. */
static bool words_escapes(char quote, char next)
{
	return quote == '\0' || (quote == '"' && (next == '"' || next == '\\'));
}

/* Appends the word at `at` to `b`; returns its end. */
static size_t take_word(struct words *w, struct str line, size_t at, struct buf *b)
{
	char quote = '\0';

	for (; at < line.n && (quote || !words_blank(line.p[at])); at++) {
		char c = line.p[at], next = at + 1 < line.n ? line.p[at + 1] : '\0';

		if (c == '\\' && words_escapes(quote, next)) {
			w->open = at + 1 == line.n;
			if (++at < line.n)
				buf_addc(b, next);
		} else if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? '\0' : c;
		} else {
			buf_addc(b, c);
		}
	}
	w->open = w->open || quote;
	return at < line.n ? at : line.n;
}

void words_split(struct words *w, struct str line, struct arena *a)
{
	size_t at = 0;

	*w = (struct words){ 0 };
	for (;;) {
		struct buf b = BUF_MAX(line.n + 1);

		while (at < line.n && words_blank(line.p[at]))
			at++;
		w->last = at;
		if (at == line.n)
			break;
		at = take_word(w, line, at, &b);
		w->list = arena_append(a, w->list, arena_str(a, buf_str(&b)));
		buf_free(&b);
		if (at == line.n)
			break;
	}
}
