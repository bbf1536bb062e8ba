/* edit: a text in the person's editor, until it can be used or the person gives up. */
#ifndef CMD_EDIT_H
#define CMD_EDIT_H

#include "cmd/command.h"

/* Is there a person at the terminal who could use an editor? */
bool edit_can(const struct session *s);
/* create without a title: the person fills in a form, which has the options of the call already. */
enum result edit_create(struct session *s, struct args *args, struct reply *out);

#endif
