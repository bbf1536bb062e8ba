#include "kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/buf.h"

#define PARKED_MAX 6000

struct harness {
	struct http_server *s;
	struct harness **self;
	pthread_t thread;
	int port;
	char url[64], socket[128], dir[64];
	pthread_mutex_t mutex;
	pthread_cond_t done;
	void (*task)(struct harness *h);
	bool task_done;
	/* of the server's thread */
	struct http_exchange *parked[PARKED_MAX];
	size_t parked_count;
	struct tally tally;
	struct http_counters counters;
	struct tally tally_copy;
	struct http_party callers[2]; /* the callers a and b */
};

static const struct http_headers none = { NULL, 0 };

/* ---- handlers */

static void unpark(struct harness *h, struct http_exchange *x)
{
	for (size_t i = 0; i < h->parked_count; i++)
		if (h->parked[i] == x) {
			h->parked[i] = h->parked[--h->parked_count];
			return;
		}
}

static void parked_gone(struct http_exchange *x, void *ctx)
{
	struct harness *h = ctx;

	h->tally.gone++;
	unpark(h, x);
	http_drop(x);
}

static void park(struct harness *h, struct http_exchange *x)
{
	h->tally.parked++;
	h->parked[h->parked_count++] = x;
	http_on_gone(x, parked_gone, h);
}

static void echo(struct http_exchange *x)
{
	const struct http_request *r = http_request_of(x);
	struct buf b = BUF_MAX(64 << 20);

	buf_addf(&b, "%.*s %.*s [%.*s] ", STRF(r->method), STRF(r->path), STRF(r->query));
	buf_adds(&b, r->body);
	http_reply(x, 200, "text/plain", none, buf_str(&b));
	buf_free(&b);
}

static void whoami(struct http_exchange *x)
{
	const struct http_request *r = http_request_of(x);
	struct buf b = BUF_MAX(4096);

	buf_addf(&b, "%.*s local=%d uid=%d tls=%d", STRF(r->address), r->local,
		 r->local ? (int)r->uid : -1, r->tls);
	http_reply(x, 200, "text/plain", none, buf_str(&b));
	buf_free(&b);
}

/* Sends three events, and then ends. */
static void events(struct http_exchange *x)
{
	http_stream_start(x, 200, "text/event-stream", none);
	http_stream_send(x, STR("data: one\n\n"));
	http_stream_send(x, STR("data: two\n\nda"));
	http_stream_send(x, STR("ta: three\r\n\n"));
	http_stream_end(x);
}

/* Sends 64 MiB, or until the peer is dropped. */
static void flood(struct harness *h, struct http_exchange *x)
{
	static char block[32 << 10];

	memset(block, 'x', sizeof(block));
	http_stream_start(x, 200, "text/plain", none);
	while (h->tally.flooded < 64 << 20 && http_stream_send(x, str_n(block, sizeof(block))) >= 0)
		h->tally.flooded += sizeof(block);
	http_stream_end(x);
}

/* Sends as much as the peer takes: 8 MiB in pieces, each when there is room. */
struct pump {
	int left;
};

static void pump_more(struct http_exchange *x, void *ctx)
{
	static char block[64 << 10];
	struct pump *p = ctx;

	memset(block, 'y', sizeof(block));
	if (p->left-- > 0 && http_stream_send(x, str_n(block, sizeof(block))) >= 0) {
		http_stream_on_room(x, 32 << 10, pump_more, p);
		return;
	}
	free(p);
	http_stream_end(x);
}

static void pump_gone(struct http_exchange *x, void *ctx)
{
	free(ctx);
	http_stream_end(x);
}

static void pump_start(struct http_exchange *x)
{
	struct pump *p = mem_alloc(sizeof(*p));

	p->left = 128;
	http_stream_start(x, 200, "text/plain", none);
	http_on_gone(x, pump_gone, p);
	pump_more(x, p);
}

/* The header Authorization names the caller: a or b. false: there is no room for its connection. */
static bool known(struct harness *h, struct http_exchange *x)
{
	struct str name = http_header(http_request_of(x)->headers, "authorization");

	return http_authenticate(x, name.n ? &h->callers[name.p[0] == 'b'] : NULL);
}

static void on_request(struct http_exchange *x, void *ctx)
{
	struct harness *h = *(struct harness **)ctx;
	struct str path = http_request_of(x)->path;

	if (!known(h, x))
		http_refuse(x, 503, "no room");
	else if (str_is(path, "/park"))
		park(h, x);
	else if (str_is(path, "/who"))
		whoami(x);
	else if (str_is(path, "/events"))
		events(x);
	else if (str_is(path, "/flood"))
		flood(h, x);
	else if (str_is(path, "/pump"))
		pump_start(x);
	else if (str_is(path, "/drop"))
		http_drop(x);
	else if (str_is(path, "/moved"))
		http_reply(x, 302, NULL,
			   (struct http_headers){
				   &(struct http_header){ STR("Location"), STR("/echo") }, 1 },
			   STR(""));
	else
		echo(x);
}

static void on_head(struct http_exchange *x, void *ctx)
{
	struct harness *h = *(struct harness **)ctx;
	struct str path = http_request_of(x)->path;

	if (str_is(path, "/large")) {
		http_body_max(x, 64 << 20);
	} else if (str_is(path, "/never")) {
		http_refuse(x, 404, "there is nothing here");
	} else if (str_is(path, "/later") && http_arriving(x)) {
		http_keep(x);
		park(h, x);
	} else if (http_arriving(x)) {
		(void)known(h, x);
	}
}

static void on_log(const struct http_request *request, const char *address, int status,
		   size_t bytes, int64_t took_ms, void *ctx)
{
	struct harness *h = *(struct harness **)ctx;

	(void)request;
	(void)address;
	(void)bytes;
	(void)took_ms;
	h->tally.logged++;
	h->tally.last_status = status;
}

