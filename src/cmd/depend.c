/*
 * pawl depend: makes a task wait for others. The queue refuses a cycle through dependencies and
 * sub-tasks.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that waits for others"),
				       PARAM(depends, "ON", P_IDS,
					     .flags = P_POSITIONAL | P_REQUIRED, .value = "ON",
					     .help = "task that must be Done first"),
				       PARAM_OVERRIDE,
				       { 0 } };

const struct command cmd_depend = {
	.name = "depend",
	.group = "plan",
	.summary = "make a task wait for other tasks",
	.detail = "pawl refuses a cycle through dependencies and sub-tasks (40).",
	.example = "pawl depend t3 t1 t2",
	.see = "undepend, create, next",
	.model =
		"Make a task wait for other tasks. MISCONFIGURED: it would be a cycle; show has parent and "
		"depends. " MODEL_HELD MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_DEPEND,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.show = show_depends,
};
