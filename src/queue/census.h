/*
 * census: compares the counts that tasks store with a recount of the whole queue, and finds links to tasks that do not
 * exist.
 */
#ifndef QUEUE_CENSUS_H
#define QUEUE_CENSUS_H

#include "core/task.h"
#include "store/store_tools.h"

#define RECORD_COUNTS 3

/* Reads all tasks of the store, or of the edit. Returns 0 or a fault. The caller frees *c after both. */
int record_counts_take(struct recount *c, struct store *s, struct edit *e);

struct record_counts_fault {
	struct strs depends; /* ids of dependencies that do not exist */
	bool parent;         /* the parent does not exist */
	bool stuck;          /* it waits for a dependency that does not exist */
	bool counts;         /* a count is wrong */
	int64_t right[RECORD_COUNTS];
	struct str text; /* "open_depends is 3 and should be 1" */
};

/* Compares a task with the census. false: there is no fault. */
bool record_counts_compare(const struct recount *c, const struct record *r,
			   struct record_counts_fault *out, struct arena *a);
/* Writes the right counts into the task. */
void record_counts_correct(struct task *t, const struct record_counts_fault *f);

#endif
