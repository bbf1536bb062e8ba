/*
 * mend: which repair a record needs. doctor lists the repairs, and `doctor --fix` makes them, so both ask here.
 */
#ifndef QUEUE_MEND_H
#define QUEUE_MEND_H

#include "queue/queue_private.h"
#include "queue/census.h"

enum repair {
	REPAIR_NONE,
	REPAIR_LEAVE,  /* another program's data: a person must decide */
	REPAIR_INDEX,  /* the task is right, its index is not */
	REPAIR_TASK,   /* store `task`, under its own id; an empty id: under a new one */
	REPAIR_NUMBER, /* store `number` */
	REPAIR_COUNTER,
	REPAIR_AWAY /* nothing can use it: save it in a file, then remove it */
};

struct judgment {
	enum repair repair;
	const char *fault; /* NULL: the record can be used and its index is right */
	const char *does;  /* for people: what the repair does */
	struct task task;
	int64_t number;
};

/* locks_only: the store keeps only locks (STORE_LOCKS_ONLY). The strings of *out are in `a`. */
void repair_decide(const struct record *r, bool locks_only, struct judgment *out, struct arena *a);

#endif
