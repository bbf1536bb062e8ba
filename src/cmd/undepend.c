/* pawl undepend: removes dependencies of a task. */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that waits for others"),
				       PARAM(depends, "ON", P_IDS,
					     .flags = P_POSITIONAL | P_REQUIRED, .value = "ON",
					     .help = "task that need not be Done first any more"),
				       PARAM_OVERRIDE,
				       { 0 } };

const struct command cmd_undepend = {
	.name = "undepend",
	.group = "plan",
	.summary = "remove dependencies of a task",
	.example = "pawl undepend t3 t1",
	.see = "depend, show",
	.model = "Remove dependencies of a task. " MODEL_HELD MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_UNDEPEND,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.show = show_depends,
};
