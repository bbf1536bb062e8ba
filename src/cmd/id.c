/*
 * pawl id claim, peek and init: the counter of ids. It never goes back, so no two callers get the
 * same id.
 */
#include "cmd/command.h"

static const struct param init_params[] = {
	PARAM(from, "from", P_INT, .value = "N", .min = 1, .max = ID_NUMBER_MAX,
	      .help = "the first id is at least tN (default: one more than the greatest id)"),
	{ 0 }
};

static void id_show(const struct reply *r, struct view *v);
static enum result ask_init(struct session *s, struct args *a, struct reply *out);

const struct command cmd_id_claim = {
	.name = "id claim",
	.group = "plan",
	.summary = "reserve an id, for scripts that name their own files",
	.detail =
		"Takes the next id from the store's counter. No other caller gets the same id, and `pawl create --id` can "
		"use it later.",
	.example = "id=$(pawl id claim)",
	.see = "id peek, create",
	.model =
		"Reserve the next id, for files that are named after a task. create id=ID can use it later.",
	.gives = "id",
	.flags = C_WRITE,
	.op = OP_ID_CLAIM,
	.show = id_show,
};

const struct command cmd_id_peek = {
	.name = "id peek",
	.group = "plan",
	.summary = "show the next id without reserving it",
	.detail = "Reserves nothing: another caller may get the id first.",
	.example = "pawl id peek",
	.see = "id claim",
	.model = "Show the next id without reserving it: another caller may get it first.",
	.gives = "id",
	.flags = C_IDEMPOTENT,
	.op = OP_ID_PEEK,
	.show = id_show,
};

const struct command cmd_id_init = {
	.name = "id init",
	.group = "plan",
	.summary = "start the counter of ids after the ids in use",
	.detail =
		"Makes the queue, or the counter's branch, if it does not exist, and shows the next id. The counter never "
		"goes back: if it exists already, a smaller --from changes nothing.",
	.example = "pawl id init --store git:origin#aitask-ids",
	.see = "id claim, id peek, lock init",
	.model = "Start the counter of ids after the ids in use. It never goes back.",
	.gives = "id",
	.params = init_params,
	.flags = C_WRITE | C_IDEMPOTENT | C_SHELL,
	.op = OP_ID_INIT,
	.ask = ask_init,
	.show = id_show,
};

static void id_show(const struct reply *r, struct view *v)
{
	view_data(v, PLAIN, r->ans.text);
	view_text(v, PLAIN, "\n");
}

static enum result ask_init(struct session *s, struct args *a, struct reply *out)
{
	struct answer ans = { 0 };

	(void)a;
	if (client_make(&s->client, &ans) != SUCCESS)
		return run_answer(&ans, out);
	return SUCCESS;
}
