/* Parses addresses by hand, without a resolver. Only the last forwarded hop counts, because the client can forge the others. */
#include "http/address.h"

#include <arpa/inet.h>
#include <stdio.h>

static bool host_valid(struct str host)
{
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '.' || c == '_'))
			return false;
	}
	return host.n > 0;
}

static bool cut_v6(struct str *text, struct http_place *out)
{
	unsigned char bytes[16];
	const char *end = memchr(text->p, ']', text->n);
	size_t n = end ? (size_t)(end - text->p) - 1 : 0;

	if (!n || n >= INET6_ADDRSTRLEN)
		return false;
	memcpy(out->host, text->p + 1, n);
	text->p += n + 2;
	text->n -= n + 2;
	out->v6 = true;
	return inet_pton(AF_INET6, out->host, bytes) == 1;
}

static bool cut_name(struct str *text, struct http_place *out)
{
	const char *colon = text->n ? memchr(text->p, ':', text->n) : NULL;
	size_t n = colon ? (size_t)(colon - text->p) : text->n;

	if (n >= sizeof(out->host) || !host_valid(str_n(text->p, n)))
		return false;
	memcpy(out->host, text->p, n);
	text->p += n;
	text->n -= n;
	return true;
}

bool http_place_parse(struct str text, int port, struct http_place *out)
{
	int64_t n = port;

	memset(out, 0, sizeof(*out));
	if (text.n && text.p[0] == '[') {
		if (!cut_v6(&text, out))
			return false;
	} else if (!cut_name(&text, out)) {
		return false;
	}
	if (text.n) {
		if (text.p[0] != ':' || text.n > 6)
			return false;
		text.p++;
		text.n--;
		for (size_t i = 0; i < text.n; i++)
			if (text.p[i] < '0' || text.p[i] > '9')
				return false;
		if (!str_to_i64(text, &n) || n > 65535)
			return false;
	}
	if (n < 0)
		return false;
	snprintf(out->port, sizeof(out->port), "%u", (unsigned)n & 0xffffu);
	return true;
}

static bool is_address(struct str text)
{
	char copy[INET6_ADDRSTRLEN];
	unsigned char bytes[16];

	if (text.n >= sizeof(copy))
		return false;
	memcpy(copy, str_p(text), text.n);
	copy[text.n] = '\0';
	return inet_pton(AF_INET, copy, bytes) == 1 || inet_pton(AF_INET6, copy, bytes) == 1;
}

/* Some proxies add the port: 192.0.2.1:1234, [2001:db8::1]:1234. Empty: there is no address. */
static struct str without_port(struct str hop)
{
	struct str host = hop;

	if (str_cut_prefix(&host, STR("[")))
		host = str_cut(&host, ']');
	else if (!is_address(hop))
		host = str_cut(&host, ':');
	return is_address(host) ? host : STR("");
}

struct str http_forwarded_for(struct http_headers headers)
{
	struct str hops = STR("");
	const char *comma;

	for (size_t i = 0; i < headers.n; i++)
		if (str_eq_nocase(headers.v[i].name, STR("x-forwarded-for")))
			hops = headers.v[i].value;
	comma = memrchr(str_p(hops), ',', hops.n);
	if (comma)
		hops = str_n(comma + 1, hops.n - (size_t)(comma + 1 - hops.p));
	return without_port(str_trim(hops));
}
