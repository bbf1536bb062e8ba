#include "store/heap.h"

static int heap_cmp(const struct heap *h, const void *a, const void *b)
{
	return query_cmp(h->q, (const struct index *)((const char *)a + h->index),
			 (const struct index *)((const char *)b + h->index));
}

static void heap_sink(struct heap *h, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
		void *item = h->v[i];

		if (child + 1 < h->n && heap_cmp(h, h->v[child + 1], h->v[child]) < 0)
			child++;
		if (heap_cmp(h, item, h->v[child]) <= 0)
			return;
		h->v[i] = h->v[child];
		h->v[child] = item;
	}
}

void heap_order(struct heap *h)
{
	for (size_t i = h->n / 2; i-- > 0;)
		heap_sink(h, i);
}

void *heap_pop(struct heap *h)
{
	void *first = h->v[0];

	h->v[0] = h->v[--h->n];
	heap_sink(h, 0);
	return first;
}
