/*
 * task_record: a record as the task that it holds, for stores that keep tasks in files of other programs.
 */
#ifndef STORE_TASK_RECORD_H
#define STORE_TASK_RECORD_H

#include "store/store.h"

/* Is the record a task, as the queue would put it? */
bool task_of_record(const struct store_rules *rules, const struct record *r, struct task *out,
		    struct arena *a);

#endif
