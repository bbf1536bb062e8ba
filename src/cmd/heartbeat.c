/*
 * pawl heartbeat: renews the lease of a lock that the caller holds. A lease that has expired is not
 * renewed, because another agent may have the task.
 */
#include "cmd/command.h"

static const struct param params[] = {
	PARAM_LOCK("task that you hold, or a lock of the whole queue"),
	PARAM(ttl, "ttl", P_DURATION, .letter = 't', .flags = P_SELDOM,
	      .def = "the present length of the lease",
	      .help = "new length of the lease, from now"),
	{ 0 }
};

static void heartbeat_show(const struct reply *r, struct view *v);

const struct command cmd_heartbeat = {
	.name = "heartbeat",
	.group = "work",
	.summary = "renew the lease of a task that you hold",
	.detail =
		"A heartbeat never shortens a lease. Once the lease has expired, a heartbeat is refused (21): another "
		"agent may have the task. Send a heartbeat after each third of the lease.",
	.example = "pawl heartbeat t1",
	.see = "claim, release, lock status",
	.model =
		"Renew your lock: only after a restart, for a task in held. Else the server renews it while you "
		"are connected. " MODEL_LOST MODEL_UNCLAIMED MODEL_NOT_FOUND,
	.gives = "task lock changed",
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_HEARTBEAT,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.show = heartbeat_show,
};

static void heartbeat_show(const struct reply *r, struct view *v)
{
	if (v->quiet)
		return;
	view_data(v, BOLD, r->ans.task->id);
	view_text(v, PLAIN, " is yours for %s\n",
		  arena_cstr(v->arena, view_left(v, r->ans.lock->expires_at - r->ans.now)));
}
