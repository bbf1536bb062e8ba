/*
 * guard: the checks that keep web pages of other origins away from a server on this machine or in
 * this network. They are needed on every route: a same-origin GET after DNS rebinding carries no
 * Origin, so only its Host gives it away.
 */
#ifndef HTTP_HTTP_ORIGIN_H
#define HTTP_HTTP_ORIGIN_H

#include "http/http_server.h"

struct http_guard {
	const char *const *host_names; /* allowed beside IP literals, localhost and *.localhost;
					  ends with NULL; NULL: none */
	const char *const *types;      /* allowed types of a body beside application/json */
	/* Also allow *.local. Any machine on the local network can make a .local name lead to this machine, so a server that
	 * sets this must require a token for every call. */
	bool local_names;
	/* Also allow a person to follow a link from another site; only for paths that show everybody the same page. */
	bool links;
};

/* Is HOST or HOST:PORT allowed? */
bool http_host_allowed(const struct http_guard *g, struct str host);
/* Checks Host, Origin, Sec-Fetch-Site and, for requests other than GET, HEAD, OPTIONS and DELETE, the
 * content type. Returns 0 or the status for the refusal (403, 415), and the reason. */
int http_guard_check(const struct http_guard *g, const struct http_request *r, const char **reason);

#endif
