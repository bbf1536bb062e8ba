/*
 * answer: encodes an answer as bytes, and as the JSON object that every face shows.
 */
#ifndef FORMAT_ANSWER_FORM_H
#define FORMAT_ANSWER_FORM_H

#include <jansson.h>

#include "base/buf.h"
#include "core/answer.h"

void answer_pack(const struct answer *ans, struct buf *out);
int answer_unpack(struct str bytes, struct answer *out, struct arena *a); /* -EBADMSG */
/* A deep copy. */
struct answer answer_copy(const struct answer *ans, struct arena *a);
json_t *answer_json(const struct answer *ans, struct arena *a);
/* Memory of that JSON for lists and `extra`, whose values are far larger in JSON than in the answer. */
size_t answer_json_memory(const struct answer *ans);
/* A task of the answer, with the decisions about it (struct allowed), if the answer has them. */
json_t *answer_task_json(const struct answer *ans, const struct task *t, struct arena *a);

#endif
