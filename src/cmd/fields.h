/* The fields of a task as options, the same for create and update. */
#ifndef CMD_FIELDS_H
#define CMD_FIELDS_H

#include "cmd/command.h"

/* clear: P_EMPTY if an empty value clears the field, else 0. */
#define FIELD_PARAMS(clear)                                                                       \
	PARAM(description, "description", P_TEXT, .letter = 'd',                                  \
	      .help = "description of the work; - reads standard input", .model = "the work"),    \
		PARAM(acceptance, "acceptance", P_TEXT, .help = "the test for a finished task"),  \
		PARAM(class_rank, "class", P_CLASS, .letter = 'c',                                \
		      .help = "Expedite, Fixed-Date, Standard or Intangible",                     \
		      .model = "class of service (default: Standard)"),                           \
		PARAM(priority, "priority", P_PRIORITY, .letter = 'p',                            \
		      .help = "0 to 1000, higher is more urgent; or low, medium, high",           \
		      .model = "higher is more urgent (default: 2)"),                             \
		PARAM(type, "type", P_NAME, .flags = (clear) | P_SELDOM,                          \
		      .help = "kind of work, e.g. bug"),                                          \
		PARAM(effort, "effort", P_NAME, .flags = (clear) | P_SELDOM,                      \
		      .help = "estimated effort, e.g. 2h"),                                       \
		PARAM(assignee, "assignee", P_NAME, .flags = (clear) | P_SELDOM,                  \
		      .help = "agent that shall do it; a plan, not a lock"),                      \
		PARAM(labels, "label", P_NAMES, .letter = 'l', .flags = (clear),                  \
		      .help = "label; may be repeated or listed with commas", .model = "labels"), \
		PARAM(due, "due", P_DATE, .flags = (clear) | P_SELDOM,                            \
		      .help = "date, perhaps with a time: 2026-11-20, friday 17:00, in 3 days"),  \
		PARAM(not_before, "not-before", P_TIME, .flags = (clear) | P_SELDOM,              \
		      .help = "time before which the task is not offered"),                       \
		PARAM(delay, "delay", P_DURATION, .flags = P_SELDOM,                              \
		      .help = "like --not-before, but as a duration from now",                    \
		      .model = "time from now before which it is not offered"),                   \
		PARAM(parent, "parent", P_ID, .flags = (clear),                                   \
		      .help = "the parent: this task is one of its sub-tasks",                    \
		      .model = "make it a sub-task of this one"),                                 \
		PARAM(extra, "extra", P_JSON, .flags = (clear) | P_SELDOM,                        \
		      .help = "JSON object that pawl stores and does not interpret",              \
		      .model = "JSON object that is kept as it is")

/* delay and not_before set the same field, so only one of them may be given. Returns NULL, or the reason for a
 * refusal. */
const char *fields_fault(const struct request *rq);

#endif
