/*
 * tls_resume: continues a TLS session of an earlier process, so that the server need not prove its name again. A
 * command that makes one call spends much of its time on that proof. Only with TLS 1.3, which exchanges new keys
 * nevertheless, and never with early data.
 *
 * A session is good for one origin and one set of trusted certificates: the content of a file, or the system's file and
 * folders as they are since their last change. It expires with the server's certificate, and at the latest an hour after the server proved its name.
 */
#ifndef HTTP_TLS_RESUME_H
#define HTTP_TLS_RESUME_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The origin and the trusted certificates of a session. */
struct resume_bond {
	unsigned char sum[32];
};

/* trusted: the certificates in memory; NULL: the system's. */
bool resume_bond(struct resume_bond *b, const char *origin, BIO *trusted);
/* Offers the session to the server. False: the bytes are damaged or expired, or have another bond. */
bool resume_offer(SSL *ssl, const struct resume_bond *b, const void *p, size_t n);
/* Writes the session of a ticket that the server has sent. `from`: when it proved its name, on the wall clock. Returns
 * the number of bytes; 0: it cannot be kept. */
size_t resume_keep(SSL *ssl, const struct resume_bond *b, SSL_SESSION *ticket, int64_t from,
		   void *p, size_t room);

#endif
