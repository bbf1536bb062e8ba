#include "store/store.h"

static bool scheme_char(char c, bool first)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return true;
	return !first && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.');
}

static size_t find_any(struct str s, char a, char b)
{
	size_t i = 0;

	while (i < s.n && s.p[i] != a && s.p[i] != b)
		i++;
	return i;
}

/* People write "#branch?queue=x" as often as the standard's "?queue=x#branch": both are valid. */
static void parse_tail(struct str tail, struct uri *out)
{
	while (tail.n) {
		char kind = tail.p[0];
		struct str rest = str_n(tail.p + 1, tail.n - 1);
		size_t n = find_any(rest, kind == '#' ? '?' : '#', kind == '#' ? '?' : '#');

		if (kind == '#')
			out->fragment = str_n(rest.p, n);
		else
			out->params = str_n(rest.p, n);
		tail = str_n(rest.p + n, rest.n - n);
	}
}

bool uri_on_disk(const struct uri *u)
{
	return str_is(u->scheme, "sqlite") || str_is(u->scheme, "files");
}

/* A path on disk may contain '#' and '?': only a final "?key=value" without a '/' is not part of it. */
static void parse_disk(struct str rest, struct uri *out)
{
	size_t at = rest.n;

	out->path = rest;
	while (at > 0 && rest.p[at - 1] != '?' && rest.p[at - 1] != '/')
		at--;
	if (at < 2 || rest.p[at - 1] != '?' || !memchr(rest.p + at, '=', rest.n - at))
		return;
	out->path = str_n(rest.p, at - 1);
	out->params = str_n(rest.p + at, rest.n - at);
}

int uri_parse(struct str text, struct uri *out)
{
	struct str rest;
	size_t n = 0;

	*out = (struct uri){ .text = text };
	while (n < text.n && scheme_char(text.p[n], n == 0))
		n++;
	if (n == 0 || n == text.n || text.p[n] != ':')
		return -1;
	out->scheme = str_n(text.p, n);
	rest = str_n(text.p + n + 1, text.n - n - 1);
	if (uri_on_disk(out)) {
		parse_disk(rest, out);
		return 0;
	}
	n = find_any(rest, '?', '#');
	out->path = str_n(rest.p, n);
	parse_tail(str_n(rest.p + n, rest.n - n), out);
	return 0;
}

struct str uri_param(const struct uri *u, const char *name)
{
	struct str rest = u->params;

	while (rest.n) {
		struct str value = str_cut(&rest, '&');

		if (str_is(str_cut(&value, '='), name))
			return value;
	}
	return (struct str){ 0 };
}
