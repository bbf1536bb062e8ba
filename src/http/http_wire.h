/*
 * wire: the client's connection. It reads and writes bytes, plain or through TLS, each call with a deadline.
 */
#ifndef HTTP_HTTP_WIRE_H
#define HTTP_HTTP_WIRE_H

#include "base/str.h"
#include "http/address.h"
#include "http/tls.h"

struct wire {
	int fd;      /* -1: not connected */
	int stop_fd; /* -1: none */
	bool waits;  /* a read may block in the kernel, without poll() */
	int reads;   /* so far; see lets_wait() */
	const struct http_tls_ops *tls;
	struct http_tls_context *context;
	struct http_tls *session;
	const char *session_file; /* NULL: none */
	bool offered;             /* the file's session was offered */
	bool refused;             /* that session's handshake failed: do not offer it again */
};

/* Results other than a number of bytes; 0 is the end. */
enum { WIRE_TIMEOUT = -1, WIRE_STOPPED = -2, WIRE_FAILED = -3 };

/* 0, or one of the results above and the reason in `why`. */
int wire_connect(struct wire *w, const struct http_place *place, int64_t deadline, char *why,
		 size_t room);
int wire_connect_unix(struct wire *w, const char *path, int64_t deadline, char *why, size_t room);
/* Adds TLS to the connection. If it fails while `offered` is set, the session may be at fault: a new connection may
 * succeed, because it does not offer that session again. */
int wire_secure(struct wire *w, const char *host, const char *origin, const char *ca_file,
		int64_t deadline, char *why, size_t room);
/* Is it connected, and has the peer neither closed it nor sent anything? */
bool wire_quiet(const struct wire *w);
ssize_t wire_read(struct wire *w, void *p, size_t n, int64_t deadline);
ssize_t wire_write(struct wire *w, const void *p, size_t n, int64_t deadline);
void wire_close(struct wire *w);
void wire_free(struct wire *w);

/* --- kept branch ------------------------------------------------------------------------------ */

/*
 * kept: a file with a TLS session that a later process can resume.
 */

/* Returns the number of bytes; 0: there is no file, or fs_read_private() refuses it. */
size_t kept_read(const char *path, void *p, size_t room);
void kept_write(const char *path, struct str bytes);
void kept_forget(const char *path);

#endif
