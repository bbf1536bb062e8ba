/*
 * changes: the fields that an update changed, with their old and new values, as an entry of the event log keeps them: a
 * JSON object such as {"priority":{"from":2,"to":3},"description":{}}. Long texts are named without their values.
 */
#ifndef FORMAT_CHANGES_H
#define FORMAT_CHANGES_H

#include <jansson.h>

#include "core/task.h"

/* Empty: no field that a user sets has changed. */
struct str changes_of(const struct task *old, const struct task *now, struct arena *a);
/* NULL: the text is not a JSON object. */
json_t *changes_json(struct str changes);
/* For people: priority 2 → 3, labels +ui, description changed. Empty if the text is not a JSON object. */
struct str changes_text(struct str changes, struct arena *a);

#endif
