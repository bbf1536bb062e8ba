/* HTTP messages: the bytes mean the same in one piece and in many, and only clear ones pass. */
#include "kit.h"
#include "http/http_parse.h"
#include "http/http_server.h"

enum { BODY_MAX = 300 };

/* Everything that a parser says about a stream of messages. */
static void add_message(struct buf *out, const struct parse *m)
{
	buf_addf(out, "%d %d %s|%.*s|%.*s|%.*s|%d%d%d|", m->state, m->status,
		 m->reason ? m->reason : "", STRF(m->method), STRF(m->target), STRF(m->host),
		 m->keep_alive, m->expects_continue, m->has_body);
	if (m->state == PARSE_BAD)
		return;
	for (size_t i = 0; i < m->headers.n; i++)
		buf_addf(out, "%.*s=%.*s|", STRF(m->headers.v[i].name),
			 STRF(m->headers.v[i].value));
	buf_adds(out, buf_str(&m->body));
}

static size_t times(const struct parse *m, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < m->headers.n; i++)
		n += str_eq_nocase(m->headers.v[i].name, str_c(name));
	return n;
}

/* A message that passes can be understood in one way alone. */
static void check_clear(const struct parse *m, bool answers)
{
	CHECK(times(m, "content-length") + times(m, "transfer-encoding") <= 1);
	CHECK(m->body.n <= BODY_MAX);
	for (size_t i = 0; i < m->headers.n; i++) {
		CHECK(m->headers.v[i].name.n);
		CHECK(http_value_valid(m->headers.v[i].name));
		CHECK(http_value_valid(m->headers.v[i].value));
	}
	if (answers) {
		CHECK(m->status >= 100 && m->status < 600 && m->status != 101);
		return;
	}
	CHECK(times(m, "host") == 1 && m->host.n && !times(m, "upgrade"));
	CHECK(m->target.n && (m->target.p[0] == '/' || str_is(m->target, "*")));
	CHECK(!memchr(m->target.p, ' ', m->target.n) && !memchr(m->target.p, '#', m->target.n));
}

/* Parses all messages of a connection, in pieces of `most` bytes. */
static void parse_all(const char *p, size_t n, size_t most, bool answers, struct buf *out)
{
	struct parse m;
	size_t at = 0;

	parse_init(&m, (struct parse_limits){ 400, 10 }, answers);
	m.body_max = BODY_MAX;
	while (at < n && m.state != PARSE_BAD) {
		size_t piece = n - at < most ? n - at : most, taken = parse_feed(&m, p + at, piece);

		CHECK(taken <= piece && (taken || m.state == PARSE_BAD));
		at += taken;
		if (m.state != PARSE_DONE)
			continue;
		check_clear(&m, answers);
		add_message(out, &m);
		parse_next(&m);
	}
	add_message(out, &m);
	parse_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t pieces[] = { SIZE_MAX, 1, 7 };
	struct buf said[3];
	bool answers;

	if (size < 1)
		return 0;
	answers = data[0] & 1;
	for (size_t i = 0; i < 3; i++) {
		/* in memory of its own: a read beyond it is noticed */
		char *copy = mem_alloc(size - 1);

		memcpy(copy, data + 1, size - 1);
		said[i] = BUF_MAX(1 << 20);
		parse_all(copy, size - 1, pieces[i], answers, &said[i]);
		free(copy);
	}
	CHECK(str_eq(buf_str(&said[0]), buf_str(&said[1])));
	CHECK(str_eq(buf_str(&said[0]), buf_str(&said[2])));
	for (size_t i = 0; i < 3; i++)
		buf_free(&said[i]);
	return 0;
}
