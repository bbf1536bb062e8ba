/* Collects the head line by line and checks each line as soon as it is complete, so a malformed or endless head is refused
 * early. A line must end with CR LF: programs disagree about a bare LF. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/hex.h"
#include "http/http_parse.h"

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

/* A TLS client's first bytes may contain no line end, so the first byte already tells it apart. */
static bool first_byte_valid(struct parse *m, char c)
{
	if (c == 0x16)
		parse_refuse(m, 400, "TLS was sent to an address that speaks plain HTTP");
	else if ((c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '\r' && c != '\n')
		parse_refuse(m, 400, "this is not an HTTP request");
	return m->state != PARSE_BAD;
}

/* Tolerates one empty line before a request, as RFC 9112 asks. */
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

/* --- parse head ------------------------------------------------------------------------------- */

/* Checks each line of the head, then the head as a whole. A request whose length or host two programs could read differently
 * is refused, not repaired: that is the defence against request smuggling. */

static bool token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool http_parse_head_refuse(struct parse *m, int status, const char *reason)
{
	parse_refuse(m, status, reason);
	return false;
}

bool http_value_valid(struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool header_valid(struct parse *m, struct str line)
{
	size_t n = 0;

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return http_parse_head_refuse(m, 400, "a header is folded over several lines");
	while (n < line.n && token_char(line.p[n]))
		n++;
	if (n < line.n && n && (line.p[n] == ' ' || line.p[n] == '\t'))
		return http_parse_head_refuse(m, 400, "a header name is followed by a space");
	if (!n || n == line.n || line.p[n] != ':')
		return http_parse_head_refuse(m, 400, "a header has no valid name");
	if (!http_value_valid(str_n(line.p + n, line.n - n)))
		return http_parse_head_refuse(m, 400, "a header contains a control character");
	return true;
}

static bool version_valid(struct parse *m, struct str version)
{
	if (str_is(version, "HTTP/1.1") || (m->answers && str_is(version, "HTTP/1.0")))
		return true;
	if (version.n == 8 && str_starts(version, STR("HTTP/")))
		return http_parse_head_refuse(m, 505, "this server speaks only HTTP/1.1");
	return http_parse_head_refuse(m, 400, "the first line does not end with HTTP/1.1");
}

static bool request_line_valid(struct parse *m, struct str line)
{
	struct str method, target;

	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < ' ' || (unsigned char)line.p[i] >= 0x7f)
			return http_parse_head_refuse(
				m, 400,
				"the first line contains a control character or a "
				"byte beyond ASCII");
	method = str_cut(&line, ' ');
	target = str_cut(&line, ' ');
	if (!method.n || !target.n)
		return http_parse_head_refuse(m, 400,
					      "the first line is not METHOD TARGET HTTP/1.1");
	if (!version_valid(m, line))
		return false;
	if (memchr(target.p, '#', target.n))
		return http_parse_head_refuse(m, 400, "the target contains a fragment");
	if (target.p[0] != '/' && !(str_is(target, "*") && str_is(method, "OPTIONS")) &&
	    !str_is(method, "CONNECT"))
		return http_parse_head_refuse(m, 400, "the target does not begin with /");
	return true;
}

static bool status_line_valid(struct parse *m, struct str line)
{
	struct str version;

	if (!http_value_valid(line))
		return http_parse_head_refuse(m, 400,
					      "the status line contains a control character");
	version = str_cut(&line, ' ');
	if (!version_valid(m, version))
		return false;
	if (line.n < 3 || line.p[0] < '1' || line.p[0] > '5' || line.p[1] < '0' ||
	    line.p[1] > '9' || line.p[2] < '0' || line.p[2] > '9' ||
	    (line.n > 3 && line.p[3] != ' '))
		return http_parse_head_refuse(m, 400, "the status is not a number of three digits");
	return true;
}

bool parse_line_valid(struct parse *m, struct str line)
{
	if (m->state != PARSE_HEAD || m->line)
		return header_valid(m, line);
	return m->answers ? status_line_valid(m, line) : request_line_valid(m, line);
}

/* ---- the head as a whole */

static bool add_header(struct parse *m, struct str name, struct str value)
{
	if (m->headers.n == m->limits.header_count_max)
		return http_parse_head_refuse(m, 431, "the request has too many headers");
	if (m->headers.n == m->room) {
		m->room = m->room ? m->room * 2 : 12;
		m->list = mem_grow(m->list, m->room * sizeof(*m->list));
	}
	m->list[m->headers.n] = (struct http_header){ name, value };
	m->headers.v = m->list;
	m->headers.n++;
	return true;
}

/* Each line ends with CR LF and has a colon, except the last one, which is empty. */
static bool split_headers(struct parse *m, struct str rest)
{
	for (;;) {
		struct str line = str_cut(&rest, '\n'), name;

		line.n--;
		if (!line.n)
			return true;
		name = str_cut(&line, ':');
		if (!add_header(m, name, str_trim(line)))
			return false;
	}
}

/* Does a header with this name list the word? */
static bool http_parse_head_lists(const struct parse *m, const char *header, struct str word)
{
	for (size_t i = 0; i < m->headers.n; i++) {
		struct str rest = m->headers.v[i].value;

		if (!str_eq_nocase(m->headers.v[i].name, str_c(header)))
			continue;
		while (rest.n)
			if (str_eq_nocase(str_trim(str_cut(&rest, ',')), word))
				return true;
	}
	return false;
}

bool http_frames(struct str name)
{
	return str_eq_nocase(name, STR("content-length")) ||
	       str_eq_nocase(name, STR("transfer-encoding"));
}

struct framing {
	bool chunked, has_length;
	uint64_t length;
};

static bool read_length(struct parse *m, struct framing *f)
{
	struct str value = http_header(m->headers, "content-length");

	f->has_length = http_has_header(m->headers, "content-length");
	if (!f->has_length)
		return true;
	if (!value.n || value.n > 18 || http_header_count(m->headers, "content-length") > 1 ||
	    http_has_header(m->headers, "transfer-encoding"))
		return http_parse_head_refuse(m, 400, "the length of the body is not clear");
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return http_parse_head_refuse(m, 400,
						      "the length of the body is not clear");
		f->length = f->length * 10 + (uint64_t)(value.p[i] - '0');
	}
	return true;
}

