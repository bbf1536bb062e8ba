/*
 * args_json: a command's arguments from a JSON object, for faces whose callers speak JSON. A parameter goes
 * by its name in lower case, with '_' or '-'; a number is written as it would be typed, so durations are in
 * seconds; true sets a flag; a list says the same parameter several times; null is not said at all.
 */
#ifndef CMD_ARGS_JSON_H
#define CMD_ARGS_JSON_H

#include "cmd/command.h"

/* NULL, or what is wrong with them, in `a`. Sets args->rq.op, too. */
const char *args_from_json(struct args *args, const struct command *c, const json_t *object,
			   struct arena *a);

#endif
