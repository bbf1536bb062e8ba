/* list: what commands that list tasks share. */
#ifndef CMD_LIST_H
#define CMD_LIST_H

#include "cmd/command.h"

/* The call as a person would type it, without its limit and without the option `leave_out`. */
struct str list_command(const struct command *c, const struct args *args, const char *leave_out,
			struct arena *a);
/* Sets out->own for show_tasks(). */
void list_tell(struct session *s, const struct command *c, const struct args *a,
	       struct list_shown shown, struct reply *out);

#endif
