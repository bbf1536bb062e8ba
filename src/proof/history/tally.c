#include "proof/history/tally.h"

#include <stdlib.h>

static uint64_t hash_of(struct str s, bool fold)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (fold && c >= 'A' && c <= 'Z')
			c |= 0x20;
		h = (h ^ c) * UINT64_C(1099511628211);
	}
	return h ^ h >> 29;
}

static uint32_t *slot_of(const struct tally *t, struct str s)
{
	uint32_t mask = 2 * t->room - 1, at = (uint32_t)hash_of(s, t->fold) & mask;

	while (t->slots[at] &&
	       !(t->fold ? str_eq_nocase(t->v[t->slots[at]], s) : str_eq(t->v[t->slots[at]], s)))
		at = (at + 1) & mask;
	return &t->slots[at];
}

static void more_room(struct tally *t)
{
	struct tally old = *t;

	t->room = t->room ? 2 * t->room : 32;
	if (t->arena) {
		t->v = arena_array(t->arena, struct str, t->room);
		t->slots = arena_array(t->arena, uint32_t, 2 * (size_t)t->room);
	} else {
		t->v = mem_alloc(t->room * sizeof(*t->v));
		t->slots = mem_alloc(2 * t->room * sizeof(*t->slots));
		memset(t->slots, 0, 2 * t->room * sizeof(*t->slots));
	}
	if (t->n)
		memcpy(t->v, old.v, t->n * sizeof(*t->v));
	else
		t->v[t->n++] = STR("");
	if (!t->arena)
		tally_free(&old);
	for (uint32_t i = 1; i < t->n; i++)
		*slot_of(t, t->v[i]) = i;
}

uint32_t tally_find(const struct tally *t, struct str s)
{
	return t->n && s.n ? *slot_of(t, s) : 0;
}

uint32_t tally_add(struct tally *t, struct str s)
{
	uint32_t found = tally_find(t, s);

	if (found || !s.n)
		return found;
	if (t->n + 1 >= t->room)
		more_room(t);
	t->v[t->n] = s;
	*slot_of(t, s) = t->n;
	return t->n++;
}

void tally_free(struct tally *t)
{
	free(t->v);
	free(t->slots);
	*t = (struct tally){ .fold = t->fold };
}
