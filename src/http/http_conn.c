/*
 * One connection of the server. A peer that stalls must not keep its place: each state that waits for the peer has a limit.
 *
 *             conn_accept()
 *                  |
 *                  v  begin_head()       begin_body()       hand_over(), conn_keep()
 *      +-------> IDLE -----------> HEAD -----------> BODY -------------------------> ANSWER
 *      |           |                 |               |  |                            |  |
 *      +-----------(-----------------(---------------+--(----------------------------+  |
 *   conn_answered():                 |                  |                               |
 *   keep-alive     |                 |                  |                               |
 *                  +-----------------+---------+--------+-------------------------------+
 *                                              | http_conn_finish()
 *                                              v
 *                                            FLUSH -----------> LINGER -------------> (closed)
 *                                                    http_conn_linger()          conn_close()
 *
 *   state    waits for                  limit                                        at the limit
 *   IDLE     a request's first byte     head_ms after accept(), later idle_limit()   on_timer(): conn_close()
 *   HEAD     the last header            head_ms; for the first request since         on_timer(): 408, exchange_refuse()
 *                                       accept(). Bytes: head_max                    http_conn_feed(): 414, 431, exchange_refuse()
 *   BODY     the last byte of the body  body_ms                                      on_timer(): 408, exchange_refuse()
 *                                       bytes: body_max, bodies_max                  begin_body(), http_conn_feed(): 413, 429
 *   ANSWER   the handler                none; unsent bytes of a stream: stream_max   http_stream_send(): conn_close()
 *   FLUSH    the peer to read           write_ms                                     on_stall(): conn_close()
 *   LINGER   the peer to close          linger_ms                                    on_timer(): conn_close()
 *
 *  1. Every way into FLUSH is http_conn_finish(). From IDLE: http_conn_step() at the peer's EOF, or conn_drain(). From HEAD: http_conn_step() at EOF, or
 *     exchange_refuse(). From BODY and ANSWER: conn_answered(), if the request is incomplete (refused, for example), or
 *     no other may follow.
 *  2. BODY goes back to IDLE only if on_head() has answered a request without a body.
 *  3. The peer's EOF closes BODY and LINGER at once. In ANSWER the handler learns of it (exchange_gone()), and the answer is
 *     still sent; then http_conn_linger() closes without waiting. Under TLS, EOF closes every state, since nothing can be sent any more.
 *  4. Every state ends with conn_close() after an error, when admit.c evicts the connection, when http_drop() ends its
 *     exchange, or when unsent bytes make no progress for write_ms (on_stall()).
 *  5. While `working` is set, conn_close() only marks the connection dead, and conn_work() frees it: a callback may close
 *     the connection that called it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/os.h"
#include "http/http_private.h"

static const struct http_limits *http_conn_limits(const struct conn *c)
{
	return &c->s->options.limits;
}

static void http_conn_arm(struct event *e, int64_t ms)
{
	struct timeval after = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_add(e, &after);
}

/* Limits the phase. Each request sets up to three limits, and most are replaced long before they are due. A timer that fires
 * before the new deadline stays as it is, which saves almost every change of libevent's heap; on_timer() then sets it again.
 * libevent's clock stands still while the machine sleeps, so a timer that should have fired by now is set again, too. */
static void http_conn_limit(struct conn *c, int64_t ms)
{
	int64_t now = os_boot_ms();

	c->due_ms = now + ms;
	if (c->fires_ms > now && c->fires_ms <= c->due_ms)
		return;
	c->fires_ms = c->due_ms;
	http_conn_arm(&c->timer, ms);
}

static void http_conn_unlimit(struct conn *c)
{
	c->due_ms = 0;
}

