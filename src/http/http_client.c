/*
 * One call at a time over one kept connection. `sent` decides a failed call's fate: HTTP_NOT_SENT only if no byte of the
 * request was written, else HTTP_UNKNOWN, and the caller must not repeat the call blindly. A new connection gets no request
 * before the server has proved itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "http/http_client.h"
#include "http/http_parse.h"
#include "http/http_proof.h"
#include "http/http_wire.h"

#define ANSWER_MAX (64u << 20)
#define HEAD_MAX (64u << 10)
#define PROOF_MAX 4096
#define INTERIM_MAX 8 /* 1xx answers before the final one */

struct http_client {
	enum { BY_UNIX, BY_HTTP, BY_HTTPS } kind;
	struct http_place place;
	char path[sizeof(struct sockaddr_un)];
	char origin[320], host[300];
	struct http_client_options options;
	char *ca_file, *session_file;
	char *token_hash; /* the server must prove that it knows this; NULL: there is no token */
	bool insecure;    /* the server need not prove anything */
	struct wire wire;
	struct parse parse;
	char in[16 << 10];
	size_t at, n; /* unread bytes of `in` */
	bool feeding;
	struct buf text; /* a feed's text that has not been handed out yet */
	size_t text_at;
};

/* ---- the URL */

static bool parse_url(struct http_client *c, struct str url)
{
	struct str rest = url;
	int port = 80, n;

	c->kind = BY_HTTP;
	if (str_cut_prefix(&rest, STR("unix:"))) {
		c->kind = BY_UNIX;
		n = snprintf(c->path, sizeof(c->path), "%.*s", STRF(rest));
		snprintf(c->origin, sizeof(c->origin), "unix:%s", c->path);
		snprintf(c->host, sizeof(c->host), "localhost");
		return n > 0 && (size_t)n < sizeof(c->path) && !memchr(rest.p, '\0', rest.n);
	}
	if (str_cut_prefix(&rest, STR("https://"))) {
		c->kind = BY_HTTPS;
		port = 443;
	} else if (!str_cut_prefix(&rest, STR("http://"))) {
		return false;
	}
	if (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	if (!http_place_parse(rest, port, &c->place) || str_is(str_c(c->place.port), "0"))
		return false;
	for (char *p = c->place.host; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p | 0x20);
	snprintf(c->host, sizeof(c->host), c->place.v6 ? "[%s]:%s" : "%s:%s", c->place.host,
		 c->place.port);
	snprintf(c->origin, sizeof(c->origin), "%s://%s", c->kind == BY_HTTPS ? "https" : "http",
		 c->host);
	return true;
}

static char *http_client_copy(const char *text)
{
	size_t n = text ? strlen(text) + 1 : 0;

	return text ? memcpy(mem_alloc(n), text, n) : NULL;
}

int http_client_new(const char *url, const struct http_client_options *options,
		    struct http_client **out, char *why, size_t room)
{
	struct http_client *c = mem_alloc(sizeof(*c));

	memset(c, 0, sizeof(*c));
	*out = NULL;
	if (!parse_url(c, str_c(url))) {
		snprintf(why, room,
			 "'%s' is not http://HOST[:PORT], https://HOST[:PORT] or unix:PATH", url);
		free(c);
		return -1;
	}
	if (options)
		c->options = *options;
	if (!c->options.answer_max)
		c->options.answer_max = ANSWER_MAX;
	c->ca_file = http_client_copy(c->options.ca_file);
	c->session_file = http_client_copy(c->options.session_file);
	c->wire.session_file = c->session_file;
	c->wire.fd = -1;
	c->wire.stop_fd = c->options.stop_fd > 0 ? c->options.stop_fd : -1;
	parse_init(&c->parse, (struct parse_limits){ HEAD_MAX, 200 }, true);
	c->text = BUF_MAX(SIZE_MAX / 4);
	*out = c;
	return 0;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	wire_free(&c->wire);
	parse_free(&c->parse);
	buf_free(&c->text);
	free(c->ca_file);
	free(c->session_file);
	free(c->token_hash);
	free(c);
}

void http_client_prove(struct http_client *c, struct str token_hash, bool insecure)
{
	c->insecure = insecure;
	free(c->token_hash);
	c->token_hash = token_hash.n ? strndup(token_hash.p, token_hash.n) : NULL;
}

const char *http_client_origin(const struct http_client *c)
{
	return c->origin;
}

/* ---- a call */

struct call {
	struct http_client *c;
	struct http_answer *out;
	int64_t deadline;
	bool sent; /* at least in part */
	bool head_only;
};

static void http_client_disconnect(struct http_client *c)
{
	wire_close(&c->wire);
	c->at = c->n = 0;
}

/* The call ends without an answer. */
static enum http_fate http_client_lose(struct call *k, ssize_t result, const char *why)
{
	struct http_answer *out = k->out;

	http_client_disconnect(k->c);
	out->fate = k->sent ? HTTP_UNKNOWN : HTTP_NOT_SENT;
	out->timed_out = result == WIRE_TIMEOUT;
	out->stopped = result == WIRE_STOPPED;
	if (out->timed_out)
		why = "the server did not answer in time";
	if (out->stopped)
		why = "the call was stopped";
	if (why && !out->why[0]) /* otherwise connecting has set the reason */
		snprintf(out->why, sizeof(out->why), "%s", why);
	return out->fate;
}

static int connect_secure(struct call *k, int64_t deadline)
{
	struct http_client *c = k->c;
	char *why = k->out->why;
	size_t room = sizeof(k->out->why);
	int result = wire_connect(&c->wire, &c->place, deadline, why, room);

	if (result == 0)
		result = wire_secure(&c->wire, c->place.host, c->origin, c->ca_file, deadline, why,
				     room);
	return result;
}

static int connect_now(struct call *k)
{
	struct http_client *c = k->c;
	int64_t deadline = k->deadline, most = c->options.connect_ms;
	char *why = k->out->why;
	size_t room = sizeof(k->out->why);
	int result;

	if (most && (!deadline || os_boot_ms() + most < deadline))
		deadline = os_boot_ms() + most;
	if (c->kind == BY_UNIX)
		return wire_connect_unix(&c->wire, c->path, deadline, why, room);
	if (c->kind == BY_HTTP)
		return wire_connect(&c->wire, &c->place, deadline, why, room);
	result = connect_secure(k, deadline);
	if (result != WIRE_FAILED || !c->wire.offered)
		return result;
	why[0] = '\0';
	http_client_disconnect(c);
	return connect_secure(k, deadline);
}

static bool target_valid(const char *target)
{
	if (target[0] != '/')
		return false;
	for (; *target; target++)
		if (*target <= ' ' || *target == 0x7f || *target == '#')
			return false;
	return true;
}

static bool write_head(struct http_client *c, struct buf *out, const char *method,
		       const char *target, const char *type, struct http_headers extra,
		       struct str body)
{
	if (!target_valid(target))
		return false;
	buf_addf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, c->host);
	if (type)
		buf_addf(out, "Content-Type: %s\r\n", type);
	if (type || body.n)
		buf_addf(out, "Content-Length: %zu\r\n", body.n);
	for (size_t i = 0; i < extra.n; i++) {
		const struct http_header *h = &extra.v[i];

		if (!h->name.n || !http_value_valid(h->name) || !http_value_valid(h->value))
			return false;
		buf_addf(out, "%.*s: %.*s\r\n", STRF(h->name), STRF(h->value));
	}
	buf_adds(out, STR("\r\n"));
	buf_adds(out, body);
	return true;
}

