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
/* The address of the client that the proxy in front of the server names: the last hop of the last X-Forwarded-For. nginx and
 * Caddy extend the client's header, HAProxy adds one behind it; every earlier hop may be a lie of the client. Empty: the last
 * hop is not an address. */
struct str http_forwarded_for(struct http_headers headers);

#endif
