/*
 * task_index: what a store may know of a task. The queue computes it for every task that it puts; a store
 * whose files other programs write does so for what it finds there.
 */
#ifndef STORE_TASK_INDEX_H
#define STORE_TASK_INDEX_H

#include "store/store.h"

struct task;

/* Strings are those of the task; lists of keys are in `a`. */
void task_index(const struct task *t, struct index *out, struct arena *a);
/* One of the two parts of a task (core/field.h), packed. */
struct str task_part(const struct task *t, unsigned part, struct arena *a);
/* Is the record a task, as the queue would put it? */
bool task_of_record(const struct record *r, struct task *out, struct arena *a);

#endif
