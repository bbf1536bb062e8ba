/*
 * origin: where an imported task came from. extra.source is {tool, id}: its name in the other program. extra.imported
 * has a short sum of each field as that program had it. A later import tells by the sums which fields changed there, so
 * that it does not overwrite a change that was made here.
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
