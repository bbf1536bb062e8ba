/*
 * message: the parts of an HTTP/1.1 message that the server, the client and their callers share.
 */
#ifndef HTTP_HTTP_MESSAGE_H
#define HTTP_HTTP_MESSAGE_H

#include "base/str.h"

struct http_header {
	struct str name, value; /* value: without surrounding spaces */
};

struct http_headers {
	const struct http_header *v;
	size_t n;
};

/* The value of the first header with this name, ignoring case; empty if there is none. */
struct str http_header(struct http_headers headers, const char *name);
size_t http_header_count(struct http_headers headers, const char *name);
bool http_has_header(struct http_headers headers, const char *name);
/* Does a header with this name determine where the body ends? */
bool http_frames(struct str name);
/* Can the text be a header's value? Control characters could end the header and begin another one. */
bool http_value_valid(struct str value);

/* "Bad Request" for 400; "Status" for an unknown number. */
const char *http_status_text(int status);

#endif