size_t conn_unsent(const struct conn *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

/* ---- byte counters, and the limit for unsent bytes */

static void output_changed(struct evbuffer *out, const struct evbuffer_cb_info *info, void *ctx)
{
	struct conn *c = ctx;

	c->s->count.bytes_out += info->n_deleted;
	if (!evbuffer_get_length(out))
		event_del(&c->stall);
	else if (info->n_deleted || !info->orig_size)
		http_conn_arm(&c->stall, http_conn_limits(c)->write_ms);
}

static void input_changed(struct evbuffer *in, const struct evbuffer_cb_info *info, void *ctx)
{
	struct conn *c = ctx;

	(void)in;
	c->s->count.bytes_in += info->n_added;
}

/* ---- the end */

static void conn_free(struct conn *c)
{
	struct http_server *s = c->s;

	if (c->next)
		c->next->prev = c->prev;
	*c->prev = c->next;
	admit_leave(c);
	event_del(&c->timer);
	event_del(&c->stall);
	evbuffer_remove_cb(bufferevent_get_output(c->bev), output_changed, c);
	evbuffer_remove_cb(bufferevent_get_input(c->bev), input_changed, c);
	bufferevent_free(c->bev);
	parse_free(&c->parse);
	free(c);
	s->count.connections--;
	server_accept_more(s);
}

void conn_close(struct conn *c)
{
	struct http_exchange *x = c->x;

	if (c->dead)
		return;
	c->dead = true;
	c->x = NULL;
	if (c->tls)
		tls_shutdown(c->bev);
	if (x)
		exchange_detach(x);
	if (!c->working)
		conn_free(c);
}

/* Everything is sent. Closing at once would reset the connection if the peer is still sending,
 * and the peer could lose the answer that is on its way. */
static void http_conn_linger(struct conn *c)
{
	if (c->eof) {
		conn_close(c);
		return;
	}
	if (c->tls)
		tls_shutdown(c->bev);
	shutdown(bufferevent_getfd(c->bev), SHUT_WR);
	c->phase = PHASE_LINGER;
	http_conn_limit(c, http_conn_limits(c)->linger_ms);
	server_drained(c->s);
}

static void http_conn_finish(struct conn *c)
{
	http_conn_unlimit(c);
	c->phase = PHASE_FLUSH;
	bufferevent_setwatermark(c->bev, EV_WRITE, 0, 0);
	if (!conn_unsent(c))
		http_conn_linger(c);
}

/* ---- requests */

static void hand_over(struct conn *c)
{
	struct http_exchange *x = c->x;

	http_conn_unlimit(c);
	c->phase = PHASE_ANSWER;
	c->s->count.requests++;
	exchange_complete(x, c);
	if (c->eof) /* the peer closed its side before we read its whole request */
		exchange_gone(x);
	if (c->x == x && !c->dead)
		c->s->options.calls.on_request(x, c->s->options.calls.ctx);
}

/* The headers are complete. */
static void begin_body(struct conn *c)
{
	struct http_exchange *x;

	c->parse.body_max = http_conn_limits(c)->body_max;
	c->reuse = c->parse.keep_alive;
	x = c->x = exchange_new(c);
	c->phase = PHASE_BODY;
	http_conn_limit(c, http_conn_limits(c)->body_ms);
	if (c->s->options.calls.on_head)
		c->s->options.calls.on_head(x, c->s->options.calls.ctx);
	if (c->dead || c->x != x || c->phase != PHASE_BODY)
		return;
	if (c->parse.state == PARSE_DONE)
		return;
	if (!parse_body_fits(&c->parse))
		exchange_refuse(c, c->parse.status, c->parse.reason);
	else if (conn_lacks_body(c) &&
		 !admit_body(c, c->parse.left ? c->parse.left : c->parse.body_max))
		exchange_refuse(c, 429, "this token sends too many long bodies at once");
	else if (c->parse.expects_continue && !evbuffer_get_length(bufferevent_get_input(c->bev)))
		conn_write(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

static void begin_head(struct conn *c)
{
	c->phase = PHASE_HEAD;
	c->began_ms = os_boot_ms();
	if (!c->fresh) /* the first request's limit has been running since accept() */
		http_conn_limit(c, http_conn_limits(c)->head_ms);
	c->fresh = false;
}

/* Gives the parser the first piece of the input. */
static void http_conn_feed(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_iovec v;
	size_t taken;
	bool was_head;

	if (evbuffer_peek(in, -1, NULL, &v, 1) < 1)
		return;
	if (c->phase == PHASE_IDLE)
		begin_head(c);
	was_head = c->phase == PHASE_HEAD;
	taken = parse_feed(&c->parse, v.iov_base, v.iov_len);
	evbuffer_drain(in, taken);
	if (c->parse.state == PARSE_BAD)
		exchange_refuse(c, c->parse.status, c->parse.reason);
	else if (was_head && c->parse.state != PARSE_HEAD)
		begin_body(c);
}

/* Returns true if there may be more to do. */
static bool http_conn_step(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	if (c->phase == PHASE_FLUSH || c->phase == PHASE_LINGER)
		evbuffer_drain(in, evbuffer_get_length(in));
	if (c->phase >= PHASE_ANSWER)
		return false;
	if (c->phase == PHASE_BODY && c->parse.state == PARSE_DONE) {
		hand_over(c);
		return true;
	}
	/* a peer that sends requests without reading the answers must wait */
	if (c->phase != PHASE_BODY && conn_unsent(c) > READ_MARK)
		return false;
	if (evbuffer_get_length(in)) {
		http_conn_feed(c);
		return true;
	}
	if (!c->eof)
		return false;
	if (c->phase == PHASE_BODY)
		conn_close(c);
	else
		http_conn_finish(c);
	return false;
}

void conn_work(struct conn *c)
{
	if (c->working)
		return;
	c->working = true;
	while (!c->dead && http_conn_step(c))
		;
	c->working = false;
	if (c->dead)
		conn_free(c);
}

void conn_keep(struct conn *c)
{
	http_conn_unlimit(c);
	c->phase = PHASE_ANSWER;
}

bool conn_lacks_body(const struct conn *c)
{
	return !c->parse.left || evbuffer_get_length(bufferevent_get_input(c->bev)) < c->parse.left;
}

/* An unauthenticated connection has less time. */
static int64_t idle_limit(const struct conn *c)
{
	const struct http_limits *l = http_conn_limits(c);

	return c->authenticated || l->idle_ms < l->head_ms ? l->idle_ms : l->head_ms;
}

void conn_answered(struct conn *c)
{
	bool whole = c->parse.state == PARSE_DONE;

	c->x = NULL;
	if (c->dead)
		return;
	if (!whole || !c->reuse || c->s->draining) {
		http_conn_finish(c);
		return;
	}
	parse_next(&c->parse);
	c->phase = PHASE_IDLE;
	bufferevent_setwatermark(c->bev, EV_WRITE, 0, 0);
	http_conn_limit(c, idle_limit(c));
	conn_work(c);
}

/* ---- sending */

void conn_write(struct conn *c, const char *p, size_t n)
{
	/* most answers fit into the socket's buffer, so sending now saves an iteration of the loop */
	if (!c->tls && !conn_unsent(c)) {
		ssize_t sent = send(bufferevent_getfd(c->bev), p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			c->s->count.bytes_out += (uint64_t)sent;
			p += sent;
			n -= (size_t)sent;
		}
	}
	if (n)
		bufferevent_write(c->bev, p, n);
}

/* ---- events */

static void on_read(struct bufferevent *bev, void *ctx)
{
	(void)bev;
	conn_work(ctx);
}

static void on_write(struct bufferevent *bev, void *ctx)
{
	struct conn *c = ctx;

	(void)bev;
	if (c->phase == PHASE_FLUSH) {
		if (!conn_unsent(c))
			http_conn_linger(c);
		return;
	}
	c->working = true;
	if (c->x)
		exchange_room(c->x);
	c->working = false;
	conn_work(c);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct conn *c = ctx;

	if (what & BEV_EVENT_CONNECTED) {
		c->s->count.handshakes++;
		c->s->count.resumed += tls_resumed(bev);
		return;
	}
	/* under TLS, nothing can be sent after the peer has closed its side */
	if (!(what & BEV_EVENT_EOF) || c->phase == PHASE_LINGER || c->tls) {
		conn_close(c);
		return;
	}
	c->eof = true;
	c->working = true;
	if (c->x)
		exchange_gone(c->x);
	c->working = false;
	conn_work(c);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct conn *c = ctx;
	int64_t left = c->due_ms - os_boot_ms();

	(void)fd;
	(void)what;
	c->fires_ms = 0;
	if (!c->due_ms)
		return;
	if (left > 0) {
		http_conn_limit(c, left);
		return;
	}
	c->due_ms = 0;
	if (c->phase == PHASE_HEAD || c->phase == PHASE_BODY) {
		c->s->count.timeouts++;
		exchange_refuse(c, 408,
				c->phase == PHASE_HEAD ? "the headers took too long"
						       : "the body took too long");
		return;
	}
	conn_close(c);
}

static void on_stall(evutil_socket_t fd, short what, void *ctx)
{
	struct conn *c = ctx;

	(void)fd;
	(void)what;
	c->s->count.slow_readers++;
	conn_close(c);
}

void conn_drain(struct http_server *s)
{
	for (struct conn *c = s->conns, *next; c; c = next) {
		next = c->next;
		if (c->phase == PHASE_IDLE)
			http_conn_finish(c);
	}
}

/* ---- the start */

static void name_peer(struct conn *c, const struct sockaddr *at)
{
	if (at->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *)at;

		memcpy(c->address, &v6->sin6_addr, 16);
	} else if (at->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)at;

		c->address[10] = c->address[11] = 0xff;
		memcpy(c->address + 12, &v4->sin_addr, 4);
	}
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)c->address))
		inet_ntop(AF_INET, c->address + 12, c->name, sizeof(c->name));
	else
		inet_ntop(AF_INET6, c->address, c->name, sizeof(c->name));
}