/* 0, or the result of the write that failed. */
static ssize_t send_all(struct call *k, struct str text)
{
	while (text.n) {
		ssize_t n = wire_write(&k->c->wire, text.p, text.n, k->deadline);

		if (n < 0)
			return n;
		k->sent = true;
		text.p += n;
		text.n -= (size_t)n;
	}
	return 0;
}

/* Reads once, if there are no unread bytes. > 0: there are bytes; 0: the end; < 0: a WIRE_ result. */
static ssize_t http_client_fill(struct http_client *c, int64_t deadline)
{
	ssize_t n;

	if (c->at < c->n)
		return 1;
	n = wire_read(&c->wire, c->in, sizeof(c->in), deadline);
	c->at = 0;
	c->n = n > 0 ? (size_t)n : 0;
	return n;
}

/* Parses until the headers (`state` PARSE_BODY) or the whole answer (PARSE_DONE) have arrived. */
static ssize_t parse_until(struct http_client *c, enum parse_state state, int64_t deadline)
{
	while (c->parse.state < state) {
		ssize_t n = http_client_fill(c, deadline);

		if (n <= 0)
			return n ? n : WIRE_FAILED;
		c->at += parse_feed(&c->parse, c->in + c->at, c->n - c->at);
		if (c->parse.state == PARSE_BAD)
			return WIRE_FAILED;
	}
	return 0;
}

/* Reads the headers of the final answer; skips 1xx answers. */
static ssize_t read_head(struct call *k)
{
	for (int i = 0; i < INTERIM_MAX; i++) {
		ssize_t result;

		parse_next(&k->c->parse);
		k->c->parse.bodyless = k->head_only;
		result = parse_until(k->c, PARSE_BODY, k->deadline);
		if (result || k->c->parse.status >= 200)
			return result;
	}
	parse_refuse(&k->c->parse, 400, "too many interim answers");
	return WIRE_FAILED;
}

static const char *read_trouble(const struct http_client *c)
{
	if (c->parse.state == PARSE_BAD)
		return c->parse.reason;
	return "the server closed the connection before its answer was complete";
}

