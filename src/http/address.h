/*
 * address: HOST:PORT, as the server and the client take it.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include "base/str.h"

struct http_place {
	char host[256]; /* without the brackets of an IPv6 address */
	char port[6];
	bool v6;
};

/* Reads "HOST:PORT", "[V6]:PORT" and, if `port` >= 0 is the default, the same without ":PORT". */
bool http_place_parse(struct str text, int port, struct http_place *out);

#endif
