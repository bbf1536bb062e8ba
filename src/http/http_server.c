/*
 * The server's event loop: start, stop, drain, and work posted by other threads. One thread owns the loop. Only the posted
 * list is shared, and its mutex also keeps the server from being freed before a post has woken the loop.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/os.h"
#include "base/secret.h"
#include "http/http_private.h"

struct http_limits http_limits_default(void)
{
	return (struct http_limits){
		.head_max = 16 << 10,
		.header_count_max = 100,
		.body_max = 1 << 20,
		.head_ms = 10000,
		.body_ms = 30000,
		.write_ms = 30000,
		.idle_ms = 75000,
		.connections_max = 4096,
		.unauthenticated_max = 1024,
		.per_address_max = 64,
		.bodies_max = 128 << 20,
		.stream_max = 1 << 20,
		.linger_ms = 2000,
	};
}

static struct timeval http_server_span(int64_t ms)
{
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

/* ---- work from other threads */

static void run_posted(evutil_socket_t fd, short what, void *ctx)
{
	struct http_server *s = ctx;
	struct posted *p;
	uint64_t n;
	ssize_t ignored = read(fd, &n, sizeof(n));

	(void)ignored;
	(void)what;
	pthread_mutex_lock(&s->mutex);
	p = s->first;
	s->first = NULL;
	s->last = &s->first;
	pthread_mutex_unlock(&s->mutex);
	while (p) {
		struct posted *next = p->next;

		p->fn(p->arg);
		free(p);
		p = next;
	}
}

void http_server_post(struct http_server *s, void (*fn)(void *arg), void *arg)
{
	struct posted *p = mem_alloc(sizeof(*p));
	bool was_empty;

	*p = (struct posted){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&s->mutex);
	was_empty = !s->first;
	*s->last = p;
	s->last = &p->next;
	if (was_empty) { /* under the mutex: the server is not freed before the write */
		uint64_t one = 1;
		ssize_t ignored = write(s->wake_fd, &one, sizeof(one));

		(void)ignored;
	}
	pthread_mutex_unlock(&s->mutex);
}

/* ---- start and end */

static bool start_loop(struct http_server *s)
{
	struct event_config *config = event_config_new();

	if (!config)
		return false;
	/* one thread calls libevent; http_server_post() has a lock of its own */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	s->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!s->base)
		return false;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return false;
	s->wake = event_new(s->base, s->wake_fd, EV_READ | EV_PERSIST, run_posted, s);
	return s->wake && event_add(s->wake, NULL) == 0;
}

static char *http_server_copy(const char *text)
{
	size_t n = strlen(text) + 1;

	return memcpy(mem_alloc(n), text, n);
}

int http_server_new(const struct http_options *options, struct http_server **out, char *why,
		    size_t room)
{
	struct http_server *s = mem_alloc(sizeof(*s));

	signal(SIGPIPE, SIG_IGN); /* libevent writes to sockets whose peer may be gone */
	memset(s, 0, sizeof(*s));
	s->options = *options;
	s->last = &s->first;
	s->wake_fd = -1;
	s->count.accepting = true;
	s->seed = (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX);
	pthread_mutex_init(&s->mutex, NULL);
	*out = NULL;
	if (!start_loop(s)) {
		snprintf(why, room, "cannot start the event loop: %s", strerror(errno));
		http_server_free(s);
		return -1;
	}
	if (options->tls_cert) {
		s->tls_cert = http_server_copy(options->tls_cert);
		s->tls_key = http_server_copy(options->tls_key ? options->tls_key
							       : options->tls_cert);
		if (http_server_reload_tls(s, why, room) < 0) {
			http_server_free(s);
			return -1;
		}
	}
	*out = s;
	return 0;
}

int http_server_reload_tls(struct http_server *s, char *why, size_t room)
{
	struct tls_context *fresh;

	if (!s->tls_cert)
		return 0;
	if (tls_context_new(s->tls_cert, s->tls_key, &fresh, why, room) < 0)
		return -1;
	tls_context_free(s->tls);
	s->tls = fresh;
	return 0;
}

