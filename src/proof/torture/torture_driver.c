/* Runs the agents and disturbs them: kills, stops, skewed clocks. The driver has no store handle open while it forks, and it
 * keeps the lock that protects the store's clock alive until all agents have ended. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/fs.h"
#include "base/os.h"
#include "proof/history/history.h"
#include "proof/torture/torture_private.h"

#define LAST_CALL_MS 10000 /* beyond the store's timeout, for agents to finish their last call */
#define DAY_MS 86400000
#define KEEP_MS (SCRATCH_KEEPER_TTL / 3)
#define KEEP_AGAIN_MS 1000

static uint32_t torture_driver_roll(struct driver *d, uint32_t limit)
{
	return seeded_below(&d->random, limit);
}

static struct str name_of(struct driver *d, int who)
{
	return arena_printf(d->arena, "a%d", who);
}

/* --- processes ------------------------------------------------------------------------------------- */

const char *driver_part(struct driver *d, const char *name)
{
	const char *path = fs_join(d->arena, str_c(d->folder), str_c(name));

	d->parts = arena_append(d->arena, d->parts, str_c(path));
	return path;
}

static void give_up(struct driver *d, struct str why)
{
	if (!d->trouble.n)
		d->trouble = arena_str(d->arena, why);
	d->board->stop = true;
}

static int be_agent(void *ctx, int who)
{
	struct driver *d = ctx;
	const struct body *b = &d->bodies[who];

	return agent_live(d->plan, d->board, d->queue, who, b->life, b->part);
}

static void torture_driver_spawn(struct driver *d, int who)
{
	struct body *b = &d->bodies[who];
	char name[40];

	snprintf(name, sizeof(name), "a%d-%d", who, ++b->life);
	b->part = driver_part(d, name);
	b->continues_at = 0;
	b->pid = crew_start(be_agent, d, who);
	if (b->pid < 0) {
		give_up(d, arena_printf(d->arena, "cannot start a process: %s", strerror(-b->pid)));
		b->pid = 0;
	}
}

static void note_end(struct driver *d, int who, int status)
{
	const char *why = d->board->minds[who].trouble;

	d->bodies[who].pid = 0;
	if (WIFSIGNALED(status))
		give_up(d, arena_printf(d->arena, "agent a%d was killed by signal %d (%s)", who,
					WTERMSIG(status), strsignal(WTERMSIG(status))));
	else if (WEXITSTATUS(status))
		give_up(d, arena_printf(d->arena, "agent a%d gave up: %s", who, why));
}

/* Returns how many processes are left. */
static int torture_driver_reap(struct driver *d)
{
	int left = 0;

	for (int i = 0; i < d->board->agents; i++) {
		struct body *b = &d->bodies[i];
		int status;

		if (crew_ended(&b->pid, &status))
			note_end(d, i, status);
		left += b->pid != 0;
	}
	return left;
}

/* --- disturbance ----------------------------------------------------------------------------------- */

/* A running agent: preferably one in a call (in_call), or else one that holds a lock. -1: none. */
static int torture_driver_victim(struct driver *d, bool in_call)
{
	int found = -1;

	for (int i = 0; i < 8; i++) {
		int who = (int)torture_driver_roll(d, (uint32_t)d->board->agents);
		const struct mind *m = &d->board->minds[who];

		if (!d->bodies[who].pid || d->bodies[who].continues_at)
			continue;
		found = who;
		if (in_call ? m->pending : m->until > os_boot_ms())
			break;
	}
	return found;
}

/* One replacement in three starts without its predecessor's knowledge, so that those leases must expire. */
static void maybe_forget(struct driver *d, int who)
{
	struct mind *m = &d->board->minds[who];

	if (torture_driver_roll(d, 3))
		return;
	memset(m->holds, 0, sizeof(m->holds));
	m->n_holds = m->call_size = 0;
	m->until = 0;
	m->pending = false;
}

/* An agent that has just ended by itself does not count as killed. */
static bool kill_one(struct driver *d)
{
	int who = torture_driver_victim(d, torture_driver_roll(d, 4) > 0), status;
	pid_t pid = who < 0 ? 0 : d->bodies[who].pid;

	if (!pid)
		return false;
	if (crew_ended(&d->bodies[who].pid, &status)) {
		note_end(d, who, status);
		return false;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
		note_end(d, who, status);
		return false;
	}
	history_event(d->history, "kill", name_of(d, who), pid, 0);
	maybe_forget(d, who);
	torture_driver_spawn(d, who);
	return true;
}

/* Stops an agent until its lease has expired, if it has one. */
static bool stop_one(struct driver *d)
{
	int who = torture_driver_victim(d, torture_driver_roll(d, 4) == 0);
	int64_t now = os_boot_ms(), until;

	if (who < 0)
		return false;
	until = d->board->minds[who].until;
	d->board->minds[who].stops++;
	kill(d->bodies[who].pid, SIGSTOP);
	d->bodies[who].continues_at = (until > now ? until : now + 200) + 20 +
				      torture_driver_roll(d, 200);
	history_event(d->history, "stop", name_of(d, who), d->bodies[who].pid, 0);
	return true;
}

static void continue_some(struct driver *d, bool all)
{
	for (int i = 0; i < d->board->agents; i++) {
		struct body *b = &d->bodies[i];

		if (!b->continues_at || (!all && os_boot_ms() < b->continues_at))
			continue;
		b->continues_at = 0;
		if (b->pid)
			kill(b->pid, SIGCONT);
		history_event(d->history, "continue", name_of(d, i), b->pid, 0);
	}
}