static void name_local(struct conn *c, int fd)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);

	snprintf(c->name, sizeof(c->name), "unix");
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		peer = (struct ucred){ .uid = (uid_t)-1 };
	c->uid = peer.uid;
	c->pid = peer.pid;
}

static void set_options(int fd)
{
	int on = 1, idle = 60;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* finds peers whose machine has vanished: they answer none of these probes */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
}

static void http_conn_start(struct conn *c)
{
	struct http_server *s = c->s;

	parse_init(&c->parse,
		   (struct parse_limits){ http_conn_limits(c)->head_max,
					  http_conn_limits(c)->header_count_max },
		   false);
	event_assign(&c->timer, s->base, -1, 0, on_timer, c);
	event_assign(&c->stall, s->base, -1, 0, on_stall, c);
	c->next = s->conns;
	c->prev = &s->conns;
	if (s->conns)
		s->conns->prev = &c->next;
	s->conns = c;
	c->fresh = true;
	bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, READ_MARK);
	evbuffer_add_cb(bufferevent_get_output(c->bev), output_changed, c);
	evbuffer_add_cb(bufferevent_get_input(c->bev), input_changed, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	http_conn_limit(c, http_conn_limits(c)->head_ms);
	s->count.connections++;
	admit_new(c);
}

void conn_accept(struct listener *l, evutil_socket_t fd, struct sockaddr *address, int length)
{
	struct conn *c = mem_alloc(sizeof(*c));

	(void)length;
	memset(c, 0, sizeof(*c));
	c->s = l->s;
	c->local = l->local;
	c->tls = l->s->tls && !l->local;
	l->s->count.accepted++;
	if (l->local) {
		name_local(c, fd);
	} else {
		name_peer(c, address);
		set_options(fd);
	}
	c->bev = c->tls ? tls_accept(l->s->tls, l->s->base, fd)
			: bufferevent_socket_new(l->s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (c->bev) {
		http_conn_start(c);
		return;
	}
	close(fd);
	free(c);
}
