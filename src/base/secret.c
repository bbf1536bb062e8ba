/* Tokens, hashes and random numbers, by libsodium. Secrets are compared in constant time. Without a
 * source of random numbers the process aborts, because no token would be safe. */
#include "base/secret.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>

_Static_assert(crypto_hash_sha256_BYTES == HASH_LEN, "a hash is a SHA-256");

struct str token_make(struct arena *a)
{
	unsigned char id[16];
	char hex[33];

	randombytes_buf(id, sizeof(id));
	id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); /* version 4: random */
	id[8] = (unsigned char)((id[8] & 0x3f) | 0x80); /* variant of RFC 4122 */
	sodium_bin2hex(hex, sizeof(hex), id, sizeof(id));
	return arena_printf(a, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
			    hex + 20);
}

static struct str secret_base64url(struct arena *a, const unsigned char bytes[32])
{
	char *text = arena_alloc(a, SECRET_LEN + 1);

	sodium_bin2base64(text, SECRET_LEN + 1, bytes, 32,
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	return str_n(text, SECRET_LEN);
}

struct str secret_make(struct arena *a)
{
	unsigned char bytes[32];
	struct str text;

	randombytes_buf(bytes, sizeof(bytes));
	text = secret_base64url(a, bytes);
	sodium_memzero(bytes, sizeof(bytes));
	return text;
}

struct str secret_sign(struct arena *a, struct str key, struct str text)
{
	crypto_auth_hmacsha256_state state;
	unsigned char mac[crypto_auth_hmacsha256_BYTES];

	crypto_auth_hmacsha256_init(&state, (const unsigned char *)str_p(key), key.n);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)str_p(text), text.n);
	crypto_auth_hmacsha256_final(&state, mac);
	return secret_base64url(a, mac);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool token_valid(struct str token)
{
	if (token.n != TOKEN_LEN)
		return false;
	for (size_t i = 0; i < TOKEN_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? token.p[i] != '-' : !is_hex(token.p[i]))
			return false;
	}
	return true;
}

static struct str secret_sha256(struct arena *a, struct str bytes)
{
	unsigned char *hash = arena_alloc(a, HASH_LEN);

	crypto_hash_sha256(hash, (const unsigned char *)(bytes.n ? bytes.p : ""), bytes.n);
	return str_n((char *)hash, HASH_LEN);
}

/* UUIDs ignore case, so the hash is that of the lower-case form. */
struct str token_hash(struct arena *a, struct str token)
{
	char *low = arena_cstr(a, token);
	struct str hash;

	for (size_t i = 0; i < token.n; i++)
		if (low[i] >= 'A' && low[i] <= 'Z')
			low[i] = (char)(low[i] + 32);
	hash = secret_sha256(a, str_n(low, token.n));
	sodium_memzero(low, token.n);
	return hash;
}

struct str hash_hex(struct arena *a, struct str bytes)
{
	struct str hash = secret_sha256(a, bytes);
	char *hex = arena_alloc(a, 2 * HASH_LEN + 1);

	sodium_bin2hex(hex, 2 * HASH_LEN + 1, (const unsigned char *)hash.p, hash.n);
	return str_n(hex, 2 * HASH_LEN);
}

bool base64_bytes(struct str text, struct str *out, struct arena *a)
{
	char *to = arena_alloc(a, text.n + 1);
	size_t n;

	if (sodium_base642bin((unsigned char *)to, text.n + 1, str_p(text), text.n, NULL, &n, NULL,
			      sodium_base64_VARIANT_ORIGINAL))
		return false;
	*out = str_n(to, n);
	return true;
}

void hash_short(struct str bytes, unsigned char out[SHORT_HASH_LEN])
{
	crypto_generichash(out, SHORT_HASH_LEN, (const unsigned char *)str_p(bytes), bytes.n, NULL,
			   0);
}

bool secret_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || sodium_memcmp(a.p, b.p, a.n) == 0);
}

/* Aborts without a source of random numbers, because tokens could then be guessed. */
static void start_sodium(void)
{
	if (sodium_init() < 0)
		abort();
}

uint32_t random_below(uint32_t limit)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_sodium);
	return randombytes_uniform(limit);
}

_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == MARK_LEN &&
		       crypto_shorthash_siphashx24_BYTES == MARK_LEN,
	       "a mark and its key are of one size");

struct secret_mark secret_mark_key(void)
{
	struct secret_mark key;

	(void)random_below(1); /* starts libsodium */
	randombytes_buf(key.bytes, sizeof(key.bytes));
	return key;
}

struct secret_mark secret_mark(const struct secret_mark *key, struct str secret)
{
	struct secret_mark m;

	crypto_shorthash_siphashx24(m.bytes, (const unsigned char *)str_p(secret), secret.n,
				    key->bytes);
	return m;
}

_Static_assert(sizeof(crypto_hash_sha256_state) <= sizeof(((struct digest *)0)->state),
	       "a digest has room for libsodium's");

void digest_start(struct digest *d)
{
	crypto_hash_sha256_init((crypto_hash_sha256_state *)d->state);
}

void digest_add(struct digest *d, const void *p, size_t n)
{
	crypto_hash_sha256_update((crypto_hash_sha256_state *)d->state, p, n);
}

void digest_end(struct digest *d, unsigned char out[HASH_LEN])
{
	crypto_hash_sha256_final((crypto_hash_sha256_state *)d->state, out);
}
