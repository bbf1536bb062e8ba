/* create --file: several tasks from a Markdown list. */
#ifndef CMD_PLAN_H
#define CMD_PLAN_H

#include "cmd/command.h"

/* common: the options of the call, for every task. */
enum result plan_create(struct session *s, const struct request *common, struct str file,
			struct reply *out);

#endif
