/* Parses store URIs. A path on disk may contain any character, so it is split by other rules than a URL. */
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

/* --- shown ------------------------------------------------------------------------------------ */

/* Shows a URI to people without its password, even if the URI is malformed. If it is not certain where the
 * password ends, everything after the scheme is hidden. */

#define HIDDEN STR("\xe2\x80\xa6") /* an ellipsis */

/* --- PostgreSQL ----------------------------------------------------------------------------------- */

/* The parts of USER:PASSWORD@HOSTS/PATH?PARAMS. */
struct parts {
	struct str user, hosts, path, params;
	bool at;
};

static bool shown_has(struct str s, char c)
{
	return s.n && memchr(s.p, c, s.n);
}

static bool is_made_of(struct str s, const char *chars)
{
	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || !strchr(chars, s.p[i]))
			return false;
	return true;
}

static bool is_socket(struct str host)
{
	return host.n >= 3 && str_eq_nocase(str_n(host.p, 3), STR("%2F"));
}

/* An unquoted character in a password moves a part of the password into a host or a port, where it looks out of
 * place. */
static bool is_host(struct str host)
{
	if (host.n && host.p[0] == '[') {
		struct str inner = str_cut(&host, ']');

		return is_made_of(inner, "[0123456789abcdefABCDEF:.%") &&
		       is_made_of(host, ":0123456789");
	}
	if (!is_socket(host) &&
	    (str_has_nocase(host, STR("%40")) || str_has_nocase(host, STR("%3A"))))
		return false;
	str_cut(&host, ':');
	return is_made_of(host, "0123456789");
}

static bool is_param(struct str param)
{
	struct str name = str_cut(&param, '=');

	return !shown_has(param, '=') || !(str_is(name, "queue") || str_is(name, "schema"));
}

static void shown_split(struct str rest, struct parts *p)
{
	struct str place = str_cut(&rest, '?'), before = str_cut(&place, '/');

	*p = (struct parts){ .path = place, .params = rest, .at = shown_has(before, '@') };
	if (p->at)
		p->user = str_cut(&before, '@');
	p->hosts = before;
}

static bool is_clear(struct str rest, struct parts *p)
{
	struct str user, hosts, params;

	shown_split(rest, p);
	user = p->user;
	hosts = p->hosts;
	params = p->params;
	if (shown_has(rest, '#') || shown_has(p->hosts, '@') || shown_has(p->path, '@') ||
	    shown_has(p->params, '@'))
		return false;
	if (shown_has(p->hosts, '=') || shown_has(p->path, '=') || shown_has(p->path, '/') ||
	    str_has_nocase(p->path, STR("%40")) || str_has_nocase(str_cut(&user, ':'), STR("%3A")))
		return false;
	while (hosts.n)
		if (!is_host(str_cut(&hosts, ',')))
			return false;
	while (params.n)
		if (!is_param(str_cut(&params, '&')))
			return false;
	return true;
}

/* Does the parameter never hold a secret? Others may hold a part of a password with an unquoted '&'. */
static bool is_harmless(struct str param)
{
	static const char *const names[] = {
		"queue",
		"schema",
		"fault",
		"seed",
		"host",
		"hostaddr",
		"port",
		"dbname",
		"user",
		"service",
		"passfile",
		"options",
		"application_name",
		"connect_timeout",
		"target_session_attrs",
		"load_balance_hosts",
		"channel_binding",
		"require_auth",
		"keepalives",
		"tcp_user_timeout",
		"gssencmode",
		"sslmode",
		"sslnegotiation",
		"sslcert",
		"sslkey",
		"sslrootcert",
		"sslcrl",
		"ssl_min_protocol_version",
	};
	struct str name = str_cut(&param, '=');

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_is(name, names[i]))
			return !str_has_nocase(param, STR("password")) &&
			       !str_has_nocase(param, STR("%40"));
	return false;
}

static void add_params(struct buf *b, struct str rest)
{
	char sep = '?';

	while (rest.n) {
		struct str param = str_cut(&rest, '&');

		if (!is_harmless(param))
			continue;
		buf_addc(b, sep);
		buf_adds(b, param);
		sep = '&';
	}
}

/* Accepts misspelt schemes, too: "postgress://", "POSTGRES://", "postgres//". */
static bool is_postgres(struct str text)
{
	size_t n = 0, name = 0;

	for (; n < text.n && text.p[n] != ':' && text.p[n] != '/'; n++)
		if (text.p[n] == '+')
			name = n + 1;
	return n - name >= 6 && str_eq_nocase(str_n(text.p + name, 6), STR("postgr"));
}

static size_t find_host(struct str text)
{
	for (size_t i = 0; i + 3 <= text.n; i++)
		if (memcmp(text.p + i, "://", 3) == 0)
			return i + 3;
	return 0;
}

static bool starts_host(struct str text, size_t host)
{
	return host && memchr(text.p, ':', text.n) == text.p + host - 3;
}

bool uri_is_clear(struct str text)
{
	size_t host = find_host(text);
	struct parts p;

	return starts_host(text, host) && is_clear(str_n(text.p + host, text.n - host), &p);
}

static struct str postgres_shown(struct arena *a, struct str text)
{
	struct buf b = BUF_MAX(text.n + 1);
	size_t host = find_host(text);
	struct parts p;
	struct str out;

	if (!starts_host(text, host) || !is_clear(str_n(text.p + host, text.n - host), &p))
		return STR("postgres://\xe2\x80\xa6");
	buf_add(&b, text.p, host);
	buf_adds(&b, str_cut(&p.user, ':'));
	if (p.at)
		buf_addc(&b, '@');
	buf_adds(&b, p.hosts);
	if (p.path.n)
		buf_addc(&b, '/');
	buf_adds(&b, p.path);
	add_params(&b, p.params);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* --- other places --------------------------------------------------------------------------------- */

/* A text that names none of pawl's stores, for example host=HOST password=PASSWORD or USER:PASSWORD@HOST. */
static bool is_doubtful(struct str text)
{
	static const char *const ours[] = { "sqlite", "files", "mem", "git" };
	struct uri u;

	if (uri_parse(text, &u))
		return shown_has(text, '@') || str_has_nocase(text, STR("password"));
	while (shown_has(u.scheme, '+'))
		str_cut(&u.scheme, '+');
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (str_is(u.scheme, ours[i]))
			return false;
	return shown_has(text, '@');
}

/* Is there an '@' after the host? An unquoted '/' in a password moves the rest of the password there. A URI without
 * a host has no password. */
static bool hides_secret(struct str text, size_t host)
{
	struct str rest = str_n(text.p + host, text.n - host);

	return str_cut(&rest, '/').n && shown_has(rest, '@');
}

struct str uri_shown(struct arena *a, struct str text)
{
	size_t host = find_host(text), at = 0, name = host;
	struct str scheme = { text.p, host ? host - 3 : 0 };

	if (is_postgres(text))
		return postgres_shown(a, text);
	if (!host && is_doubtful(text))
		return HIDDEN;
	if (host && hides_secret(text, host))
		return arena_printf(a, "%.*s\xe2\x80\xa6", (int)host, text.p);
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
	return arena_printf(a, "%.*s%s", (int)name, text.p,
			    arena_cstr(a, str_n(text.p + at, text.n - at)));
}
