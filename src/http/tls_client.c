/* pawl-http-tls.so: TLS for the client. It calls no function of the program that loads it. It loads trusted certificates only
 * when a server's certificate must be verified, since a resumed session needs none. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/module.h"
#include "http/tls.h"

#define TRUSTED_MAX (16 << 20) /* bytes of the certificate file */

struct http_tls_context {
	SSL_CTX *ctx;
	BIO_METHOD *method;
	struct resume_bond bond;
	char *ca_file; /* NULL: the system's certificates */
	BIO *trusted;  /* the file's content */
	bool trusts;   /* tls_verify() has loaded the certificates */
	bool unusable; /* the certificates could not be loaded */
};

struct http_tls {
	struct http_tls_context *of;
	SSL *ssl;
	SSL_SESSION *ticket; /* to resume the session with; NULL: none has arrived */
	int64_t shaken;      /* when the handshake ended, in wall-clock seconds */
	bool failed;
};

static void tls_explain(SSL *ssl, char *why, size_t room)
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

/* ---- a socket without SIGPIPE: a program that uses the library may not ignore that signal */

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

/* ---- the certificates to trust */

static void tls_unusable(const char *ca_file, char *why, size_t room)
{
	snprintf(why, room, "cannot use the certificates in %s", ca_file ? ca_file : "the system");
	ERR_clear_error();
}

/* Reads the file once. It may be a pipe, and a second read could find other certificates. */
static BIO *read_file(const char *path)
{
	BIO *in = BIO_new_file(path, "r"), *out = BIO_new(BIO_s_mem());
	char part[4096];
	int n = -1;

	while (in && out && (n = BIO_read(in, part, sizeof(part))) > 0)
		if (BIO_write(out, part, n) != n || BIO_pending(out) > TRUSTED_MAX)
			break;
	BIO_free(in);
	if (n == 0)
		return out;
	BIO_free(out);
	return NULL;
}

/* Reads the same memory from its start, without consuming it. */
static BIO *tls_reader(BIO *of)
{
	char *p;
	long n = BIO_get_mem_data(of, &p);

	return BIO_new_mem_buf(n ? p : "", (int)n);
}

/* Does the memory contain this certificate and nothing else? */
static bool has_only(BIO *trusted, const unsigned char *cert, long size)
{
	BIO *in = tls_reader(trusted);
	char *name = NULL, *head = NULL;
	unsigned char *data = NULL;
	long n;
	int found = 0, same = 0;

	while (in && PEM_read_bio(in, &name, &head, &data, &n)) {
		found++;
		same += strcmp(name, PEM_STRING_X509) == 0 && n == size &&
			memcmp(data, cert, (size_t)n) == 0;
		OPENSSL_free(name);
		OPENSSL_free(head);
		OPENSSL_free(data);
	}
	BIO_free(in);
	ERR_clear_error();
	return found == 1 && same == 1;
}

/* Adds certificates and revocation lists. False: there is none, or one is damaged. */
static bool add_all(X509_STORE *store, BIO *trusted)
{
	BIO *in = tls_reader(trusted);
	/* an empty password: otherwise OpenSSL would ask for one if the file has an encrypted key */
	STACK_OF(X509_INFO) *all = in ? PEM_X509_INFO_read_bio(in, NULL, NULL, "") : NULL;
	int found = 0;
	bool good = true;

	for (int i = 0; i < sk_X509_INFO_num(all); i++) {
		const X509_INFO *one = sk_X509_INFO_value(all, i);

		found += one->x509 || one->crl;
		good = good && (!one->x509 || X509_STORE_add_cert(store, one->x509) == 1) &&
		       (!one->crl || X509_STORE_add_crl(store, one->crl) == 1);
	}
	sk_X509_INFO_pop_free(all, X509_INFO_free);
	BIO_free(in);
	return found && good;
}

/* If the server's certificate is self-signed, the trust file contains that certificate. OpenSSL takes long to decode a
 * certificate, and it has already decoded the server's. So if both are equal, the decoded certificate is added. */
static bool trust_these(BIO *trusted, X509_STORE_CTX *of)
{
	X509 *peer = X509_STORE_CTX_get0_cert(of);
	X509_STORE *store = X509_STORE_CTX_get0_store(of);
	unsigned char *bytes = NULL;
	int n = peer ? i2d_X509(peer, &bytes) : -1;
	bool same = n > 0 && has_only(trusted, bytes, n);

	OPENSSL_free(bytes);
	return same ? X509_STORE_add_cert(store, peer) == 1 : add_all(store, trusted);
}

/* OpenSSL calls this only for a full handshake. A resumed session has no certificate to verify, so it does not pay for
 * loading the trusted certificates, which may be hundreds. */
static int tls_verify(X509_STORE_CTX *of, void *context)
{
	struct http_tls_context *c = context;

	if (!c->trusts)
		c->trusts = c->trusted ? trust_these(c->trusted, of)
				       : SSL_CTX_set_default_verify_paths(c->ctx) == 1;
	c->unusable = !c->trusts;
	return c->unusable ? 0 : X509_verify_cert(of);
}

