/*
 * graph: who waits for whom. A task waits for the tasks it depends on and for its sub-tasks; a cycle among
 * these would wait for ever, so none may be made. Tasks carry counts, so that nobody has to look.
 */
#ifndef CORE_GRAPH_H
#define CORE_GRAPH_H

#include "core/event.h"
#include "core/task.h"

/* Status 0 stands for "not there (yet)" in both. */
/* A sub-task of `parent` went from one status to another: did a count change? */
bool graph_sub_moved(struct task *parent, int64_t from, int64_t to);
/* A task that `t` depends on did. */
bool graph_dep_moved(struct task *t, int64_t from, int64_t to);
/* A Ready task with a canceled dependency cannot come up any more: to Needs Help. `dep` may be empty. */
bool graph_settle(struct task *t, struct str dep, int64_t now, struct arena *a);

/* The ids that `id` waits for. 0 or a fault. */
typedef int graph_next_fn(void *ctx, struct str id, struct strs *out);
/* Does `from` wait, directly or not, for `to`? 1, 0, or next's fault. */
int graph_reaches(struct str from, struct str to, graph_next_fn *next, void *ctx, struct arena *a);

#endif
