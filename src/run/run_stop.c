/*
 * Stops a program and all processes that it started: SIGTERM at once, SIGKILL after the grace period
 * (RUN_GRACE_S). A signal goes to a group only while the group still has a process, because the
 * kernel may reuse the number of an empty group.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/os.h"
#include "run/run_private.h"

#define UNKILLABLE_MS 2000 /* wait for zombies, which SIGKILL does not end */

void group_signal(pid_t group, int sig)
{
	(void)kill(-group, sig);
}

bool group_there(pid_t group)
{
	return kill(-group, 0) == 0 || errno != ESRCH;
}

static void run_stop_ask(pid_t group)
{
	group_signal(group, SIGTERM);
	group_signal(group, SIGCONT); /* a stopped program would not receive SIGTERM otherwise */
}

/* --- one job, by its runner ------------------------------------------------------------------- */

void job_stop(struct job *j, int64_t now, int64_t grace_ms)
{
	if (j->kill_at)
		return;
	run_stop_ask(j->group);
	j->kill_at = now + grace_ms;
}

void job_exited(struct job *j, int64_t now, int64_t grace_ms)
{
	j->exited = true;
	if (group_there(j->group))
		job_stop(j, now, grace_ms);
}

void job_kill_due(struct job *j, int64_t now)
{
	if (!j->kill_at || now < j->kill_at || j->killed)
		return;
	group_signal(j->group, SIGKILL);
	j->killed = true;
	j->give_up_at = now + UNKILLABLE_MS;
}

bool job_gone(const struct job *j, int64_t now)
{
	return j->exited && (!group_there(j->group) || (j->killed && now >= j->give_up_at));
}

/* --- all groups, by the reaper ---------------------------------------------------------------- */

static bool run_stop_left(struct groups *g)
{
	for (size_t i = g->n; i-- > 0;)
		if (!group_there(g->v[i]))
			g->v[i] = g->v[--g->n];
	return g->n;
}

void groups_stop(struct groups *g, int64_t grace_ms)
{
	int64_t end = os_boot_ms() + grace_ms;

	for (size_t i = 0; i < g->n; i++)
		run_stop_ask(g->v[i]);
	while (run_stop_left(g) && os_boot_ms() < end)
		usleep(20000);
	for (size_t i = 0; i < g->n; i++)
		group_signal(g->v[i], SIGKILL);
}
