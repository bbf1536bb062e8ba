/*
 * tls: the client's side of TLS, which pawl-http-tls.so offers. Only an https URL loads it, so that
 * no other call pays for OpenSSL.
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

struct http_tls_context;
struct http_tls;

/* Results other than a number of bytes; 0 is the end. */
enum { TLS_WANTS_READ = -1, TLS_WANTS_WRITE = -2, TLS_FAILED = -3 };

#define HTTP_TLS_KEPT_MAX 4096

struct http_tls_ops {
	/* For the server at `origin`. Trusts the certificates in `ca_file`, or the system's if it is NULL. NULL: see
	 * `why`. */
	struct http_tls_context *(*context)(const char *origin, const char *ca_file, char *why,
					    size_t room);
	void (*context_free)(struct http_tls_context *ctx);
	/* A session over a connected, non-blocking socket. The server must prove that it is
	 * `host` (a name or an address). */
	struct http_tls *(*start)(struct http_tls_context *ctx, int fd, const char *host);
	/* Before the handshake: offers to resume the session in these bytes, which keep() wrote. False: it cannot be resumed. */
	bool (*offer)(struct http_tls *t, const void *p, size_t n);
	/* 1: done; TLS_WANTS_READ, TLS_WANTS_WRITE; TLS_FAILED: see `why`. */
	ssize_t (*handshake)(struct http_tls *t, char *why, size_t room);
	ssize_t (*read)(struct http_tls *t, void *p, size_t n);
	ssize_t (*write)(struct http_tls *t, const void *p, size_t n);
	/* Writes a session that a later process can resume, in at most HTTP_TLS_KEPT_MAX bytes. They are as secret as a token.
	 * Returns their number; 0: there is no session, or this session was itself resumed. */
	size_t (*keep)(struct http_tls *t, void *p, size_t room);
	void (*end)(struct http_tls *t); /* does not close the socket */
};

/* --- tls resume ------------------------------------------------------------------------------- */

/*
 * tls_resume: continues an earlier process's TLS session, so that the server need not prove its name again. A
 * command that makes one call spends much of its time on that proof. It resumes only with TLS 1.3, which exchanges new
 * keys even then, and never sends early data.
 *
 * A session is valid for one origin and one set of trusted certificates: the content of a file, or the system's file and
 * folders as of their last change. It expires with the server's certificate, and at the latest an hour after the server
 * proved its name.
 */

/* A hash of the origin and the trusted certificates for which a session is valid. */
struct resume_bond {
	unsigned char sum[32];
};

/* trusted: the certificates in memory; NULL: the system's. */
bool resume_bond(struct resume_bond *b, const char *origin, BIO *trusted);
/* Offers the session to the server. False: the bytes are damaged or have another bond, or the session has expired. */
bool resume_offer(SSL *ssl, const struct resume_bond *b, const void *p, size_t n);
/* Writes the session of a ticket that the server has sent. `from`: when the server proved its name, on the wall clock.
 * Returns the number of bytes; 0: the session cannot be kept. */
size_t resume_keep(SSL *ssl, const struct resume_bond *b, SSL_SESSION *ticket, int64_t from,
		   void *p, size_t room);

#endif
