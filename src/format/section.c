#include "format/section.h"

/* The position of `mark` at the beginning of a line; t.n: not found. */
static size_t find_line(struct str t, size_t at, const char *mark)
{
	size_t n = strlen(mark);

	for (; at < t.n; at++)
		if ((!at || t.p[at - 1] == '\n') && t.n - at >= n && !memcmp(t.p + at, mark, n))
			return at;
	return t.n;
}

static size_t line_end(struct str t, size_t at)
{
	while (at < t.n && t.p[at] != '\n')
		at++;
	return at < t.n ? at + 1 : at;
}

/* TEXT_SAME: there is no section; TEXT_UNFIT: its end mark is missing. */
static enum text_change section_find(struct str t, const struct section *s, size_t *from,
				     size_t *to)
{
	*from = find_line(t, 0, s->begin);
	if (*from == t.n)
		return TEXT_SAME;
	*to = find_line(t, *from, s->end);
	if (*to == t.n)
		return TEXT_UNFIT;
	*to = line_end(t, *to);
	return TEXT_CHANGED;
}

static struct str section_around(struct str t, size_t from, struct str middle, size_t to,
				 struct arena *a)
{
	return arena_printf(a, "%.*s%.*s%.*s", (int)from, str_p(t), STRF(middle), (int)(t.n - to),
			    str_p(t) + to);
}

enum text_change section_add(struct str t, bool exists, const struct section *s, struct str *out,
			     struct arena *a)
{
	struct str text = str_c(s->text);
	size_t from, to;

	switch (section_find(t, s, &from, &to)) {
	case TEXT_SAME:
		*out = arena_printf(a, "%.*s%s%.*s", STRF(t), exists ? "\n" : "", STRF(text));
		return TEXT_CHANGED;
	case TEXT_CHANGED:
		if (str_eq(str_n(t.p + from, to - from), text))
			return TEXT_SAME;
		*out = section_around(t, from, text, to, a);
		return TEXT_CHANGED;
	default:
		return TEXT_UNFIT;
	}
}

enum text_change section_remove(struct str t, const struct section *s, struct str *out,
				struct arena *a)
{
	size_t from, to;
	enum text_change r = section_find(t, s, &from, &to);

	if (r != TEXT_CHANGED)
		return r;
	if (!from && to == t.n)
		return TEXT_EMPTY;
	*out = section_around(t, from ? from - 1 : 0, STR(""), to, a);
	return TEXT_CHANGED;
}
