#include "cmd/command.h"

static const struct param params[] = {
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "list only tasks with this status; may be repeated or listed with commas"),
	PARAM(holder, "holder", P_NAME, .help = "list only tasks that this agent holds"),
	PARAM(label, "label", P_NAME, .letter = 'l', .help = "list only tasks with this label"),
	PARAM(class_rank, "class", P_CLASS, .letter = 'c', .help = "list only tasks of this class"),
	PARAM(type, "type", P_NAME, .help = "list only tasks of this type"),
	PARAM(parent, "parent", P_ID, .help = "list only sub-tasks of this task"),
	PARAM(text, "text", P_TEXT, .flags = P_FILLED,
	      .help = "list only tasks with this text in a field"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "show at most N tasks (0 = no limit)"),
	PARAM_CACHED,
	{ 0 }
};

#define LIMIT \
	(sizeof(params) / sizeof(params[0]) - 3) /* the parameters from here on are not filters */

static enum result run(struct session *s, struct args *a, struct reply *out)
{
	bool all = !(a->seen & ((UINT64_C(1) << LIMIT) - 1));
	enum result code;

	if (!HAS(&a->rq, limit))
		GIVE(&a->rq, limit, s->quiet ? 0 : 100);
	code = run_op(s, a, out);
	if (code == SUCCESS && all && !out->ans.total)
		json_object_set_new(reply_more(out), "hint",
				    json_string("to create one: pawl create TITLE"));
	return code;
}

const struct command cmd_list = {
	.name = "list",
	.group = "look",
	.summary = "list the tasks of the queue in a table",
	.detail =
		"Tasks appear in the order of their creation. A task must match all filters. With -q pawl prints only the "
		"ids, one per line, and all of them unless you give --limit.",
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