static void event_end(struct event *e)
{
	if (e)
		event_free(e);
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	listen_end(s);
	while (s->conns)
		conn_close(s->conns);
	for (struct http_exchange *x = s->exchanges, *next; x; x = next) {
		next = x->next;
		x->s = NULL;
		x->next = NULL;
		x->prev = NULL;
	}
	pthread_mutex_lock(&s->mutex);
	for (struct posted *p = s->first, *next; p; p = next) {
		next = p->next;
		free(p);
	}
	pthread_mutex_unlock(&s->mutex);
	event_end(s->wake);
	event_end(s->pause);
	event_end(s->drain_end);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	tls_context_free(s->tls);
	if (s->base) {
		/* libevent frees a deferred buffer only after its callback, so run those callbacks */
		event_base_loop(s->base, EVLOOP_NONBLOCK);
		event_base_free(s->base);
	}
	pthread_mutex_destroy(&s->mutex);
	free(s->tls_cert);
	free(s->tls_key);
	free(s);
}

/* ---- the loop */

void http_server_run(struct http_server *s)
{
	if (!s->stopped) /* http_server_stop() may have been called before the loop began */
		event_base_loop(s->base, EVLOOP_NO_EXIT_ON_EMPTY);
	s->stopped = false;
}

void http_server_stop(struct http_server *s)
{
	s->stopped = true;
	event_base_loopbreak(s->base);
}

static void drain_over(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	http_server_stop(ctx);
}

void server_drained(struct http_server *s)
{
	if (!s->draining || s->count.exchanges)
		return;
	for (const struct conn *c = s->conns; c; c = c->next)
		if (c->phase != PHASE_LINGER)
			return;
	http_server_stop(s);
}

void http_server_drain(struct http_server *s, int64_t ms)
{
	struct timeval after = http_server_span(ms);

	if (s->draining)
		return;
	s->draining = true;
	listen_end(s);
	s->drain_end = event_new(s->base, -1, 0, drain_over, s);
	if (s->drain_end)
		event_add(s->drain_end, &after);
	conn_drain(s);
	server_drained(s);
}

bool http_server_draining(const struct http_server *s)
{
	return s->draining;
}

struct http_counters http_counters(const struct http_server *s)
{
	return s->count;
}

/* ---- accepting */

static void accept_switch(struct http_server *s, bool on)
{
	if (s->count.accepting == on)
		return;
	s->count.accepting = on;
	for (size_t i = 0; i < s->listener_count; i++) {
		if (on)
			evconnlistener_enable(s->listeners[i].ev);
		else
			evconnlistener_disable(s->listeners[i].ev);
	}
}

void server_accept_more(struct http_server *s)
{
	if (!s->draining)
		accept_switch(s, true);
	server_drained(s);
}

static void pause_over(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	server_accept_more(ctx);
}

void server_accept_later(struct http_server *s)
{
	struct timeval soon = http_server_span(100);

	accept_switch(s, false);
	if (!s->pause)
		s->pause = event_new(s->base, -1, 0, pause_over, s);
	if (s->pause)
		event_add(s->pause, &soon);
}

void http_server_limit(struct http_server *s, const struct http_limits *limits)
{
	s->options.limits = *limits;
}

/* ---- the Date header, formatted at most once per second */

const char *server_date(struct http_server *s)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t now = (time_t)(os_wall_ms() / 1000);
	struct tm t;

	if (s->date_at == now || !gmtime_r(&now, &t))
		return s->date;
	s->date_at = now;
	snprintf(s->date, sizeof(s->date), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
		 days + 3 * t.tm_wday, t.tm_mday, months + 3 * t.tm_mon, (t.tm_year + 1900) % 10000,
		 t.tm_hour, t.tm_min, t.tm_sec);
	return s->date;
}
