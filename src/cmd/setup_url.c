/* The URL of a server in the settings of a client. */
#include "base/buf.h"
#include "base/os.h"
#include "cmd/setup_entry.h"

#define URL_MAX 1024

/* Clients replace $NAME, ${NAME} and {env:NAME} in their settings: a URL with one of them could send out any variable. */
static const char allowed[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?[]@!&'()*+,;=%";

static const char *bad_text(struct str url)
{
	for (size_t i = 0; i < url.n; i++)
		if (!url.p[i] || !strchr(allowed, url.p[i]))
			return "the URL has a character that does not belong into one";
	if (url.n > URL_MAX)
		return "the URL is too long";
	/* files of a project are shared, and command lines can be seen by other users */
	if (memmem(str_p(url), url.n, "pawl_", 5) || memmem(str_p(url), url.n, "token=", 6))
		return "the URL seems to have a token in it; the client takes the token from the "
		       "variable " SETUP_TOKEN;
	return NULL;
}

const char *setup_url(struct str said, struct str *out, struct arena *a)
{
	struct str path = said, host, query;
	const char *fault = bad_text(said);
	bool safe = str_cut_prefix(&path, STR("https://"));

	if (fault)
		return fault;
	if (!safe && !str_cut_prefix(&path, STR("http://")))
		return "the URL of a server begins with https:// or http://";
	query = path;
	path = str_cut(&query, '?');
	host = str_cut(&path, '/');
	if (!host.n || memchr(host.p, '@', host.n))
		return "the URL must name a host, and no user";
	if (!safe && !host_is_loopback(host))
		return "http:// would show the token to the network: use https://";
	*out = arena_printf(a, "http%s://%.*s/%s%s%.*s", safe ? "s" : "", STRF(host),
			    arena_cstr(a, path.n ? path : STR("mcp")), query.n ? "?" : "",
			    STRF(query));
	return NULL;
}

/* Adds the text, %-encoded. */
static void put_encoded(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr("-._~", c)))
			buf_addc(b, (char)c);
		else
			buf_addf(b, "%%%02X", c);
	}
}

struct str setup_url_as(struct str url, struct str agent, struct arena *a)
{
	struct buf b = BUF_MAX(16 * URL_MAX);
	struct str rest = url, out;
	const char *between = "?";

	if (!agent.n)
		return url;
	buf_adds(&b, str_cut(&rest, '?'));
	while (rest.n) {
		struct str one = str_cut(&rest, '&');

		if (str_starts(one, STR("agent=")))
			continue;
		buf_addf(&b, "%s%.*s", between, STRF(one));
		between = "&";
	}
	buf_addf(&b, "%sagent=", between);
	put_encoded(&b, agent);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}
