/* The head: each line, then the head as a whole. */
#include "http/http_parse.h"

#include "base/arena.h"

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
		return http_parse_head_refuse(m, 400, "a space follows the name of a header");
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

/* Each line ends with CR LF, and has a colon; the last one is empty. */
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

/* Does one of the headers have this word in its list? */
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

/* The characters of host[:port] and [v6]:port. */
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
