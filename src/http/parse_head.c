/* The rules for a head, beyond the checks of http-parser. */
#include "http/parse.h"

static bool token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool refuse(struct parse *m, int status, const char *reason)
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
		return refuse(m, 400, "a header is folded over several lines");
	while (n < line.n && token_char(line.p[n]))
		n++;
	if (n < line.n && n && (line.p[n] == ' ' || line.p[n] == '\t'))
		return refuse(m, 400, "a space follows the name of a header");
	if (!n || n == line.n || line.p[n] != ':')
		return refuse(m, 400, "a header has no valid name");
	if (!http_value_valid(str_n(line.p + n, line.n - n)))
		return refuse(m, 400, "a header contains a control character");
	return true;
}

static bool version_valid(struct parse *m, struct str version)
{
	if (str_is(version, "HTTP/1.1") || (m->answers && str_is(version, "HTTP/1.0")))
		return true;
	if (version.n == 8 && str_starts(version, STR("HTTP/")))
		return refuse(m, 505, "this server speaks only HTTP/1.1");
	return refuse(m, 400, "the first line does not end with HTTP/1.1");
}

static bool request_line_valid(struct parse *m, struct str line)
{
	struct str method, target;

	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] < ' ' || line.p[i] == 0x7f)
			return refuse(m, 400,
				      "the first line contains a control character or a "
				      "byte beyond ASCII");
	method = str_cut(&line, ' ');
	target = str_cut(&line, ' ');
	if (!method.n || !target.n)
		return refuse(m, 400, "the first line is not METHOD TARGET HTTP/1.1");
	if (!version_valid(m, line))
		return false;
	if (memchr(target.p, '#', target.n))
		return refuse(m, 400, "the target contains a fragment");
	if (target.p[0] != '/' && !(str_is(target, "*") && str_is(method, "OPTIONS")) &&
	    !str_is(method, "CONNECT"))
		return refuse(m, 400, "the target does not begin with /");
	return true;
}

static bool status_line_valid(struct parse *m, struct str line)
{
	struct str version;

	if (!http_value_valid(line))
		return refuse(m, 400, "the status line contains a control character");
	version = str_cut(&line, ' ');
	if (!version_valid(m, version))
		return false;
	if (line.n < 3 || line.p[0] < '1' || line.p[0] > '5' || line.p[1] < '0' ||
	    line.p[1] > '9' || line.p[2] < '0' || line.p[2] > '9' ||
	    (line.n > 3 && line.p[3] != ' '))
		return refuse(m, 400, "the status is not a number of three digits");
	return true;
}

bool parse_line_valid(struct parse *m, struct str line)
{
	if (m->state != PARSE_HEAD || m->line)
		return header_valid(m, line);
	return m->answers ? status_line_valid(m, line) : request_line_valid(m, line);
}

/* ---- the head as a whole */

struct counts {
	size_t host, length, encoding;
	struct str length_value, encoding_value;
	bool upgrade;
};

static struct counts count(struct parse *m)
{
	struct counts c = { 0 };

	for (size_t i = 0; i < m->headers.n; i++) {
		const struct http_header *h = &m->headers.v[i];

		if (str_eq_nocase(h->name, STR("host"))) {
			c.host++;
			m->host = h->value;
		} else if (str_eq_nocase(h->name, STR("content-length"))) {
			c.length++;
			c.length_value = h->value;
		} else if (str_eq_nocase(h->name, STR("transfer-encoding"))) {
			c.encoding++;
			c.encoding_value = h->value;
		} else if (str_eq_nocase(h->name, STR("upgrade"))) {
			c.upgrade = true;
		}
	}
	return c;
}

static bool length_valid(struct str value)
{
	if (!value.n || value.n > 18)
		return false;
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] < '0' || value.p[i] > '9')
			return false;
	return true;
}

static bool framing_valid(struct parse *m, const struct counts *c)
{
	if (c->length > 1)
		return refuse(m, 400, "there is more than one Content-Length");
	if (c->length && !length_valid(c->length_value))
		return refuse(m, 400, "Content-Length is not a number");
	if (c->encoding > 1)
		return refuse(m, 400, "there is more than one Transfer-Encoding");
	if (c->length && c->encoding)
		return refuse(m, 400, "there are both Content-Length and Transfer-Encoding");
	if (c->encoding && !str_eq_nocase(c->encoding_value, STR("chunked")))
		return refuse(m, 501, "the only Transfer-Encoding is chunked");
	return true;
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

static bool request_valid(struct parse *m, const struct counts *c)
{
	struct str expect = http_header(m->headers, "expect");

	if (c->host != 1)
		return refuse(m, 400, c->host ? "there is more than one Host" : "there is no Host");
	if (!host_valid(m->host))
		return refuse(m, 400, "Host is not a host name");
	if (!method_known(m->method))
		return refuse(m, 501, "the method is not known");
	if (c->upgrade || m->parser.upgrade)
		return refuse(m, 501, "this server does not switch to another protocol");
	if (http_has_header(m->headers, "expect")) {
		if (!str_eq_nocase(expect, STR("100-continue")))
			return refuse(m, 417, "the only expectation is 100-continue");
		m->expects_continue = true;
	}
	return true;
}

static bool answer_valid(struct parse *m, const struct counts *c)
{
	m->status = m->parser.status_code;
	if (m->status == 101 || m->parser.upgrade)
		return refuse(m, 400, "the server switches to another protocol");
	if (m->status < 200 || m->status == 204 || m->status == 304)
		m->bodyless = true;
	if (!m->bodyless && !c->length && !c->encoding)
		return refuse(m, 400, "the answer does not say where it ends");
	return true;
}

bool parse_head(struct parse *m)
{
	struct counts c;

	if (!parse_execute(m, m->head.p, m->head.n))
		return false;
	if (!m->answers) {
		struct str line = buf_str(&m->head);

		m->method = str_cut(&line, ' ');
	}
	c = count(m);
	if (!(m->answers ? answer_valid(m, &c) : request_valid(m, &c)) || !framing_valid(m, &c))
		return false;
	m->keep_alive = http_should_keep_alive(&m->parser) != 0;
	m->has_body = !m->bodyless && (c.encoding || (c.length && !str_is(c.length_value, "0")));
	return true;
}
