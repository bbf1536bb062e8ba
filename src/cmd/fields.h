/* The fields of a task as options, the same for create and update. */
#ifndef CMD_FIELDS_H
#define CMD_FIELDS_H

#include "cmd/command.h"

/* clear: P_EMPTY where an empty value clears the field, else 0. */
#define FIELD_PARAMS(clear)                                                                       \
	PARAM(description, "description", P_TEXT, .letter = 'd',                                  \
	      .help = "what is to be done; - reads standard input",                               \
	      .model = "what is to be done"),                                                     \
		PARAM(acceptance, "acceptance", P_TEXT,                                           \
		      .help = "how one can tell that it is done"),                                \
		PARAM(class_rank, "class", P_CLASS, .letter = 'c',                                \
		      .help = "Expedite, Fixed-Date, Standard or Intangible"),                    \
		PARAM(priority, "priority", P_PRIORITY, .letter = 'p',                            \
		      .help = "0 to 1000, higher is more urgent; or low, medium, high"),          \
		PARAM(type, "type", P_NAME, .flags = (clear), .help = "kind of work, e.g. bug"),  \
		PARAM(effort, "effort", P_NAME, .flags = (clear) | P_SELDOM,                      \
		      .help = "how much work it is, e.g. 2h"),                                    \
		PARAM(labels, "label", P_NAMES, .letter = 'l', .flags = (clear),                  \
		      .help = "label; may be repeated or listed with commas", .model = "labels"), \
		PARAM(due, "due", P_DATE, .flags = (clear),                                       \
		      .help = "date by which it should be done"),                                 \
		PARAM(not_before, "not-before", P_TIME, .flags = (clear) | P_SELDOM,              \
		      .help = "time before which it is not offered"),                             \
		PARAM(delay, "delay", P_DURATION, .help = "the same, from now on",                \
		      .model = "not offered before so long from now"),                            \
		PARAM(parent, "parent", P_ID, .flags = (clear),                                   \
		      .help = "the task this is a sub-task of"),                                  \
		PARAM(extra, "extra", P_JSON, .flags = (clear) | P_SELDOM,                        \
		      .help = "a JSON object that pawl keeps and does not read")

/* delay and not_before say the same thing in two ways: only one of them. NULL, or what is wrong. */
const char *fields_fault(const struct request *rq);

#endif
