#include "face/cli/complete.h"

#include "face/cli/words.h"

/* As words_split() reads it back. */
static struct str cli_complete_escaped(struct str value, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str out;

	for (size_t i = 0; i < value.n; i++) {
		if (memchr(" \t\"'\\#", value.p[i], 6))
			buf_addc(&b, '\\');
		buf_addc(&b, value.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static bool cli_complete_begins(struct str word, struct str typed)
{
	return str_eq_nocase(str_n(word.p, typed.n < word.n ? typed.n : word.n), typed);
}

struct strs complete_line(struct str line, size_t *from, values_fn *values, void *ctx,
			  struct arena *a)
{
	struct strs found = { 0 }, words;
	struct candidates all;
	struct words w;
	struct str typed;

	words_split(&w, line, a);
	*from = w.last;
	words = w.last < line.n ? w.list : arena_append(a, w.list, STR(""));
	if (w.open)
		return found;
	if (words.n > 1 && str_is(words.v[0], "pawl")) {
		words.v++;
		words.n--;
	}
	typed = words.v[words.n - 1];
	all = complete_words(words, values, ctx, a);
	for (size_t i = 0; i < all.words.n; i++)
		if (cli_complete_begins(all.words.v[i], typed))
			found = arena_append(a, found, cli_complete_escaped(all.words.v[i], a));
	if (words.n == 1 && cli_complete_begins(STR("exit"), typed))
		found = arena_append(a, found, STR("exit"));
	return found;
}
