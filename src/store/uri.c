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

static size_t find_host(struct str text)
{
	for (size_t i = 0; i + 3 <= text.n; i++)
		if (memcmp(text.p + i, "://", 3) == 0)
			return i + 3;
	return 0;
}

static bool is_secret(struct str param)
{
	struct str name = str_cut(&param, '=');

	return str_is(name, "password") || str_is(name, "sslpassword");
}

/* The last '@' after the user's name; `host` if there is none. An unquoted '/' or '?' in a password makes the URI
 * malformed, but the password must stay hidden. */
static size_t postgres_at(struct str text, size_t host)
{
	size_t at = host, i = host;
	bool colon = false, slash = false;

	for (; i < text.n && text.p[i] != '?'; i++) {
		at = text.p[i] == '@' ? i : at;
		colon |= text.p[i] == ':';
		slash |= text.p[i] == '/';
	}
	for (; at == host && colon && !slash && i < text.n; i++)
		if (text.p[i] == '@')
			return i;
	return at;
}

/* PostgreSQL takes a password among the parameters as well. */
static struct str postgres_shown(struct arena *a, struct str text, size_t host)
{
	struct buf b = BUF_MAX(text.n + 1);
	size_t at = postgres_at(text, host), name = host, tail;
	struct str rest, out;
	char sep = '?';

	while (name < at && text.p[name] != ':')
		name++;
	buf_add(&b, text.p, name);
	for (tail = at; tail < text.n && text.p[tail] != '?'; tail++)
		;
	buf_add(&b, text.p + at, tail - at);
	rest = tail < text.n ? str_n(text.p + tail + 1, text.n - tail - 1) : STR("");
	while (rest.n) {
		struct str param = str_cut(&rest, '&');

		if (is_secret(param))
			continue;
		buf_addc(&b, sep);
		buf_adds(&b, param);
		sep = '&';
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

struct str uri_shown(struct arena *a, struct str text)
{
	size_t host = find_host(text), at = 0, name = host;
	struct str scheme = { text.p, host ? host - 3 : 0 };

	if (str_ends(scheme, STR("postgres")) || str_ends(scheme, STR("postgresql")))
		return postgres_shown(a, text, host);
	for (size_t i = host; host && i < text.n && text.p[i] != '/'; i++)
		if (text.p[i] == '@')
			at = i;
	if (!at)
		return text;
	if (!str_ends(scheme, STR("http")) && !str_ends(scheme, STR("https")))
		while (name < at && text.p[name] != ':')
			name++;
	if (name == host)
		at++;
	return arena_printf(a, "%.*s%.*s", (int)name, text.p,
			    STRF(str_n(text.p + at, text.n - at)));
}
