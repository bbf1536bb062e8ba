/*
 * census: the status of every task, and how many sub-tasks it has. Tasks store counts of their dependencies and
 * sub-tasks, so that a claim reads one record; the census finds counts that are wrong, and links to tasks that do not
 * exist.
 */
#ifndef QUEUE_CENSUS_H
#define QUEUE_CENSUS_H

#include "core/task.h"
#include "store/store.h"

#define CENSUS_COUNTS 3

struct census_entry {
	struct str key;              /* empty: the slot is free */
	int32_t subs[CENSUS_COUNTS]; /* what its sub-tasks add to its counts */
	uint8_t status;              /* 0: the record cannot be used */
	bool unsure;                 /* one of its sub-tasks cannot be used */
	bool present;                /* false: only its sub-tasks are known */
};

struct census {
	struct arena arena;
	struct census_entry *slots;
	size_t n, size;
};

/* Reads all tasks of the store, or of the edit. Returns 0 or a fault. */
int census_take(struct census *c, struct store *s, struct edit *e);
void census_free(struct census *c);

struct census_fault {
	struct strs depends; /* ids of dependencies that do not exist */
	bool parent;         /* the parent does not exist */
	bool stuck;          /* it waits for a dependency that does not exist */
	bool counts;         /* a count is wrong */
	int64_t right[CENSUS_COUNTS];
	struct str text; /* "open_depends is 3 and should be 1" */
};

/* Compares a task with the census. false: there is no fault. */
bool census_compare(const struct census *c, const struct record *r, struct census_fault *out,
		    struct arena *a);
/* Writes the right counts into the task. */
void census_correct(struct task *t, const struct census_fault *f);

#endif