static bool read_encoding(struct parse *m, struct framing *f)
{
	struct str value = http_header(m->headers, "transfer-encoding"), last = STR("");

	f->chunked = str_eq_nocase(value, STR("chunked"));
	if (!http_has_header(m->headers, "transfer-encoding"))
		return true;
	if (http_header_count(m->headers, "transfer-encoding") > 1)
		return http_parse_head_refuse(m, 400, "there is more than one Transfer-Encoding");
	if (f->chunked)
		return true;
	while (value.n)
		last = str_trim(str_cut(&value, ','));
	if (m->answers || str_eq_nocase(last, STR("chunked")))
		return http_parse_head_refuse(m, 501, "the only Transfer-Encoding is chunked");
	return http_parse_head_refuse(m, 400, "the transfer encoding is not clear");
}

/* Checks only the characters, for host[:port] and [v6]:port. */
static bool host_valid(struct str host)
{
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("-._:[]", c))))
			return false;
	}
	return host.n > 0;
}

static bool method_known(struct str method)
{
	static const char *const known[] = { "GET",   "HEAD",   "POST",    "PUT",
					     "PATCH", "DELETE", "OPTIONS", NULL };

	for (size_t i = 0; known[i]; i++)
		if (str_is(method, known[i]))
			return true;
	return false;
}

static bool request_valid(struct parse *m)
{
	size_t hosts = http_header_count(m->headers, "host");
	struct str expect = http_header(m->headers, "expect");

	m->host = http_header(m->headers, "host");
	if (hosts != 1)
		return http_parse_head_refuse(
			m, 400, hosts ? "there is more than one Host" : "there is no Host");
	if (!host_valid(m->host))
		return http_parse_head_refuse(m, 400, "Host is not a host name");
	if (http_has_header(m->headers, "upgrade"))
		return http_parse_head_refuse(m, 501,
					      "this server does not switch to another protocol");
	if (http_has_header(m->headers, "expect")) {
		if (!str_eq_nocase(expect, STR("100-continue")))
			return http_parse_head_refuse(m, 417,
						      "the only expectation is 100-continue");
		m->expects_continue = true;
	}
	return true;
}

static bool answer_valid(struct parse *m, const struct framing *f)
{
	if (m->status == 101)
		return http_parse_head_refuse(m, 400, "the server switches to another protocol");
	if (m->status < 200 || m->status == 204 || m->status == 304)
		m->bodyless = true;
	if (!m->bodyless && !f->has_length && !f->chunked)
		return http_parse_head_refuse(m, 400, "the answer does not say where it ends");
	return true;
}

/* METHOD TARGET VERSION, or VERSION STATUS TEXT. */
static bool read_first_line(struct parse *m, struct str line, bool *persistent)
{
	struct str first = str_cut(&line, ' ');

	*persistent = true;
	if (m->answers) {
		m->status = (line.p[0] - '0') * 100 + (line.p[1] - '0') * 10 + line.p[2] - '0';
		*persistent = str_is(first, "HTTP/1.1");
		return true;
	}
	m->method = first;
	m->target = str_cut(&line, ' ');
	return method_known(m->method) || http_parse_head_refuse(m, 501, "the method is not known");
}

void parse_head(struct parse *m)
{
	struct str rest = buf_str(&m->head);
	struct framing f = { 0 };
	bool persistent;

	if (!read_first_line(m, str_cut(&rest, '\n'), &persistent) || !split_headers(m, rest) ||
	    !read_length(m, &f) || !read_encoding(m, &f) ||
	    !(m->answers ? answer_valid(m, &f) : request_valid(m)))
		return;
	m->keep_alive = (persistent || http_parse_head_lists(m, "connection", STR("keep-alive"))) &&
			!http_parse_head_lists(m, "connection", STR("close"));
	parse_body_begin(m, f.chunked, f.length);
}

/* --- parse body ------------------------------------------------------------------------------- */

