/*
 * record: compares two requests, tasks or events field by field, from the lists that the program
 * itself uses.
 */
#ifndef FUZZ_RECORD_H
#define FUZZ_RECORD_H

#include <jansson.h>

#include "core/event.h"
#include "core/request.h"
#include "core/task.h"

bool same_request(const struct request *a, const struct request *b);
bool same_task(const struct task *a, const struct task *b);
bool same_event(const struct event *a, const struct event *b);

/* The text in `a`; it must be JSON that reads back as the same. Takes ownership of `o`. */
struct str json_checked(json_t *o, struct arena *a);

#endif