static void copy_headers(struct call *k, struct arena *a)
{
	struct http_headers from = k->c->parse.headers;
	struct http_header *to = arena_array(a, struct http_header, from.n);

	for (size_t i = 0; i < from.n; i++)
		to[i] = (struct http_header){ arena_str(a, from.v[i].name),
					      arena_str(a, from.v[i].value) };
	k->out->headers = (struct http_headers){ to, from.n };
	k->out->status = k->c->parse.status;
}

/* ---- the server's proof */

static ssize_t not_proven(struct call *k, const char *why)
{
	k->out->unproven = true;
	snprintf(k->out->why, sizeof(k->out->why), "%s", why);
	return WIRE_FAILED;
}

/* The server on a Unix socket must run as this user, or root must have opened the socket for it. */
static ssize_t prove_owner(struct call *k)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);

	if (getsockopt(k->c->wire.fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
	    (peer.uid == geteuid() || peer.uid == 0))
		return 0;
	return not_proven(k, "the socket belongs to another user");
}

static bool peer_address(const struct http_client *c, char text[PROOF_ADDRESS_LEN])
{
	struct sockaddr_storage at = { 0 };
	socklen_t n = sizeof(at);

	return getpeername(c->wire.fd, (struct sockaddr *)&at, &n) == 0 && proof_address(&at, text);
}

/* Asks for the proof. 0: there is an answer. */
static ssize_t ask_for_proof(struct call *k, struct str nonce)
{
	struct http_client *c = k->c;
	struct buf text = BUF_MAX(PROOF_MAX);
	ssize_t result;

	buf_addf(&text, "GET " PROOF_PATH "?token=%.*s&nonce=%.*s HTTP/1.1\r\nHost: %s\r\n\r\n",
		 PROOF_ID_LEN, c->token_hash, STRF(nonce), c->host);
	c->parse.body_max = PROOF_MAX;
	result = send_all(k, buf_str(&text));
	buf_free(&text);
	if (!result)
		result = read_head(k);
	if (!result)
		result = parse_until(c, PARSE_DONE, k->deadline);
	k->sent = false; /* the caller's own request is still unsent */
	c->parse.body_max = c->options.answer_max;
	return result;
}

static bool is_gateway_trouble(int status)
{
	return status >= 502 && status <= 504;
}

static ssize_t check_proof(struct call *k, struct str nonce)
{
	struct http_client *c = k->c;
	char address[PROOF_ADDRESS_LEN];
	struct arena a = { 0 };
	bool good = c->parse.status == 200 && c->at == c->n && peer_address(c, address) &&
		    secret_eq(buf_str(&c->parse.body),
			      proof_make(str_c(c->token_hash), nonce, address, &a));

	arena_free(&a);
	if (good && c->parse.keep_alive)
		return 0;
	k->out->status = c->parse.status;
	if (good || c->parse.status == 429 || is_gateway_trouble(c->parse.status)) {
		snprintf(k->out->why, sizeof(k->out->why), "the server is busy or ending");
		return WIRE_FAILED;
	}
	return not_proven(k, c->parse.status == 401 ? "it refused the token"
						    : "it gave no valid proof");
}

/* Makes the server of a new connection prove that it knows the token. With TLS, its certificate has proved who it is. */
static ssize_t http_client_prove_server(struct call *k)
{
	struct http_client *c = k->c;
	bool head_only = k->head_only;
	struct arena a = { 0 };
	struct str nonce;
	ssize_t result;

	if (c->insecure || c->kind == BY_HTTPS)
		return 0;
	if (c->kind == BY_UNIX) /* tasks are as secret as a token */
		return prove_owner(k);
	if (!c->token_hash)
		return 0;
	nonce = secret_make(&a);
	k->head_only = false;
	result = ask_for_proof(k, nonce);
	k->head_only = head_only;
	if (!result)
		result = check_proof(k, nonce);
	else if (c->parse.state == PARSE_BAD)
		result = not_proven(k, "it does not speak HTTP");
	arena_free(&a);
	return result;
}

/* ---- a request */

/* Sends the request and reads the headers of its answer. */
static enum http_fate http_client_begin(struct call *k, struct str text)
{
	struct http_client *c = k->c;
	ssize_t result, read;

	if (c->at < c->n || !wire_quiet(&c->wire))
		http_client_disconnect(c);
	if (c->wire.fd < 0) {
		result = connect_now(k);
		k->out->connected = !result;
		if (!result)
			result = http_client_prove_server(k);
		if (result)
			return http_client_lose(k, result,
						"the connection ended before the request was sent");
	}
	result = send_all(k, text);
	if (result && !k->sent)
		return http_client_lose(k, result,
					"the connection ended before the request was sent");
	if (result && result != WIRE_FAILED)
		return http_client_lose(k, result, NULL);
	/* a server may refuse a request before it has read all of it */
	read = read_head(k);
	if (read)
		return http_client_lose(k, read, read_trouble(c));
	if (result) /* the rest of the request is still unsent */
		c->parse.keep_alive = false;
	k->out->fate = HTTP_ANSWERED;
	return HTTP_ANSWERED;
}

