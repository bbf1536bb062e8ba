/* Connections: kept, pipelined, slow, half-open, parked, too many, drained. */
#include "kit.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include "kit/scale.h"

#define GET(path) STR("GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n")
#define AS(caller, path) \
	STR("GET " path " HTTP/1.1\r\nHost: localhost\r\nAuthorization: " caller "\r\n\r\n")
#define ADDRESS(n) (0x7f000000u + (n)) /* 127.0.0.N */

static void test_keep_alive(void **state)
{
	struct harness *h = harness_start(NULL);
	int fd = dial(h);
	char body[256];

	(void)state;
	for (int i = 0; i < 20; i++) {
		say(fd, GET("/a?b=c"));
		assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
		assert_string_equal(body, "GET /a [b=c] ");
	}
	assert_int_equal(harness_counters(h).accepted, 1);
	assert_int_equal(harness_counters(h).requests, 20);
	say(fd, STR("GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
	assert_true(hear_end(fd));
	close(fd);
	WAIT_FOR(harness_counters(h).connections == 0);
	harness_end(h);
}

static void test_head_has_no_body(void **state)
{
	struct harness *h = harness_start(NULL);
	int fd = dial(h);
	char text[1024], body[256];

	(void)state;
	say(fd, STR("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	hear(fd, text, sizeof(text), 90); /* the rest of the head follows */
	assert_non_null(strstr(text, "HTTP/1.1 200"));
	say(fd, STR("GET /second HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
	hear(fd, text, sizeof(text), 0);
	assert_non_null(strstr(text, "GET /second"));
	assert_null(strstr(text, "HEAD /a"));
	close(fd);
	fd = dial(h);
	say(fd, STR("GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 404); /* in on_head(), and kept */
	say(fd, GET("/third"));
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
	say(fd,
	    STR("POST /never HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nGET / HTT"));
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 404);
	assert_true(hear_end(fd)); /* its body was not read */
	close(fd);
	harness_end(h);
}

/* The first request is parked; the others wait for their turn. */
static void test_pipelined(void **state)
{
	struct harness *h = harness_start(NULL);
	int fd = dial(h);
	char body[256], want[64];
	struct buf text = BUF_MAX(1 << 20);

	(void)state;
	buf_adds(&text, GET("/park"));
	for (int i = 0; i < 200; i++)
		buf_addf(&text,
			 "POST /n%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
			 i);
	say(fd, buf_str(&text));
	WAIT_FOR(harness_tally(h).parked == 1);
	assert_int_equal(harness_counters(h).requests, 1);
	harness_wake(h);
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
	assert_string_equal(body, "woken");
	for (int i = 0; i < 200; i++) {
		assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
		snprintf(want, sizeof(want), "POST /n%d [] abc", i);
		assert_string_equal(body, want);
	}
	buf_free(&text);
	close(fd);
	harness_end(h);
}

/* A peer that sends its requests and closes its side still gets all answers. */
static void test_half_closed(void **state)
{
	struct harness *h = harness_start(NULL);
	int fd = dial(h);
	char text[4096];

	(void)state;
	say(fd, STR("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
		    "GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n"
		    "GET /c HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	shutdown(fd, SHUT_WR);
	hear(fd, text, sizeof(text), 0);
	assert_non_null(strstr(text, "GET /a"));
	assert_non_null(strstr(text, "GET /c"));
	close(fd);
	/* the same in the middle of a request is its end */
	fd = dial(h);
	say(fd, STR("POST /cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc"));
	shutdown(fd, SHUT_WR);
	assert_true(hear_end(fd));
	close(fd);
	fd = dial(h);
	say(fd, STR("GET /cut HTTP/1.1\r\nHost: loc"));
	shutdown(fd, SHUT_WR);
	assert_true(hear_end(fd));
	close(fd);
	WAIT_FOR(harness_counters(h).connections == 0);
	assert_int_equal(harness_counters(h).requests, 3);
	harness_end(h);
}

/* ---- parked exchanges */

static void test_parked_peer_gone(void **state)
{
	struct harness *h = harness_start(NULL);
	int stays = dial(h), closes = dial(h), resets = dial(h), shuts = dial(h);
	struct linger hard = { 1, 0 };
	char body[64];

	(void)state;
	say(stays, GET("/park"));
	say(closes, GET("/park"));
	say(resets, GET("/park"));
	say(shuts, GET("/park"));
	WAIT_FOR(harness_tally(h).parked == 4);
	close(closes);
	WAIT_FOR(harness_tally(h).gone == 1);
	setsockopt(resets, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(resets);
	WAIT_FOR(harness_tally(h).gone == 2);
	shutdown(shuts, SHUT_WR);
	WAIT_FOR(harness_tally(h).gone == 3);
	assert_true(hear_end(shuts));
	close(shuts);
	WAIT_FOR(harness_counters(h).connections == 1);
	assert_int_equal(harness_counters(h).exchanges, 1);
	harness_wake(h);
	assert_int_equal(hear_answer(stays, body, sizeof(body)), 200);
	close(stays);
	harness_end(h);
}

/* Bytes behind a parked request do not hide that the peer closed. */
static void test_parked_with_more(void **state)
{
	struct harness *h = harness_start(NULL);
	struct arena a = { 0 };
	int fd = dial(h);
	char *more = arena_alloc(&a, 50 << 10);

	(void)state;
	memset(more, 'x', 50 << 10);
	say(fd, GET("/park"));
	say(fd, str_n(more, 50 << 10));
	WAIT_FOR(harness_tally(h).parked == 1);
	close(fd);
	WAIT_FOR(harness_tally(h).gone == 1);
	WAIT_FOR(harness_counters(h).connections == 0);
	arena_free(&a);
	harness_end(h);
}

/* A parked exchange has no deadline of its own. */
static void test_parked_long(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int fd, idle;
	char body[64];

	(void)state;
	o.limits.idle_ms = o.limits.body_ms = o.limits.write_ms = 150;
	h = harness_start(&o);
	fd = dial(h);
	idle = dial(h);
	say(fd, GET("/park"));
	WAIT_FOR(harness_tally(h).parked == 1);
	say(idle, GET("/a"));
	assert_int_equal(hear_answer(idle, body, sizeof(body)), 200);
	assert_true(hear_end(idle)); /* its time is over, which is as long as that of the others */
	close(idle);
	assert_int_equal(harness_tally(h).gone, 0);
	harness_wake(h);
	assert_int_equal(hear_answer(fd, body, sizeof(body)), 200);
	close(fd);
	harness_end(h);
}

/* ---- slow peers */

/* Sends the beginning of a request and hears the answer. A test that was held up itself is too late
 * for its first byte, and tries again. */
static void refused_as_slow(struct harness *h, struct str text, const char *reason)
{
	int64_t until = os_boot_ms() + PATIENCE;
	char body[1024];
	int status;

	do {
		int fd = dial(h);

		say(fd, text);
		status = hear_answer(fd, body, sizeof(body));
		if (status)
			assert_true(hear_end(fd));
		close(fd);
	} while (!status && os_boot_ms() < until);
	assert_int_equal(status, 408);
	assert_non_null(strstr(body, reason));
}

/* Sends one byte after the other, until the server has had enough. */
static void drip(struct harness *h, uint64_t timeouts)
{
	int64_t until = os_boot_ms() + PATIENCE;
	int fd = dial(h);

	while (harness_counters(h).timeouts < timeouts) {
		if (send(fd, "G", 1, MSG_NOSIGNAL) <= 0) {
			close(fd);
			fd = dial(h);
		}
		if (os_boot_ms() > until)
			fail_msg("each byte renews the time");
		usleep(5000);
	}
	close(fd);
}

static void test_slow(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int silent;

	(void)state;
	o.limits.head_ms = o.limits.body_ms = 150;
	h = harness_start(&o);
	silent = dial(h);
	assert_true(hear_end(silent)); /* it said nothing, so it hears nothing */
	close(silent);
	refused_as_slow(h, STR("GET / HTTP/1.1\r\nHost: localhost\r\n"),
			"the headers took too long");
	refused_as_slow(h,
			STR("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc"),
			"the body took too long");
	refused_as_slow(
		h, STR("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2"),
		"the body took too long");
	assert_int_equal(harness_counters(h).timeouts, 3);
	drip(h, 4);
	harness_end(h);
}

/* The timer of the head fires while the connection is idle, which may last longer. A test that was held up itself sends
 * its request too late, and tries again. */
static void test_idle(void **state)
{
	struct http_options o = harness_options();
	int64_t until = os_boot_ms() + PATIENCE;
	struct harness *h;
	char body[1024];
	int status;

	(void)state;
	o.limits.head_ms = 150;
	o.limits.idle_ms = 300;
	h = harness_start(&o);
	do {
		int fd = dial(h);

		say(fd, AS("a", "/a"));
		status = hear_answer(fd, body, sizeof(body));
		assert_true(hear_end(fd));
		close(fd);
	} while (status != 200 && os_boot_ms() < until);
	assert_int_equal(status, 200);
	harness_end(h);
}

/* A peer that does not close after a refusal is closed. */
static void test_lingers_no_longer(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int fd;
	char text[1024];

	(void)state;
	o.limits.linger_ms = 150;
	h = harness_start(&o);
	fd = dial(h);
	say(fd, STR("nonsense\r\n"));
	assert_int_equal(hear_answer(fd, text, sizeof(text)), 400);
	WAIT_FOR(harness_counters(h).connections == 0);
	close(fd);
	harness_end(h);
}

static void test_continue(void **state)
{
	struct harness *h = harness_start(NULL);
	int fd = dial(h);
	char text[256];

	(void)state;
	say(fd, STR("POST /e HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
		    "Content-Length: 5\r\n\r\n"));
	hear(fd, text, sizeof(text), 25);
	assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
	say(fd, STR("hello"));
	assert_int_equal(hear_answer(fd, text, sizeof(text)), 200);
	assert_string_equal(text, "POST /e [] hello");
	say(fd, STR("POST /e HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
		    "Content-Length: 5000000\r\n\r\n"));
	assert_int_equal(hear_answer(fd, text, sizeof(text)), 413); /* at once */
	close(fd);
	harness_end(h);
}

/* ---- limits */

static int status_of(int fd, struct str request)
{
	char body[1024];

	say(fd, request);
	return hear_answer(fd, body, sizeof(body));
}

/* The oldest unauthenticated connection of the address makes room. Authenticated ones do not count. */
static void test_per_address(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int caller, fds[5];

	(void)state;
	o.limits.per_address_max = 4;
	h = harness_start(&o);
	caller = dial(h);
	assert_int_equal(status_of(caller, AS("a", "/a")), 200);
	for (int i = 0; i < 5; i++) {
		fds[i] = dial(h);
		WAIT_FOR(harness_counters(h).accepted == (uint64_t)i + 2);
	}
	assert_true(hear_end(fds[0]));
	assert_int_equal(harness_counters(h).unauthenticated, 4);
	assert_int_equal(harness_counters(h).evicted, 1);
	assert_int_equal(status_of(fds[1], GET("/a")), 200);
	assert_int_equal(status_of(fds[4], GET("/a")), 200);
	assert_int_equal(status_of(caller, AS("a", "/a")), 200);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	close(caller);
	harness_end(h);
}

/* The address with the most connections loses its oldest one, so an address with one connection keeps it. */
static void test_unauthenticated_max(void **state)
{
	enum { MANY = 40, ADDRESSES = 4 };
	struct http_options o = harness_options();
	struct harness *h;
	int alone, fds[MANY];

	(void)state;
	o.limits.unauthenticated_max = 10;
	h = harness_start(&o);
	alone = dial_from(h, ADDRESS(9));
	WAIT_FOR(harness_counters(h).accepted == 1);
	for (unsigned i = 0; i < MANY; i++)
		fds[i] = dial_from(h, ADDRESS(2 + i % ADDRESSES));
	WAIT_FOR(harness_counters(h).accepted == MANY + 1);
	assert_int_equal(harness_counters(h).unauthenticated, 10);
	assert_int_equal(harness_counters(h).evicted, MANY + 1 - 10);
	assert_int_equal(status_of(alone, GET("/a")), 200);
	assert_true(hear_end(fds[0]));
	assert_int_equal(status_of(fds[MANY - 1], GET("/a")), 200);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	close(alone);
	WAIT_FOR(harness_counters(h).connections == 0);
	harness_end(h);
}

/* Callers have places of their own. The caller with the most connections loses one that does not wait for an answer. */
static void test_connections_max(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int a[3], b[2], stranger;

	(void)state;
	o.limits.connections_max = 4;
	o.limits.unauthenticated_max = 2;
	h = harness_start(&o);
	for (int i = 0; i < 3; i++) {
		a[i] = dial(h);
		assert_int_equal(status_of(a[i], AS("a", "/a")), 200);
	}
	say(a[0], AS("a", "/park"));
	WAIT_FOR(harness_tally(h).parked == 1);
	for (int i = 0; i < 2; i++) {
		b[i] = dial(h);
		assert_int_equal(status_of(b[i], AS("b", "/a")), 200);
	}
	assert_true(hear_end(a[1])); /* the oldest one that does not wait */
	close(a[1]);
	say(a[2], AS("a", "/park"));
	say(b[0], AS("b", "/park"));
	say(b[1], AS("b", "/park"));
	WAIT_FOR(harness_tally(h).parked == 4);
	assert_int_equal(harness_counters(h).authenticated, 4);
	a[1] = dial(h);
	assert_int_equal(status_of(a[1], AS("a", "/a")), 503);
	stranger = dial(h);
	assert_int_equal(status_of(stranger, GET("/a")), 200);
	close(b[0]);
	WAIT_FOR(harness_counters(h).authenticated == 3);
	assert_int_equal(status_of(a[1], AS("a", "/a")), 200);
	assert_int_equal(status_of(a[1], GET("/a")), 200); /* and it is nobody's again */
	assert_int_equal(harness_counters(h).authenticated, 3);
	close(stranger);
	for (int i = 0; i < 3; i++)
		close(a[i]);
	close(b[1]);
	harness_end(h);
}

/* A caller fills all places with calls that wait, and even with calls under way. Others get in, and it loses the oldest wait. */
static void test_connections_of_one_caller(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int a[5], b;

	(void)state;
	o.limits.connections_max = 4;
	h = harness_start(&o);
	for (int i = 0; i < 4; i++) {
		a[i] = dial(h);
		say(a[i], AS("a", "/park"));
		WAIT_FOR(harness_tally(h).parked == i + 1);
	}
	a[4] = dial(h);
	assert_int_equal(status_of(a[4], AS("a", "/a")), 503);
	b = dial(h);
	assert_int_equal(status_of(b, AS("b", "/a")), 200);
	assert_true(hear_end(a[0]));
	WAIT_FOR(harness_tally(h).gone == 1); /* its handler knows, and gives it nothing */
	assert_int_equal(harness_counters(h).authenticated, 4);
	harness_wake(h);
	for (int i = 0; i < 5; i++)
		close(a[i]);
	close(b);
	harness_end(h);
}

/* A caller with the most connections does not close the connections of others, and nobody loses a body or an answer that is
 * on its way while another connection is idle. */
static void test_largest_caller_keeps_to_itself(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int a[4], b[2];

	(void)state;
	o.limits.connections_max = 5;
	h = harness_start(&o);
	b[0] = dial(h);
	assert_int_equal(status_of(b[0], AS("b", "/a")), 200);
	b[1] = dial(h);
	say(b[1], STR("POST /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: b\r\n"
		      "Content-Length: 5\r\n\r\nab"));
	WAIT_FOR(harness_counters(h).authenticated == 2);
	for (int i = 0; i < 3; i++) {
		a[i] = dial(h);
		say(a[i], AS("a", "/park"));
		WAIT_FOR(harness_tally(h).parked == i + 1);
	}
	a[3] = dial(h);
	assert_int_equal(status_of(a[3], AS("a", "/a")), 503);
	assert_int_equal(status_of(b[1], STR("cde")), 200);
	assert_int_equal(status_of(b[0], AS("b", "/a")), 200);
	harness_wake(h);
	for (int i = 0; i < 4; i++)
		close(a[i]);
	close(b[0]);
	close(b[1]);
	harness_end(h);
}

/* The party with the most connections loses an idle one, although one that sends a body is older. */
static void test_body_under_way_stays(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int a, b[3];

	(void)state;
	o.limits.connections_max = 3;
	h = harness_start(&o);
	b[0] = dial(h);
	say(b[0], STR("POST /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: b\r\n"
		      "Content-Length: 5\r\n\r\nab"));
	WAIT_FOR(harness_counters(h).authenticated == 1);
	for (int i = 1; i < 3; i++) {
		b[i] = dial(h);
		assert_int_equal(status_of(b[i], AS("b", "/a")), 200);
	}
	a = dial(h);
	assert_int_equal(status_of(a, AS("a", "/a")), 200);
	assert_true(hear_end(b[1]));
	assert_int_equal(status_of(b[0], STR("cde")), 200);
	close(a);
	for (int i = 0; i < 3; i++)
		close(b[i]);
	harness_end(h);
}

#define POST_AS(caller, length)                                                           \
	STR("POST /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: " caller "\r\n" length \
	    "\r\n\r\n")

/* The bodies that one caller sends at once have a limit. It does not concern other callers, nor a single body. */
static void test_bodies_of_one_caller(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int a[3], b, again;

	(void)state;
	o.limits.bodies_max = 1000000;
	h = harness_start(&o);
	for (int i = 0; i < 2; i++) {
		a[i] = dial(h);
		say(a[i], POST_AS("a", "Content-Length: 400000"));
		WAIT_FOR(harness_counters(h).authenticated == (uint64_t)i + 1);
	}
	a[2] = dial(h);
	assert_int_equal(status_of(a[2], POST_AS("a", "Content-Length: 400000")), 429);
	again = dial(h);
	assert_int_equal(status_of(again, POST_AS("a", "Transfer-Encoding: chunked")), 429);
	close(again);
	b = dial(h);
	say(b, POST_AS("b", "Content-Length: 1048576"));
	WAIT_FOR(harness_counters(h).authenticated == 3);
	assert_int_equal(harness_counters(h).requests, 0);
	close(a[0]);
	close(a[1]);
	WAIT_FOR(harness_counters(h).authenticated == 1);
	again = dial(h);
	say(again, POST_AS("a", "Content-Length: 1000000"));
	WAIT_FOR(harness_counters(h).authenticated == 2);
	close(again);
	close(a[2]);
	close(b);
	WAIT_FOR(harness_counters(h).connections == 0);
	harness_end(h);
}

/* A handler that knows the answer from the head need not read the body. */
static void test_kept_head(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	char text[1024];
	int fd;

	(void)state;
	o.limits.body_ms = 150;
	h = harness_start(&o);
	fd = dial(h);
	say(fd,
	    STR("POST /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\nabc"));
	WAIT_FOR(harness_tally(h).parked == 1);
	usleep(300000); /* the limit of the body does not count */
	harness_wake(h);
	assert_int_equal(hear_answer(fd, text, sizeof(text)), 200);
	assert_string_equal(text, "woken");
	assert_true(hear_end(fd));
	close(fd);
	fd = dial(h);
	say(fd,
	    STR("POST /later HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"));
	WAIT_FOR(harness_tally(h).parked == 2);
	close(fd);
	WAIT_FOR(harness_tally(h).gone == 1);
	fd = dial(h);
	say(fd, STR("POST /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"));
	assert_int_equal(hear_answer(fd, text, sizeof(text)), 200);
	assert_string_equal(text, "POST /later [] abc");
	close(fd);
	harness_end(h);
}

static void raise_files(size_t n)
{
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, &most);
	if (most.rlim_cur < n && most.rlim_max >= n) {
		most.rlim_cur = n;
		setrlimit(RLIMIT_NOFILE, &most);
	}
}

static size_t heap_now(void)
{
	char line[256];
	size_t kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtoul(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return kib << 10;
}

/* A thousand parked connections, each of them answered, and at most 8 KiB for each. */
static void test_thousand(void **state)
{
	enum { MANY = 1000 };
	struct http_options o = harness_options();
	struct harness *h;
	int *fds = test_calloc(MANY, sizeof(*fds));
	size_t before, after;
	char body[64];

	(void)state;
	raise_files(MANY * 2 + 200);
	o.limits.per_address_max = 0;
	h = harness_start(&o);
	before = heap_now();
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial(h);
		say(fds[i], GET("/park"));
	}
	WAIT_FOR(harness_tally(h).parked == MANY);
	after = heap_now();
	if (SCALE(1, 0) && (after - before) / MANY > 8192)
		fail_msg("%zu bytes for each connection", (after - before) / MANY);
	for (int i = 0; i < MANY; i += 2)
		close(fds[i]);
	WAIT_FOR(harness_tally(h).gone == MANY / 2);
	harness_wake(h);
	for (int i = 1; i < MANY; i += 2) {
		assert_int_equal(hear_answer(fds[i], body, sizeof(body)), 200);
		close(fds[i]);
	}
	WAIT_FOR(harness_counters(h).connections == 0);
	test_free(fds);
	harness_end(h);
}

/* ---- the end */

static void drain(struct harness *h)
{
	http_server_drain(harness_server(h), PATIENCE);
}

static void test_drain(void **state)
{
	struct harness *h = harness_start(NULL);
	int idle = dial(h), parked = dial(h), begun = dial(h);
	char text[1024];

	(void)state;
	say(idle, GET("/a"));
	assert_int_equal(hear_answer(idle, text, sizeof(text)), 200);
	say(parked, GET("/park"));
	say(begun, STR("GET /late HTTP/1.1\r\nHost: local"));
	WAIT_FOR(harness_tally(h).parked == 1 && harness_counters(h).bytes_in > 100);
	harness_do(h, drain);
	assert_true(hear_end(idle));
	close(idle);
	say(begun, STR("host\r\n\r\n"));
	hear(begun, text, sizeof(text), 0);
	assert_non_null(strstr(text, "GET /late"));
	assert_non_null(strstr(text, "Connection: close"));
	close(begun);
	harness_wake(h);
	hear(parked, text, sizeof(text), 0);
	assert_non_null(strstr(text, "woken"));
	assert_non_null(strstr(text, "Connection: close"));
	close(parked);
	harness_end(h); /* the loop has ended by itself */
}

static void test_unix(void **state)
{
	struct harness *h = harness_start(NULL);
	struct http_client *c;
	struct http_answer answer;
	struct arena a = { 0 };
	char why[256], want[64];

	(void)state;
	assert_int_equal(http_client_new(harness_socket(h), NULL, &c, why, sizeof(why)), 0);
	assert_int_equal(http_call(c, "GET", "/who", NULL, (struct http_headers){ NULL, 0 },
				   STR(""), os_boot_ms() + PATIENCE, &a, &answer),
			 HTTP_ANSWERED);
	snprintf(want, sizeof(want), "unix local=1 uid=%d tls=0", (int)getuid());
	assert_string_equal(answer.body.p, want);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_head_has_no_body),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_half_closed),
		cmocka_unit_test(test_parked_peer_gone),
		cmocka_unit_test(test_parked_with_more),
		cmocka_unit_test(test_parked_long),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_lingers_no_longer),
		cmocka_unit_test(test_continue),
		cmocka_unit_test(test_per_address),
		cmocka_unit_test(test_unauthenticated_max),
		cmocka_unit_test(test_connections_max),
		cmocka_unit_test(test_connections_of_one_caller),
		cmocka_unit_test(test_largest_caller_keeps_to_itself),
		cmocka_unit_test(test_body_under_way_stays),
		cmocka_unit_test(test_bodies_of_one_caller),
		cmocka_unit_test(test_kept_head),
		cmocka_unit_test(test_thousand),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_unix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
