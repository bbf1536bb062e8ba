/*
 * heap: the answer of a scan. A caller that wants only the first records does not pay for a full sort.
 */
#ifndef STORE_HEAP_H
#define STORE_HEAP_H

#include "store/store.h"

struct heap {
	const struct query *q;
	size_t index; /* where a `struct index` is in an item: offsetof() */
	void **v;     /* items, in any order until heap_order() */
	size_t n;
};

void heap_order(struct heap *h);
/* Takes the first item out; there must be one. */
void *heap_pop(struct heap *h);

#endif
