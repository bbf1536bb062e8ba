/*
 * address: parses HOST:PORT for the server and the client, and finds the client's address in a proxy's headers.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include "http/http_message.h"

struct http_place {
	char host[256]; /* without the brackets of an IPv6 address */
	char port[6];
	bool v6;
};

/* Reads "HOST:PORT", "[V6]:PORT" and, if `port` >= 0 is the default, the same without ":PORT". */
bool http_place_parse(struct str text, int port, struct http_place *out);
/* The client's address as the proxy in front of the server reports it: the last hop of the last X-Forwarded-For. nginx and
 * Caddy extend the client's header, and HAProxy adds one after it; the client can forge every earlier hop. Empty: the last
 * hop is not an address. */
struct str http_forwarded_for(struct http_headers headers);

#endif
