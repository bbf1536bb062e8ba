/*
 * pawl review: hands a task to a reviewer (In Progress to Review). All sub-tasks must have ended,
 * and the lock ends.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that you hold"),
				       PARAM_SUMMARY(P_REQUIRED,
						     "summary of the work, for the reviewer"),
				       { 0 } };

const struct command cmd_review = {
	.name = "review",
	.group = "work",
	.summary = "hand a task to a reviewer: In Progress → Review",
	.detail = "All sub-tasks must be Done or Canceled (else 41). The lock ends.",
	.example = "pawl review t1 --summary \"parser rewritten, 12 new tests\"",
	.see = "approve, rework, done",
	.model =
		"Hand your finished task to a reviewer, who decides: never you. INCOMPLETE_SUBTASKS: finish them "
		"first (list parent=ID). " MODEL_LOST MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task changed",
	.params = params,
	.flags = C_WRITE,
	.op = OP_REVIEW,
	.fails = FAILS(LOST_LOCK, INCOMPLETE_SUBTASKS, NOT_FOUND),
};
