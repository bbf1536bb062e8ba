/*
 * Exchanges: one request and its answer. The handler ends each exchange that it owns exactly once. An exchange outlives its
 * connection and even the server, so x->c and x->s may be NULL; an answer to a lost peer is discarded. The handler's extra
 * headers cannot smuggle another header: add_headers() skips those with control characters.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/os.h"
#include "http/http_private.h"

/* ---- life */

struct http_exchange *exchange_new(struct conn *c)
{
	struct http_exchange *x = mem_alloc(sizeof(*x));
	struct parse *m = &c->parse;
	struct str target = m->target;

	memset(x, 0, sizeof(*x));
	x->s = c->s;
	x->c = c;
	x->next = c->s->exchanges;
	x->prev = &c->s->exchanges;
	if (x->next)
		x->next->prev = &x->next;
	c->s->exchanges = x;
	c->s->count.exchanges++;
	memcpy(x->address, c->name, sizeof(x->address));
	x->head = m->head;
	x->list = m->list;
	x->complete = m->state == PARSE_DONE;
	m->head = (struct buf){ 0 };
	m->list = NULL;
	x->r = (struct http_request){
		.method = m->method,
		.path = str_cut(&target, '?'),
		.query = target,
		.host = m->host,
		.headers = m->headers,
		.body = STR(""),
		.address = str_c(x->address),
		.local = c->local,
		.uid = c->uid,
		.pid = c->pid,
		.tls = c->tls,
		.began_ms = c->began_ms,
	};
	return x;
}

void exchange_complete(struct http_exchange *x, struct conn *c)
{
	x->owned = x->complete = true;
	x->body = c->parse.body;
	c->parse.body = (struct buf){ 0 };
	if (x->body.n)
		x->r.body = buf_str(&x->body);
}

bool http_own_address(const struct http_exchange *x, char text[PROOF_ADDRESS_LEN])
{
	struct sockaddr_storage at = { 0 };
	socklen_t n = sizeof(at);

	return x->c && getsockname(bufferevent_getfd(x->c->bev), (struct sockaddr *)&at, &n) == 0 &&
	       proof_address(&at, text);
}

static void log_end(const struct http_exchange *x, int status)
{
	const struct http_calls *calls = x->s ? &x->s->options.calls : NULL;

	if (calls && calls->on_log)
		calls->on_log(&x->r, x->address, status, x->bytes, os_boot_ms() - x->r.began_ms,
			      calls->ctx);
}

static void exchange_free(struct http_exchange *x)
{
	struct http_server *s = x->s;

	if (s) {
		if (x->next)
			x->next->prev = x->prev;
		*x->prev = x->next;
		s->count.exchanges--;
		if (x->streaming)
			s->count.streams--;
	}
	admit_body_end(x);
	buf_free(&x->head);
	buf_free(&x->body);
	free(x->list);
	free(x);
	if (s)
		server_drained(s);
}

void exchange_gone(struct http_exchange *x)
{
	void (*fn)(struct http_exchange * x, void *ctx) = x->gone_fn;

	x->gone = true;
	x->gone_fn = NULL;
	if (fn)
		fn(x, x->gone_ctx);
}

void exchange_detach(struct http_exchange *x)
{
	x->c = NULL;
	if (x->owned) {
		exchange_gone(x);
		return;
	}
	log_end(x, 0);
	exchange_free(x);
}

/* ---- texts */

static void json_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_addc(out, '\\');
		buf_addc(out, (unsigned char)*text < ' ' ? ' ' : *text);
	}
}

/* The body of a refusal. */
static void refusal_body(struct http_server *s, int status, const char *reason, struct buf *out)
{
	const struct http_calls *calls = s ? &s->options.calls : NULL;

	if (calls && calls->error_body) {
		calls->error_body(status, reason, out, calls->ctx);
		return;
	}
	buf_adds(out, STR("{\"ok\":false,\"error\":{\"message\":\""));
	json_text(out, reason);
	buf_adds(out, STR("\"}}\n"));
}

static void add_number(struct buf *out, size_t n)
{
	char digits[24], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + n % 10);
	while (n /= 10);
	buf_add(out, at, (size_t)(digits + sizeof(digits) - at));
}

static void add_header(struct buf *out, struct str name, struct str value)
{
	buf_adds(out, name);
	buf_adds(out, STR(": "));
	buf_adds(out, value);
	buf_adds(out, STR("\r\n"));
}

static void add_length(struct buf *out, size_t n)
{
	buf_adds(out, STR("Content-Length: "));
	add_number(out, n);
	buf_adds(out, STR("\r\n"));
}

