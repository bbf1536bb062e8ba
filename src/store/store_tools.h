/*
 * heap: a scan's answer, in order. A caller that wants only the first records does not pay for a full sort.
 */
#ifndef STORE_STORE_TOOLS_H
#define STORE_STORE_TOOLS_H

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

/* --- recount ---------------------------------------------------------------------------------- */

/*
 * recount: counts every task's dependencies and sub-tasks from scratch. A task stores its counts, so that a claim
 * reads one record. Another program that edits a queue's files does not update them.
 */

struct recount_entry {
	struct str key;    /* empty: the slot is free */
	int32_t open_subs; /* the count that its sub-tasks add up to */
	uint8_t status;    /* 0: the record cannot be used */
	bool unsure;       /* one of its sub-tasks cannot be used */
	bool present;      /* false: only its sub-tasks are known */
};

struct recount {
	const struct store_rules *rules;
	struct arena arena;
	struct recount_entry *slots;
	size_t n, size;
};

/* Adds a task; add all of them before the first call of recount_task(). `parent`: a key, or empty. */
void recount_add(struct recount *c, struct str key, struct str parent, int64_t status);
/* NULL: the task was not added. */
const struct recount_entry *recount_find(const struct recount *c, struct str key);
/* Sets the counts in *t, the task with this key. false: a task that adds to them cannot be used. */
bool recount_task(const struct recount *c, struct str key, struct strs depends, struct task *t);
void recount_free(struct recount *c);

#endif
