/*
 * record: a task with all its fields as a JSON object, for files that people can read. Unlike task_json(), it hides
 * no field (tokens are hashes) and rounds no value: a written object reads back as the same task. Times are ms since
 * 1970; a string that is not valid text becomes {"hex": …}.
 */
#ifndef FORMAT_RECORD_FORM_H
#define FORMAT_RECORD_FORM_H

#include <jansson.h>

#include "format/task_form.h"

json_t *task_fields_json(const struct task *t);
/* Sets the fields that the object has; strings are in `a`. -EBADMSG: a field has the wrong type. */
int task_fields_parse(const json_t *o, struct task *out, struct arena *a);
/* For one field; field_json: NULL if it has no value. */
json_t *field_json(const struct field *f, const struct task *t);
int field_parse(const struct field *f, const json_t *v, struct task *out, struct arena *a);

#endif