/* ---- the thread */

static void *run(void *ctx)
{
	struct harness *h = ctx;

	http_server_run(h->s);
	return NULL;
}

struct http_options harness_options(void)
{
	return (struct http_options){ .limits = http_limits_default() };
}

struct harness *harness_start(const struct http_options *options)
{
	struct harness *h = test_calloc(1, sizeof(*h)), **self = test_malloc(sizeof(*self));
	struct http_options o = options ? *options : harness_options();
	char why[256];

	*self = h;
	h->self = self;
	o.calls = (struct http_calls){ on_request, on_head, NULL, on_log, self };
	snprintf(h->dir, sizeof(h->dir), "/tmp/pawl-http.XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->socket, sizeof(h->socket), "unix:%s/s", h->dir);
	if (http_server_new(&o, &h->s, why, sizeof(why)) < 0 ||
	    http_server_listen(h->s, "127.0.0.1:0", why, sizeof(why)) < 0 ||
	    http_server_listen(h->s, h->socket, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	snprintf(h->url, sizeof(h->url), "%s", http_server_url(h->s, 0));
	assert_string_equal(http_server_url(h->s, 1), h->socket);
	h->port = (int)strtol(strrchr(h->url, ':') + 1, NULL, 10);
	pthread_mutex_init(&h->mutex, NULL);
	pthread_cond_init(&h->done, NULL);
	assert_int_equal(pthread_create(&h->thread, NULL, run, h), 0);
	return h;
}

static void run_task(void *ctx)
{
	struct harness *h = ctx;

	h->task(h);
	pthread_mutex_lock(&h->mutex);
	h->task_done = true;
	pthread_cond_signal(&h->done);
	pthread_mutex_unlock(&h->mutex);
}

void harness_do(struct harness *h, void (*fn)(struct harness *h))
{
	h->task = fn;
	h->task_done = false;
	http_server_post(h->s, run_task, h);
	pthread_mutex_lock(&h->mutex);
	while (!h->task_done)
		pthread_cond_wait(&h->done, &h->mutex);
	pthread_mutex_unlock(&h->mutex);
}

static void take_counters(struct harness *h)
{
	h->counters = http_counters(h->s);
	h->tally_copy = h->tally;
}

struct http_counters harness_counters(struct harness *h)
{
	harness_do(h, take_counters);
	return h->counters;
}

struct tally harness_tally(struct harness *h)
{
	harness_do(h, take_counters);
	return h->tally_copy;
}

static void wake_all(struct harness *h)
{
	while (h->parked_count)
		http_reply(h->parked[--h->parked_count], 200, "text/plain", none, STR("woken"));
}

void harness_wake(struct harness *h)
{
	harness_do(h, wake_all);
}

static void stop(void *ctx)
{
	struct harness *h = ctx;

	wake_all(h);
	http_server_stop(h->s);
}

void harness_end(struct harness *h)
{
	struct http_counters left;

	http_server_post(h->s, stop, h);
	pthread_join(h->thread, NULL);
	left = http_counters(h->s);
	assert_int_equal(left.exchanges, 0);
	assert_int_equal(left.streams, 0);
	http_server_free(h->s);
	assert_int_equal(access(h->socket + 5, F_OK), -1);
	rmdir(h->dir);
	test_free(h->self);
	test_free(h);
}

struct http_server *harness_server(struct harness *h)
{
	return h->s;
}

const char *harness_url(struct harness *h)
{
	return h->url;
}

const char *harness_socket(struct harness *h)
{
	return h->socket;
}

int harness_port(struct harness *h)
{
	return h->port;
}

/* ---- sockets */

int dial_from(struct harness *h, uint32_t address)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)h->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

int dial_port(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

int dial(struct harness *h)
{
	return dial_port(h->port);
}

void say(int fd, struct str text)
{
	while (text.n) {
		ssize_t n = send(fd, text.p, text.n, MSG_NOSIGNAL);

		if (n <= 0) /* refused during the write: the answer says so */
			return;
		text.p += n;
		text.n -= (size_t)n;
	}
}

/* One read; 0 at the end. A reset counts as the end. */
static size_t listen_once(int fd, char *out, size_t room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, PATIENCE) <= 0)
		fail_msg("the server sends nothing");
	n = recv(fd, out, room, 0);
	return n > 0 ? (size_t)n : 0;
}

size_t hear(int fd, char *out, size_t room, size_t n)
{
	size_t got = 0, more;

	while (got < room - 1 && (!n || got < n)) {
		more = listen_once(fd, out + got, n ? n - got : room - 1 - got);
		if (!more)
			break;
		got += more;
	}
	out[got] = '\0';
	return got;
}

int hear_answer(int fd, char *body, size_t room)
{
	char head[4096], *length;
	size_t n = 0;

	while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0) {
		assert_true(n < sizeof(head) - 1);
		if (!listen_once(fd, head + n, 1))
			return 0;
		head[++n] = '\0';
	}
	length = strstr(head, "Content-Length: ");
	n = length ? strtoul(length + 16, NULL, 10) : 0;
	assert_true(n < room);
	body[0] = '\0';
	if (n)
		assert_int_equal(hear(fd, body, room, n), n);
	return (int)strtol(head + 9, NULL, 10);
}

bool hear_end(int fd)
{
	char byte;

	return listen_once(fd, &byte, 1) == 0;
}

size_t exchange_raw(struct harness *h, struct str text, char *out, size_t room)
{
	int fd = dial(h);
	size_t n;

	say(fd, text);
	n = hear(fd, out, room, 0);
	close(fd);
	return n;
}
