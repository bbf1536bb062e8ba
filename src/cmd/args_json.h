/*
 * args_json: a command's arguments from a JSON object, for faces whose callers speak JSON. A parameter goes
 * by its name in lower case, with '_' for '-'; a number may be text, and durations are in seconds; true sets a
 * flag; a list says the same parameter several times, and an empty one clears what can be cleared; null is not
 * said at all.
 */
#ifndef CMD_ARGS_JSON_H
#define CMD_ARGS_JSON_H

#include "cmd/command.h"

/* NULL, or what is wrong with them, in `a`. args is what args_new() made. program: the caller is
 * one, and no model, and may also say what goes with any call (token, request_id) and what is P_TERMINAL. */
const char *args_from_json(struct args *args, const struct command *c, const json_t *object,
			   bool program, struct arena *a);
/* What its value is called in JSON: "integer", "array". */
const char *args_json_type(const struct param *p);

#endif
