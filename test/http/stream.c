/* Answers in pieces, large bodies, and work from other threads. */
#include "kit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#define GET(path) STR("GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n")

static void test_events(void **state)
{
	struct harness *h = harness_start(NULL);
	int fd = dial(h);
	char text[4096];

	(void)state;
	say(fd, STR("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
		    "GET /after HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
	hear(fd, text, sizeof(text), 0);
	assert_non_null(strstr(text, "Transfer-Encoding: chunked\r\n\r\nb\r\ndata: one\n\n\r\n"));
	assert_non_null(strstr(text, "\r\n0\r\n\r\nHTTP/1.1 200"));
	assert_non_null(strstr(text, "GET /after"));
	close(fd);
	harness_end(h);
}

/* A reader that is too slow is dropped, and the memory for it is bounded. */
static void test_slow_reader(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int fd;

	(void)state;
	o.limits.stream_max = 256 << 10;
	h = harness_start(&o);
	fd = dial(h);
	say(fd, GET("/flood"));
	WAIT_FOR(harness_counters(h).slow_readers == 1);
	assert_true(harness_tally(h).flooded < 32 << 20); /* most of it in the kernel's buffers */
	assert_int_equal(harness_counters(h).streams, 0);
	WAIT_FOR(harness_counters(h).connections == 0);
	close(fd);
	harness_end(h);
}

/* A reader that stops reading is dropped after its time. */
static void test_stalled_reader(void **state)
{
	struct http_options o = harness_options();
	struct harness *h;
	int fd, small = 4096;

	(void)state;
	o.limits.write_ms = 150;
	h = harness_start(&o);
	fd = dial(h);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	say(fd, GET("/pump"));
	WAIT_FOR(harness_counters(h).slow_readers == 1);
	close(fd);
	harness_end(h);
}

static void test_pump(void **state)
{
	struct harness *h = harness_start(NULL);
	struct http_client *c;
	struct http_answer answer;
	struct arena a = { 0 };
	char why[256];

	(void)state;
	assert_int_equal(http_client_new(harness_url(h), NULL, &c, why, sizeof(why)), 0);
	assert_int_equal(http_call(c, "GET", "/pump", NULL, (struct http_headers){ NULL, 0 },
				   STR(""), os_boot_ms() + PATIENCE, &a, &answer),
			 HTTP_ANSWERED);
	assert_int_equal(answer.body.n, 8 << 20);
	assert_int_equal(harness_counters(h).slow_readers, 0);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
}

/* A handler may allow a longer body than others have. */
static void test_large_body(void **state)
{
	struct harness *h = harness_start(NULL);
	struct http_client *c;
	struct http_answer answer;
	struct arena a = { 0 };
	char why[256], *body = arena_alloc(&a, 5 << 20);
	int fd;

	(void)state;
	memset(body, 'u', 5 << 20);
	assert_int_equal(http_client_new(harness_url(h), NULL, &c, why, sizeof(why)), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(http_call(c, "POST", "/large", "application/json",
					   (struct http_headers){ NULL, 0 }, str_n(body, 5 << 20),
					   os_boot_ms() + PATIENCE, &a, &answer),
				 HTTP_ANSWERED);
		assert_int_equal(answer.status, 200);
		assert_int_equal(answer.body.n, strlen("POST /large [] ") + (5 << 20));
	}
	assert_int_equal(harness_counters(h).accepted, 1);
	/* cut in the middle */
	fd = dial(h);
	say(fd, STR("POST /large HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc"));
	close(fd);
	WAIT_FOR(harness_counters(h).exchanges == 0);
	/* refused in the middle */
	fd = dial(h);
	say(fd, STR("POST /large HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "3\r\nabcd"));
	assert_int_equal(hear_answer(fd, why, sizeof(why)), 400);
	close(fd);
	assert_int_equal(harness_counters(h).exchanges, 0);
	assert_int_equal(harness_counters(h).requests, 2);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
}

/* ---- the loop */

static int order[3000], ordered;

static void note(void *arg)
{
	order[ordered++] = (int)(intptr_t)arg;
}

static void *post_many(void *ctx)
{
	struct harness *h = ctx;

	for (int i = 0; i < 1000; i++)
		http_server_post(harness_server(h), note, (void *)(intptr_t)i);
	return NULL;
}

static void nothing(struct harness *h)
{
	(void)h;
}

static void test_post(void **state)
{
	struct harness *h = harness_start(NULL);
	pthread_t threads[3];
	long sum = 0;

	(void)state;
	ordered = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, h), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	harness_do(h, nothing);
	assert_int_equal(ordered, 3000);
	for (int i = 0; i < 3000; i++)
		sum += order[i];
	assert_int_equal(sum, 3L * 999 * 1000 / 2);
	harness_end(h);
}

static int rang, signaled;

static void ring(void *ctx)
{
	rang++;
	http_server_stop(ctx);
}

static void never(void *ctx)
{
	(void)ctx;
	rang = -100;
}

static void hear_signal(void *ctx)
{
	(void)ctx;
	signaled++;
}

static void test_timers_and_watches(void **state)
{
	struct http_options o = harness_options();
	struct http_server *s;
	struct http_timer *t;
	struct http_watch *on_signal;
	char why[256];

	(void)state;
	o.calls.on_request = NULL;
	assert_int_equal(http_server_new(&o, &s, why, sizeof(why)), 0);
	t = http_timer_start(s, 10, never, NULL);
	http_timer_start(s, 30, ring, s);
	on_signal = http_watch_signal(s, SIGHUP, hear_signal, NULL);
	http_timer_cancel(t);
	raise(SIGHUP);
	http_server_run(s);
	assert_int_equal(rang, 1);
	assert_int_equal(signaled, 1);
	http_watch_end(on_signal);
	http_server_stop(s); /* before the start */
	http_server_run(s);
	http_server_drain(s, PATIENCE); /* there is nothing to wait for */
	http_server_run(s);
	http_server_free(s);
}

/* ---- an answer that comes after the end of the server */

static struct http_exchange *late[2];
static size_t late_count, late_gone;

static void keep_gone(struct http_exchange *x, void *ctx)
{
	(void)x;
	(void)ctx;
	late_gone++;
}

static void keep(struct http_exchange *x, void *ctx)
{
	late[late_count++] = x;
	http_on_gone(x, keep_gone, NULL);
	if (late_count == 2)
		http_server_stop(*(struct http_server **)ctx);
}

static void test_answer_after_the_end(void **state)
{
	struct http_server *s;
	struct http_options o = harness_options();
	char why[256];
	int port, one, two;

	(void)state;
	o.calls = (struct http_calls){ .on_request = keep, .ctx = &s };
	assert_int_equal(http_server_new(&o, &s, why, sizeof(why)), 0);
	assert_int_equal(http_server_listen(s, "127.0.0.1:0", why, sizeof(why)), 0);
	port = (int)strtol(strrchr(http_server_url(s, 0), ':') + 1, NULL, 10);
	one = dial_port(port);
	two = dial_port(port);
	say(one, GET("/a"));
	say(two, GET("/b"));
	http_server_run(s);
	assert_int_equal(late_count, 2);
	http_server_post(s, never, NULL); /* is discarded */
	http_server_free(s);
	assert_int_equal(late_gone, 2);
	assert_true(http_gone(late[0]));
	http_reply(late[0], 200, NULL, (struct http_headers){ NULL, 0 }, STR("too late"));
	http_stream_start(late[1], 200, NULL, (struct http_headers){ NULL, 0 });
	assert_int_equal(http_stream_send(late[1], STR("too late")), -1);
	http_stream_end(late[1]);
	assert_true(hear_end(one));
	close(one);
	close(two);
}

/* ---- a peer that has gone before its request is handed over */

static size_t early_gone;

static void stop(void *server)
{
	http_server_stop(server);
}

static void answer_gone(struct http_exchange *x, void *ctx)
{
	(void)ctx;
	http_reply(x, 200, NULL, (struct http_headers){ NULL, 0 }, STR("a"));
}

static void drop_gone(struct http_exchange *x, void *ctx)
{
	(*(size_t *)ctx)++;
	http_drop(x);
}

/* The answer of /a is due when the peer closes. Only then /b is handed over, for a peer that has gone. */
static void on_two(struct http_exchange *x, void *ctx)
{
	if (str_is(http_request_of(x)->path, "/a")) {
		http_on_gone(x, answer_gone, NULL);
		return;
	}
	assert_true(http_gone(x));
	http_server_post(*(struct http_server **)ctx, stop, *(struct http_server **)ctx);
	http_on_gone(x, drop_gone, &early_gone);
}

static void test_gone_before(void **state)
{
	struct http_server *s;
	struct http_options o = harness_options();
	char why[256];
	int fd;

	(void)state;
	o.calls = (struct http_calls){ .on_request = on_two, .ctx = &s };
	assert_int_equal(http_server_new(&o, &s, why, sizeof(why)), 0);
	assert_int_equal(http_server_listen(s, "127.0.0.1:0", why, sizeof(why)), 0);
	fd = dial_port((int)strtol(strrchr(http_server_url(s, 0), ':') + 1, NULL, 10));
	say(fd, GET("/a"));
	say(fd, GET("/b"));
	shutdown(fd, SHUT_WR);
	http_server_run(s);
	assert_int_equal(early_gone, 1);
	http_server_free(s);
	close(fd);
}

/* ---- addresses */

static void test_listen(void **state)
{
	struct http_options o = harness_options();
	struct http_server *s, *other;
	char why[256], where[64];
	static const char *const bad[] = {
		"",       "7295",  "127.0.0.1", "127.0.0.1:",   "127.0.0.1:x", "127.0.0.1:65536",
		"::1:80", "[::1]", "[::x]:80",  "host name:80", "unix:",       "a:1:2"
	};

	(void)state;
	assert_int_equal(http_server_new(&o, &s, why, sizeof(why)), 0);
	assert_int_equal(http_server_new(&o, &other, why, sizeof(why)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = '\0';
		if (http_server_listen(s, bad[i], why, sizeof(why)) == 0 || !why[0])
			fail_msg("listens on '%s'", bad[i]);
	}
	assert_int_equal(http_server_listen(s, "localhost:0", why, sizeof(why)), 0);
	snprintf(where, sizeof(where), "127.0.0.1:%s", strrchr(http_server_url(s, 0), ':') + 1);
	if (strstr(http_server_url(s, 0), "127.0.0.1")) {
		assert_int_equal(http_server_listen(other, where, why, sizeof(why)), -1);
		assert_non_null(strstr(why, "in use"));
	}
	assert_string_equal(http_server_url(s, 1), "");
	http_server_free(s);
	http_server_free(other);
}

/* A socket file that is left over is replaced; one in use, or another file, is not. */
static void test_socket_file(void **state)
{
	struct http_options o = harness_options();
	struct http_server *s, *other;
	char dir[] = "/tmp/pawl-http.XXXXXX", where[64], why[256];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(where, sizeof(where), "unix:%s/s", dir);
	assert_int_equal(http_server_new(&o, &s, why, sizeof(why)), 0);
	assert_int_equal(http_server_new(&o, &other, why, sizeof(why)), 0);
	f = fopen(where + 5, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(http_server_listen(s, where, why, sizeof(why)), -1);
	assert_int_equal(unlink(where + 5), 0);
	assert_int_equal(http_server_listen(s, where, why, sizeof(why)), 0);
	assert_int_equal(http_server_listen(other, where, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "in use"));
	/* a server that was killed leaves its file */
	char kept[80];
	snprintf(kept, sizeof(kept), "%s/kept", dir);
	assert_int_equal(link(where + 5, kept), 0);
	http_server_free(s);
	assert_int_equal(rename(kept, where + 5), 0);
	assert_int_equal(http_server_listen(other, where, why, sizeof(why)), 0);
	http_server_free(other);
	assert_int_equal(rmdir(dir), 0);
}

static void test_inherited(void **state)
{
	char pid[16];

	(void)state;
	assert_int_equal(http_inherited(), 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "2", 1);
	assert_int_equal(http_inherited(), 2);
	assert_null(getenv("LISTEN_FDS"));
	setenv("LISTEN_PID", "1", 1);
	setenv("LISTEN_FDS", "2", 1);
	assert_int_equal(http_inherited(), 0);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "-2", 1);
	assert_int_equal(http_inherited(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_stalled_reader),
		cmocka_unit_test(test_pump),
		cmocka_unit_test(test_large_body),
		cmocka_unit_test(test_post),
		cmocka_unit_test(test_timers_and_watches),
		cmocka_unit_test(test_answer_after_the_end),
		cmocka_unit_test(test_gone_before),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_socket_file),
		cmocka_unit_test(test_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