/* Every answer comes through here, so it avoids printf formats, which take several times as long. */
static void add_headers(struct http_server *s, struct buf *out, int status, const char *type,
			struct http_headers extra, bool closes)
{
	buf_adds(out, STR("HTTP/1.1 "));
	add_number(out, (size_t)status);
	buf_addc(out, ' ');
	buf_adds(out, str_c(http_status_text(status)));
	buf_adds(out, STR("\r\n"));
	add_header(out, STR("Date"), str_c(server_date(s)));
	if (type)
		add_header(out, STR("Content-Type"), str_c(type));
	for (size_t i = 0; i < extra.n; i++) {
		const struct http_header *h = &extra.v[i];

		if (h->name.n && http_value_valid(h->name) && http_value_valid(h->value))
			add_header(out, h->name, h->value);
	}
	if (closes)
		buf_adds(out, STR("Connection: close\r\n"));
}

static bool without_body(const struct http_exchange *x, int status)
{
	return str_is(x->r.method, "HEAD") || status == 204 || status == 304;
}

static bool http_exchange_closes(const struct http_exchange *x)
{
	const struct conn *c = x->c;

	return x->close_after || !x->complete || !c->reuse || c->s->draining;
}

/* ---- answers at once */

static void http_exchange_end(struct http_exchange *x, int status)
{
	struct conn *c = x->c;

	x->status = status;
	log_end(x, status);
	if (c && http_exchange_closes(x))
		c->reuse = false;
	x->c = NULL;
	exchange_free(x);
	if (c)
		conn_answered(c);
}

static void add_reply_head(struct http_exchange *x, struct buf *out, int status, const char *type,
			   struct http_headers extra, size_t length)
{
	add_headers(x->s, out, status, type, extra, http_exchange_closes(x));
	if (status != 204 && status != 304)
		add_length(out, length);
	buf_adds(out, STR("\r\n"));
	x->bytes = without_body(x, status) ? 0 : length;
}

void http_reply(struct http_exchange *x, int status, const char *type, struct http_headers extra,
		struct str body)
{
	struct buf out = BUF_MAX(SIZE_MAX / 4);

	if (!x->c) {
		http_exchange_end(x, 0);
		return;
	}
	add_reply_head(x, &out, status, type, extra, body.n);
	if (x->bytes)
		buf_adds(&out, body);
	conn_write(x->c, out.p, out.n);
	buf_free(&out);
	http_exchange_end(x, status);
}

/* A body that the connection's output buffer owns until it is sent. */
struct own_body {
	struct buf body;
	void (*sent)(void *ctx);
	void *ctx;
};

static void own_body_free(const void *data, size_t n, void *own)
{
	struct own_body *b = own;

	(void)data;
	(void)n;
	buf_free(&b->body);
	b->sent(b->ctx);
	free(b);
}

void http_reply_own(struct http_exchange *x, int status, const char *type,
		    struct http_headers extra, struct buf *body, void (*sent)(void *ctx), void *ctx)
{
	struct own_body *own = mem_alloc(sizeof(*own));
	struct buf out = BUF_MAX(SIZE_MAX / 4);
	bool kept = false;

	*own = (struct own_body){ .body = *body, .sent = sent, .ctx = ctx };
	*body = (struct buf){ .max = body->max };
	if (x->c) {
		add_reply_head(x, &out, status, type, extra, own->body.n);
		conn_write(x->c, out.p, out.n);
		kept = x->bytes &&
		       !evbuffer_add_reference(bufferevent_get_output(x->c->bev), own->body.p,
					       own->body.n, own_body_free, own);
	}
	if (!kept)
		own_body_free(NULL, 0, own);
	buf_free(&out);
	http_exchange_end(x, x->c ? status : 0);
}

void http_refuse(struct http_exchange *x, int status, const char *reason)
{
	struct buf body = BUF_MAX(64 << 10);

	refusal_body(x->s, status, reason, &body);
	http_reply(x, status, "application/json", (struct http_headers){ NULL, 0 }, buf_str(&body));
	buf_free(&body);
}

void http_drop(struct http_exchange *x)
{
	struct conn *c = x->c;

	log_end(x, 0);
	x->c = NULL;
	exchange_free(x);
	if (!c)
		return;
	c->x = NULL;
	conn_close(c);
}

void http_close_after(struct http_exchange *x)
{
	x->close_after = true;
}

static void log_refusal(struct conn *c, int status, size_t bytes)
{
	const struct http_calls *calls = &c->s->options.calls;

	c->s->count.refused++;
	if (calls->on_log)
		calls->on_log(c->x ? &c->x->r : NULL, c->name, status, bytes,
			      c->began_ms ? os_boot_ms() - c->began_ms : 0, calls->ctx);
}

