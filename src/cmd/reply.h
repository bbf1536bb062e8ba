/*
 * reply: the result of a command, before a face shows it. Faces read the answer directly;
 * reply_json() makes the one JSON object that every face shows.
 */
#ifndef CMD_REPLY_H
#define CMD_REPLY_H

#include <jansson.h>

#include "core/answer.h"
#include "format/json.h"

struct reply {
	struct answer ans;    /* the command's exit code is this answer's code */
	json_t *more;         /* members that only this command has; NULL: none */
	struct strs warnings; /* warnings of the command, after those of the answer */
	const void *own;      /* for the command's own json() and show() */
	bool silent;          /* the command has shown everything already */
};

/* Did the command succeed? NO_TASKS and LOCK_FREE count as success. */
bool reply_ok(const struct reply *r);
/* Adds a warning of the command itself. */
void reply_warn(struct reply *r, struct str text, struct arena *a);
/* The members that only this command has, in an object that the reply owns. */
json_t *reply_more(struct reply *r);
json_t *reply_json(const struct reply *r, struct arena *a);
/* Frees `more`, the only member outside an arena. */
void reply_free(struct reply *r);

#endif
