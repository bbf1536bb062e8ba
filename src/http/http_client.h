/*
 * client: HTTP/1.1 for callers that wait. One connection, kept open between calls. It never follows
 * redirects and never repeats a request: only its caller knows whether that is safe.
 *
 * One thread at a time uses a client. OpenSSL is loaded (pawl-http-tls.so) only for https.
 */
#ifndef HTTP_HTTP_CLIENT_H
#define HTTP_HTTP_CLIENT_H

#include "base/arena.h"
#include "http/http_message.h"

struct http_client;

/* The fate of a request. */
enum http_fate {
	HTTP_ANSWERED, /* there is a complete answer */
	HTTP_NOT_SENT, /* no byte of it was sent, so the server did not act on it */
	HTTP_UNKNOWN,  /* sent in part or in full, and no complete answer came */
};

struct http_client_options {
	const char *ca_file; /* PEM; trusted instead of the system's certificates; NULL: system */
	/* Keeps a TLS session in this file, so that the next process need not verify the server again. The session is as secret
	 * as a token. NULL: keeps none. */
	const char *session_file;
	size_t answer_max;  /* bytes of an answer's body; 0: 64 MiB */
	int64_t connect_ms; /* the most of a call's time that connecting may take; 0: all */
	int stop_fd;        /* a call ends when this descriptor is readable; <= 0: none */
};

struct http_answer {
	enum http_fate fate;
	int status; /* the answer's HTTP status, if the server answered */
	struct http_headers headers;
	struct str body; /* followed by a NUL */
	bool timed_out;  /* the deadline passed */
	bool stopped;    /* stop_fd ended the request */
	bool connected;  /* the server accepted the connection */
	bool unproven;   /* the server did not prove that it knows the token */
	char why[256];   /* if not answered: the reason, for people */
};

/* `url` is "http://HOST[:PORT]", "https://HOST[:PORT]" or "unix:PATH", without a path behind the
 * port; ports are 80 and 443 by default. Does not connect yet. 0, or -1 and `why`. */
int http_client_new(const char *url, const struct http_client_options *options,
		    struct http_client **out, char *why, size_t room);
void http_client_free(struct http_client *c);
/* "https://host:port" as it identifies the server, in lower case and with the port; "unix:PATH". */
const char *http_client_origin(const struct http_client *c);

/* Before a request goes over a new connection, the server must prove that it knows the token with this SHA-256 (in hex;
 * empty: there is no token). The process that opened a Unix socket must run as this user or as root, with or without a
 * token. For https, the TLS certificate is the proof. insecure: the server need not prove anything. */
void http_client_prove(struct http_client *c, struct str token_hash, bool insecure);

/* Sends a request and waits for the answer until `deadline` (os_boot_ms(); 0: none). `target` is
 * the path with its query. `type` is the body's, NULL for none; without a type and a body there is
 * no Content-Length. The answer's texts are in `a`. */
enum http_fate http_call(struct http_client *c, const char *method, const char *target,
			 const char *type, struct http_headers extra, struct str body,
			 int64_t deadline, struct arena *a, struct http_answer *out);

/* Begins a call whose answer is read line by line (events). HTTP_ANSWERED: the headers have arrived, with any
 * status; read the body with http_feed_line() until http_feed_end(). */
enum http_fate http_feed_start(struct http_client *c, const char *method, const char *target,
			       const char *type, struct http_headers extra, struct str body,
			       int64_t deadline, struct arena *a, struct http_answer *out);
/* The next line of the body, without its line end, in the client's memory; valid until the next
 * call. 1: a line; 0: the body is complete; -1: it was cut off; -2: the deadline passed or
 * stop_fd is readable (the next call continues); -3: a line is longer than `line_max` bytes. */
int http_feed_line(struct http_client *c, size_t line_max, int64_t deadline, struct str *line);
/* The connection's descriptor, to wait for more lines; only after http_feed_line() returned -2. -1: there is none. */
int http_client_fd(const struct http_client *c);
/* Ends the feed. The connection is closed unless the body is complete. */
void http_feed_end(struct http_client *c);

#endif
