/*
 * event: one line of the log. Who did what to which task, and the words that go with it.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "core/task.h"

struct event {
	struct str name; /* "claimed", "comment" */
	struct str task, agent, run, text;
	int64_t fence, from, to; /* from, to: statuses; 0: not about it */
	/* filled in when read back */
	struct str cursor;
	int64_t at;
};

#endif
