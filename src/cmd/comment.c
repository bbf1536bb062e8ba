#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task to comment on"),
	PARAM(text, "TEXT", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "what to say; - reads standard input", .model = "what to say"),
	{ 0 }
};

static void show(const struct reply *r, struct view *v)
{
	show_did(r, v, "has a new comment");
}

const struct command cmd_comment = {
	.name = "comment",
	.group = "plan",
	.summary = "say something about a task",
	.detail =
		"It is kept in the task's log with its author. Anybody may comment, whoever holds the task.",
	.example = "pawl comment t1 \"see also the discussion in #12\"",
	.see = "show, log",
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_COMMENT,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show,
};
