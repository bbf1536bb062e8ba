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