void exchange_refuse(struct conn *c, int status, const char *reason)
{
	struct buf body = BUF_MAX(64 << 10), out = BUF_MAX(SIZE_MAX / 4);
	struct http_exchange *x = c->x;
	bool was_working = c->working;

	refusal_body(c->s, status, reason, &body);
	add_headers(c->s, &out, status, "application/json", (struct http_headers){ NULL, 0 }, true);
	add_length(&out, body.n);
	buf_adds(&out, STR("\r\n"));
	buf_adds(&out, buf_str(&body));
	conn_write(c, out.p, out.n);
	log_refusal(c, status, body.n);
	buf_free(&body);
	buf_free(&out);
	c->x = NULL;
	c->reuse = false;
	c->working = true; /* conn_close() must not free it here */
	if (x)
		exchange_free(x);
	conn_answered(c);
	c->working = was_working;
	if (!was_working)
		conn_work(c);
}

/* ---- streams */

void http_stream_start(struct http_exchange *x, int status, const char *type,
		       struct http_headers extra)
{
	struct buf out = BUF_MAX(SIZE_MAX / 4);

	x->status = status;
	x->streaming = true;
	if (x->s)
		x->s->count.streams++;
	if (!x->c)
		return;
	add_headers(x->s, &out, status, type, extra, http_exchange_closes(x));
	buf_adds(&out, STR("Transfer-Encoding: chunked\r\n\r\n"));
	conn_write(x->c, out.p, out.n);
	buf_free(&out);
}

ssize_t http_stream_send(struct http_exchange *x, struct str piece)
{
	struct buf out = BUF_MAX(SIZE_MAX / 4);
	struct conn *c = x->c;

	if (!c || x->gone)
		return -1;
	if (!piece.n || without_body(x, x->status))
		return (ssize_t)conn_unsent(c);
	x->bytes += piece.n;
	buf_addf(&out, "%zx\r\n", piece.n);
	buf_adds(&out, piece);
	buf_adds(&out, STR("\r\n"));
	conn_write(c, out.p, out.n);
	buf_free(&out);
	if (conn_unsent(c) <= c->s->options.limits.stream_max)
		return (ssize_t)conn_unsent(c);
	c->s->count.slow_readers++;
	x->gone_fn = NULL; /* the caller learns from the result that the peer is gone */
	conn_close(c);
	return -1;
}

void http_stream_on_room(struct http_exchange *x, size_t below,
			 void (*fn)(struct http_exchange *x, void *ctx), void *ctx)
{
	x->room_fn = fn;
	x->room_ctx = ctx;
	x->room_below = below ? below - 1 : 0;
	if (!x->c)
		return;
	bufferevent_setwatermark(x->c->bev, EV_WRITE, x->room_below, 0);
	if (conn_unsent(x->c) <= x->room_below)
		bufferevent_trigger(x->c->bev, EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
}

void exchange_room(struct http_exchange *x)
{
	void (*fn)(struct http_exchange * x, void *ctx) = x->room_fn;

	if (!fn || conn_unsent(x->c) > x->room_below)
		return;
	x->room_fn = NULL;
	bufferevent_setwatermark(x->c->bev, EV_WRITE, 0, 0);
	fn(x, x->room_ctx);
}

void http_stream_end(struct http_exchange *x)
{
	if (x->c && !without_body(x, x->status))
		conn_write(x->c, "0\r\n\r\n", 5);
	http_exchange_end(x, x->c ? x->status : 0);
}

/* ---- the handler's questions and settings */

void http_body_max(struct http_exchange *x, uint64_t max)
{
	if (x->c && !x->complete)
		x->c->parse.body_max = max;
}

const struct http_request *http_request_of(const struct http_exchange *x)
{
	return &x->r;
}

void http_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *ctx),
		  void *ctx)
{
	if (http_gone(x)) {
		x->gone_fn = NULL;
		fn(x, ctx);
		return;
	}
	x->gone_fn = fn;
	x->gone_ctx = ctx;
}

bool http_crowded(const struct http_exchange *x)
{
	return x->s && admit_crowded(x->s);
}

bool http_authenticate(struct http_exchange *x, struct http_party *caller)
{
	return !x->c || admit_caller(x->c, caller);
}

void http_keep(struct http_exchange *x)
{
	x->owned = true;
	if (x->c)
		conn_keep(x->c);
}

bool http_arriving(const struct http_exchange *x)
{
	return x->c && !x->complete && conn_lacks_body(x->c);
}

bool http_gone(const struct http_exchange *x)
{
	return x->gone || !x->c;
}
