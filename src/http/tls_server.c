/* TLS for the server: OpenSSL below libevent's buffers. At least TLS 1.2, no renegotiation, and no protocol but HTTP/1.1. */
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "http/http_private.h"

struct tls_context {
	SSL_CTX *ctx;
};

/* Chooses HTTP/1.1, and refuses a client that offers only other protocols. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n,
			   const unsigned char *offered, unsigned int length, void *ctx)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)ctx;
	if (SSL_select_next_proto(&chosen, n, ours, sizeof(ours) - 1, offered, length) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int tls_server_failed(SSL_CTX *ctx, const char *what, const char *file, char *why,
			     size_t room)
{
	char text[160] = "unknown error";
	unsigned long code = ERR_peek_last_error();

	if (code)
		ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	snprintf(why, room, "cannot use the %s %s: %s", what, file, text);
	SSL_CTX_free(ctx);
	return -1;
}

int tls_context_new(const char *cert, const char *key, struct tls_context **out, char *why,
		    size_t room)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	*out = NULL;
	if (!ctx)
		return tls_server_failed(NULL, "TLS library for", cert, why, room);
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_num_tickets(ctx, 1); /* pawl's client uses one; each costs time and bytes */
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return tls_server_failed(ctx, "certificate", cert, why, room);
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		return tls_server_failed(ctx, "key", key, why, room);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return tls_server_failed(ctx, "certificate with the key", key, why, room);
	*out = mem_alloc(sizeof(**out));
	(*out)->ctx = ctx;
	return 0;
}

void tls_context_free(struct tls_context *t)
{
	if (t)
		SSL_CTX_free(t->ctx);
	free(t);
}

struct bufferevent *tls_accept(struct tls_context *t, struct event_base *base, int fd)
{
	SSL *ssl = SSL_new(t->ctx);
	struct bufferevent *bev;

	if (!ssl)
		return NULL;
	/* without deferred callbacks, a call into libevent could enter our own callbacks */
	bev = bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
					     BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!bev) {
		SSL_free(ssl);
		return NULL;
	}
	/* OpenSSL 3 reports a peer that closes without notice as an error */
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

bool tls_resumed(struct bufferevent *bev)
{
	return SSL_session_reused(bufferevent_openssl_get_ssl(bev));
}

void tls_shutdown(struct bufferevent *bev)
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);

	if (!ssl || !SSL_is_init_finished(ssl))
		return;
	SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
	SSL_shutdown(ssl);
	ERR_clear_error();
}
