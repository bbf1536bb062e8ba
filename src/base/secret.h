/*
 * secret: tokens and their hashes. A token is a UUID v4; the process that presents it owns the
 * lock. Stores see only its SHA-256.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include "base/arena.h"

#define TOKEN_LEN 36
#define HASH_LEN 32

struct str token_make(struct arena *a);
/* Is it a well-formed UUID? */
bool token_valid(struct str token);
struct str token_hash(struct arena *a, struct str token); /* HASH_LEN raw bytes */
/* 32 random bytes as 43 characters of base64url. */
#define SECRET_LEN 43
struct str secret_make(struct arena *a);
/* The HMAC-SHA-256 of the text, in the same form. */
struct str secret_sign(struct arena *a, struct str key, struct str text);
struct str hash_hex(struct arena *a, struct str bytes); /* SHA-256 of the bytes, in hex */
/* SHA-256 of bytes that arrive in pieces. */
struct digest {
	_Alignas(8) unsigned char state[128];
};
void digest_start(struct digest *d);
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, unsigned char out[HASH_LEN]);
/* BLAKE2b of the bytes, in SHORT_HASH_LEN bytes. */
#define SHORT_HASH_LEN 16
void hash_short(struct str bytes, unsigned char out[SHORT_HASH_LEN]);
bool secret_eq(struct str a, struct str b); /* compares in constant time */
/* A short keyed sum that recognizes a secret without keeping it. Without the key, an attacker
 * cannot find another text with the same sum. It is much faster than a hash, and valid in one
 * process only. */
#define MARK_LEN 16
struct secret_mark {
	unsigned char bytes[MARK_LEN];
};
struct secret_mark secret_mark_key(void);
struct secret_mark secret_mark(const struct secret_mark *key, struct str secret);
/* The bytes of a text in base64, in `a`. false: it is not valid. */
bool base64_bytes(struct str text, struct str *out, struct arena *a);
uint32_t random_below(uint32_t limit);

#endif
