/*
 * event: one line of the log. Who did what to which task, and the words that go with it.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include <jansson.h>

#include "base/buf.h"
#include "core/task.h"

struct event {
	struct str name; /* "claimed", "comment" */
	struct str task, agent, run, text;
	int64_t fence, from, to; /* from, to: statuses; 0: not about it */
	/* filled in when read back */
	struct str cursor;
	int64_t at;
};

void event_pack(const struct event *e, struct buf *out);
int event_unpack(struct str bytes, struct event *out);
json_t *event_json(const struct event *e, struct arena *a);

#endif