static bool tls_trust(struct http_tls_context *c, const char *origin, const char *ca_file)
{
	c->ca_file = ca_file ? strdup(ca_file) : NULL;
	c->trusted = ca_file ? read_file(ca_file) : NULL;
	SSL_CTX_set_cert_verify_callback(c->ctx, tls_verify, c);
	return ((c->ca_file && c->trusted) || !ca_file) &&
	       resume_bond(&c->bond, origin, c->trusted);
}

/* OpenSSL calls this after the handshake, for each ticket that the server sends. The last one counts. */
static int keep_ticket(SSL *ssl, SSL_SESSION *ticket)
{
	struct http_tls *t = SSL_get_app_data(ssl);

	SSL_SESSION_free(t->ticket);
	t->ticket = ticket;
	return 1; /* it is ours */
}

/* ---- the context */

static void context_free(struct http_tls_context *c)
{
	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	BIO_meth_free(c->method);
	BIO_free(c->trusted);
	free(c->ca_file);
	free(c);
}

static struct http_tls_context *tls_context_make(const char *origin, const char *ca_file, char *why,
						 size_t room)
{
	struct http_tls_context *c = calloc(1, sizeof(*c));

	if (c) {
		/* most processes end after one call, so OpenSSL need not free its memory at exit */
		(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
		c->ctx = SSL_CTX_new(TLS_client_method());
		c->method = socket_method();
	}
	if (!c || !c->ctx || !c->method) {
		tls_explain(NULL, why, room);
		context_free(c);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION);
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	/* an HTTP answer gives its own length, so an end without close_notify is not dangerous */
	SSL_CTX_set_options(c->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(c->ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(c->ctx, keep_ticket);
	SSL_CTX_set_read_ahead(c->ctx, 1); /* otherwise each record takes two system calls */
	if (tls_trust(c, origin, ca_file))
		return c;
	tls_unusable(ca_file, why, room);
	context_free(c);
	return NULL;
}

/* ---- a session */

static void tls_end(struct http_tls *t)
{
	if (!t)
		return;
	if (t->ssl && !t->failed && SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
	ERR_clear_error();
	SSL_SESSION_free(t->ticket);
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

static struct http_tls *tls_start(struct http_tls_context *c, int fd, const char *host)
{
	struct http_tls *t = calloc(1, sizeof(*t));
	BIO *bio = t ? BIO_new(c->method) : NULL;

	if (bio) {
		BIO_set_data(bio, (void *)(intptr_t)fd);
		BIO_set_init(bio, 1);
		t->of = c;
		t->ssl = SSL_new(c->ctx);
	}
	if (!t || !t->ssl || !expect_host(t->ssl, host)) {
		BIO_free(bio);
		tls_end(t);
		return NULL;
	}
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_connect_state(t->ssl);
	SSL_set_app_data(t->ssl, t);
	return t;
}

static ssize_t tls_wish(struct http_tls *t, int result)
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

static ssize_t tls_handshake(struct http_tls *t, char *why, size_t room)
{
	int result;
	ssize_t w;

	ERR_clear_error();
	result = SSL_do_handshake(t->ssl);
	if (result == 1) {
		t->shaken = (int64_t)time(NULL);
		return 1;
	}
	w = tls_wish(t, result);
	if (w == TLS_WANTS_READ || w == TLS_WANTS_WRITE)
		return w;
	if (t->of->unusable)
		tls_unusable(t->of->ca_file, why, room);
	else
		tls_explain(t->ssl, why, room);
	return TLS_FAILED;
}

static bool tls_offer(struct http_tls *t, const void *p, size_t n)
{
	bool offered = resume_offer(t->ssl, &t->of->bond, p, n);

	ERR_clear_error();
	return offered;
}

static size_t tls_keep(struct http_tls *t, void *p, size_t room)
{
	if (!t->ticket || SSL_session_reused(t->ssl))
		return 0;
	return resume_keep(t->ssl, &t->of->bond, t->ticket, t->shaken, p, room);
}

static ssize_t session_read(struct http_tls *t, void *p, size_t n)
{
	int got;

	ERR_clear_error();
	got = SSL_read(t->ssl, p, n > 1 << 20 ? 1 << 20 : (int)n);
	return got > 0 ? got : tls_wish(t, got);
}

static ssize_t session_write(struct http_tls *t, const void *p, size_t n)
{
	int sent;

	ERR_clear_error();
	sent = SSL_write(t->ssl, p, n > 1 << 20 ? 1 << 20 : (int)n);
	return sent > 0 ? sent : tls_wish(t, sent);
}

static const struct http_tls_ops ops = {
	.context = tls_context_make,
	.context_free = context_free,
	.start = tls_start,
	.offer = tls_offer,
	.handshake = tls_handshake,
	.read = session_read,
	.write = session_write,
	.keep = tls_keep,
	.end = tls_end,
};

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .http_tls = &ops };
