/* The client: what it says about a request whose connection is cut at any point. */
#include "kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "kit/scale.h"

static const struct http_headers none = { NULL, 0 };

static struct http_client *client(const char *url, const struct http_client_options *options)
{
	struct http_client *c;
	char why[256];

	if (http_client_new(url, options, &c, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return c;
}

static enum http_fate post(struct http_client *c, struct arena *a, struct http_answer *out)
{
	return http_call(c, "POST", "/e?q", "application/json", none, STR("{\"a\":1}"),
			 os_boot_ms() + PATIENCE, a, out);
}

/* ---- a proxy that cuts */

struct proxy {
	int fd, port, to;
	_Atomic int up, down; /* bytes that pass in each direction */
	_Atomic int passed_up, passed_down, conns;
	_Atomic bool reset, over;
	pthread_t thread;
};

static int server_socket(int *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

/* Passes what is there on; false at the end, or when the limit is reached. */
static bool pass(int from, int to, int limit, _Atomic int *passed)
{
	char bytes[4096];
	int room = limit - *passed;
	ssize_t n;

	if (room <= 0)
		return false;
	n = recv(from, bytes, room < (int)sizeof(bytes) ? (size_t)room : sizeof(bytes), 0);
	if (n <= 0)
		return false;
	say(to, str_n(bytes, (size_t)n));
	*passed += (int)n;
	return *passed < limit;
}

static void serve_one(struct proxy *p, int fd)
{
	int to = dial_port(p->to);
	struct pollfd ends[2] = { { .fd = fd, .events = POLLIN }, { .fd = to, .events = POLLIN } };
	bool more = p->up > 0;

	p->passed_up = p->passed_down = 0;
	while (more && poll(ends, 2, PATIENCE) > 0) {
		if (ends[0].revents)
			more = pass(fd, to, p->up, &p->passed_up);
		if (more && ends[1].revents)
			more = pass(to, fd, p->down, &p->passed_down);
	}
	if (p->reset) {
		struct linger hard = { 1, 0 };

		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	}
	close(to);
	close(fd);
	p->conns++;
}

static void *run_proxy(void *ctx)
{
	struct proxy *p = ctx;

	while (!p->over) {
		int fd = accept(p->fd, NULL, NULL);

		if (fd >= 0 && !p->over)
			serve_one(p, fd);
		else if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static void proxy_start(struct proxy *p, struct harness *h)
{
	memset(p, 0, sizeof(*p));
	p->to = harness_port(h);
	p->up = p->down = 1 << 20;
	p->fd = server_socket(&p->port);
	assert_int_equal(pthread_create(&p->thread, NULL, run_proxy, p), 0);
}

static void proxy_end(struct proxy *p)
{
	p->over = true;
	close(dial_port(p->port));
	pthread_join(p->thread, NULL);
	close(p->fd);
}

static void proxy_url(struct proxy *p, char *url, size_t room)
{
	snprintf(url, room, "http://127.0.0.1:%d", p->port);
}

/* One call through the proxy; returns its fate when the proxy is done with it. */
static enum http_fate through(struct proxy *p, struct http_answer *out, struct arena *a)
{
	struct http_client *c;
	enum http_fate fate;
	int before = p->conns;
	char url[64];

	proxy_url(p, url, sizeof(url));
	c = client(url, NULL);
	fate = post(c, a, out);
	http_client_free(c);
	WAIT_FOR(p->conns > before);
	return fate;
}

/* The answer is cut behind each of its bytes: the request was carried out, and the client must not
 * say that it was not sent. */
static void cut_answers(bool reset)
{
	struct harness *h = harness_start(NULL);
	struct proxy p;
	struct http_answer out;
	struct arena a = { 0 };
	int whole;

	proxy_start(&p, h);
	assert_int_equal(through(&p, &out, &a), HTTP_ANSWERED);
	assert_string_equal(out.body.p, "POST /e [q] {\"a\":1}");
	whole = p.passed_down;
	assert_true(whole > 50);
	p.reset = reset;
	for (int i = 1; i <= whole; i += SCALE(1, 7)) {
		enum http_fate fate;

		p.down = i;
		fate = through(&p, &out, &a);
		/* a reset may destroy even a complete answer on its way */
		if (fate != (i < whole ? HTTP_UNKNOWN : HTTP_ANSWERED) &&
		    !(reset && fate == HTTP_UNKNOWN))
			fail_msg("%d of %d bytes: %d", i, whole, fate);
		if (fate == HTTP_UNKNOWN)
			assert_true(out.why[0] && !out.timed_out);
	}
	proxy_end(&p);
	arena_free(&a);
	harness_end(h);
}

static void test_cut_answers(void **state)
{
	(void)state;
	cut_answers(false);
}

static void test_reset_answers(void **state)
{
	(void)state;
	cut_answers(true);
}

/* The request is cut behind each of its bytes: the server does nothing. */
static void test_cut_requests(void **state)
{
	struct harness *h = harness_start(NULL);
	struct proxy p;
	struct http_answer out;
	struct arena a = { 0 };
	int whole;

	(void)state;
	proxy_start(&p, h);
	assert_int_equal(through(&p, &out, &a), HTTP_ANSWERED);
	whole = p.passed_up;
	for (int i = 0; i < whole; i += SCALE(1, 7)) {
		p.up = i;
		if (through(&p, &out, &a) == HTTP_ANSWERED)
			fail_msg("an answer to %d of %d bytes", i, whole);
	}
	WAIT_FOR(harness_counters(h).connections == 0);
	assert_int_equal(harness_counters(h).requests, 1);
	proxy_end(&p);
	arena_free(&a);
	harness_end(h);
}

/* ---- calls */

static void test_not_sent(void **state)
{
	struct arena a = { 0 };
	struct http_answer out;
	struct http_client *c;
	char url[64];
	int port, fd = server_socket(&port);

	(void)state;
	close(fd);
	snprintf(url, sizeof(url), "http://localhost:%d", port);
	c = client(url, NULL);
	assert_int_equal(post(c, &a, &out), HTTP_NOT_SENT);
	assert_non_null(strstr(out.why, "refused"));
	http_client_free(c);
	c = client("unix:/nonexistent/socket", NULL);
	assert_int_equal(post(c, &a, &out), HTTP_NOT_SENT);
	http_client_free(c);
	c = client("http://no-such-host.invalid", NULL);
	assert_int_equal(post(c, &a, &out), HTTP_NOT_SENT);
	assert_non_null(strstr(out.why, "no-such-host.invalid"));
	http_client_free(c);
	arena_free(&a);
}

/* A server that closed the kept connection is called over a new one. */
static void test_kept_connection(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	struct arena a = { 0 };
	struct http_answer out;
	struct http_client *c;

	(void)state;
	h = harness_start(NULL);
	c = client(harness_url(h), NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	assert_int_equal(harness_counters(h).accepted, 1);
	http_client_free(c);
	harness_end(h);
	o.limits.idle_ms = o.limits.linger_ms = 50;
	h = harness_start(&o);
	c = client(harness_url(h), NULL);
	assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	WAIT_FOR(harness_counters(h).connections == 0);
	assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	assert_int_equal(harness_counters(h).accepted, 2);
	WAIT_FOR(harness_counters(h).connections == 0);
	/* dropped without an answer */
	assert_int_equal(http_call(c, "GET", "/drop", NULL, none, STR(""), 0, &a, &out),
			 HTTP_UNKNOWN);
	WAIT_FOR(harness_counters(h).connections == 0);
	assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
}

static void test_deadline(void **state)
{
	struct harness *h = harness_start(NULL);
	struct arena a = { 0 };
	struct http_answer out;
	struct http_client *c = client(harness_url(h), NULL);
	int ends[2];

	(void)state;
	assert_int_equal(
		http_call(c, "GET", "/park", NULL, none, STR(""), os_boot_ms() + 50, &a, &out),
		HTTP_UNKNOWN);
	assert_true(out.timed_out);
	WAIT_FOR(harness_tally(h).gone == 1); /* the client has closed */
	http_client_free(c);
	assert_int_equal(pipe(ends), 0);
	c = client(harness_url(h), &(struct http_client_options){ .stop_fd = ends[0] });
	assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(http_call(c, "GET", "/park", NULL, none, STR(""), 0, &a, &out),
			 HTTP_UNKNOWN);
	assert_true(out.stopped);
	http_client_free(c);
	close(ends[0]);
	close(ends[1]);
	arena_free(&a);
	harness_end(h);
}

static void test_answers(void **state)
{
	struct harness *h = harness_start(NULL);
	struct arena a = { 0 };
	struct http_answer out;
	struct http_client *c = client(harness_url(h),
				       &(struct http_client_options){ .answer_max = 1000 });
	struct http_header bad = { STR("X"), STR("a\r\nY: b") };
	char *big = arena_alloc(&a, 2000);

	(void)state;
	/* a redirect is an answer, not an order */
	assert_int_equal(http_call(c, "GET", "/moved", NULL, none, STR(""), 0, &a, &out),
			 HTTP_ANSWERED);
	assert_int_equal(out.status, 302);
	assert_true(str_is(http_header(out.headers, "location"), "/echo"));
	assert_int_equal(http_call(c, "HEAD", "/e", NULL, none, STR(""), 0, &a, &out),
			 HTTP_ANSWERED);
	assert_int_equal(out.body.n, 0);
	/* nothing can be added to the headers, and nothing is sent */
	assert_int_equal(http_call(c, "GET", "/e", NULL, (struct http_headers){ &bad, 1 }, STR(""),
				   0, &a, &out),
			 HTTP_NOT_SENT);
	assert_int_equal(
		http_call(c, "GET", "/e HTTP/1.1\r\nX: y", NULL, none, STR(""), 0, &a, &out),
		HTTP_NOT_SENT);
	memset(big, 'b', 2000);
	assert_int_equal(
		http_call(c, "POST", "/e", "text/plain", none, str_n(big, 2000), 0, &a, &out),
		HTTP_UNKNOWN);
	assert_non_null(strstr(out.why, "too long"));
	/* refused before all of it was read */
	http_client_free(c);
	c = client(harness_url(h), NULL);
	big = arena_alloc(&a, 8 << 20);
	assert_int_equal(
		http_call(c, "POST", "/e", "text/plain", none, str_n(big, 8 << 20), 0, &a, &out),
		HTTP_ANSWERED);
	assert_int_equal(out.status, 413);
	assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	assert_int_equal(out.status, 200);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
}

static void test_feed(void **state)
{
	struct harness *h = harness_start(NULL);
	struct arena a = { 0 };
	struct http_answer out;
	struct http_client *c = client(harness_url(h), NULL);
	static const char *const want[] = { "data: one", "", "data: two", "", "data: three", "" };
	struct str line;

	(void)state;
	for (int again = 0; again < 2; again++) {
		assert_int_equal(
			http_feed_start(c, "GET", "/events", NULL, none, STR(""), 0, &a, &out),
			HTTP_ANSWERED);
		assert_int_equal(out.status, 200);
		for (int i = 0; i < 6; i++) {
			assert_int_equal(http_feed_line(c, 100, 0, &line), 1);
			assert_true(str_is(line, want[i]));
		}
		assert_int_equal(http_feed_line(c, 100, 0, &line), 0);
		http_feed_end(c);
	}
	assert_int_equal(harness_counters(h).accepted, 1);
	assert_int_equal(http_feed_start(c, "GET", "/events", NULL, none, STR(""), 0, &a, &out),
			 HTTP_ANSWERED);
	assert_int_equal(http_feed_line(c, 5, 0, &line), -3);
	http_feed_end(c);
	assert_int_equal(http_feed_line(c, 5, 0, &line), -1);
	assert_int_equal(post(c, &a, &out), HTTP_ANSWERED);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
}

/* ---- a server that answers nonsense */

static void *answer_once(void *ctx)
{
	const void **args = ctx;
	int fd = accept((int)(intptr_t)args[0], NULL, NULL);
	char request[4096];

	if (recv(fd, request, sizeof(request), 0) > 0)
		say(fd, *(const struct str *)args[1]);
	shutdown(fd, SHUT_WR);
	while (recv(fd, request, sizeof(request), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void test_bad_answers(void **state)
{
	static const struct {
		struct str text;
		int status; /* 0: none */
		bool kept;  /* the connection serves the next call */
	} rows[] = {
		{ STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 200, true },
		{ STR("HTTP/1.1 200 OK\r\nConnection: x,Close\r\nContent-Length: 2\r\n\r\nok"), 200,
		  false },
		{ STR("HTTP/1.1 200 OK\r\nConnection: closed\r\nContent-Length: 2\r\n\r\nok"), 200,
		  true },
		{ STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n"
		      "HTTP/1.1 204 No Content\r\n\r\n"),
		  204, true },
		{ STR("HTTP/1.0 502 Bad\r\nContent-Length: 0\r\n\r\n"), 502, false },
		{ STR("HTTP/1.0 502 Bad\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"),
		  502, true },
		{ STR("HTTP/1.1 200 OK\r\n\r\nok"), 0, false }, /* where does it end? */
		{ STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"), 0, false },
		{ STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"), 0,
		  false },
		{ STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		  0, false },
		{ STR("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"), 0, false },
		{ STR("HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 2\r\n\r\nok"), 0, false },
		{ STR("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), 0,
		  false },
		{ STR("HTTP/1.1 2 0 OK\r\nContent-Length: 2\r\n\r\nok"), 0, false },
		{ STR("HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok"), 0, false },
		{ STR("HTTP/2 200\r\nContent-Length: 2\r\n\r\nok"), 0, false },
		{ STR("SSH-2.0-OpenSSH\r\n"), 0, false },
		{ STR("\x15\x03\x01\x00\x02\x02\x46"), 0, false },
		{ STR(""), 0, false },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int port, fd = server_socket(&port);
		const void *args[] = { (void *)(intptr_t)fd, &rows[i].text };
		struct http_answer out;
		struct http_client *c;
		pthread_t thread;
		char url[64];

		assert_int_equal(pthread_create(&thread, NULL, answer_once, args), 0);
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
		c = client(url, NULL);
		if (post(c, &a, &out) != (rows[i].status ? HTTP_ANSWERED : HTTP_UNKNOWN) ||
		    out.status != rows[i].status || (http_client_fd(c) >= 0) != rows[i].kept)
			fail_msg("row %zu: %d %d %s", i, out.fate, out.status, out.why);
		http_client_free(c);
		pthread_join(thread, NULL);
		close(fd);
	}
	arena_free(&a);
}

static void test_urls(void **state)
{
	static const char *const bad[] = {
		"",           "http://",        "http://a/b",  "ftp://a",
		"http://a:0", "http://a:x",     "http://a b",  "unix:",
		"http://u@h", "http://a:99999", "http://[::1", "HTTP://a",
		"http://a?b"
	};
	static const char *const good[][2] = {
		{ "http://LocalHost", "http://localhost:80" },
		{ "https://a.example/", "https://a.example:443" },
		{ "http://[::1]:7295", "http://[::1]:7295" },
		{ "unix:/run/x", "unix:/run/x" },
	};
	struct http_client *c;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (http_client_new(bad[i], NULL, &c, why, sizeof(why)) == 0)
			fail_msg("'%s' is a URL", bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		c = client(good[i][0], NULL);
		assert_string_equal(http_client_origin(c), good[i][1]);
		http_client_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_answers),     cmocka_unit_test(test_reset_answers),
		cmocka_unit_test(test_cut_requests),    cmocka_unit_test(test_not_sent),
		cmocka_unit_test(test_kept_connection), cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_answers),         cmocka_unit_test(test_feed),
		cmocka_unit_test(test_bad_answers),     cmocka_unit_test(test_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
