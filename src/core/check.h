/*
 * check: could pawl have written this record? Stores, backups and other processes hand in bytes that anybody may
 * have made. Nobody uses a record before it has passed here, so a store needs no such check of its own.
 *
 * Each function returns NULL, or says in harmless words what is wrong.
 */
#ifndef CORE_CHECK_H
#define CORE_CHECK_H

#include "core/answer.h"
#include "core/task.h"

/* A key is a namespace, '/' and an id, which may begin with '@'. */
const char *key_fault(struct str key);
/* `key` is the one that the task is stored under; empty: it is not known. */
const char *task_fault(const struct task *t, struct str key, struct arena *a);
/* Has a task that comes in from outside counters that could soon go up no more? */
const char *room_fault(const struct task *t, struct arena *a);
const char *event_fault(const struct event *e);
/* An answer that another process gave, or that was kept for a request id. */
const char *answer_fault(const struct answer *ans, struct arena *a);
/* The number in a record that is not a task: the counter, the fence of a removed task. */
bool number_valid(struct str text, int64_t *out);
/* Does the changed task have too much of something? An older version's task may keep what it has. */
const char *growth_fault(const struct task *t, const struct task *old, struct arena *a);
/* Is this JSON small enough to be read? */
bool extra_small(struct str extra);

/* The name by which people remove a record whose own name cannot be printed: "bad:" and a hash of its key. */
struct str bad_handle(struct arena *a, struct str key);
bool bad_handle_is(struct str id);

#endif
