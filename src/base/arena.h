/*
 * arena: memory for one call, freed as a whole. Allocation never fails: without memory the process
 * ends with exit code 30 (API_ERROR). Every store survives that, like a kill -9.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdatomic.h>

#include "base/str.h"

struct arena_chunk;

struct arena;

/* Limits the memory of arenas in several threads. A pool may be a part of a whole, and may then
 * hold as much as the whole has left. So the more parts are in use, the less each of them gets, and
 * there is always room for one more. If a part is full, only one of its arenas may grow. */
struct arena_pool {
	atomic_size_t held;
	size_t most;
	struct arena_pool *whole;          /* NULL: it is not a part */
	const struct arena *_Atomic first; /* the arena that may grow in a full pool; NULL: none */
};

/* Count memory that no arena allocated, or stop counting it, in the pool and in the pool that contains it. */
void arena_pool_add(struct arena_pool *p, size_t n);
void arena_pool_drop(struct arena_pool *p, size_t n);

struct arena {
	struct arena_chunk *head;
	size_t used, size; /* of the first chunk */
	size_t held;       /* bytes of all chunks */
	/* The owner expects at most this many bytes; 0: any number. Allocation still never fails. Code that collects data
	 * of unknown size asks arena_over() and stops. */
	size_t limit;
	struct arena_pool *pool; /* counts its bytes; NULL: none does */
	bool crowded;            /* the arena grew while the pool was full, and is not small */
};

static inline bool arena_over(const struct arena *a)
{
	return (a->limit && a->held > a->limit) || a->crowded;
}

/* Zeroed, and aligned for any object. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_alloc_array(struct arena *a, size_t size, size_t n);
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc_array((a), sizeof(type), (n)))

/* A copy, followed by a NUL. */
struct str arena_str(struct arena *a, struct str s);
char *arena_cstr(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct strs arena_strs(struct arena *a, struct strs list);
/* A copy of `list` with `s` appended. */
struct strs arena_append(struct arena *a, struct strs list, struct str s);
/* A copy of `list` without `s`. */
struct strs arena_without(struct arena *a, struct strs list, struct str s);
/* Makes room for one more after the n elements of `old`, which may move. All n must have been added
 * this way. */
void *arena_grow(struct arena *a, void *old, size_t n, size_t size);
/* Counts n bytes that the same call allocated outside the arena. */
void arena_count(struct arena *a, size_t n);
void arena_free(struct arena *a);

/* malloc and realloc that end the process instead of returning NULL. */
void *mem_alloc(size_t n);
void *mem_grow(void *p, size_t n);

#endif
