/*
 * task: encodes a task as bytes and as JSON, by the list of fields in task.def. A packed task unpacks to the same
 * task; the JSON never holds a token.
 */
#ifndef FORMAT_TASK_FORM_H
#define FORMAT_TASK_FORM_H

#include <jansson.h>

#include "base/buf.h"
#include "core/field.h"
#include "format/pack.h"

extern const struct shape task_shape;
void task_pack(const struct task *t, unsigned parts, struct buf *out);
/* Sets the fields of *out that `bytes` has; strings point into `bytes`, lists are in `a`. 0, or -EBADMSG. */
int task_unpack(struct str bytes, struct task *out, struct arena *a);
/* Are the two tasks equal in these parts? */
bool task_same(const struct task *a, const struct task *b, unsigned parts);
json_t *task_json(const struct task *t, int64_t now, struct arena *a);
/* holder, fence, live and so on; JSON null without a lock */
json_t *lock_json(const struct task *t, int64_t now, struct arena *a);

/* A duration in seconds, as faces show it: 1, or 1.5 */
json_t *seconds_json(int64_t ms);
/* The name of an enum lock_life, such as "alive"; "" if no process has checked. */
const char *life_name(int64_t life);

/* The value of one field, at `p`, as task_json() shows it; NULL: it is empty. */
json_t *value_json(const struct field *f, const void *p, struct arena *a);
/* Are the values of this field, at `a` and `b`, equal? */
bool field_same(const struct field *f, const void *a, const void *b);

/* One of the two parts of a task (core/field.h), packed. */
struct str task_part(const struct task *t, unsigned part, struct arena *a);

#endif
