/*
 * parse: turns argv into a command and its arguments, by the command's own table. It runs nothing: a fault
 * comes back as the text of a USAGE answer.
 */
#ifndef FACE_CLI_PARSE_H
#define FACE_CLI_PARSE_H

#include "cmd/command.h"

struct parsed {
	const struct command *command; /* NULL: no command was named */
	const char *prefix;            /* "lock" of `pawl lock`: only the first word of a command */
	struct args
		*args; /* of the command; without a command, only the arguments of every request */
	struct global_args global;
	enum result code; /* SUCCESS, USAGE, or MISCONFIGURED if a module cannot be loaded */
	struct str message, hint;
	bool json, porcelain; /* the user asked for help, even if the rest is wrong */
};

/* Makes it a call of this command, with the token and the request id given so far. */
void parsed_become(struct parsed *p, const struct command *c, struct arena *a);
void parse(struct parsed *p, int argc, const char *const *argv, struct arena *a);

#endif
