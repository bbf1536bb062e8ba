#include "cmd/command.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "archive only this task (default: all tasks that have ended)"),
	PARAM(older_than, "older-than", P_DURATION,
	      .help = "archive only tasks that ended at least DURATION ago"),
	{ 0 }
};

static void show(const struct reply *r, struct view *v)
{
	show_each(r, v, "archived", "nothing to archive");
}

const struct command cmd_archive = {
	.name = "archive",
	.group = "review",
	.summary = "put away tasks that are Done, Failed or Canceled",
	.detail =
		"An archived task keeps its status and still counts as a dependency. list, find, tree and the overview leave "
		"it out; `pawl list --all` and `pawl show` show it. A Done task in the archive cannot be claimed. In a files: store its file moves to the folder "
		"archive; other stores only set archived_at. reopen, retry and claim take a task out of the archive.",
	.example = "pawl archive --older-than 7d\n"
		   "pawl archive t1",
	.see = "reopen, remove, lock cleanup",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_ARCHIVE,
	.fails = FAILS(NOT_FOUND),
	.show = show,
};
