/*
 * mem_queue: one queue of a mem: store, as plain data in memory. Versions of records never change:
 * whoever reads one holds it, so that a reader's callback may change the queue.
 */
#ifndef STORE_MEM_QUEUE_H
#define STORE_MEM_QUEUE_H

#include "store/store.h"

struct mem;
struct version;
struct line;

struct mem_queue {
	struct mem_queue *next;
	char *name;               /* NULL: discarded, and only kept for those who have it open */
	struct version **records; /* by key */
	size_t n, room;
	struct line **log; /* the cursor of log[i] is i + 1 */
	size_t n_log, log_room;
	int64_t rev, counts[16];
	unsigned commits;
	const struct mem *writer;
	int64_t frozen; /* now, while there is a writer */
};

void mem_queue_free(struct mem_queue *q);
/* All that is in it, and its name. */
void mem_queue_empty(struct mem_queue *q);

/* For those who fill a queue with what they keep elsewhere: the record as it is, with its rev and body. */
void mem_queue_put(struct mem_queue *q, const struct record *r);
void mem_queue_drop(struct mem_queue *q, struct str key);

/* NULL if there is none. */
const struct record *mem_queue_get(const struct mem_queue *q, struct str key, int64_t now);
int mem_queue_scan(struct mem_queue *q, const struct query *query, int64_t now, record_fn *fn,
		   void *ctx);
int64_t mem_queue_count(const struct mem_queue *q, const struct query *query, int64_t now);
/* `after`: the number of the entry before. */
int mem_queue_entries(struct mem_queue *q, const struct entry_query *eq, size_t after, entry_fn *fn,
		      void *ctx);

/* What writes replaced: a later edit's fault takes back those before it as well. */
struct mem_undo;

/* Applies the edit's write-set; what is needed to take it back comes in front of *undo, in e->arena. */
void mem_queue_apply(struct mem_queue *q, const struct edit *e, struct mem_undo **undo);
void mem_queue_take_back(struct mem_queue *q, struct mem_undo *undo, size_t n_log);
void mem_queue_commit(struct mem_queue *q, struct mem_undo *undo, int64_t now);

#endif