/* Reads the body, by Content-Length or in chunks, and finds its end. No size, extension or trailer may leave the end open to
 * another reading, and no body exceeds body_max before it is refused. */

enum body_state {
	LENGTH,     /* `left` bytes follow */
	CHUNK_LINE, /* the size of a chunk */
	CHUNK_DATA, /* `left` bytes of it */
	CHUNK_END,  /* CR LF after it */
	TRAILER,    /* headers after the last chunk, or the empty line */
};

void parse_body_begin(struct parse *m, bool chunked, uint64_t length)
{
	m->has_body = !m->bodyless && (chunked || length);
	m->state = m->has_body ? PARSE_BODY : PARSE_DONE;
	m->framing = chunked ? CHUNK_LINE : LENGTH;
	m->left = length;
}

static bool add_size(struct parse *m, uint64_t n)
{
	if (m->taken <= m->body_max && n <= m->body_max - m->taken) {
		m->taken += n;
		return true;
	}
	parse_refuse(m, 413, "the body is too long");
	return false;
}

bool parse_body_fits(struct parse *m)
{
	if (m->framing == LENGTH && m->left > m->body_max)
		parse_refuse(m, 413, "the body is too long");
	return m->state != PARSE_BAD;
}

/* Takes up to `left` bytes of the body. */
static size_t take_data(struct parse *m, const char *p, size_t n)
{
	if (n > m->left)
		n = (size_t)m->left;
	m->left -= n;
	if (m->sink)
		m->sink(str_n(p, n), m->sink_ctx);
	else
		buf_add(&m->body, p, n);
	if (m->left)
		return n;
	if (m->framing == LENGTH)
		m->state = PARSE_DONE;
	else
		m->framing = CHUNK_END;
	return n;
}

/* SIZE [; extension]. An extension is ignored, but must not hide anything. */
static bool chunk_size(struct parse *m, struct str line, uint64_t *size)
{
	size_t i = 0;

	*size = 0;
	for (; i < line.n && i < 15 && hex_digit(line.p[i] | 0x20) >= 0 && line.p[i] >= '0'; i++)
		*size = *size << 4 | (uint64_t)hex_digit(line.p[i] | 0x20);
	if (!i || (i < line.n && line.p[i] != ';') || !http_value_valid(line)) {
		parse_refuse(m, 400, "a chunk has no valid size");
		return false;
	}
	return true;
}

static void end_chunk_line(struct parse *m, struct str line)
{
	uint64_t size;

	if (!chunk_size(m, line, &size) || !add_size(m, size))
		return;
	m->left = size;
	m->framing = size ? CHUNK_DATA : TRAILER;
}

/* Trailers are ignored, but one that names the body's length or encoding is refused. */
static void end_trailer(struct parse *m, struct str line)
{
	m->trailer += m->chunk_used;
	if (m->trailer > m->limits.head_max)
		parse_refuse(m, 431, "the trailers are too long");
	else if (!line.n)
		m->state = PARSE_DONE;
	else if (parse_line_valid(m, line) && http_frames(str_cut(&line, ':')))
		parse_refuse(m, 400, "the length of the body is not clear");
}

static void end_body_line(struct parse *m)
{
	struct str line = str_n(m->chunk_line, m->chunk_used);

	if (line.n < 2 || line.p[line.n - 2] != '\r') {
		parse_refuse(m, 400, "a line ends with LF alone");
		return;
	}
	line.n -= 2;
	if (m->framing == CHUNK_LINE) {
		end_chunk_line(m, line);
	} else {
		end_trailer(m, line);
	}
	m->chunk_used = 0;
}

/* Takes one byte of the CR LF after a chunk; `left` counts them. */
static size_t take_chunk_end(struct parse *m, char c)
{
	if (c != "\r\n"[m->left])
		parse_refuse(m, 400, "a chunk is longer than its size");
	else if (++m->left == 2)
		m->framing = CHUNK_LINE;
	return 1;
}

static size_t take_body_line(struct parse *m, const char *p, size_t n)
{
	const char *end = memchr(p, '\n', n);
	size_t taken = end ? (size_t)(end - p) + 1 : n;

	if (taken > sizeof(m->chunk_line) - m->chunk_used) {
		if (m->framing == TRAILER)
			parse_refuse(m, 431, "a trailer is too long");
		else
			parse_refuse(m, 400, "a chunk has no valid size");
		return taken;
	}
	memcpy(m->chunk_line + m->chunk_used, p, taken);
	m->chunk_used += taken;
	if (end)
		end_body_line(m);
	return taken;
}

size_t parse_body(struct parse *m, const char *p, size_t n)
{
	size_t at = 0;

	if (m->framing == LENGTH && !parse_body_fits(m))
		return 0;
	while (at < n && m->state == PARSE_BODY) {
		if (m->framing == LENGTH || m->framing == CHUNK_DATA)
			at += take_data(m, p + at, n - at);
		else if (m->framing == CHUNK_END)
			at += take_chunk_end(m, p[at]);
		else
			at += take_body_line(m, p + at, n - at);
	}
	return at;
}
