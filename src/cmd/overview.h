/*
 * overview: the answer to `status` without a task. overview_tell() adds three members to the numbers and the held tasks:
 * the tasks that wait for a person, the agents, and the work of the last hour. Both forms of the output show them.
 */
#ifndef CMD_OVERVIEW_H
#define CMD_OVERVIEW_H

#include "cmd/command.h"

#define HOUR_MS (60 * 60 * INT64_C(1000))

/* The place of the operator and of the agents, for the view. */
struct overview {
	struct str host, folder; /* this host and this worktree */
	struct str *folders;     /* of the held tasks: the worktree of the holder; empty: unknown */
};

/* The name of a worktree: the last part of its path. */
struct str overview_worktree(struct str folder);
/* out->own: a struct overview. */
void overview_tell(struct session *s, struct reply *out);
/* The state of the holder, from the lock of a task: "working", "blocked", "idle" or "dead". */
const char *overview_state(const struct task *t, int64_t now);

#endif
