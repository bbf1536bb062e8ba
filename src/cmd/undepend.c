#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that waits"),
				       PARAM(depends, "ON", P_IDS,
					     .flags = P_POSITIONAL | P_REQUIRED, .value = "ON",
					     .help = "task to wait for no longer"),
				       { 0 } };

static void show(const json_t *o, struct view *v)
{
	const json_t *on = json_object_get(json_object_get(o, "task"), "depends");

	if (json_array_size(on))
		show_did(o, v, arena_printf(v->arena, "depends on %.*s", STRF(view_list(v, on))).p);
	else
		show_did(o, v, "depends on nothing");
}

const struct command cmd_undepend = {
	.name = "undepend",
	.group = "plan",
	.summary = "a task no longer waits for others",
	.example = "pawl undepend t3 t1",
	.see = "depend, show",
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_UNDEPEND,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.show = show,
};
