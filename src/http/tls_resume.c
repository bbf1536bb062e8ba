/* Encodes and checks kept sessions. A session is offered only to the origin, and under the trusted certificates, for which it
 * was verified, and never after its time: resuming skips the certificate check. */
#include "http/tls.h"

#include <openssl/asn1.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define KEPT_MAX_S 3600 /* then the server must prove its name again, whatever its ticket says */
#define PEER_FIELD 3    /* the certificate's tag in an encoded session */
#define HEADER_MAX 8    /* bytes of a tag and a length */

/* Precedes the encoded session. `from`: when the server proved its name. Times are wall-clock seconds. */
struct head {
	struct resume_bond bond;
	int64_t from, until;
};

/* ---- the bond */

static bool sum_text(EVP_MD_CTX *d, const char *text)
{
	return EVP_DigestUpdate(d, text, strlen(text) + 1) == 1;
}

/* The time of the last change stands for the content: reading it would take longer than verifying the server. */
static bool sum_path(EVP_MD_CTX *d, const char *path)
{
	int64_t seen[5] = { 0 };
	struct stat st;

	if (stat(path, &st) == 0) {
		seen[0] = (int64_t)st.st_dev;
		seen[1] = (int64_t)st.st_ino;
		seen[2] = (int64_t)st.st_size;
		seen[3] = (int64_t)st.st_ctim.tv_sec;
		seen[4] = (int64_t)st.st_ctim.tv_nsec;
	}
	return sum_text(d, path) && EVP_DigestUpdate(d, seen, sizeof(seen)) == 1;
}

/* Splits the list of folders as OpenSSL does. */
static bool sum_folders(EVP_MD_CTX *d, const char *list)
{
	char *copy = strdup(list), *rest = copy, *path;
	bool good = copy;

	while (good && (path = strsep(&rest, ":")))
		good = sum_path(d, path);
	free(copy);
	return good;
}

static const char *tls_resume_chosen(const char *variable, const char *usual)
{
	const char *value = getenv(variable);

	return value ? value : usual;
}

static bool sum_trust(EVP_MD_CTX *d, BIO *trusted)
{
	if (trusted) {
		char *p;
		long n = BIO_get_mem_data(trusted, &p);

		return sum_text(d, "file") && EVP_DigestUpdate(d, p, (size_t)n) == 1;
	}
	return sum_text(d, "system") &&
	       sum_path(d, tls_resume_chosen(X509_get_default_cert_file_env(),
					     X509_get_default_cert_file())) &&
	       sum_folders(d, tls_resume_chosen(X509_get_default_cert_dir_env(),
						X509_get_default_cert_dir()));
}

bool resume_bond(struct resume_bond *b, const char *origin, BIO *trusted)
{
	EVP_MD_CTX *d = EVP_MD_CTX_new();
	bool done = d && EVP_DigestInit_ex(d, EVP_sha256(), NULL) == 1 && sum_text(d, origin) &&
		    sum_trust(d, trusted) && EVP_DigestFinal_ex(d, b->sum, NULL) == 1;

	EVP_MD_CTX_free(d);
	return done;
}

/* ---- the offer */

