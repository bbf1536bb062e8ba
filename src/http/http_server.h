/*
 * server: HTTP/1.1 on libevent. It reads requests, refuses malformed ones, and calls the handler
 * once for each complete request. It knows nothing of tasks.
 *
 * One thread runs the loop (http_server_run) and makes every call below, except
 * http_server_post(), which any thread may make. All callbacks run in that thread and must not
 * block.
 *
 * An exchange is one request and its answer. From on_request() or http_keep() on it belongs to the
 * handler, which ends it exactly once, with http_reply(), http_refuse(), http_stream_end() or
 * http_drop(): at once or later, and also when the peer is gone or the server was freed. Answers to
 * a peer that is gone are discarded. Requests that a peer pipelines are handled one after the other.
 */
#ifndef HTTP_HTTP_SERVER_H
#define HTTP_HTTP_SERVER_H

#include <sys/types.h>

#include "base/buf.h"
#include "http/http_message.h"
#include "http/http_proof.h"

struct http_server;
struct http_exchange;
struct http_timer;
struct http_watch;

struct http_limits {
	size_t head_max;         /* bytes of the request line and headers: 414, 431 */
	size_t body_max;         /* bytes of the body: 413 */
	size_t header_count_max; /* 431 */
	int64_t head_ms;         /* time from the first byte (or accept) to the last header: 408 */
	int64_t body_ms;         /* time for the whole body: 408 */
	int64_t write_ms;        /* an answer makes no progress: the peer is dropped */
	int64_t idle_ms; /* between requests: the connection is closed; unauthenticated: at most head_ms */
	size_t connections_max; /* authenticated ones: see http_authenticate() */
	size_t unauthenticated_max; /* unauthenticated connections, in addition; beyond it, a new one closes another */
	size_t per_address_max; /* unauthenticated connections from one address; 0: no limit */
	uint64_t
		bodies_max; /* body bytes that one caller may send at once; a single body always passes: 429 */
	size_t stream_max; /* unsent bytes of a stream: a slower reader is dropped */
	int64_t linger_ms; /* how long a peer may take to read the last answer before we close */
};

/* Headers 16 KiB, 100 of them, in 10 s; body 1 MiB in 30 s; writes 30 s; idle 75 s; 4,096 authenticated
 * connections and 1,024 others, at most 64 per address; one caller's bodies 128 MiB; streams 1 MiB. */
struct http_limits http_limits_default(void);

struct http_request {
	struct str method; /* GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS */
	struct str path;   /* as sent, still %-encoded; begins with '/', or is "*" (OPTIONS) */
	struct str query;  /* behind '?', still %-encoded; empty if none */
	struct str host;   /* the one Host header, with its port */
	struct http_headers headers;
	struct str body; /* empty in on_head(); followed by a NUL */
	struct str
		address; /* of the peer, without port: "127.0.0.1", "::1"; "unix" for a socket file */
	bool local;      /* a Unix socket: uid and pid are those of the peer */
	uid_t uid;
	pid_t pid;
	bool tls;
	int64_t began_ms; /* when the first byte arrived, by os_boot_ms() */
};

struct http_calls {
	/* The request is complete. */
	void (*on_request)(struct http_exchange *x, void *ctx);
	/* Optional: the headers are complete, the body is not yet read. May end the exchange
	 * (refuse it), or raise the body's limit. */
	void (*on_head)(struct http_exchange *x, void *ctx);
	/* Optional: writes the body of a refusal that the server makes itself. Without it:
	 * {"ok":false,"error":{"message":REASON}} */
	void (*error_body)(int status, const char *reason, struct buf *out, void *ctx);
	/* Optional: an answer was sent, or the connection ended before the answer (status 0).
	 * The server reports its own refusals, too; then `request` may be NULL. */
	void (*on_log)(const struct http_request *request, const char *address, int status,
		       size_t bytes, int64_t took_ms, void *ctx);
	void *ctx;
};

struct http_options {
	struct http_limits limits;
	struct http_calls calls;
	const char *tls_cert, *tls_key; /* PEM files; NULL: no TLS. Not used for Unix sockets. */
};

/* Returns 0 and sets *out; -1: `why` has the reason. The process ignores SIGPIPE from now on. */
int http_server_new(const struct http_options *options, struct http_server **out, char *why,
		    size_t room);
/* Listens on "HOST:PORT", "[V6]:PORT" or "unix:PATH". HOST is an address or a name; port 0: any
 * free one. A Unix socket that no process listens on is replaced, with mode 0600. Once for each
 * address. 0, or -1 and `why`. */
int http_server_listen(struct http_server *s, const char *where, char *why, size_t room);
/* Takes over a listening socket, for example from systemd (see http_inherited()). */
int http_server_listen_fd(struct http_server *s, int fd, char *why, size_t room);
/* The number of sockets that systemd passed in LISTEN_FDS, from descriptor 3 on; the variables
 * are removed from the environment. */
int http_inherited(void);
/* The address of listener number i as a URL without path ("http://127.0.0.1:7295",
 * "unix:/run/pawl.sock"); empty if there is no such listener. Valid until the next call. */
const char *http_server_url(struct http_server *s, size_t i);
/* Replaces the limits. Deadlines that are already set, and head limits of open connections, stay as they are. */
void http_server_limit(struct http_server *s, const struct http_limits *limits);
/* Reads the certificate and key again, for new connections. On failure the old ones stay. */
int http_server_reload_tls(struct http_server *s, char *why, size_t room);

