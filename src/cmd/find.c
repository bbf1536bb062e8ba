/*
 * pawl find: lists the tasks that contain a text. It is OP_LIST with a filter, and list.c makes its
 * reply.
 */
#include "cmd/cmd.h"

struct find_args {
	struct args args;
	int64_t all;
};

static const struct param params[] = {
	PARAM(text, "TEXT", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED,
	      .help = "text to find; upper and lower case are the same"),
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "find only tasks with this status; may be repeated or listed with commas",
	      .model = "only these statuses"),
	LOCAL(find, all, "all", P_FLAG, .help = "find archived tasks as well"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100",
	      .help = "show at most N tasks (0 = no limit)"),
	{ 0 }
};

static enum result find_ask(struct session *s, struct args *args, struct reply *out);
static void find_tell(struct session *s, const struct args *args, struct reply *out);

const struct command cmd_find = {
	.name = "find",
	.group = "look",
	.summary = "find tasks by their text",
	.detail =
		"Searches id, title, description, acceptance, labels and similar fields. Archived tasks appear "
		"only with --all.",
	.example = "pawl find parser",
	.see = "list, show",
	.model =
		"Search id, title, description, acceptance, labels and similar fields. A page has up to 50; "
		"more says how to get the next page.",
	.gives = "tasks count total",
	.params = params,
	.args_size = sizeof(struct find_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.ask = find_ask,
	.tell = find_tell,
	.show = show_tasks,
};

static enum result find_ask(struct session *s, struct args *args, struct reply *out)
{
	const struct find_args *a = (const struct find_args *)args;

	(void)out;
	if (!HAS(&args->rq, limit))
		GIVE(&args->rq, limit, s->complete ? 0 : 100);
	if (s->people)
		GIVE(&args->rq, view,
		     (a->all ? VIEW_ARCHIVED : 0) | VIEW_SORT(SORT_CREATED) | VIEW_PEOPLE);
	return SUCCESS;
}

static void find_tell(struct session *s, const struct args *args, struct reply *out)
{
	const struct find_args *a = (const struct find_args *)args;

	list_tell(s, &cmd_find, args, (struct list_shown){ .filtered = true, .archived = a->all },
		  out);
}
