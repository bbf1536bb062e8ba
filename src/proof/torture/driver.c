#include "proof/torture/driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/seeded.h"
#include "proof/history/history.h"
#include "proof/torture/agent.h"
#include "proof/torture/scratch.h"

#define TICK_MS 4
#define PROGRESS_MS 200
#define LAST_CALL_MS 10000 /* beyond the store's timeout, to finish the call they are in */
#define DAY_MS 86400000
#define KEEP_MS (SCRATCH_KEEPER_TTL / 3)
#define KEEP_AGAIN_MS 1000

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static void pause_ms(int64_t ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static uint32_t roll(struct driver *d, uint32_t limit)
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

/* The terminal's signals are for the driver, which lets the agents finish. */
static void be_agent(struct driver *d, int who, const char *part, pid_t driver)
{
	struct body *b = &d->bodies[who];

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	os_end_with(driver);
	_exit(agent_live(d->plan, d->board, d->queue, who, b->life, part));
}

static void spawn(struct driver *d, int who)
{
	struct body *b = &d->bodies[who];
	pid_t driver = getpid();
	char name[40];
	const char *part;

	snprintf(name, sizeof(name), "a%d-%d", who, ++b->life);
	part = driver_part(d, name);
	b->continues_at = 0;
	fflush(NULL);
	b->pid = fork();
	if (b->pid == 0)
		be_agent(d, who, part, driver);
	if (b->pid < 0) {
		b->pid = 0;
		give_up(d, arena_printf(d->arena, "no more processes: %s", strerror(errno)));
	}
}

static void note_end(struct driver *d, int who, int status)
{
	const char *why = d->board->minds[who].trouble;

	d->bodies[who].pid = 0;
	if (WIFSIGNALED(status))
		give_up(d, arena_printf(d->arena, "agent a%d was ended by signal %d (%s)", who,
					WTERMSIG(status), strsignal(WTERMSIG(status))));
	else if (WEXITSTATUS(status))
		give_up(d, arena_printf(d->arena, "agent a%d gave up: %s", who, why));
}

/* How many are left. */
static int reap(struct driver *d)
{
	int left = 0;

	for (int i = 0; i < d->board->agents; i++) {
		struct body *b = &d->bodies[i];
		int status;

		if (b->pid && waitpid(b->pid, &status, WNOHANG) == b->pid)
			note_end(d, i, status);
		left += b->pid != 0;
	}
	return left;
}

/* --- disturbance ----------------------------------------------------------------------------------- */

/* One that works, in the middle of a call if there is one. -1: nobody. */
static int victim(struct driver *d, bool in_call)
{
	int found = -1;

	for (int i = 0; i < 8; i++) {
		int who = (int)roll(d, (uint32_t)d->board->agents);
		const struct mind *m = &d->board->minds[who];

		if (!d->bodies[who].pid || d->bodies[who].continues_at)
			continue;
		found = who;
		if (in_call ? m->pending : m->until > os_boot_ms())
			break;
	}
	return found;
}

/* One in three knows nothing of the one before: what that held has to run out. */
static void maybe_forget(struct driver *d, int who)
{
	struct mind *m = &d->board->minds[who];

	if (roll(d, 3))
		return;
	memset(m->holds, 0, sizeof(m->holds));
	m->n_holds = m->call_size = 0;
	m->until = 0;
	m->pending = false;
}

/* One that has just ended by itself needs no killing. */
static bool kill_one(struct driver *d)
{
	int who = victim(d, roll(d, 4) > 0), status;
	pid_t pid = who < 0 ? 0 : d->bodies[who].pid;

	if (!pid || waitpid(pid, &status, WNOHANG) == pid) {
		if (pid)
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
	spawn(d, who);
	return true;
}

/* Until its lease has run out, as far as it has one. */
static bool stop_one(struct driver *d)
{
	int who = victim(d, roll(d, 4) == 0);
	int64_t now = os_boot_ms(), until;

	if (who < 0)
		return false;
	until = d->board->minds[who].until;
	d->board->minds[who].stops++;
	kill(d->bodies[who].pid, SIGSTOP);
	d->bodies[who].continues_at = (until > now ? until : now + 200) + 20 + roll(d, 200);
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
	int who = (int)roll(d, (uint32_t)d->board->agents);
	int64_t ms = (int64_t)roll(d, roll(d, 2) ? 5000 : DAY_MS);

	if (roll(d, 2))
		ms = -ms;
	d->board->minds[who].skew = ms;
	history_event(d->history, "skew", name_of(d, who), d->bodies[who].pid, ms);
	return true;
}

/* So many of `all` as the time that has passed asks for. */
static void strike(struct driver *d, int64_t all, int64_t *done, bool (*one)(struct driver *))
{
	int64_t span = d->plan->ms ? d->plan->ms : 1;
	int64_t due = d->figures.ms >= span ? all : all * d->figures.ms / span;

	while (*done < due && !d->board->stop && one(d))
		++*done;
}

static void disturb(struct driver *d)
{
	struct torture_figures *f = &d->figures;

	continue_some(d, false);
	strike(d, d->plan->kills, &f->kills, kill_one);
	strike(d, d->plan->stops, &f->stops, stop_one);
	strike(d, d->plan->skews, &f->skews, skew_one);
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

	if (p->way != TORTURE_MIX)
		return false;
	if (p->calls && d->board->calls >= p->calls)
		return true;
	return d->figures.ms >= p->ms && disturbed_enough(d);
}

static void show(struct driver *d, const char *doing)
{
	const struct torture_plan *p = d->plan;

	board_count(d->board, &d->figures);
	d->figures.left_ms = p->way != TORTURE_MIX ? -1 : p->ms - d->figures.ms;
	if (p->progress)
		p->progress(p->ctx, &d->figures, doing);
}

/* No handle of the queue is open while others are forked. */
static void keep_clock(struct driver *d)
{
	int64_t now = os_boot_ms();

	if (now < d->renew_at)
		return;
	d->renew_at = now + (scratch_renew(d->plan, d->queue, d->keeper, d->history)
				     ? KEEP_MS
				     : KEEP_AGAIN_MS);
}

static void work(struct driver *d)
{
	int64_t shown = 0;

	while (!d->board->stop && reap(d)) {
		d->figures.ms = os_boot_ms() - d->began;
		keep_clock(d);
		if (interrupted || d->board->seen || time_is_up(d))
			break;
		disturb(d);
		if (d->figures.ms - shown >= PROGRESS_MS) {
			shown = d->figures.ms;
			show(d, "working");
		}
		pause_ms(TICK_MS);
	}
	d->figures.ms = os_boot_ms() - d->began;
}

/* What they could not say by their end, since they were killed while they waited for each other. */
static void look_for_trouble(struct driver *d)
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
	if (os_boot_ms() - b->failing_since < FAILS_MS &&
	    scratch_renew(d->plan, d->queue, d->keeper, d->history))
		return;
	d->store_failed = true;
	give_up(d, arena_printf(d->arena,
				"the store failed for good: %d changes in a row, the last with: %s",
				b->failed, why));
}

/* They may finish the call that they are in; in a round they wait for each other and could not. */
static void end_all(struct driver *d)
{
	int64_t patience = d->plan->way == TORTURE_CLAIMS ? 0 : d->plan->timeout_ms + LAST_CALL_MS;
	int64_t end = os_boot_ms() + patience;

	d->board->stop = true;
	continue_some(d, true);
	while (reap(d) && os_boot_ms() < end)
		pause_ms(TICK_MS);
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

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

void driver_run(struct driver *d)
{
	struct sigaction catch = { .sa_handler = on_signal }, old[CAUGHT];

	interrupted = 0;
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &catch, &old[i]);
	d->began = os_boot_ms();
	keep_clock(d);
	for (int i = 0; i < d->board->agents && !d->board->stop; i++)
		spawn(d, i);
	work(d);
	end_all(d);
	look_for_trouble(d);
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &old[i], NULL);
	d->interrupted = interrupted;
	show(d, "checking");
}