static bool skew_one(struct driver *d)
{
	int who = (int)torture_driver_roll(d, (uint32_t)d->board->agents);
	int64_t ms = (int64_t)torture_driver_roll(d, torture_driver_roll(d, 2) ? 5000 : DAY_MS);

	if (torture_driver_roll(d, 2))
		ms = -ms;
	d->board->minds[who].skew = ms;
	history_event(d->history, "skew", name_of(d, who), d->bodies[who].pid, ms);
	return true;
}

/* Disturbs agents until the number of disturbances is in proportion to the elapsed time. */
static void torture_driver_strike(struct driver *d, int64_t all, int64_t *done,
				  bool (*one)(struct driver *))
{
	int64_t span = d->plan->ms ? d->plan->ms : 1;
	int64_t due = d->figures.ms >= span ? all : all * d->figures.ms / span;

	while (*done < due && !d->board->stop && one(d))
		++*done;
}

static void torture_driver_disturb(struct driver *d)
{
	struct torture_figures *f = &d->figures;

	continue_some(d, false);
	torture_driver_strike(d, d->plan->kills, &f->kills, kill_one);
	torture_driver_strike(d, d->plan->stops, &f->stops, stop_one);
	torture_driver_strike(d, d->plan->skews, &f->skews, skew_one);
}

/* --- the run --------------------------------------------------------------------------------------- */

static bool disturbed_enough(const struct driver *d)
{
	const struct torture_plan *p = d->plan;
	const struct torture_figures *f = &d->figures;

	return f->kills >= p->kills && f->stops >= p->stops && f->skews >= p->skews;
}

static bool time_is_up(struct driver *d)
{
	const struct torture_plan *p = d->plan;

	if (p->mode != TORTURE_MIX)
		return false;
	if (p->calls && d->board->calls >= p->calls)
		return true;
	return d->figures.ms >= p->ms && disturbed_enough(d);
}

static void torture_driver_show(struct driver *d, const char *doing)
{
	const struct torture_plan *p = d->plan;

	board_count(d->board, &d->figures);
	d->figures.left_ms = p->mode != TORTURE_MIX ? -1 : p->ms - d->figures.ms;
	if (p->progress)
		p->progress(p->ctx, &d->figures, doing);
}

/* Renews the lock on the store's clock, and closes the queue again: no handle may be open while the driver forks. */
static void keep_clock(struct driver *d)
{
	int64_t now = os_boot_ms();

	if (now < d->renew_at)
		return;
	d->renew_at = now + (scratch_renew(d->plan, d->queue, d->clock_token, d->history)
				     ? KEEP_MS
				     : KEEP_AGAIN_MS);
}

static void torture_driver_work(struct driver *d)
{
	int64_t shown = 0;

	while (!d->board->stop && torture_driver_reap(d)) {
		d->figures.ms = os_boot_ms() - d->began;
		keep_clock(d);
		if (crew_interrupted() || d->board->seen || time_is_up(d))
			break;
		torture_driver_disturb(d);
		if (d->figures.ms - shown >= CREW_PROGRESS_MS) {
			shown = d->figures.ms;
			torture_driver_show(d, "working");
		}
		crew_pause();
	}
	d->figures.ms = os_boot_ms() - d->began;
}

/* Collects the troubles of agents that could not report them, because they were killed while they
 * waited for each other. */
static void find_trouble(struct driver *d)
{
	const struct board *b = d->board;
	const char *why = "";

	for (int i = 0; i < b->agents; i++) {
		if (b->minds[i].trouble[0])
			give_up(d, arena_printf(d->arena, "agent a%d gave up: %s", i,
						b->minds[i].trouble));
		if (b->minds[i].failure[0])
			why = b->minds[i].failure;
	}
	if (b->failed < FAILS || d->trouble.n)
		return;
	if (os_boot_ms() - b->failing_since < b->outage_ms &&
	    scratch_renew(d->plan, d->queue, d->clock_token, d->history))
		return;
	d->store_failed = true;
	give_up(d,
		arena_printf(d->arena,
			     "the store failed permanently: %d changes in a row, the last with: %s",
			     b->failed, why));
}

/* Lets agents finish their current call, except in rounds: there they wait for each other and could
 * not finish. */
static void end_all(struct driver *d)
{
	int64_t patience = d->plan->mode == TORTURE_CLAIMS ? 0 : d->plan->timeout_ms + LAST_CALL_MS;
	int64_t end = os_boot_ms() + patience;

	d->board->stop = true;
	continue_some(d, true);
	while (torture_driver_reap(d) && os_boot_ms() < end)
		crew_pause();
	for (int i = 0; i < d->board->agents; i++) {
		struct body *b = &d->bodies[i];

		if (!b->pid)
			continue;
		kill(b->pid, SIGKILL);
		waitpid(b->pid, NULL, 0);
		history_event(d->history, "kill", name_of(d, i), b->pid, 0);
		b->pid = 0;
	}
}

void driver_run(struct driver *d)
{
	crew_catch();
	d->began = os_boot_ms();
	keep_clock(d);
	for (int i = 0; i < d->board->agents && !d->board->stop; i++)
		torture_driver_spawn(d, i);
	torture_driver_work(d);
	end_all(d);
	find_trouble(d);
	crew_release();
	d->interrupted = crew_interrupted();
	torture_driver_show(d, "checking");
}
