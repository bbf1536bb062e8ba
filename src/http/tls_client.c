/* pawl-http-tls.so. It calls nothing of the program that loads it. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/module.h"
#include "http/tls.h"

struct http_tls_context {
	SSL_CTX *ctx;
	BIO_METHOD *method;
};

struct http_tls {
	SSL *ssl;
	bool failed;
};

static void explain(SSL *ssl, char *why, size_t room)
{
	long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	if (verified != X509_V_OK)
		snprintf(why, room, "the server's certificate is not trusted: %s",
			 X509_verify_cert_error_string(verified));
	else
		snprintf(why, room, "TLS failed: %s", text ? text : "the server closed");
	ERR_clear_error();
}

/* ---- a socket without SIGPIPE: the program around a library may not ignore the signal */

static int socket_write(BIO *b, const char *p, int n)
{
	int fd = (int)(intptr_t)BIO_get_data(b);
	ssize_t sent = send(fd, p, (size_t)n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return (int)sent;
}

static int socket_read(BIO *b, char *p, int n)
{
	int fd = (int)(intptr_t)BIO_get_data(b);
	ssize_t got = recv(fd, p, (size_t)n, 0);

	BIO_clear_retry_flags(b);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int)got;
}

static long socket_ctrl(BIO *b, int what, long n, void *p)
{
	(void)b;
	(void)n;
	(void)p;
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *socket_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");

	if (!m)
		return NULL;
	BIO_meth_set_write(m, socket_write);
	BIO_meth_set_read(m, socket_read);
	BIO_meth_set_ctrl(m, socket_ctrl);
	return m;
}

/* ---- the context */

static void context_free(struct http_tls_context *c)
{
	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	BIO_meth_free(c->method);
	free(c);
}

static struct http_tls_context *context(const char *ca_file, char *why, size_t room)
{
	struct http_tls_context *c = calloc(1, sizeof(*c));
	bool trusted = false;

	if (c) {
		/* most callers end after one call: leave the memory of OpenSSL to the end of the process */
		(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
		c->ctx = SSL_CTX_new(TLS_client_method());
		c->method = socket_method();
	}
	if (!c || !c->ctx || !c->method) {
		explain(NULL, why, room);
		context_free(c);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION);
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	/* an answer says itself where it ends, so a bare end is not dangerous */
	SSL_CTX_set_options(c->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(c->ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	trusted = ca_file ? SSL_CTX_load_verify_file(c->ctx, ca_file) == 1
			  : SSL_CTX_set_default_verify_paths(c->ctx) == 1;
	if (trusted)
		return c;
	snprintf(why, room, "cannot use the certificates in %s", ca_file ? ca_file : "the system");
	ERR_clear_error();
	context_free(c);
	return NULL;
}

/* ---- a session */

static void end(struct http_tls *t)
{
	if (!t)
		return;
	if (t->ssl && !t->failed && SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
	ERR_clear_error();
	SSL_free(t->ssl);
	free(t);
}

static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char bytes[16];

	if (inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static struct http_tls *start(struct http_tls_context *c, int fd, const char *host)
{
	struct http_tls *t = calloc(1, sizeof(*t));
	BIO *bio = t ? BIO_new(c->method) : NULL;

	if (bio) {
		BIO_set_data(bio, (void *)(intptr_t)fd);
		BIO_set_init(bio, 1);
		t->ssl = SSL_new(c->ctx);
	}
	if (!t || !t->ssl || !expect_host(t->ssl, host)) {
		BIO_free(bio);
		end(t);
		return NULL;
	}
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_connect_state(t->ssl);
	return t;
}

static ssize_t wish(struct http_tls *t, int result)
{
	switch (SSL_get_error(t->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return TLS_WANTS_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WANTS_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		t->failed = true;
		return TLS_FAILED;
	}
}

static ssize_t handshake(struct http_tls *t, char *why, size_t room)
{
	int result;
	ssize_t w;

	ERR_clear_error();
	result = SSL_do_handshake(t->ssl);
	if (result == 1)
		return 1;
	w = wish(t, result);
	if (w == TLS_WANTS_READ || w == TLS_WANTS_WRITE)
		return w;
	explain(t->ssl, why, room);
	return TLS_FAILED;
}

static ssize_t session_read(struct http_tls *t, void *p, size_t n)
{
	int got;

	ERR_clear_error();
	got = SSL_read(t->ssl, p, n > 1 << 20 ? 1 << 20 : (int)n);
	return got > 0 ? got : wish(t, got);
}

static ssize_t session_write(struct http_tls *t, const void *p, size_t n)
{
	int sent;

	ERR_clear_error();
	sent = SSL_write(t->ssl, p, n > 1 << 20 ? 1 << 20 : (int)n);
	return sent > 0 ? sent : wish(t, sent);
}

static const struct http_tls_ops ops = {
	.context = context,
	.context_free = context_free,
	.start = start,
	.handshake = handshake,
	.read = session_read,
	.write = session_write,
	.end = end,
};

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .http_tls = &ops };
