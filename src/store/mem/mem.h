/*
 * mem: a store inside the process, for simulations and tests. Not durable, and for one thread only.
 *
 * "mem:" is a private place that ends with its handle. All handles of the process share "mem:NAME", which stays
 * until mem_reset(). The clock starts at the wall clock when the place is made, and advances with env.opt.boot. With
 * env.opt.wall alone, the clock is env.opt.wall, so that a test can set any time.
 */
#ifndef STORE_MEM_MEM_H
#define STORE_MEM_MEM_H

#include "store/store.h"

extern const struct store_ops store_mem;

/* Forgets all named places; an open place ends when its last handle is closed. */
void mem_reset(void);

/* --- queue ------------------------------------------------------------------------------------ */

/*
 * mem_queue: one queue of a mem: store, as plain data in memory. A record's version never changes, and a scan
 * holds a reference to each version that it returns. So a scan's callback may change the queue.
 */

struct mem;
struct version;
struct line;

struct mem_queue {
	struct mem_queue *next;
	char *name;               /* NULL: discarded, and only kept for handles that have it open */
	struct version **records; /* by key */
	size_t n, room;
	struct line **log; /* the cursor of log[i] is i + 1; NULL: the entry was forgotten */
	size_t n_log, log_room;
	int64_t forget; /* see edit_forget(); only while a change is under way */
	unsigned forget_except;
	int64_t rev, counts[STORE_STATUSES];
	unsigned commits;
	const struct mem *writer;
	int64_t frozen; /* now, while there is a writer */
};

void mem_queue_free(struct mem_queue *q);
/* Removes its records, its log and its name. */
void mem_queue_empty(struct mem_queue *q);

/* For a store that loads a queue from elsewhere: puts the record unchanged, with its rev and body. */
void mem_queue_put(struct mem_queue *q, const struct record *r);
void mem_queue_drop(struct mem_queue *q, struct str key);

/* NULL if the key is absent. */
const struct record *mem_queue_get(const struct mem_queue *q, struct str key, int64_t now);
int mem_queue_scan(struct mem_queue *q, const struct query *query, int64_t now, record_fn *fn,
		   void *ctx);
int64_t mem_queue_count(const struct mem_queue *q, const struct query *query, int64_t now);
/* `after`: the number of the entry before the first entry to return. */
int mem_queue_entries(struct mem_queue *q, const struct entry_query *eq, size_t after, entry_fn *fn,
		      void *ctx);

/* The replaced versions: a fault of a later edit also rolls back the edits before it. */
struct mem_undo;

/* Applies the edit's write-set, and adds the replaced versions in front of *undo, in e->arena. */
void mem_queue_apply(struct mem_queue *q, const struct edit *e, struct mem_undo **undo);
void mem_queue_take_back(struct mem_queue *q, struct mem_undo *undo, size_t n_log);
void mem_queue_commit(struct mem_queue *q, struct mem_undo *undo, int64_t now);

#endif
