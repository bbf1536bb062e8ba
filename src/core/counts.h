/*
 * graph: the tasks that wait for other tasks. A task waits for its dependencies and its sub-tasks.
 * The tasks in a cycle would wait forever, so the queue refuses to create one. Each task stores
 * its counts, so a claim reads one record.
 */
#ifndef CORE_COUNTS_H
#define CORE_COUNTS_H

#include "core/event.h"
#include "core/task.h"

/* In both functions, status 0 means that the task does not exist (yet). */
/* Updates the parent's count after a sub-task changed its status. true: the count changed. */
bool graph_sub_moved(struct task *parent, int64_t from, int64_t to);
/* Updates the counts of `t` after one of its dependencies changed its status. */
bool graph_dep_moved(struct task *t, int64_t from, int64_t to);
/* Moves a Ready task with a canceled dependency to Needs Help, because it could never become
 * eligible. `dep`: the canceled dependency, for the reason; may be empty. */
bool graph_settle(struct task *t, struct str dep, int64_t now, struct arena *a);

/* Lists the ids that `id` waits for. Returns 0 or a fault. */
typedef int graph_next_fn(void *ctx, struct str id, struct strs *out);
/* Does `from` wait, directly or indirectly, for `to`? Returns 1, 0, or the fault that `next`
 * returned. */
int graph_reaches(struct str from, struct str to, graph_next_fn *next, void *ctx, struct arena *a);

/* A set of ids that only grows: open addressing, at most half full. Set `arena` first. */
struct graph_seen {
	struct str *slots;
	size_t n, size;
	struct arena *arena;
};
/* false: the id is already in the set. The set keeps a pointer to the string. */
bool graph_seen_add(struct graph_seen *s, struct str id);

#endif
