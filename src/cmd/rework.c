/*
 * pawl rework: sends a task back (Review to In Progress). The reason becomes a comment, which the
 * next claim shows.
 */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_ID("task in Review"),
	PARAM_REASON(P_REQUIRED, "the work that is still missing; becomes a comment"),
	{ 0 }
};

const struct command cmd_rework = {
	.name = "rework",
	.group = "review",
	.summary = "send a task back: Review → In Progress",
	.detail =
		"`pawl next` offers the task to every agent at once, at its old place in the order. The next claim shows the "
		"reason. The setting handback reserves the task first for its last agent.",
	.example = "pawl rework t1 --reason \"the error path has no test\"",
	.see = "review, approve, claim",
	.model =
		"Send the work of another agent back, with the reason: from Review to In Progress. next offers it "
		"at once. MISCONFIGURED: it is not in Review; show has its status. " MODEL_HELD
			MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_REWORK,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
