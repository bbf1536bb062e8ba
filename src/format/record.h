/*
 * filecodec: a task with all its fields as a JSON object, for files that people can read. Unlike
 * task_json() nothing is hidden (tokens are hashes) and nothing rounded: what was written reads back as
 * the same task. Times are ms since 1970; bytes that are no text come as {"hex": …}.
 */
#ifndef FORMAT_RECORD_H
#define FORMAT_RECORD_H

#include <jansson.h>

#include "format/task.h"

json_t *task_fields_json(const struct task *t);
/* Sets the fields found; strings are in `a`. -EBADMSG: one has the wrong type. */
int task_fields_parse(const json_t *o, struct task *out, struct arena *a);
/* The same of one field; field_json: NULL if it has no value. */
json_t *field_json(const struct field *f, const struct task *t);
int field_parse(const struct field *f, const json_t *v, struct task *out, struct arena *a);

#endif
