/*
 * args_json: reads a command's arguments from a JSON object, for faces whose callers speak JSON. A
 * parameter's name is in lower case, with '_' for '-'. A number may be a text; durations are in
 * seconds; true sets a flag. A list repeats its parameter, and an empty list clears the field if
 * the field can be cleared. null counts as not given.
 */
#ifndef CMD_ARGS_JSON_H
#define CMD_ARGS_JSON_H

#include "cmd/command.h"

/* The caller that gives the arguments. A program may also give P_TERMINAL parameters and the
 * parameters of every call (token, request_id). A caller on another machine (ARGS_REMOTE,
 * ARGS_MODEL_AFAR) cannot give P_HERE parameters, which are about the caller's own machine. */
enum args_from { ARGS_MODEL, ARGS_MODEL_AFAR, ARGS_PROGRAM, ARGS_REMOTE };

/* Returns NULL, or the reason for a refusal, in `a`. args comes from args_new(). */
const char *args_from_json(struct args *args, const struct command *c, const json_t *object,
			   enum args_from from, struct arena *a);
/* The parameter `if_version` if the command changes one task, else NULL. Models are offered it as
 * well. */
const struct param *args_version(const struct command *c);
/* The JSON type of the parameter's value: "integer", "array". */
const char *args_json_type(const struct param *p);

#endif
