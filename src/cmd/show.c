#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task to show"), { 0 } };

const struct command cmd_show = {
	.name = "show",
	.group = "look",
	.summary = "everything about one task",
	.example = "pawl show t1",
	.see = "list, log, status",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_SHOW,
	.fails = FAILS(NOT_FOUND),
	.show = show_details,
};
