/* pawl retry: offers a Failed task again (Failed to Ready). */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that is Failed"),
				       PARAM_REASON(0, "why it may work now, for the log"),
				       { 0 } };

const struct command cmd_retry = {
	.name = "retry",
	.group = "review",
	.summary = "offer a task again: Failed → Ready",
	.example = "pawl retry t1",
	.see = "fail, reopen",
	.model =
		"Offer a Failed task again: it is Ready. MISCONFIGURED: it did not fail; show has its status. " MODEL_HELD
			MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_RETRY,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
