/*
 * part: the structs and calls that the server's files share. http_conn.c draws a connection's states.
 */
#ifndef HTTP_HTTP_PRIVATE_H
#define HTTP_HTTP_PRIVATE_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/listener.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "http/http_parse.h"
#include "http/http_server.h"

#define READ_MARK (64u << 10) /* unread input that one connection may hold */
#define BUCKETS 1024
#define LISTENERS_MAX 16

struct tls_context;
struct conn;

struct posted {
	struct posted *next;
	void (*fn)(void *arg);
	void *arg;
};

struct listener {
	struct http_server *s;
	struct evconnlistener *ev;
	bool local;
	char url[sizeof(struct sockaddr_un) + 16];
	char path[sizeof(struct sockaddr_un)]; /* the socket file that is ours to remove */
};

struct http_server {
	struct event_base *base;
	struct http_options options;
	char *tls_cert, *tls_key;
	struct tls_context *tls;
	struct listener listeners[LISTENERS_MAX];
	size_t listener_count;
	struct event *pause; /* descriptors ran out; accepting resumes when this fires */
	struct conn *conns;
	struct conn *authenticated, *unauthenticated; /* lists, newest first */
	struct source *sources[BUCKETS];              /* see admit.c */
	uint64_t seed;
	struct http_exchange *exchanges;
	struct http_counters count;
	bool draining, stopped;
	struct event *drain_end;
	int64_t date_at; /* the second that `date` is for */
	char date[40];

	int wake_fd;
	struct event *wake;
	pthread_mutex_t mutex; /* guards the posted work */
	struct posted *first, **last;
};

enum phase {
	PHASE_IDLE,   /* between requests */
	PHASE_HEAD,   /* a request has begun */
	PHASE_BODY,   /* its headers are complete */
	PHASE_ANSWER, /* the handler has the request and owes an answer */
	PHASE_FLUSH,  /* the last answer is being sent; input is discarded */
	PHASE_LINGER, /* all is sent; the peer gets time to read it before we close */
};

struct conn {
	struct http_server *s;
	struct conn *next, **prev;
	struct conn *next_alike, **prev_alike; /* links in s->authenticated or s->unauthenticated */
	struct http_party *party;              /* see admit.c */
	bool authenticated;
	struct bufferevent *bev;
	struct event timer; /* ends the phase; it may fire before due_ms */
	int64_t due_ms;     /* the phase's deadline; 0: none */
	int64_t fires_ms;   /* when the timer fires; 0: it is not set */
	struct event stall; /* fires if unsent bytes make no progress */
	enum phase phase;
	struct parse parse;
	struct http_exchange *x;
	int64_t began_ms;
	unsigned char address[16];
	bool local, tls;
	bool working; /* conn_work() is running, and frees a dead connection when it returns */
	bool dead;    /* the server will free it */
	bool eof;     /* the peer closed its side */
	bool reuse;   /* another request may follow */
	bool fresh;   /* no byte has arrived yet */
	uid_t uid;
	pid_t pid;
	char name[INET6_ADDRSTRLEN];
};

struct http_exchange {
	struct http_server *s;
	struct http_exchange *next, **prev;
	struct conn *c; /* NULL: the connection ended */
	struct http_request r;
	struct buf head, body;
	struct http_header *list;
	char address[INET6_ADDRSTRLEN];
	void (*gone_fn)(struct http_exchange *x, void *ctx);
	void *gone_ctx;
	void (*room_fn)(struct http_exchange *x, void *ctx);
	void *room_ctx;
	size_t room_below;
	struct http_party *body_party; /* the caller whose quota the body uses; NULL: none */
	uint64_t body_length;
	bool gone, owned, streaming, close_after, complete;
	int status;
	size_t bytes;
};

/* http_conn.c */
void conn_accept(struct listener *l, evutil_socket_t fd, struct sockaddr *address, int length);
/* Parses and hands over as much of the input as possible. */
void conn_work(struct conn *c);
/* Closes at once. An exchange under way loses its peer. */
void conn_close(struct conn *c);
/* The answer is queued: continue with the next request, or close. */
void conn_answered(struct conn *c);
/* The handler answers later, without the rest of the request. */
void conn_keep(struct conn *c);
/* Is the body of the request, whose head is complete, not yet in the input? */
bool conn_lacks_body(const struct conn *c);
void conn_write(struct conn *c, const char *p, size_t n);
size_t conn_unsent(const struct conn *c);
/* Closes idle connections, and makes the others close after their answer. */
void conn_drain(struct http_server *s);

/* admit.c */
/* Counts a new connection, and closes another one if there are too many. */
void admit_new(struct conn *c);
/* Stops counting the connection, which is about to end or to change its party. */
void admit_leave(struct conn *c);
/* See http_authenticate(). */
bool admit_caller(struct conn *c, struct http_party *caller);
/* Counts the body that is about to arrive against its caller's quota, until the exchange ends. false: the caller is sending
 * too much at once. */
bool admit_body(struct conn *c, uint64_t length);
void admit_body_end(struct http_exchange *x);
/* Closes some unauthenticated connections; false: there are none. */
bool admit_room(struct http_server *s);
bool admit_crowded(const struct http_server *s);

/* http_exchange.c */
struct http_exchange *exchange_new(struct conn *c);
/* The message is complete: the exchange takes its body. */
void exchange_complete(struct http_exchange *x, struct conn *c);
/* Tells the handler, once, that the peer is gone. */
void exchange_gone(struct http_exchange *x);
/* The connection ends. An exchange that no handler owns is freed. */
void exchange_detach(struct http_exchange *x);
void exchange_room(struct http_exchange *x);
/* Answers a request that the server itself refuses, and closes. c->x may be NULL. */
void exchange_refuse(struct conn *c, int status, const char *reason);

/* http_server.c */
void server_accept_more(struct http_server *s);  /* a connection ended */
void server_accept_later(struct http_server *s); /* the system has no descriptors left */
void server_drained(struct http_server *s);
const char *server_date(struct http_server *s);

/* http_listen.c */
void listen_end(struct http_server *s);

/* tls_server.c */
int tls_context_new(const char *cert, const char *key, struct tls_context **out, char *why,
		    size_t room);
void tls_context_free(struct tls_context *t);
struct bufferevent *tls_accept(struct tls_context *t, struct event_base *base, int fd);
/* Did the handshake resume a session that the client had kept? */
bool tls_resumed(struct bufferevent *bev);
/* Tells the peer that no more bytes will come. */
void tls_shutdown(struct bufferevent *bev);

#endif
