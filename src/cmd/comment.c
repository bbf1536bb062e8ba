/* pawl comment: adds a text to the log of a task, even if another agent holds the task. */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task to comment on"),
	PARAM(text, "TEXT", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "text of the comment; - reads standard input", .model = "the comment"),
	{ 0 }
};

static void comment_show(const struct reply *r, struct view *v);

const struct command cmd_comment = {
	.name = "comment",
	.group = "plan",
	.summary = "add a comment to a task",
	.detail =
		"The task's log keeps the comment with its author. Any agent may comment, even if another agent holds the task.",
	.example = "pawl comment t1 \"see also the discussion in #12\"",
	.see = "show, log",
	.model =
		"Add a comment to any task: its next holder and its reviewer read it. " MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_COMMENT,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = comment_show,
};

static void comment_show(const struct reply *r, struct view *v)
{
	show_did(r, v, "has a new comment");
}
