/*
 * Functions for the tests of src/core: comparing tasks field by field, from the list in task.def;
 * random tasks; a seeded random number generator.
 */
#ifndef UNIT_CORE_KIT_H
#define UNIT_CORE_KIT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rules.h"
#include "kit/scale.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))
#define NOW INT64_C(1700000000000) /* the time of the tests */
#define HELD STR("HELD-0123456789-0123456789-01234")

/* A task whose lock al holds with the token HELD. */
static inline struct task kit_held(void)
{
	return (struct task){ .id = STR("t1"),
			      .title = STR("title"),
			      .status = IN_PROGRESS,
			      .class_rank = STANDARD,
			      .fence = 1,
			      .version = 2,
			      .attempts = 1,
			      .last_holder = STR("al"),
			      .lock = { .holder = STR("al"),
					.token = HELD,
					.acquired_at = NOW - 1000,
					.expires_at = NOW + 60000,
					.ttl = 61000 } };
}

/* The memory of one test; free_memory() is its teardown. */
static struct arena mem;

static inline int free_memory(void **state)
{
	(void)state;
	arena_free(&mem);
	return 0;
}

enum kit_kind { KIT_STR, KIT_NUMBER, KIT_LIST };

#define KIT_KIND_STR KIT_STR
#define KIT_KIND_JSON KIT_STR
#define KIT_KIND_LIST KIT_LIST
#define KIT_KIND_INT KIT_NUMBER
#define KIT_KIND_STATUS KIT_NUMBER
#define KIT_KIND_CLASS KIT_NUMBER
#define KIT_KIND_TIME KIT_NUMBER
#define KIT_KIND_DATE KIT_NUMBER

struct kit_field {
	int tag;
	enum kit_kind kind;
	size_t offset;
	const char *name;
};

static const struct kit_field kit_fields[] = {
#define FIELD(tag, part, kind, member, name, shown, limit, uses) \
	{ tag, KIT_KIND_##kind, offsetof(struct task, member), #member },
#include "core/task.def"
};

/* The sizes of all listed fields add up to struct task: no member is missing in the list. */
#define FIELD(tag, part, kind, member, name, shown, limit, uses) +sizeof(((struct task *)0)->member)
_Static_assert(sizeof(struct task) == 0
#include "core/task.def"
	       ,
	       "task.def lists every member of struct task");

static inline bool kit_same(const struct kit_field *f, const struct task *a, const struct task *b)
{
	const void *p = (const char *)a + f->offset, *q = (const char *)b + f->offset;

	if (f->kind == KIT_STR)
		return str_eq(*(const struct str *)p, *(const struct str *)q);
	if (f->kind == KIT_LIST)
		return strs_eq(*(const struct strs *)p, *(const struct strs *)q);
	return *(const int64_t *)p == *(const int64_t *)q;
}

/* Returns how many fields differ, and names each on stderr after `where`. */
static inline int task_diff(const struct task *want, const struct task *got, const char *where)
{
	int n = 0;

	for (size_t i = 0; i < COUNT(kit_fields); i++) {
		const struct kit_field *f = &kit_fields[i];
		const void *p = (const char *)want + f->offset, *q = (const char *)got + f->offset;

		if (kit_same(f, want, got))
			continue;
		n++;
		if (f->kind == KIT_STR)
			fprintf(stderr, "%s: %s: want '%.*s', got '%.*s'\n", where, f->name,
				STRF(*(const struct str *)p), STRF(*(const struct str *)q));
		else if (f->kind == KIT_NUMBER)
			fprintf(stderr, "%s: %s: want %lld, got %lld\n", where, f->name,
				(long long)*(const int64_t *)p, (long long)*(const int64_t *)q);
		else
			fprintf(stderr, "%s: %s differs\n", where, f->name);
	}
	return n;
}

/* xorshift64*: the same numbers for the same seed on every machine */
static inline uint32_t kit_random(uint64_t *state, uint32_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 33) % below;
}

static inline bool str_holds(struct str s, const char *part)
{
	return str_has_nocase(s, str_c(part));
}

#endif
