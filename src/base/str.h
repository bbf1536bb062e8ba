/*
 * str: a borrowed run of bytes. It never owns them and is not NUL-terminated. n == 0 is empty, and
 * p may then be NULL. The creator of the bytes keeps them alive (usually an arena).
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

struct strs {
	struct str *v;
	size_t n;
};

#define STR(lit) ((struct str){ "" lit, sizeof(lit) - 1 })
/* For printf's "%.*s". It evaluates `s` twice, so `s` must be an object: the & refuses a call. For a call, write "%s"
 * with arena_cstr(). */
#define STRF(s) (int)(&(s))->n, str_p(s)

/* Never NULL. */
static inline const char *str_p(struct str s)
{
	return s.n ? s.p : "";
}

static inline struct str str_c(const char *c)
{
	return (struct str){ c, c ? strlen(c) : 0 };
}

static inline struct str str_n(const char *p, size_t n)
{
	return (struct str){ p, n };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *c)
{
	return str_eq(a, str_c(c));
}

/* Compares bytes like memcmp; a prefix comes first. */
int str_cmp(struct str a, struct str b);
/* Equal, ignoring the case of ASCII letters. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Does `s` contain `part`, ignoring the case of ASCII letters? */
bool str_has_nocase(struct str s, struct str part);
struct str str_trim(struct str s);
/* Splits at the first `sep`: returns the text before it and leaves the rest in *s. */
struct str str_cut(struct str *s, char sep);
/* Removes `prefix` from the front of *s, if it is there. */
bool str_cut_prefix(struct str *s, struct str prefix);
/* A whole decimal number with nothing around it. */
bool str_to_i64(struct str s, int64_t *out);

/* A checksum that continues from `seed`. It detects accidents, not forgeries. Files contain it, so
 * it must not change. Do not use it for hash tables: its low bits hardly depend on a word's last
 * bytes. */
uint64_t str_sum(uint64_t seed, const void *p, size_t n);
/* FNV-1a, for hash tables. A file that processes share contains it (store/local/combine.c), so it
 * must not change. */
uint64_t str_hash(struct str s);

bool strs_have(struct strs list, struct str s);
bool strs_eq(struct strs a, struct strs b);

/* --- search ----------------------------------------------------------------------------------- */

/*
 * search: finds a key in a sorted list.
 */

/* The key of the i-th element. */
typedef struct str search_fn(const void *list, size_t i);

/* The position of the key among n elements sorted by str_cmp(); if not *found, the position where
 * it belongs. */
size_t search_key(const void *list, size_t n, struct str key, search_fn *key_at, bool *found);

/* --- digit ------------------------------------------------------------------------------------ */

/* digit: the ASCII digits. isdigit() of the C library depends on the locale. */

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

#endif
