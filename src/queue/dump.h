/*
 * dump: what the dump of a whole queue and its load (load.c) share.
 */
#ifndef QUEUE_DUMP_H
#define QUEUE_DUMP_H

#include "queue/transfer.h"

/* The log of the queue against the entries of a load, from the first on. */
struct dump_log {
	struct load *load;
	struct arena arena;
	size_t same;
	bool differs;
};

/* Stops at the first difference: 0, or a fault of the store. */
int dump_compare(struct queue *q, struct dump_log *x);

static inline bool is_task(struct str key)
{
	return str_starts(key, STR("task/"));
}

#endif
