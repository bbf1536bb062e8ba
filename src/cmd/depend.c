#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that waits"),
				       PARAM(depends, "ON", P_IDS,
					     .flags = P_POSITIONAL | P_REQUIRED, .value = "ON",
					     .help = "task that must be Done first"),
				       { 0 } };

static void show(const json_t *o, struct view *v)
{
	const json_t *on = json_object_get(json_object_get(o, "task"), "depends");

	if (json_array_size(on))
		show_did(o, v, arena_printf(v->arena, "depends on %.*s", STRF(view_list(v, on))).p);
	else
		show_did(o, v, "depends on nothing");
}

const struct command cmd_depend = {
	.name = "depend",
	.group = "plan",
	.summary = "a task waits for others",
	.detail = "A cycle through dependencies and sub-tasks is refused (40).",
	.example = "pawl depend t3 t1 t2",
	.see = "undepend, create, next",
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_DEPEND,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.show = show,
};
