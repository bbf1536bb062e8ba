#include "http/http_parse.h"

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
	m->keep_alive = m->expects_continue = m->has_body = m->skipped = false;
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
		parse_head(m);
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
