#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task to show"), PARAM_CACHED, { 0 } };

/* The caller gets the comments without a second call. */
static enum result run(struct session *s, struct args *a, struct reply *out)
{
	enum result code = run_op(s, a, out);

	if (code == SUCCESS && !out->ans.n_events)
		json_object_set_new(reply_more(out), "comments", json_array());
	return code;
}

const struct command cmd_show = {
	.name = "show",
	.group = "look",
	.summary = "show everything about one task",
	.example = "pawl show t1",
	.see = "list, log, status",
	.model =
		"Everything about one task with its comments, its holder and the end of its lease. Changes nothing.",
	.gives = "task comments as_of cached_age_ms",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_SHOW,
	.fails = FAILS(NOT_FOUND),
	.run = run,
	.show = show_details,
};
