/*
 * event: one entry of the event log: the change, its task, its agent and a text.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "core/task.h"

#define EVENT_TYPE_STR struct str
#define EVENT_TYPE_INT int64_t

struct event {
#define EVENT(tag, part, kind, member) EVENT_TYPE_##kind member;
#include "core/event.def"
};

/* Each member's tag, by name: EVENT_TAG_agent. */
enum event_tag {
#define EVENT(tag, part, kind, member) EVENT_TAG_##member = (tag),
#include "core/event.def"
};

#endif
