/*
 * pawl graph: draws sub-tasks and dependencies for Graphviz or Mermaid. The drawing cannot show
 * that the limit left tasks out, so a warning says it.
 */
#include "cmd/cmd.h"

struct graph_args {
	struct args args;
	int64_t all;
	struct str format;
};

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "task to begin with; default: all open tasks"),
	LOCAL(graph, format, "format", P_CHOICE, .letter = 'f', .flags = P_TERMINAL,
	      .choices = "dot mermaid", .def = "dot",
	      .help = "language of the graph: dot for Graphviz, or mermaid"),
	LOCAL(graph, all, "all", P_FLAG, .help = "show ended and archived tasks as well"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "1000",
	      .help = "show at most N tasks (0 = no limit)"),
	PARAM_CACHED,
	{ 0 }
};

static enum result graph_cmd_ask(struct session *s, struct args *args, struct reply *out);
static void graph_cmd_tell(struct session *s, const struct args *args, struct reply *out);

const struct command cmd_graph = {
	.name = "graph",
	.group = "look",
	.summary = "draw sub-tasks and dependencies for Graphviz or Mermaid",
	.detail =
		"A solid arrow leads from a task to one that it depends on, a dashed one to a sub-task. The graph goes to "
		"standard output.",
	.example = "pawl graph | dot -Tsvg >tasks.svg\n"
		   "pawl graph t1 --format mermaid",
	.see = "tree, list, depend",
	.model =
		"The tasks with their dependencies, as a drawing in a text format. Changes nothing. " MODEL_NOT_FOUND,
	.gives = "tasks count total as_of cached_age_ms",
	.params = params,
	.args_size = sizeof(struct graph_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.fails = FAILS(NOT_FOUND),
	.ask = graph_cmd_ask,
	.tell = graph_cmd_tell,
	.show = show_graph,
};

static enum result graph_cmd_ask(struct session *s, struct args *args, struct reply *out)
{
	const struct graph_args *a = (const struct graph_args *)args;

	(void)s;
	(void)out;
	if (!HAS(&args->rq, limit))
		GIVE(&args->rq, limit, 1000);
	GIVE(&args->rq, view, VIEW_TREE | (a->all ? VIEW_ARCHIVED : 0));
	return SUCCESS;
}

static void graph_cmd_tell(struct session *s, const struct args *args, struct reply *out)
{
	const struct graph_args *a = (const struct graph_args *)args;
	struct graph_shown *own = arena_new(s->arena, struct graph_shown);

	own->mermaid = str_is(a->format, "mermaid");
	own->command = list_command(&cmd_graph, args, "", s->arena);
	out->own = own;
	if (out->ans.code == SUCCESS && out->ans.total > (int64_t)out->ans.n_tasks)
		reply_warn(
			out,
			arena_printf(s->arena,
				     "the graph has the first %zu tasks; for all: %.*s --limit 0",
				     out->ans.n_tasks, STRF(own->command)),
			s->arena);
}
