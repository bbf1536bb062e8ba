/*
 * event: one entry of the event log: the change, its task, its agent and a text.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "core/task.h"

struct event {
	struct str name; /* "claimed", "comment" */
	struct str task, agent, run, text;
	int64_t fence, from, to; /* from, to: statuses; 0: the status did not change */
	/* set when the log is read */
	struct str cursor;
	int64_t at;
	struct str changes; /* JSON: the fields that an update changed (format/changes.h) */
};

#endif
