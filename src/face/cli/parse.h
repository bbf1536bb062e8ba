/*
 * parse: from argv to a command and its arguments, by the command's own table. Nothing is done yet: what
 * is wrong comes back as the text of a USAGE answer.
 */
#ifndef FACE_CLI_PARSE_H
#define FACE_CLI_PARSE_H

#include "cmd/command.h"

struct parsed {
	const struct command *command; /* NULL: none was named */
	const char *prefix;            /* "lock" of `pawl lock`: only half a command */
	struct args *args; /* of the command; without one, only what goes to any request */
	struct global_args global;
	enum result code; /* SUCCESS, USAGE, or MISCONFIGURED: a module cannot be used */
	struct str message, hint;
	bool json, porcelain; /* asked for, even where the rest is wrong */
};

/* Makes it a call of this command, with the token and the request id that were given so far. */
void parsed_become(struct parsed *p, const struct command *c, struct arena *a);
void parse(struct parsed *p, int argc, const char *const *argv, struct arena *a);

#endif
