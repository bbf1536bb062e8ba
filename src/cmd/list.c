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
	PARAM_CACHED,
	{ 0 }
};

#define LIMIT (sizeof(params) / sizeof(params[0]) - 3) /* from here on they are no filters */

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	bool all = !(a->seen & ((UINT64_C(1) << LIMIT) - 1));
	enum result code;

	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	code = run_op(s, a, out);
	if (code == SUCCESS && all && !out->ans.total)
		json_object_set_new(reply_more(out), "hint",
				    json_string("pawl create TITLE makes one"));
	return code;
}

const struct command cmd_list = {
	.name = "list",
	.group = "look",
	.summary = "the tasks of the queue, as a table",
	.detail =
		"In the order in which they were made. Filters add up. With -q only the ids are printed, one on a "
		"line, and all of them unless there is a --limit.",
	.example = "pawl list --status ready,blocked --label bug\n"
		   "pawl list --holder alice --json",
	.see = "find, show, status, next",
	.gives = "tasks count total as_of cached_age_ms",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.run = run,
	.show = show_tasks,
};
