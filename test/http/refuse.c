/* Requests that two programs could understand differently are refused, each with its status, one
 * JSON error and a closed connection. The server then continues. */
#include "kit.h"

#define HOST "Host: localhost\r\n"
#define BIG \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

struct row {
	const char *name;
	int status;
	struct str text;
};

#define ROW(name, status, text)         \
	{                               \
		name, status, STR(text) \
	}

static const struct row rows[] = {
	/* Host */
	ROW("no Host", 400, "GET / HTTP/1.1\r\n\r\n"),
	ROW("two Hosts", 400, "GET / HTTP/1.1\r\n" HOST "Host: other\r\n\r\n"),
	ROW("two equal Hosts", 400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"),
	ROW("two Hosts, other case", 400, "GET / HTTP/1.1\r\n" HOST "hOsT: x\r\n\r\n"),
	ROW("an empty Host", 400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
	ROW("a Host with a path", 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
	ROW("a Host with two names", 400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
	ROW("a Host with a user", 400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"),
	/* lines */
	ROW("space before the colon", 400, "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"),
	ROW("tab before the colon", 400, "GET / HTTP/1.1\r\n" HOST "X\t: a\r\n\r\n"),
	ROW("space before the colon of a length", 400,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\nhello"),
	ROW("bare LF everywhere", 400, "GET / HTTP/1.1\nHost: localhost\n\n"),
	ROW("bare LF behind the first line", 400, "GET / HTTP/1.1\n" HOST "\r\n"),
	ROW("bare LF behind a header", 400, "GET / HTTP/1.1\r\nHost: localhost\n\r\n"),
	ROW("bare LF at the end", 400, "GET / HTTP/1.1\r\n" HOST "\n"),
	ROW("bare CR in a header", 400, "GET / HTTP/1.1\r\n" HOST "X: a\rb: c\r\n\r\n"),
	ROW("CR CR LF", 400, "GET / HTTP/1.1\r\n" HOST "X: a\r\r\n\r\n"),
	ROW("a folded header", 400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"),
	ROW("a header folded by a tab", 400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n"),
	ROW("a folded Transfer-Encoding", 400,
	    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
	ROW("space before the first header", 400, "GET / HTTP/1.1\r\n " HOST "\r\n"),
	ROW("a header without colon", 400, "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"),
	ROW("a header without name", 400, "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"),
	ROW("a NUL in a header", 400, "GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"),
	ROW("a control character", 400,
	    "GET / HTTP/1.1\r\n" HOST "X: a\x0b"
	    "b\r\n\r\n"),
	ROW("a name beyond ASCII", 400, "GET / HTTP/1.1\r\n" HOST "X\xe9: a\r\n\r\n"),
	ROW("two empty lines first", 400, "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"),
	/* the first line */
	ROW("HTTP/0.9", 400, "GET /\r\n\r\n"),
	ROW("HTTP/1.0", 505, "GET / HTTP/1.0\r\n" HOST "\r\n"),
	ROW("HTTP/1.2", 505, "GET / HTTP/1.2\r\n" HOST "\r\n"),
	ROW("HTTP/2.0", 505, "GET / HTTP/2.0\r\n" HOST "\r\n"),
	ROW("the preface of HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	ROW("HTTP/1.10", 400, "GET / HTTP/1.10\r\n" HOST "\r\n"),
	ROW("http/1.1", 400, "GET / http/1.1\r\n" HOST "\r\n"),
	ROW("two spaces", 400, "GET  / HTTP/1.1\r\n" HOST "\r\n"),
	ROW("a space at the end", 400, "GET / HTTP/1.1 \r\n" HOST "\r\n"),
	ROW("a tab", 400, "GET\t/ HTTP/1.1\r\n" HOST "\r\n"),
	ROW("a target with a space", 400, "GET /a b HTTP/1.1\r\n" HOST "\r\n"),
	ROW("a target beyond ASCII", 400, "GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"),
	ROW("an absolute target", 400, "GET http://localhost/ HTTP/1.1\r\n" HOST "\r\n"),
	ROW("a fragment", 400, "GET /a#b HTTP/1.1\r\n" HOST "\r\n"),
	ROW("no target", 400, "GET HTTP/1.1\r\n" HOST "\r\n"),
	ROW("an unknown method", 501, "BREW / HTTP/1.1\r\n" HOST "\r\n"),
	ROW("a method in small letters", 501, "get / HTTP/1.1\r\n" HOST "\r\n"),
	ROW("TRACE", 501, "TRACE / HTTP/1.1\r\n" HOST "\r\n"),
	ROW("CONNECT", 501, "CONNECT localhost:80 HTTP/1.1\r\n" HOST "\r\n"),
	ROW("TLS", 400, "\x16\x03\x01\x02\x00\x01\x00"),
	ROW("bytes", 400, "\x80\x81\x82"),
	/* lengths */
	ROW("two lengths", 400,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
	ROW("two equal lengths", 400,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
	ROW("a list of lengths", 400,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello"),
	ROW("a negative length", 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"),
	ROW("a signed length", 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello"),
	ROW("a length in hex", 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello"),
	ROW("a length of 19 digits", 400,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 0000000000000000005\r\n\r\nhello"),
	ROW("an empty length", 400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"),
	ROW("a length with a space", 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 0\r\n\r\n"),
	ROW("a length beyond 64 bits", 400,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\nhello"),
	ROW("a length beyond the limit", 413,
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n"),
	ROW("a length and chunks", 400,
	    "POST / HTTP/1.1\r\n" HOST
	    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	ROW("chunks and a length", 400,
	    "POST / HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
	/* encodings */
	ROW("two encodings", 400,
	    "POST / HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	ROW("chunked and identity", 400,
	    "POST / HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
	ROW("gzip", 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"),
	ROW("identity", 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"),
	ROW("gzip, chunked", 501,
	    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	ROW("chunked, gzip", 400,
	    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n"),
	ROW("an empty encoding", 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"),
	ROW("xchunked", 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"),
	ROW("chunked in quotes", 400,
	    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"),
	ROW("chunked behind a form feed", 400,
	    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0c"
	    "chunked\r\n\r\n"),
/* chunks */
#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	ROW("a chunk without size", 400, CHUNKED "\r\nhello\r\n0\r\n\r\n"),
	ROW("a negative chunk", 400, CHUNKED "-5\r\nhello\r\n0\r\n\r\n"),
	ROW("a chunk in 0x", 400, CHUNKED "0x5\r\nhello\r\n0\r\n\r\n"),
	ROW("a chunk that is too short", 400, CHUNKED "6\r\nhello\r\n0\r\n\r\n"),
	ROW("a chunk that is too long", 400, CHUNKED "4\r\nhello\r\n0\r\n\r\n"),
	ROW("bare LF behind a size", 400, CHUNKED "5\nhello\r\n0\r\n\r\n"),
	ROW("CR X behind a size", 400, CHUNKED "5\rXhello\r\n0\r\n\r\n"),
	ROW("CR X behind a chunk", 400, CHUNKED "5\r\nhello\rX0\r\n\r\n"),
	ROW("bare LF behind a chunk", 400, CHUNKED "5\r\nhello\n0\r\n\r\n"),
	ROW("bare LF in an extension", 400, CHUNKED "5;a\nb\r\nhello\r\n0\r\n\r\n"),
	ROW("a space behind a size", 400, CHUNKED "5 \r\nhello\r\n0\r\n\r\n"),
	ROW("a size beyond 64 bits", 400, CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n"),
	ROW("a size beyond the limit", 413, CHUNKED "100001\r\n"),
	ROW("a long extension", 400, CHUNKED "5;" BIG BIG "\r\nhello\r\n0\r\n\r\n"),
	ROW("a folded trailer", 400, CHUNKED "0\r\n folded\r\n\r\n"),
	ROW("a trailer with a space", 400, CHUNKED "0\r\nX : y\r\n\r\n"),
	ROW("bare LF behind a trailer", 400, CHUNKED "0\r\nX: y\n\r\n"),
	ROW("a length behind chunks", 400, CHUNKED "0\r\nContent-Length: 5\r\n\r\nhello"),
	ROW("an encoding behind chunks", 400, CHUNKED "0\r\nTransfer-encoding: x\r\n\r\n"),
	/* other protocols */
	ROW("an upgrade", 501,
	    "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
	ROW("h2c", 501,
	    "GET / HTTP/1.1\r\n" HOST
	    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"),
	ROW("an upgrade without Connection", 501, "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\n\r\n"),
	ROW("an expectation", 417,
	    "POST / HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 1\r\n\r\n"),
};

static const struct row good[] = {
	ROW("a length", 200, "POST /e HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"),
	ROW("chunks", 200,
	    "POST /e HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\nhe\r\n03\r\nllo\r\n0\r\nX: y\r\n\r\n"),
	ROW("one empty line first", 200,
	    "\r\nPOST /e HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"),
	ROW("a length with spaces around", 200,
	    "POST /e HTTP/1.1\r\n" HOST "Content-Length: \t5 \r\n\r\nhello"),
	ROW("a length with zeros", 200,
	    "POST /e HTTP/1.1\r\n" HOST "Content-Length: 005\r\n\r\nhello"),
	ROW("a header that begins like an encoding", 200,
	    "POST /e HTTP/1.1\r\n" HOST
	    "Transfer-Encoding-X: chunked\r\nContent-Length: 5\r\n\r\nhello"),
	ROW("a value beyond ASCII", 200,
	    "POST /e HTTP/1.1\r\n" HOST "X: \xc3\xa9\r\nContent-Length: 5\r\n\r\nhello"),
};

/* A request that is accepted by mistake must not keep the test waiting for long. */
static struct harness *start(void)
{
	struct http_options o = harness_options();

	o.limits.idle_ms = o.limits.body_ms = 3000;
	return harness_start(&o);
}

static void check_refusal(const struct row *r, const char *text)
{
	char first[32];
	const char *body = strstr(text, "\r\n\r\n");

	snprintf(first, sizeof(first), "HTTP/1.1 %d ", r->status);
	if (strncmp(text, first, strlen(first)) != 0)
		fail_msg("%s: not %d but: %s", r->name, r->status, text);
	if (!strstr(text, "\r\nConnection: close\r\n") ||
	    !strstr(text, "\r\nContent-Type: application/json\r\n") || !body ||
	    strncmp(body + 4, "{\"ok\":false,\"error\":{\"message\":\"", 31) != 0 ||
	    strstr(body, "\nHTTP/1.1 "))
		fail_msg("%s: not one clear refusal: %s", r->name, text);
}

static void refuse_all(struct harness *h)
{
	char text[8192];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		exchange_raw(h, rows[i].text, text, sizeof(text));
		check_refusal(&rows[i], text);
	}
}

static void test_table(void **state)
{
	struct harness *h = start();
	struct http_counters n;

	(void)state;
	refuse_all(h);
	n = harness_counters(h);
	assert_int_equal(n.requests, 0);
	assert_int_equal(n.refused, sizeof(rows) / sizeof(rows[0]));
	harness_end(h);
}

/* A request behind a refused one must never be read as a request. */
static void test_nothing_behind(void **state)
{
	struct harness *h = start();
	char request[4096], text[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str t = rows[i].text, tail = STR("GET /smuggled HTTP/1.1\r\n" HOST "\r\n");

		memcpy(request, t.p, t.n);
		memcpy(request + t.n, tail.p, tail.n);
		exchange_raw(h, str_n(request, t.n + tail.n), text, sizeof(text));
		if (strstr(text, "smuggled") || strstr(text, " 200 "))
			fail_msg("%s: %s", rows[i].name, text);
	}
	assert_int_equal(harness_counters(h).requests, 0);
	harness_end(h);
}

/* The same, one byte at a time: the form of a request does not depend on the packets. */
static void test_bytewise(void **state)
{
	struct harness *h = start();
	char text[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = dial(h);

		for (size_t j = 0; j < rows[i].text.n; j++)
			say(fd, str_n(rows[i].text.p + j, 1));
		hear(fd, text, sizeof(text), 0);
		check_refusal(&rows[i], text);
		close(fd);
	}
	harness_end(h);
}

static void test_good(void **state)
{
	struct harness *h = harness_start(NULL);
	char body[256];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int fd = dial(h), status;

		for (int again = 0; again < 2; again++) { /* the connection is kept */
			say(fd, good[i].text);
			status = hear_answer(fd, body, sizeof(body));
			if (status != 200 || strcmp(body, "POST /e [] hello") != 0)
				fail_msg("%s: %d %s", good[i].name, status, body);
		}
		close(fd);
	}
	harness_end(h);
}

/* Zeros are no body: the answer comes without another byte. */
static void test_zero_length(void **state)
{
	struct harness *h = start();
	char body[256];
	int fd = dial(h);

	(void)state;
	say(fd, STR("POST /e HTTP/1.1\r\n" HOST "Content-Length: 00\r\n\r\n"));
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
	assert_string_equal(body, "POST /e [] ");
	close(fd);
	harness_end(h);
}

/* ---- sizes */

/* `before`, n times x, `after` */
static struct str long_request(struct arena *a, struct str before, size_t n, struct str after)
{
	char *text = arena_alloc(a, before.n + n + after.n);

	memcpy(text, before.p, before.n);
	memset(text + before.n, 'x', n);
	memcpy(text + before.n + n, after.p, after.n);
	return str_n(text, before.n + n + after.n);
}

static void test_oversized(void **state)
{
	struct harness *h = harness_start(NULL);
	struct arena a = { 0 };
	struct buf many = BUF_MAX(64 << 10);
	char text[8192];
	struct row r = { "a long target", 414,
			 long_request(&a, STR("GET /"), 17 << 10,
				      STR(" HTTP/1.1\r\n" HOST "\r\n")) };

	(void)state;
	exchange_raw(h, r.text, text, sizeof(text));
	check_refusal(&r, text);
	r = (struct row){ "a long header", 431,
			  long_request(&a, STR("GET / HTTP/1.1\r\n" HOST "X:"), 17 << 10,
				       STR("\r\n\r\n")) };
	exchange_raw(h, r.text, text, sizeof(text));
	check_refusal(&r, text);
	buf_adds(&many, STR("GET / HTTP/1.1\r\n" HOST));
	for (int i = 0; i < 100; i++)
		buf_addf(&many, "X%d: y\r\n", i);
	buf_adds(&many, STR("\r\n"));
	r = (struct row){ "many headers", 431, buf_str(&many) };
	exchange_raw(h, r.text, text, sizeof(text));
	check_refusal(&r, text);
	/* the sender reads the refusal although it is still sending */
	r = (struct row){
		"a long body", 413,
		long_request(&a, STR("POST / HTTP/1.1\r\n" HOST "Content-Length: 3145728\r\n\r\n"),
			     3 << 20, STR(""))
	};
	exchange_raw(h, r.text, text, sizeof(text));
	check_refusal(&r, text);
	r.name = "long chunks";
	r.text = long_request(&a, STR(CHUNKED "300000\r\n"), 3 << 20, STR("\r\n0\r\n\r\n"));
	exchange_raw(h, r.text, text, sizeof(text));
	check_refusal(&r, text);
	assert_int_equal(harness_counters(h).requests, 0);
	buf_free(&many);
	arena_free(&a);
	harness_end(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),       cmocka_unit_test(test_nothing_behind),
		cmocka_unit_test(test_bytewise),    cmocka_unit_test(test_good),
		cmocka_unit_test(test_zero_length), cmocka_unit_test(test_oversized),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
