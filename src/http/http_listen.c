/*
 * Listening sockets: TCP, Unix, and those inherited from systemd. A socket file gets mode 0600 before bind(), so no other user
 * can connect in between, and only a file that no process listens on is replaced. When descriptors run out, the server
 * first closes unauthenticated connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "http/address.h"
#include "http/http_private.h"

static void http_listen_accepted(struct evconnlistener *ev, evutil_socket_t fd,
				 struct sockaddr *address, int length, void *ctx)
{
	(void)ev;
	conn_accept(ctx, fd, address, length);
}

static void accept_failed(struct evconnlistener *ev, void *ctx)
{
	struct listener *l = ctx;

	(void)ev;
	if (!admit_room(l->s))
		server_accept_later(l->s);
}

/* ---- the listener's URL */

static void name_inet(struct listener *l, const struct sockaddr_storage *at)
{
	char text[INET6_ADDRSTRLEN] = "";
	const char *scheme = l->s->tls_cert ? "https" : "http";

	if (at->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *)at;

		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		snprintf(l->url, sizeof(l->url), "%s://[%s]:%d", scheme, text,
			 ntohs(v6->sin6_port));
	} else {
		const struct sockaddr_in *v4 = (const void *)at;

		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(l->url, sizeof(l->url), "%s://%s:%d", scheme, text, ntohs(v4->sin_port));
	}
}

static int name_listener(struct listener *l, int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t n = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return -1;
	if (at.ss_family == AF_UNIX) {
		const struct sockaddr_un *un = (const void *)&at;

		l->local = true;
		snprintf(l->url, sizeof(l->url), "unix:%.*s", (int)sizeof(un->sun_path),
			 un->sun_path);
		return 0;
	}
	if (at.ss_family != AF_INET && at.ss_family != AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	name_inet(l, &at);
	return 0;
}

int http_server_listen_fd(struct http_server *s, int fd, char *why, size_t room)
{
	struct listener *l = &s->listeners[s->listener_count];
	int on = 0;
	socklen_t n = sizeof(on);

	if (s->listener_count == LISTENERS_MAX) {
		snprintf(why, room, "there are more than %d addresses to listen on", LISTENERS_MAX);
		return -1;
	}
	memset(l, 0, sizeof(*l));
	l->s = s;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) < 0 || name_listener(l, fd) < 0) {
		snprintf(why, room, "descriptor %d is not a socket: %s", fd, strerror(errno));
		return -1;
	}
	if (!on) {
		snprintf(why, room, "descriptor %d does not listen", fd);
		return -1;
	}
	evutil_make_socket_nonblocking(fd);
	evutil_make_socket_closeonexec(fd);
	l->ev = evconnlistener_new(s->base, http_listen_accepted, l,
				   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!l->ev) {
		snprintf(why, room, "cannot listen on %s: %s", l->url, strerror(errno));
		return -1;
	}
	evconnlistener_set_error_cb(l->ev, accept_failed);
	s->listener_count++;
	return 0;
}

/* ---- sockets that we open */

static int listen_failed(int fd, const char *where, char *why, size_t room)
{
	snprintf(why, room, "cannot listen on %s: %s", where, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Removes a socket file that no process listens on: a killed server left it. */
static int remove_stale(const struct sockaddr_un *at)
{
	struct stat st;
	int fd, failed;

	if (lstat(at->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	failed = connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 ? errno : 0;
	close(fd);
	if (failed == ECONNREFUSED)
		return unlink(at->sun_path);
	errno = failed && failed != EAGAIN ? failed : EADDRINUSE;
	return -1;
}

static int listen_unix(struct http_server *s, const char *path, char *why, size_t room)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = -1, n = snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);

	if (n <= 0 || (size_t)n >= sizeof(at.sun_path)) {
		snprintf(why, room, "the path of a socket has 1 to %zu bytes: %s",
			 sizeof(at.sun_path) - 1, path);
		return -1;
	}
	if (remove_stale(&at) < 0)
		return listen_failed(fd, path, why, room);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* the file gets the socket's mode; a chmod after bind() would come too late */
	if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return listen_failed(fd, path, why, room);
	if (http_server_listen_fd(s, fd, why, room) < 0) {
		close(fd);
		unlink(path);
		return -1;
	}
	memcpy(s->listeners[s->listener_count - 1].path, at.sun_path, sizeof(at.sun_path));
	return 0;
}

static int listen_at(const struct addrinfo *at)
{
	int on = 1, fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), failed;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	failed = errno;
	close(fd);
	errno = failed;
	return -1;
}

static int listen_inet(struct http_server *s, const char *where, char *why, size_t room)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	struct http_place place;
	int fd = -1, failed;

	if (!http_place_parse(str_c(where), -1, &place)) {
		snprintf(why, room, "'%s' is not HOST:PORT, [ADDRESS]:PORT or unix:PATH", where);
		return -1;
	}
	failed = getaddrinfo(place.host, place.port, &hints, &found);
	if (failed) {
		snprintf(why, room, "cannot listen on %s: %s", where, gai_strerror(failed));
		return -1;
	}
	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
		fd = listen_at(at);
	freeaddrinfo(found);
	if (fd < 0)
		return listen_failed(fd, where, why, room);
	if (http_server_listen_fd(s, fd, why, room) == 0)
		return 0;
	close(fd);
	return -1;
}

int http_server_listen(struct http_server *s, const char *where, char *why, size_t room)
{
	struct str rest = str_c(where);

	if (str_cut_prefix(&rest, STR("unix:")))
		return listen_unix(s, rest.p, why, room);
	return listen_inet(s, where, why, room);
}

void listen_end(struct http_server *s)
{
	for (size_t i = 0; i < s->listener_count; i++) {
		struct listener *l = &s->listeners[i];

		evconnlistener_free(l->ev);
		if (l->path[0])
			unlink(l->path);
	}
	s->listener_count = 0;
}

const char *http_server_url(struct http_server *s, size_t i)
{
	return i < s->listener_count ? s->listeners[i].url : "";
}

int http_inherited(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t owner, n = 0;

	if (!pid || !fds || !str_to_i64(str_c(pid), &owner) || owner != getpid() ||
	    !str_to_i64(str_c(fds), &n) || n < 0 || n > LISTENERS_MAX)
		n = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return (int)n;
}

/* --- loop ------------------------------------------------------------------------------------- */

/* Timers, deferred calls and signals that the server's caller adds to the loop. A timer frees itself before it calls fn, so fn
 * may start another one; the caller must not cancel it after that. */

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

/* libevent appends the event to its list of ready events, so input that is ready now is read first. */
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
