/* pawl tree: shows sub-tasks and dependencies as a tree. view_graph.c draws it, each task once. */
#include "cmd/cmd.h"

struct tree_args {
	struct args args;
	int64_t all;
};

static const struct param params[] = { PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
					     .help = "task at the top; default: all open tasks"),
				       LOCAL(tree, all, "all", P_FLAG,
					     .help = "show ended and archived tasks as well"),
				       PARAM(limit, "limit", P_INT, .letter = 'n', .def = "200",
					     .help = "show at most N tasks (0 = no limit)"),
				       PARAM_CACHED,
				       { 0 } };

static enum result tree_ask(struct session *s, struct args *args, struct reply *out);
static void tree_tell(struct session *s, const struct args *args, struct reply *out);

const struct command cmd_tree = {
	.name = "tree",
	.group = "look",
	.summary = "show sub-tasks and dependencies as a tree",
	.detail =
		"Below each task are its sub-tasks and the tasks that it depends on, with status and holder. A task that "
		"can be reached twice appears once; other places refer to it. Without ID the tree has the open tasks; the "
		"tree of a task also has those that ended.",
	.example = "pawl tree\n"
		   "pawl tree t1",
	.see = "list, show, graph, depend",
	.model = "The tasks with their sub-tasks. Changes nothing. " MODEL_NOT_FOUND,
	.gives = "tasks count total as_of cached_age_ms",
	.params = params,
	.args_size = sizeof(struct tree_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.fails = FAILS(NOT_FOUND),
	.ask = tree_ask,
	.tell = tree_tell,
	.show = show_tree,
};

static enum result tree_ask(struct session *s, struct args *args, struct reply *out)
{
	(void)s;
	(void)out;
	if (!HAS(&args->rq, limit))
		GIVE(&args->rq, limit, 200);
	GIVE(&args->rq, view,
	     VIEW_TREE | (((const struct tree_args *)args)->all ? VIEW_ARCHIVED : 0));
	return SUCCESS;
}

static void tree_tell(struct session *s, const struct args *args, struct reply *out)
{
	struct graph_shown *own = arena_new(s->arena, struct graph_shown);

	own->one = HAS(&args->rq, id);
	own->command = list_command(&cmd_tree, args, "", s->arena);
	out->own = own;
}
