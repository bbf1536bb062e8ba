/*
 * codec: a task as bytes and as JSON, from the one list in task.def. What was packed unpacks to the same
 * task; the JSON never holds a token.
 */
#ifndef CORE_CODEC_H
#define CORE_CODEC_H

#include <jansson.h>

#include "base/buf.h"
#include "core/field.h"

void task_pack(const struct task *t, unsigned parts, struct buf *out);
/* Adds the fields found to *out; strings point into `bytes`, lists are in `a`. -EBADMSG. */
int task_unpack(struct str bytes, struct task *out, struct arena *a);
/* Are they equal in those parts? */
bool task_same(const struct task *a, const struct task *b, unsigned parts);
json_t *task_json(const struct task *t, int64_t now, struct arena *a);
/* holder, fence, live and so on; JSON null without a lock */
json_t *lock_json(const struct task *t, int64_t now, struct arena *a);

#endif