/* Runs the loop until http_server_stop(), or until a drain ends. */
void http_server_run(struct http_server *s);
void http_server_stop(struct http_server *s);
/* Stops listening, closes idle connections, answers with "Connection: close", and makes
 * http_server_run() return when the last exchange has ended, or after `ms`. The caller ends its streams
 * and parked exchanges itself. */
void http_server_drain(struct http_server *s, int64_t ms);
bool http_server_draining(const struct http_server *s);
/* Closes everything. Exchanges that have not ended stay valid until their handler ends them. Posted
 * work that has not run is discarded. */
void http_server_free(struct http_server *s);

/* ---- posted work, timers and signals */

/* Makes the loop call fn(arg) soon, in the order of the calls. The only call for other threads. */
void http_server_post(struct http_server *s, void (*fn)(void *arg), void *arg);
/* Calls fn once, after `ms`; the timer is then gone. */
struct http_timer *http_timer_start(struct http_server *s, int64_t ms, void (*fn)(void *ctx),
				    void *ctx);
void http_timer_cancel(struct http_timer *t); /* NULL: nothing; not after fn was called */
/* http_later_call() makes the loop call fn once, after it has read the input that is ready now. */
struct http_later *http_later_new(struct http_server *s, void (*fn)(void *ctx), void *ctx);
void http_later_call(struct http_later *l);
void http_later_free(struct http_later *l);
/* Calls fn each time the signal arrives. */
struct http_watch *http_watch_signal(struct http_server *s, int signo, void (*fn)(void *ctx),
				     void *ctx);
void http_watch_end(struct http_watch *w);

/* ---- exchanges */

/* Valid until the exchange ends. */
const struct http_request *http_request_of(const struct http_exchange *x);
/* The address of this side of the connection: see http_proof.h. false: it has none. */
bool http_own_address(const struct http_exchange *x, char text[PROOF_ADDRESS_LEN]);

/* Calls fn once if the peer closes its side (or is dropped) before the exchange ends; at once, before
 * it returns, if that has happened already. The handler must still end the exchange; a parked wait is
 * best ended with http_drop() at once. */
void http_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *ctx),
		  void *ctx);
/* Are more than half of the authenticated connections in use? Then refuse a connection that the caller can do without. */
bool http_crowded(const struct http_exchange *x);
/* Has the peer closed its side? That can have happened before on_request(). */
bool http_gone(const struct http_exchange *x);

/* Answers and ends the exchange. `type` may be NULL (no Content-Type). `extra` must not contain
 * Content-Length, Transfer-Encoding, Connection or Date. Answers to HEAD, and 204 and 304, have no body. */
void http_reply(struct http_exchange *x, int status, const char *type, struct http_headers extra,
		struct str body);
/* http_reply() for a long body: takes the body over instead of copying it. Calls sent() once, when the body is sent or the
 * peer is gone. */
void http_reply_own(struct http_exchange *x, int status, const char *type,
		    struct http_headers extra, struct buf *body, void (*sent)(void *ctx),
		    void *ctx);
/* http_reply() with the server's own error body, for refusals. */
void http_refuse(struct http_exchange *x, int status, const char *reason);
/* Ends the exchange without an answer and closes the connection. */
void http_drop(struct http_exchange *x);
/* Makes the server close the connection after this answer. */
void http_close_after(struct http_exchange *x);

/* An answer in pieces (chunked). http_stream_send() returns the number of bytes that are not sent
 * yet, or -1 if the peer is gone, or is dropped because it fell behind by more than
 * limits.stream_max. Then the handler must call http_stream_end(); the function given to http_on_gone() is not called. */
void http_stream_start(struct http_exchange *x, int status, const char *type,
		       struct http_headers extra);
ssize_t http_stream_send(struct http_exchange *x, struct str piece);
/* Calls fn once, when fewer than `below` bytes are unsent; at the earliest in the loop's next
 * iteration. */
void http_stream_on_room(struct http_exchange *x, size_t below,
			 void (*fn)(struct http_exchange *x, void *ctx), void *ctx);
/* Ends the stream and the exchange. */
void http_stream_end(struct http_exchange *x);

/* The connections of one caller or one address, whose number is limited so that others get theirs. */
struct http_party {
	size_t connections;
	uint64_t bodies; /* body bytes of the requests under way */
};

/* The request comes from this caller; NULL: from a peer that the handler does not know. The connection counts for the caller
 * until a later request changes that, so `caller` must stay valid until the server is freed. false: there are connections_max
 * authenticated connections, and the server may close none of them for this caller (see admit.c). */
bool http_authenticate(struct http_exchange *x, struct http_party *caller);
/* Keeps the exchange, to end it later. In on_head(): the rest of the request is not read, and on_request() is not called. */
void http_keep(struct http_exchange *x);

/* ---- for on_head() */

/* Has a part of the body not arrived yet? */
bool http_arriving(const struct http_exchange *x);

/* Replaces the limit for this request's body. */
void http_body_max(struct http_exchange *x, uint64_t max);

/* ---- counters, since the start unless they say otherwise */

struct http_counters {
	uint64_t accepted, requests, refused; /* refused: by the server itself */
	uint64_t handshakes, resumed;         /* TLS handshakes; resumed: with a kept session */
	uint64_t bytes_in, bytes_out;
	uint64_t slow_readers, timeouts; /* peers that were dropped for that reason */
	uint64_t evicted;                /* connections that were closed in favour of others */
	size_t connections, exchanges, streams; /* now */
	size_t authenticated, unauthenticated;  /* connections, now */
	bool accepting;                         /* false: there are no descriptors left */
};

struct http_counters http_counters(const struct http_server *s);

#endif