static void http_client_settle(struct http_client *c)
{
	if (c->parse.state != PARSE_DONE || !c->parse.keep_alive)
		http_client_disconnect(c);
	parse_next(&c->parse);
	c->parse.sink = NULL;
}

static enum http_fate http_client_ask(struct call *k, const char *method, const char *target,
				      const char *type, struct http_headers extra, struct str body)
{
	struct buf text = BUF_MAX(SIZE_MAX / 4);
	enum http_fate fate;

	*k->out = (struct http_answer){ 0 };
	k->head_only = str_is(str_c(method), "HEAD");
	k->c->parse.sink = NULL;
	k->c->parse.body_max = k->c->options.answer_max;
	if (k->c->feeding)
		http_feed_end(k->c);
	if (write_head(k->c, &text, method, target, type, extra, body))
		fate = http_client_begin(k, buf_str(&text));
	else
		fate = http_client_lose(k, WIRE_FAILED,
					"the request contains a control character or a space");
	buf_free(&text);
	return fate;
}

enum http_fate http_call(struct http_client *c, const char *method, const char *target,
			 const char *type, struct http_headers extra, struct str body,
			 int64_t deadline, struct arena *a, struct http_answer *out)
{
	struct call k = { .c = c, .out = out, .deadline = deadline };
	ssize_t result;

	if (http_client_ask(&k, method, target, type, extra, body) != HTTP_ANSWERED)
		return out->fate;
	result = parse_until(c, PARSE_DONE, deadline);
	if (result)
		return http_client_lose(&k, result, read_trouble(c));
	copy_headers(&k, a);
	out->body = arena_str(a, buf_str(&c->parse.body));
	http_client_settle(c);
	return out->fate;
}

/* ---- feeds */

static void keep_text(struct str piece, void *ctx)
{
	struct http_client *c = ctx;

	buf_adds(&c->text, piece);
}

enum http_fate http_feed_start(struct http_client *c, const char *method, const char *target,
			       const char *type, struct http_headers extra, struct str body,
			       int64_t deadline, struct arena *a, struct http_answer *out)
{
	struct call k = { .c = c, .out = out, .deadline = deadline };

	if (http_client_ask(&k, method, target, type, extra, body) != HTTP_ANSWERED)
		return out->fate;
	copy_headers(&k, a);
	c->parse.sink = keep_text;
	c->parse.sink_ctx = c;
	c->parse.body_max = UINT64_MAX;
	c->feeding = true;
	return out->fate;
}

/* Cuts a line from the text that has arrived. 1: a line; 0: no complete line yet; -3: it is too long. */
static int cut_line(struct http_client *c, size_t line_max, struct str *line)
{
	const char *from, *end;
	size_t n = c->text.n - c->text_at;

	if (!n)
		return 0;
	from = c->text.p + c->text_at;
	end = memchr(from, '\n', n);
	if (end)
		n = (size_t)(end - from);
	if (n > line_max)
		return -3;
	if (!end)
		return 0;
	c->text_at += n + 1;
	if (n && from[n - 1] == '\r')
		n--;
	*line = str_n(from, n);
	return 1;
}

static void drop_read_text(struct http_client *c)
{
	c->text.n -= c->text_at;
	if (c->text.n)
		memmove(c->text.p, c->text.p + c->text_at, c->text.n);
	c->text_at = 0;
}

int http_feed_line(struct http_client *c, size_t line_max, int64_t deadline, struct str *line)
{
	if (!c->feeding)
		return -1;
	for (;;) {
		int found = cut_line(c, line_max, line);
		ssize_t n;

		if (found)
			return found;
		if (c->parse.state == PARSE_DONE)
			return 0;
		drop_read_text(c);
		if (c->parse.state != PARSE_BODY || c->wire.fd < 0)
			return -1;
		n = http_client_fill(c, deadline);
		if (n == WIRE_TIMEOUT || n == WIRE_STOPPED)
			return -2;
		if (n <= 0) {
			http_client_disconnect(c);
			return -1;
		}
		c->at += parse_feed(&c->parse, c->in + c->at, c->n - c->at);
	}
}

int http_client_fd(const struct http_client *c)
{
	return c->wire.fd;
}

void http_feed_end(struct http_client *c)
{
	if (!c->feeding)
		return;
	c->feeding = false;
	buf_free(&c->text);
	c->text = BUF_MAX(SIZE_MAX / 4);
	c->text_at = 0;
	http_client_settle(c);
}
