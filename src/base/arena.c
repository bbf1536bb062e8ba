/* Memory that is freed as a whole at the end of a call, and the pools that limit it. Allocation never returns NULL: without
 * memory the process exits at once, as if it had been killed, so no call continues with half of its data. */
#include "base/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK 16384
#define LARGE_CHUNK (256u << 10) /* malloc() gets it from the system, and free() gives it back */
#define SMALL (256u << 10)       /* an arena that is never crowded */

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(max_align_t) char data[];
};

static _Noreturn void out_of_memory(void)
{
	static const char text[] =
		"pawl: out of memory; nothing was changed by an unfinished call\n";
	ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)ignored;
	_exit(30);
}

void *mem_alloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *mem_grow(void *p, size_t n)
{
	p = realloc(p, n ? n : 1);
	if (!p)
		out_of_memory();
	return p;
}

/* --- pools --------------------------------------------------------------------------------------- */

void arena_pool_add(struct arena_pool *p, size_t n)
{
	for (; p; p = p->whole)
		p->held += n;
}

void arena_pool_drop(struct arena_pool *p, size_t n)
{
	for (; p; p = p->whole)
		p->held -= n;
}

/* Does the part hold at least as much as the whole has left? */
static bool whole_is_short(const struct arena_pool *p)
{
	const struct arena_pool *w = p->whole;

	return w && p->held + w->held >= w->most;
}

/* One arena may grow although the pool is full. Otherwise arenas that are growing at the same time
 * would all fail. */
static bool goes_first(const struct arena *a)
{
	const struct arena *none = NULL;

	return a->pool->first == a || atomic_compare_exchange_strong(&a->pool->first, &none, a);
}

void arena_count(struct arena *a, size_t n)
{
	struct arena_pool *p = a->pool;

	a->held += n;
	arena_pool_add(p, n);
	if (p && a->held > SMALL)
		a->crowded |= whole_is_short(p) || (p->held > p->most && !goes_first(a));
}

/* --- arenas -------------------------------------------------------------------------------------- */

static void add_chunk(struct arena *a, size_t least)
{
	size_t size = a->held > SMALL ? LARGE_CHUNK : CHUNK;
	struct arena_chunk *c;

	if (least > size)
		size = least;
	c = mem_alloc(sizeof(*c) + size);
	c->next = a->head;
	a->head = c;
	a->used = 0;
	a->size = size;
	arena_count(a, size);
}

void *arena_alloc(struct arena *a, size_t n)
{
	const size_t align = _Alignof(max_align_t);
	void *p;

	if (n > SIZE_MAX / 2)
		out_of_memory();
	n = (n + align - 1) & ~(align - 1);
	if (!a->head || a->size - a->used < n)
		add_chunk(a, n);
	p = a->head->data + a->used;
	a->used += n;
	return memset(p, 0, n);
}

void *arena_alloc_array(struct arena *a, size_t size, size_t n)
{
	size_t bytes;

	if (__builtin_mul_overflow(size, n, &bytes))
		out_of_memory();
	return arena_alloc(a, bytes);
}

char *arena_cstr(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	return p;
}

struct str arena_str(struct arena *a, struct str s)
{
	return str_n(arena_cstr(a, s), s.n);
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	int n;
	char *p;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return STR("");
	if ((size_t)n < sizeof(small))
		return arena_str(a, str_n(small, (size_t)n));
	p = arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return str_n(p, (size_t)n);
}

struct strs arena_strs(struct arena *a, struct strs list)
{
	struct strs out = { arena_array(a, struct str, list.n), list.n };

	for (size_t i = 0; i < list.n; i++)
		out.v[i] = arena_str(a, list.v[i]);
	return out;
}

struct strs arena_append(struct arena *a, struct strs list, struct str s)
{
	struct strs out = { arena_array(a, struct str, list.n + 1), list.n + 1 };

	for (size_t i = 0; i < list.n; i++)
		out.v[i] = list.v[i];
	out.v[list.n] = s;
	return out;
}

struct strs arena_without(struct arena *a, struct strs list, struct str s)
{
	struct strs out = { arena_array(a, struct str, list.n), 0 };

	for (size_t i = 0; i < list.n; i++)
		if (!str_eq(list.v[i], s))
			out.v[out.n++] = list.v[i];
	return out;
}

void *arena_grow(struct arena *a, void *old, size_t n, size_t size)
{
	void *more;

	/* the room is used up exactly when n is 0 or a power of two */
	if (n & (n - 1))
		return old;
	more = arena_alloc_array(a, size, n ? 2 * n : 1);
	return n ? memcpy(more, old, n * size) : more;
}

void arena_free(struct arena *a)
{
	struct arena_chunk *c = a->head, *next;

	arena_pool_drop(a->pool, a->held);
	if (a->pool && a->pool->first == a)
		a->pool->first = NULL;
	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct arena){ 0 };
}
