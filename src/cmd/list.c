#include "cmd/command.h"

static const struct param params[] = {
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "only tasks of this status; may be repeated or listed"),
	PARAM(holder, "holder", P_NAME, .help = "only tasks that this agent holds"),
	PARAM(label, "label", P_NAME, .letter = 'l', .help = "only tasks with this label"),
	PARAM(class_rank, "class", P_CLASS, .letter = 'c', .help = "only tasks of this class"),
	PARAM(type, "type", P_NAME, .help = "only tasks of this type"),
	PARAM(parent, "parent", P_ID, .help = "only sub-tasks of this task"),
	PARAM(text, "text", P_TEXT, .flags = P_FILLED,
	      .help = "only tasks with this in their texts"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "at most so many; 0: all"),
	{ 0 }
};

static enum result run(struct session *s, struct args *a, json_t **out)
{
	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, 100);
	return run_op(s, a, out);
}

const struct command cmd_list = {
	.name = "list",
	.group = "look",
	.summary = "the tasks of the queue, as a table",
	.detail =
		"In the order in which they were made. Filters add up. With -q only the ids are printed, one on a "
		"line.",
	.example = "pawl list --status ready,blocked --label bug\n"
		   "pawl list --holder alice --json",
	.see = "find, show, status, next",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.run = run,
	.show = show_tasks,
};