bool resume_offer(SSL *ssl, const struct resume_bond *b, const void *p, size_t n)
{
	const unsigned char *end = (const unsigned char *)p + sizeof(struct head);
	int64_t now = (int64_t)time(NULL);
	struct head h;
	SSL_SESSION *s;
	bool offered;

	if (n <= sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	if (memcmp(&h.bond, b, sizeof(*b)) != 0 || now < h.from || now >= h.until ||
	    h.until > h.from + KEPT_MAX_S)
		return false;
	s = d2i_SSL_SESSION(NULL, &end, (long)(n - sizeof(h)));
	offered = s && end == (const unsigned char *)p + n &&
		  SSL_SESSION_get_protocol_version(s) == TLS1_3_VERSION &&
		  SSL_SESSION_is_resumable(s) && SSL_set_session(ssl, s) == 1;
	SSL_SESSION_free(s);
	return offered;
}

/* ---- encoding a session */

/* A session expires with its ticket, or with the first certificate of the chain that expires. 0: it has expired. */
static int64_t end_of(SSL *ssl, const SSL_SESSION *ticket, int64_t from)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	int64_t now = (int64_t)time(NULL);
	int64_t until = from + (int64_t)SSL_SESSION_get_ticket_lifetime_hint(ticket);

	if (until > from + KEPT_MAX_S)
		until = from + KEPT_MAX_S;
	if (!chain || sk_X509_num(chain) < 1)
		return 0;
	for (int i = 0; i < sk_X509_num(chain); i++) {
		int days, seconds;
		const ASN1_TIME *end = X509_get0_notAfter(sk_X509_value(chain, i));

		if (ASN1_TIME_diff(&days, &seconds, NULL, end) != 1)
			return 0;
		if (now + (int64_t)days * 86400 + seconds < until)
			until = now + (int64_t)days * 86400 + seconds;
	}
	return until > now ? until : 0;
}

struct piece {
	const unsigned char *at, *end;
};

/* Finds the field with the server's certificate; an empty piece at the end if there is none. False: these bytes are not
 * an encoded session. */
static bool find_peer(const unsigned char *der, long n, struct piece *fields, struct piece *peer)
{
	const unsigned char *at = der;
	long length;
	int tag, class;

	if (ASN1_get_object(&at, &length, &tag, &class, n) != V_ASN1_CONSTRUCTED ||
	    tag != V_ASN1_SEQUENCE)
		return false;
	*fields = (struct piece){ at, at + length };
	*peer = (struct piece){ fields->end, fields->end };
	while (at < fields->end) {
		const unsigned char *field = at;

		if (ASN1_get_object(&at, &length, &tag, &class, fields->end - at) & 0x80)
			return false;
		at += length;
		if (class == V_ASN1_CONTEXT_SPECIFIC && tag == PEER_FIELD)
			*peer = (struct piece){ field, at };
	}
	return true;
}

static unsigned char *tls_resume_add(unsigned char *to, const unsigned char *from,
				     const unsigned char *end)
{
	memcpy(to, from, (size_t)(end - from));
	return to + (end - from);
}

/* Copies the session without the server's certificate. Nothing asks a resumed session for it, and OpenSSL would
 * decode it, which costs more than the rest of the handshake. Returns the number of bytes; 0: it failed. */
static size_t copy_session(const unsigned char *der, long n, unsigned char *out, size_t room)
{
	struct piece fields, peer;
	unsigned char *to = out;

	if (!find_peer(der, n, &fields, &peer))
		return 0;
	n = (fields.end - fields.at) - (peer.end - peer.at);
	if ((size_t)n + HEADER_MAX > room)
		return 0;
	ASN1_put_object(&to, 1, (int)n, V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL);
	to = tls_resume_add(to, fields.at, peer.at);
	to = tls_resume_add(to, peer.end, fields.end);
	return (size_t)(to - out);
}

size_t resume_keep(SSL *ssl, const struct resume_bond *b, SSL_SESSION *ticket, int64_t from,
		   void *p, size_t room)
{
	struct head h = { .bond = *b, .from = from, .until = end_of(ssl, ticket, from) };
	unsigned char *der = NULL;
	int n;
	size_t size = 0;

	if (!h.until || room < sizeof(h) || SSL_get_verify_result(ssl) != X509_V_OK ||
	    SSL_SESSION_get_protocol_version(ticket) != TLS1_3_VERSION)
		return 0;
	n = i2d_SSL_SESSION(ticket, &der);
	if (n > 0)
		size = copy_session(der, n, (unsigned char *)p + sizeof(h), room - sizeof(h));
	OPENSSL_clear_free(der, n > 0 ? (size_t)n : 0);
	if (!size)
		return 0;
	memcpy(p, &h, sizeof(h));
	return sizeof(h) + size;
}
