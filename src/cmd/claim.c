/*
 * pawl claim: takes the task with this id. ask_for_pid() adds the start time of the process to its
 * pid, so that a later process with the same pid is not taken for it.
 */
#include "base/os.h"
#include "cmd/command.h"
#include "core/lease.h"

static const struct param params[] = {
	PARAM_ID("task to claim"),
	PARAM_TTL(LEASE_DEFAULT),
	PARAM(fence, "resume", P_INT, .value = "FENCE", .min = 1,
	      .help = "resume work after the lease expired, if no agent has claimed it since",
	      .model = "fence of your expired lock, to take it back"),
	PARAM_PID,
	PARAM(description, "description", P_TEXT, .letter = 'd', .flags = P_SELDOM,
	      .help = "the planned work, for the log"),
	PARAM_WRITE_STATUS,
	{ 0 }
};

const struct command cmd_claim = {
	.name = "claim",
	.group = "work",
	.summary = "claim a task by its id",
	.detail =
		"The answer has the lock's token and its fence, a number that grows with every claim of the task. pawl "
		"saves the token for this user, agent, run and worktree, so later commands need no --token. If another "
		"agent holds the task, the claim is refused (20); the answer names the holder and the end of its lease. A "
		"claim that is repeated with the same --token gets the same answer.",
	.example = "pawl claim t1 --ttl 30m\n"
		   "pawl claim t1 --resume 3",
	.see = "next, heartbeat, release, done, lock status",
	.model =
		"Take a certain task; next takes any. The answer is its whole brief. CONFLICT: it is held; call "
		"next. LOST_LOCK (with resume): another agent had it since; call next. MISCONFIGURED: do what hint "
		"says. " MODEL_NOT_FOUND,
	.gives = "task lock parent waits_for comments came_back call_next",
	.params = params,
	.flags = C_WRITE,
	.op = OP_CLAIM,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.ask = ask_for_pid,
	.show = show_grant,
};

enum result ask_for_pid(struct session *s, struct args *a, struct reply *out)
{
	if (HAS(&a->rq, pid) && !HAS(&a->rq, pid_start)) {
		if (!os_process_start(a->rq.pid))
			return run_fail(
				USAGE,
				arena_printf(s->arena,
					     "--pid: process %lld does not exist on this machine",
					     (long long)a->rq.pid),
				STR("give the pid of a process that lives as long as the work"),
				out);
		GIVE(&a->rq, pid_start, proc_start(a->rq.pid));
		GIVE(&a->rq, boot_id, proc_here(s->arena));
	}
	return SUCCESS;
}
