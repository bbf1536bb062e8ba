/*
 * task_record: decodes the task in a record, for stores that keep tasks in the files of other programs.
 */
#ifndef STORE_TASK_RECORD_H
#define STORE_TASK_RECORD_H

#include "store/store.h"

/* Is the record a task, byte for byte as the queue would put it? */
bool task_of_record(const struct store_rules *rules, const struct record *r, struct task *out,
		    struct arena *a);

#endif
