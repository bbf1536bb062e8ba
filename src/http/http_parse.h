/*
 * parse: one HTTP/1.1 message at a time, from bytes that arrive in pieces of any size. It refuses every
 * form that two programs could understand differently (request smuggling).
 */
#ifndef HTTP_HTTP_PARSE_H
#define HTTP_HTTP_PARSE_H

#include "base/buf.h"
#include "http/http_message.h"

enum parse_state {
	PARSE_HEAD, /* more of the request line or headers is needed */
	PARSE_BODY, /* the headers are complete */
	PARSE_DONE, /* the message is complete */
	PARSE_BAD,  /* `status` and `reason` say why */
};

struct parse_limits {
	size_t head_max, header_count_max;
};

struct parse {
	/* set by the caller between messages, or at PARSE_BODY */
	uint64_t body_max;
	void (*sink)(struct str piece, void *ctx); /* gets the body instead of `body` */
	void *sink_ctx;
	bool bodyless; /* the answer to HEAD */

	/* results */
	enum parse_state state;
	int status; /* of an answer; of the refusal if PARSE_BAD */
	const char *reason;
	struct str method, target, host;
	struct http_headers headers;
	bool keep_alive, expects_continue, has_body;
	struct buf head, body;

	/* the parser's own state */
	struct parse_limits limits;
	struct http_header *list;
	size_t room, line; /* where the current line of the head begins */
	bool answers;      /* parses answers, not requests */
	bool skipped;      /* one empty line before a request was skipped */
	int framing;       /* enum framing in http_parse.c */
	uint64_t left;
	uint64_t taken; /* bytes of the body */
	size_t trailer;
	char chunk_line[128];
	size_t chunk_used;
};

void parse_init(struct parse *m, struct parse_limits limits, bool answers);
void parse_free(struct parse *m);
/* Prepares for the next message; keeps the limits and the caller's settings, except `bodyless`. */
void parse_next(struct parse *m);
/* Takes bytes until the state changes, and returns how many. Called again at PARSE_BODY, it continues
 * with the body. */
size_t parse_feed(struct parse *m, const char *p, size_t n);
/* At PARSE_BODY: is the Content-Length within body_max? Otherwise PARSE_BAD. */
bool parse_body_fits(struct parse *m);

/* Between the parts of the parser. */
void parse_refuse(struct parse *m, int status, const char *reason);
bool parse_line_valid(struct parse *m, struct str line);
/* Call it when all lines of the head have arrived and each is valid. Sets PARSE_BODY, PARSE_DONE or PARSE_BAD. */
void parse_head(struct parse *m);
size_t parse_body(struct parse *m, const char *p, size_t n);
/* length: the body's, if it is not chunked. */
void parse_body_begin(struct parse *m, bool chunked, uint64_t length);

#endif
