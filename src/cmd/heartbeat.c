#include "cmd/command.h"

static const struct param params[] = {
	PARAM_LOCK("task that you hold, or a lock of the whole queue"),
	PARAM(ttl, "ttl", P_DURATION, .letter = 't', .def = "the lock's own",
	      .help = "the lease from now on"),
	{ 0 }
};

static void show(const struct reply *r, struct view *v)
{
	if (v->quiet)
		return;
	view_data(v, BOLD, r->ans.task->id);
	view_text(v, PLAIN, " is yours for %.*s\n",
		  STRF(view_left(v, r->ans.lock->expires_at - r->ans.now)));
}

const struct command cmd_heartbeat = {
	.name = "heartbeat",
	.group = "work",
	.summary = "say that you still work on it: extends the lease",
	.detail =
		"A heartbeat never shortens a lease. Once the lease has run out it is too late (21): somebody "
		"else may have the task. Send one at a third of the lease's length.",
	.example = "pawl heartbeat t1",
	.see = "claim, release, lock status",
	.model =
		"Extends your lock, and after a restart takes it up again. Seldom needed: the server does it while you are connected. "
		"LOST_LOCK: it ran out or somebody else has the task; stop working on it.",
	.gives = "task lock",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_HEARTBEAT,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = show,
};
