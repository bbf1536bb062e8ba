/* Timers, descriptors and signals of the server's caller. */
#include <stdlib.h>

#include "base/arena.h"
#include "http/http_private.h"

struct http_timer {
	struct event event;
	void (*fn)(void *ctx);
	void *ctx;
};

struct http_later {
	struct event event;
	void (*fn)(void *ctx);
	void *ctx;
};

struct http_watch {
	struct event event;
	void (*fn)(void *ctx);
	void *ctx;
};

static void timer_over(evutil_socket_t fd, short what, void *ctx)
{
	struct http_timer *t = ctx;
	void (*fn)(void *ctx) = t->fn;
	void *arg = t->ctx;

	(void)fd;
	(void)what;
	free(t);
	fn(arg);
}

struct http_timer *http_timer_start(struct http_server *s, int64_t ms, void (*fn)(void *ctx),
				    void *ctx)
{
	struct http_timer *t = mem_alloc(sizeof(*t));
	struct timeval after = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	t->fn = fn;
	t->ctx = ctx;
	event_assign(&t->event, s->base, -1, 0, timer_over, t);
	event_add(&t->event, &after);
	return t;
}

void http_timer_cancel(struct http_timer *t)
{
	if (t)
		event_del(&t->event);
	free(t);
}

static void later_now(evutil_socket_t fd, short what, void *ctx)
{
	struct http_later *l = ctx;

	(void)fd;
	(void)what;
	l->fn(l->ctx);
}

struct http_later *http_later_new(struct http_server *s, void (*fn)(void *ctx), void *ctx)
{
	struct http_later *l = mem_alloc(sizeof(*l));

	l->fn = fn;
	l->ctx = ctx;
	event_assign(&l->event, s->base, -1, 0, later_now, l);
	return l;
}

/* The event joins the end of the list of events that are ready. */
void http_later_call(struct http_later *l)
{
	event_active(&l->event, EV_TIMEOUT, 0);
}

void http_later_free(struct http_later *l)
{
	if (l)
		event_del(&l->event);
	free(l);
}

static void http_loop_seen(evutil_socket_t fd, short what, void *ctx)
{
	struct http_watch *w = ctx;

	(void)fd;
	(void)what;
	w->fn(w->ctx);
}

struct http_watch *http_watch_signal(struct http_server *s, int signo, void (*fn)(void *ctx),
				     void *ctx)
{
	struct http_watch *w = mem_alloc(sizeof(*w));

	w->fn = fn;
	w->ctx = ctx;
	event_assign(&w->event, s->base, signo, EV_SIGNAL | EV_PERSIST, http_loop_seen, w);
	event_add(&w->event, NULL);
	return w;
}

void http_watch_end(struct http_watch *w)
{
	if (w)
		event_del(&w->event);
	free(w);
}
