#include "http/parse.h"

#include <stdlib.h>

#include "base/arena.h"

void parse_refuse(struct parse *m, int status, const char *reason)
{
	m->state = PARSE_BAD;
	m->status = status;
	m->reason = reason;
}

void parse_init(struct parse *m, struct parse_limits limits, bool answers)
{
	*m = (struct parse){ .limits = limits, .answers = answers, .body_max = UINT64_MAX };
	parse_next(m);
}

void parse_next(struct parse *m)
{
	/* head_max is the limit that counts; http-parser's own must not be below it */
	http_parser_set_max_header_size(UINT32_MAX / 2);
	http_parser_init(&m->parser, m->answers ? HTTP_RESPONSE : HTTP_REQUEST);
	m->parser.data = m;
	buf_free(&m->head);
	buf_free(&m->body);
	free(m->list);
	m->list = NULL;
	m->room = m->line = 0;
	m->head = BUF_MAX(m->limits.head_max);
	m->body = BUF_MAX(SIZE_MAX / 4);
	m->state = PARSE_HEAD;
	m->status = 0;
	m->reason = NULL;
	m->method = m->target = m->host = str_n(NULL, 0);
	m->headers = (struct http_headers){ NULL, 0 };
	m->keep_alive = m->expects_continue = m->has_body = m->skipped = m->paused = false;
	m->framing = 0;
	m->left = m->taken = 0;
	m->trailer = m->chunk_used = 0;
	m->bodyless = false;
}

void parse_free(struct parse *m)
{
	buf_free(&m->head);
	buf_free(&m->body);
	free(m->list);
	m->list = NULL;
}

bool parse_begun(const struct parse *m)
{
	return m->state != PARSE_HEAD || m->head.n || m->skipped;
}

/* ---- http-parser */

static int on_field(http_parser *p, const char *at, size_t n)
{
	struct parse *m = p->data;

	if (m->state != PARSE_HEAD) /* trailers have no meaning here */
		return 0;
	if (m->headers.n == m->limits.header_count_max) {
		parse_refuse(m, 431, "the request has too many headers");
		return 1;
	}
	if (m->headers.n == m->room) {
		m->room = m->room ? m->room * 2 : 12;
		m->list = mem_grow(m->list, m->room * sizeof(*m->list));
	}
	m->list[m->headers.n] = (struct http_header){ str_n(at, n), str_n(NULL, 0) };
	m->headers.v = m->list;
	m->headers.n++;
	return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
	struct parse *m = p->data;

	if (m->state == PARSE_HEAD && m->headers.n)
		m->list[m->headers.n - 1].value = str_trim(str_n(at, n));
	return 0;
}

static int on_url(http_parser *p, const char *at, size_t n)
{
	struct parse *m = p->data;

	m->target = str_n(at, n);
	return 0;
}

static int on_headers_complete(http_parser *p)
{
	struct parse *m = p->data;

	return m->bodyless ? 1 : 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
	struct parse *m = p->data;

	if (!m->sink)
		buf_add(&m->body, at, n);
	else if (!m->sink(str_n(at, n), m->sink_ctx))
		m->paused = true;
	return 0;
}

static const http_parser_settings settings = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
};

static void explain(struct parse *m, enum http_errno code)
{
	switch (code) {
	case HPE_INVALID_METHOD:
		parse_refuse(m, 501, "the method is not known");
		break;
	case HPE_INVALID_VERSION:
		parse_refuse(m, 505, "this server speaks only HTTP/1.1");
		break;
	case HPE_INVALID_CONTENT_LENGTH:
	case HPE_UNEXPECTED_CONTENT_LENGTH:
		parse_refuse(m, 400, "the length of the body is not clear");
		break;
	case HPE_INVALID_CHUNK_SIZE:
		parse_refuse(m, 400, "a chunk has no valid size");
		break;
	case HPE_INVALID_TRANSFER_ENCODING:
		parse_refuse(m, 400, "the transfer encoding is not clear");
		break;
	case HPE_INVALID_URL:
		parse_refuse(m, 400, "the target of the request is not valid");
		break;
	default:
		parse_refuse(m, 400, "the message is malformed");
	}
}

bool parse_execute(struct parse *m, const char *p, size_t n)
{
	size_t taken = http_parser_execute(&m->parser, &settings, p, n);
	enum http_errno code = HTTP_PARSER_ERRNO(&m->parser);

	if (m->state == PARSE_BAD)
		return false;
	if (code != HPE_OK)
		explain(m, code);
	else if (taken != n && !m->parser.upgrade)
		parse_refuse(m, 400, "the message is malformed");
	return m->state != PARSE_BAD;
}

/* ---- the head, line by line */

/* Takes bytes up to the next line end. False: the line is not complete yet, or it is refused. */
static bool take_line(struct parse *m, const char *p, size_t n, size_t *taken)
{
	const char *end = memchr(p, '\n', n);

	*taken = end ? (size_t)(end - p) + 1 : n;
	buf_add(&m->head, p, *taken);
	if (!m->head.full)
		return end != NULL;
	if (m->line == 0)
		parse_refuse(m, 414, "the target of the request is too long");
	else
		parse_refuse(m, 431, "the headers are too long");
	return false;
}

/* A TLS client speaks first, with bytes that contain no line end for long. */
static bool first_byte_valid(struct parse *m, char c)
{
	if (c == 0x16)
		parse_refuse(m, 400, "TLS was sent to an address that speaks plain HTTP");
	else if ((c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '\r' && c != '\n')
		parse_refuse(m, 400, "this is not an HTTP request");
	return m->state != PARSE_BAD;
}

/* One empty line before a request is tolerated, as RFC 9112 asks for. */
static bool skip_empty(struct parse *m)
{
	if (m->skipped || m->answers) {
		parse_refuse(m, 400, "the message begins with empty lines");
		return false;
	}
	m->skipped = true;
	m->head.n = 0;
	return true;
}

/* A line is complete. Returns true if it ends the head. */
static bool end_line(struct parse *m)
{
	struct str line = str_n(m->head.p + m->line, m->head.n - m->line);

	if (line.n < 2 || line.p[line.n - 2] != '\r') {
		parse_refuse(m, 400, "a line ends with LF alone");
		return false;
	}
	line.n -= 2;
	if (!line.n && m->line)
		return true;
	if (!line.n) {
		skip_empty(m);
		return false;
	}
	if (!parse_line_valid(m, line))
		return false;
	m->line = m->head.n;
	return false;
}

static size_t feed_head(struct parse *m, const char *p, size_t n)
{
	size_t at = 0, taken;

	while (at < n && m->state == PARSE_HEAD) {
		bool whole;

		if (!m->head.n && !first_byte_valid(m, p[at]))
			break;
		whole = take_line(m, p + at, n - at, &taken);
		at += taken;
		if (!whole || !end_line(m))
			continue;
		if (parse_head(m))
			parse_body_begin(m);
		break;
	}
	return at;
}

size_t parse_feed(struct parse *m, const char *p, size_t n)
{
	if (!n)
		return 0;
	if (m->state == PARSE_HEAD)
		return feed_head(m, p, n);
	if (m->state == PARSE_BODY)
		return parse_body(m, p, n);
	return 0;
}
