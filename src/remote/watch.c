/*
 * Waiting for changes. A second connection has a stream with a line for each change (GET /v1/events?wake=1). The
 * descriptor that callers wait for is a set of this connection and a timer. The timer makes the set readable after each
 * new connection, because a change may have come before it, and when the server has sent nothing for too long. While
 * there is no stream, callers poll.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/os.h"
#include "remote/remote.h"

#define SILENT_MS 45000 /* the server sends a line every 15 s */
#define OPEN_MS 3000    /* a caller has other work to do */
#define PAUSE_MS 500    /* between two attempts to open the stream */
#define PAUSE_MAX_MS 30000
#define LINE_MAX_BYTES (64u << 10)
#define LINES_MAX 1000  /* read at once: the caller must come back to its heartbeats */
#define UNUSED_MS 20000 /* longer than the pause between two lines: nobody waits any more */

static void set_timer(const struct watch *w, int64_t ms)
{
	struct itimerspec at = { .it_value = { .tv_sec = ms / 1000,
					       .tv_nsec = ms % 1000 * 1000000 + 1 } };

	(void)timerfd_settime(w->timer, 0, &at, NULL);
}

static bool remote_watch_add(const struct watch *w, int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP };

	return fd >= 0 && (epoll_ctl(w->set, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EEXIST);
}

/* Makes the client and the descriptors, once. */
static bool remote_watch_prepare(struct far_queue *r)
{
	struct watch *w = &r->watch;
	char why[400];

	if (w->http)
		return true;
	if (w->set < 0)
		w->set = epoll_create1(EPOLL_CLOEXEC);
	if (w->timer < 0) {
		w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
		if (w->timer >= 0 && !remote_watch_add(w, w->timer)) {
			close(w->timer);
			w->timer = -1;
		}
	}
	return w->set >= 0 && w->timer >= 0 && !remote_client(r, &w->http, why, sizeof(why));
}

static bool is_stream(const struct http_answer *h)
{
	struct str type = http_header(h->headers, "content-type");

	return h->status == 200 &&
	       str_eq_nocase(str_trim(str_cut(&type, ';')), STR("text/event-stream"));
}

static bool open_stream(struct far_queue *r)
{
	struct watch *w = &r->watch;
	struct arena a = { 0 };
	struct answer ignored = { 0 };
	struct http_answer h;
	bool opened = false;

	if (remote_watch_prepare(r) && remote_bearer(r, &ignored) == SUCCESS) {
		const char *target =
			arena_printf(&a, "/v1/events?wake=1%s%s", *r->queue ? "&" : "", r->queue).p;
		struct http_header bearer = { STR("Authorization"),
					      arena_printf(&a, "Bearer %.*s", STRF(r->bearer)) };

		http_client_prove(w->http, r->proof, r->insecure);
		opened = http_feed_start(w->http, "GET", target, NULL,
					 (struct http_headers){ &bearer, r->bearer.n > 0 }, STR(""),
					 os_boot_ms() + OPEN_MS, &a, &h) == HTTP_ANSWERED &&
			 is_stream(&h) && remote_watch_add(w, http_client_fd(w->http));
		if (!opened)
			http_feed_end(w->http);
	}
	arena_free(&a);
	return opened;
}

/* The next attempt comes after a pause, unless the stream was of use. */
static void end_stream(struct watch *w, bool useful)
{
	w->open = false;
	w->pause_ms = useful                           ? 0
		      : !w->pause_ms                   ? PAUSE_MS
		      : w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2
						       : PAUSE_MAX_MS;
	w->again_at = os_boot_ms() + w->pause_ms;
}

int remote_wake_fd(struct far_queue *r)
{
	struct watch *w = &r->watch;

	w->asked_at = os_boot_ms();
	if (w->open)
		return w->set;
	if (os_boot_ms() < w->again_at)
		return -1;
	if (!open_stream(r)) {
		end_stream(w, false);
		return -1;
	}
	w->open = w->fresh = true;
	w->heard = false;
	set_timer(w, 0);
	return w->set;
}

void remote_woken(struct far_queue *r)
{
	struct watch *w = &r->watch;
	bool fresh = w->fresh, silent;
	struct str line;
	uint64_t count;
	int n, lines = 0;

	if (!w->open)
		return;
	w->asked_at = os_boot_ms();
	silent = read(w->timer, &count, sizeof(count)) > 0 && !fresh;
	while ((n = http_feed_line(w->http, LINE_MAX_BYTES, os_boot_ms(), &line)) == 1) {
		w->heard = true;
		silent = false;
		if (++lines == LINES_MAX)
			break;
	}
	w->fresh = n == 1; /* more lines may be in memory, which makes no descriptor readable */
	if (n == 1 || (n == -2 && !silent)) {
		set_timer(w, n == 1 ? 0 : SILENT_MS);
		return;
	}
	http_feed_end(w->http);
	end_stream(w, w->heard);
}

/* A stream that nobody reads keeps a connection and one of the waits of its token. */
void remote_watch_rest(struct far_queue *r)
{
	struct watch *w = &r->watch;

	if (!w->open || os_boot_ms() - w->asked_at < UNUSED_MS)
		return;
	http_feed_end(w->http);
	end_stream(w, true);
}

void remote_watch_sleep(struct far_queue *r, int64_t ms)
{
	struct pollfd p = { .fd = r->watch.open ? r->watch.set : -1, .events = POLLIN };

	if (poll(&p, 1, (int)(ms < 60000 ? ms : 60000)) > 0)
		remote_woken(r);
}

void remote_watch_end(struct watch *w)
{
	http_client_free(w->http);
	if (w->timer >= 0)
		close(w->timer);
	if (w->set >= 0)
		close(w->set);
}
