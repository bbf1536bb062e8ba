/* Sub-tasks counted anew, for doctor: each task keeps how many of its own are open (core/graph.h). */
#include <stdlib.h>

#include "queue/act.h"

#define OPEN (STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED)))

static int add_parent(const struct record *r, void *ctx)
{
	struct counts *c = ctx;

	if (!r->ix.parent.n)
		return 0;
	c->parents.v = arena_grow(&c->arena, c->parents.v, c->parents.n, sizeof(struct str));
	c->parents.v[c->parents.n++] = arena_str(&c->arena, r->ix.parent);
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

int counts_read(struct counts *c, struct store *s)
{
	struct query q = { .statuses = OPEN };
	int r;

	*c = (struct counts){ 0 };
	r = s->ops->scan(s, &q, add_parent, c);
	if (!r && c->parents.n)
		qsort(c->parents.v, c->parents.n, sizeof(struct str), by_key);
	return r;
}

/* How many come before `key`, or (same) before or at it. */
static size_t bound(const struct counts *c, struct str key, bool same)
{
	size_t low = 0, high = c->parents.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int d = str_cmp(c->parents.v[mid], key);

		if (d < 0 || (same && !d))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int64_t counts_open_subs(const struct counts *c, struct str key)
{
	return (int64_t)(bound(c, key, true) - bound(c, key, false));
}

void counts_free(struct counts *c)
{
	arena_free(&c->arena);
}
