#include "cmd/command.h"

static const struct param params[] = {
	PARAM(text, "TEXT", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "text to find; upper and lower case are the same"),
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "find only tasks with this status; may be repeated or listed with commas"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "show at most N tasks (0 = no limit)"),
	{ 0 }
};

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	return run_op(s, a, out);
}

const struct command cmd_find = {
	.name = "find",
	.group = "look",
	.summary = "find tasks by their text",
	.detail = "Searches id, title, description, acceptance, labels and similar fields.",
	.example = "pawl find parser",
	.see = "list, show",
	.gives = "tasks count total",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.run = run,
	.show = show_tasks,
};
