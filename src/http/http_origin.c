/*
 * Refuses requests that a page of another site may have sent. Host must always be allowed. Origin and Sec-Fetch-Site may be
 * missing, since programs send neither, but not repeated. POST, PUT and PATCH need an allowed content type: a foreign page
 * cannot send application/json without a preflight.
 */
#include <arpa/inet.h>

#include "http/http_origin.h"

static bool is_address(struct str host)
{
	char text[INET6_ADDRSTRLEN + 2];
	unsigned char bytes[16];

	if (host.n >= sizeof(text) || !host.n)
		return false;
	memcpy(text, host.p, host.n);
	text[host.n] = '\0';
	if (text[0] != '[')
		return inet_pton(AF_INET, text, bytes) == 1;
	if (text[host.n - 1] != ']')
		return false;
	text[host.n - 1] = '\0';
	return inet_pton(AF_INET6, text + 1, bytes) == 1;
}

static bool port_valid(struct str port)
{
	int64_t n;

	return port.n <= 5 && str_to_i64(port, &n) && n > 0 && n < 65536;
}

/* Removes :PORT. false: the port is not valid. */
static bool cut_port(struct str *host)
{
	const char *colon = memrchr(str_p(*host), ':', host->n);
	size_t at;

	if (!colon || (host->n && host->p[host->n - 1] == ']'))
		return true;
	at = (size_t)(colon - host->p);
	if (!port_valid(str_n(colon + 1, host->n - at - 1)))
		return false;
	host->n = at;
	return true;
}

static bool ends_nocase(struct str s, struct str end)
{
	return s.n > end.n && str_eq_nocase(str_n(s.p + s.n - end.n, end.n), end);
}

static bool name_given(const struct http_guard *g, struct str host)
{
	for (const char *const *name = g->host_names; name && *name; name++)
		if (str_eq_nocase(host, str_c(*name)))
			return true;
	return false;
}

bool http_host_allowed(const struct http_guard *g, struct str host)
{
	if (!cut_port(&host) || !host.n)
		return false;
	if (is_address(host) || str_eq_nocase(host, STR("localhost")) ||
	    ends_nocase(host, STR(".localhost")) ||
	    (g->local_names && ends_nocase(host, STR(".local"))))
		return true;
	return name_given(g, host);
}

static bool http_guard_loopback(struct str host)
{
	return str_eq_nocase(host, STR("localhost")) || ends_nocase(host, STR(".localhost")) ||
	       str_is(host, "[::1]") || (str_starts(host, STR("127.")) && is_address(host));
}

/* Allows the server's own pages, this machine's, and those of the configured names. Any other IP address
 * is allowed as Host but refused as Origin, because anybody can serve pages from an address. */
static bool origin_allowed(const struct http_guard *g, struct str origin, struct str host)
{
	if (!str_cut_prefix(&origin, STR("http://")) && !str_cut_prefix(&origin, STR("https://")))
		return false;
	if (str_eq_nocase(origin, host))
		return true;
	if (!cut_port(&origin) || !origin.n)
		return false;
	return http_guard_loopback(origin) || name_given(g, origin);
}

static bool type_allowed(const struct http_guard *g, struct str type)
{
	type = str_trim(str_cut(&type, ';'));
	if (str_eq_nocase(type, STR("application/json")))
		return true;
	for (const char *const *t = g->types; t && *t; t++)
		if (str_eq_nocase(type, str_c(*t)))
			return true;
	return false;
}

/* Did a person follow a link? Then the browser shows the answer in a tab, and no page can read it. */
static bool is_link(const struct http_request *r)
{
	return str_is(r->method, "GET") && http_header_count(r->headers, "sec-fetch-mode") == 1 &&
	       http_header_count(r->headers, "sec-fetch-dest") == 1 &&
	       str_is(http_header(r->headers, "sec-fetch-mode"), "navigate") &&
	       str_is(http_header(r->headers, "sec-fetch-dest"), "document");
}

static int http_guard_refuse(int status, const char *text, const char **reason)
{
	*reason = text;
	return status;
}

/* A page could hide its origin in a second header of the same name, so a repeated header is refused. */
int http_guard_check(const struct http_guard *g, const struct http_request *r, const char **reason)
{
	size_t origins = http_header_count(r->headers, "origin"),
	       sites = http_header_count(r->headers, "sec-fetch-site");
	struct str site = http_header(r->headers, "sec-fetch-site");

	if (!http_host_allowed(g, r->host))
		return http_guard_refuse(403, "Host names another server than this one", reason);
	if (origins > 1 ||
	    (origins && !origin_allowed(g, http_header(r->headers, "origin"), r->host)))
		return http_guard_refuse(403, "a page of another origin may not call this server",
					 reason);
	if (sites > 1 || (sites && !str_is(site, "same-origin") && !str_is(site, "none") &&
			  !(g->links && is_link(r))))
		return http_guard_refuse(403, "a page of another site may not call this server",
					 reason);
	if (str_is(r->method, "GET") || str_is(r->method, "HEAD") || str_is(r->method, "OPTIONS") ||
	    str_is(r->method, "DELETE"))
		return 0;
	if (http_header_count(r->headers, "content-type") != 1 ||
	    !type_allowed(g, http_header(r->headers, "content-type")))
		return http_guard_refuse(415, "the content type must be application/json", reason);
	return 0;
}
