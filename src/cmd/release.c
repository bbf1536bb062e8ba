/*
 * pawl release: gives a task back (In Progress to Ready). --force applies only to a lock that is
 * gone or has expired, never to a live lock.
 */
#include "cmd/command.h"

static const struct param params[] = { PARAM_ID("task that you hold"),
				       PARAM_REASON(0, "reason, for the log"),
				       PARAM_FORCE(
					       "release a task whose lock is gone or has expired"),
				       PARAM_WRITE_STATUS,
				       { 0 } };

const struct command cmd_release = {
	.name = "release",
	.group = "work",
	.summary = "give a task back: In Progress → Ready",
	.detail =
		"The lock ends, and other agents can claim the task at once. With --force anybody can release a task whose "
		"lock is gone or has expired, for example after `pawl lock break`. A live lock of another agent is "
		"refused (20).",
	.example = "pawl release t1 --reason \"needs a Mac\"",
	.see = "claim, block, fail",
	.model =
		"Give your task back: another agent can take it at once. Then call next. " MODEL_LOST
			MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task changed",
	.params = params,
	.flags = C_WRITE,
	.op = OP_RELEASE,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
};
