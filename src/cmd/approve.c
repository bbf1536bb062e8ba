/*
 * pawl approve: accepts the work on a task (Review to Done). The queue decides; this file only
 * declares the call. A reviewer needs no lock.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task in Review"),
				       PARAM_SUMMARY(0, "text of a comment on the task"),
				       { 0 } };

const struct command cmd_approve = {
	.name = "approve",
	.group = "review",
	.summary = "accept the work: Review → Done",
	.detail =
		"Needs no lock. A reviewer may approve a task with open sub-tasks; the log records this.",
	.example = "pawl approve t1 --summary \"looks good\"",
	.see = "review, rework, reopen",
	.model =
		"Accept the work of another agent: from Review to Done. For reviewers: never approve a task that "
		"you worked on. MISCONFIGURED: it is not in Review; show has its status. " MODEL_HELD
			MODEL_LOST MODEL_NOT_FOUND,
	.gives = "task",
	.params = params,
	.flags = C_WRITE,
	.op = OP_APPROVE,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
