/*
 * recount: counts the dependencies and sub-tasks of every task from nothing. A task stores its counts, so that a claim
 * reads one record; another program that edits a queue's files does not update them.
 */
#ifndef STORE_RECOUNT_H
#define STORE_RECOUNT_H

#include "store/store.h"

struct recount_entry {
	struct str key;    /* empty: the slot is free */
	int32_t open_subs; /* what its sub-tasks add to its count */
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
/* Sets the counts of *t, the task with this key. false: a task that adds to them cannot be used. */
bool recount_task(const struct recount *c, struct str key, struct strs depends, struct task *t);
void recount_free(struct recount *c);

#endif
