/*
 * origin: where an imported task came from. extra.source is {tool, id}: the other program and the task's id
 * there. extra.imported has a short checksum of each imported field. A later import compares the checksums to find the
 * fields that changed in the other program, so it does not overwrite a change made here.
 */
#ifndef FORMAT_ORIGIN_H
#define FORMAT_ORIGIN_H

#include <jansson.h>

#include "base/arena.h"
#include "core/task.h"

/* The value of extra.imported. */
struct str origin_sums(const struct task *t, struct arena *a);

enum origin {
	ORIGIN_OTHER, /* the two are different tasks */
	ORIGIN_SAME,  /* nothing changed in the other program */
	ORIGIN_CHANGED
};

/* Unless ORIGIN_OTHER: makes *theirs our task with the fields that changed in the other program. If the status changed
 * on both sides, ours stays. */
enum origin origin_merge(const struct task *ours, struct task *theirs, struct arena *a);

#endif
