#include "cmd/command.h"

static const struct param params[] = {
	PARAM(text, "TEXT", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "what to look for, in any case"),
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "only tasks of this status; may be repeated or listed"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "at most so many; 0: all"),
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
	.summary = "tasks that have a text in them",
	.detail = "Looks in id, title, description, acceptance, labels and the like.",
	.example = "pawl find parser",
	.see = "list, show",
	.gives = "tasks count total",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.run = run,
	.show = show_tasks,
};
