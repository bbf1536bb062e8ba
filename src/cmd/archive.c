#include "cmd/command.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "only this task; default: all that have ended"),
	PARAM(older_than, "older-than", P_DURATION, .help = "only what ended at least so long ago"),
	{ 0 }
};

static void show(const struct reply *r, struct view *v)
{
	show_each(r, v, "archived", "nothing to archive");
}

const struct command cmd_archive = {
	.name = "archive",
	.group = "review",
	.summary = "put away what is Done, Failed or Canceled",
	.detail =
		"An archived task stays what it is: it is shown and listed, those who depend on it see it as done, and "
		"it cannot be claimed if it is Done. In a files: store its file moves to the folder archive; elsewhere "
		"it only has archived_at. Who opens it again (reopen, retry, claim) takes it out of the archive.",
	.example = "pawl archive --older-than 7d\n"
		   "pawl archive t1",
	.see = "reopen, remove, lock cleanup",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_ARCHIVE,
	.fails = FAILS(NOT_FOUND),
	.show = show,
};
