/*
 * The main loop of a runner: signals, programs that end, leases to renew and tasks to report. A
 * task is reported only after its process group is gone, because a process of the group could still
 * work on it.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "run/run_private.h"

#define LINGER_MS 20 /* between two checks of whether a group is gone */

/* ^Z on the terminal stops the whole job, and pawl with it, as the shell expects. The runner renews
 * no lease while it is stopped. */
static void stop_too(const struct job *j)
{
	terminal_take(j->group);
	(void)kill(getpid(), SIGSTOP);
	if (terminal_ours()) /* the user typed `fg`, not `bg` */
		terminal_give(j->group);
	group_signal(j->group, SIGCONT);
}

/* The key reaches only the program, which has the terminal. A program that catches SIGINT exits
 * with 130, as shells do. */
static bool died_of_ctrl_c(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGINT
				   : WEXITSTATUS(status) == 128 + SIGINT;
}

static void run_watch_reap(struct runner *r, struct job *j, int64_t now)
{
	int status;

	if (j->exited || waitpid(j->group, &status, WNOHANG | WUNTRACED) != j->group)
		return;
	if (WIFSTOPPED(status)) {
		if (r->program.terminal && WSTOPSIG(status) == SIGTSTP)
			stop_too(j);
		return;
	}
	j->status = status;
	if (r->program.terminal) {
		terminal_take(j->group);
		if (died_of_ctrl_c(status)) {
			j->interrupted = r->no_more = true;
			r->sum->signal = SIGINT;
		}
	}
	job_exited(j, now, r->plan->grace_ms);
}

static void run_watch_tick(struct runner *r, struct job *j)
{
	int64_t now;

	run_watch_reap(r, j, os_boot_ms());
	if (!j->lost && !j->settled && !j->report_at && os_boot_ms() >= j->renew_at)
		job_renew(r, j);
	now = os_boot_ms();
	if (j->lost && !j->exited)
		job_stop(j, now, r->plan->grace_ms);
	job_kill_due(j, now);
	if (!job_gone(j, now) || !job_relayed(r, j))
		return;
	if (j->lost)
		job_lost(r, j);
	else if (now >= j->report_at)
		job_report(r, j);
}

static int64_t run_watch_sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_event(const struct runner *r)
{
	int64_t at = NEVER;

	for (int64_t i = 0; i < r->plan->jobs; i++) {
		const struct job *j = &r->jobs[i];

		if (!j->group)
			continue;
		if (!j->lost && !j->settled && !j->report_at)
			at = run_watch_sooner(at, j->renew_at);
		if (j->kill_at && !j->killed)
			at = run_watch_sooner(at, j->kill_at);
		if (j->exited)
			at = run_watch_sooner(at, j->report_at ? j->report_at
							       : os_boot_ms() + LINGER_MS);
	}
	return at;
}

static void pass_on(struct runner *r, int sig)
{
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (r->jobs[i].group)
			group_signal(r->jobs[i].group, sig);
}

static void take_signal(struct runner *r, int sig)
{
	struct screen *screen = r->plan->screen;

	if (sig == SIGCONT && screen)
		screen_forget(screen);
	if (sig == SIGWINCH && screen)
		screen_resized(screen);
	if (sig == SIGCHLD || sig == SIGCONT)
		return;
	pass_on(r, sig);
	if (sig == SIGTSTP) {
		if (screen)
			screen_hide(screen);
		(void)kill(getpid(), SIGSTOP);
		pass_on(r, SIGCONT);
	} else if (signals_ends(sig)) {
		pass_on(r, SIGCONT); /* a stopped program would not receive the signal otherwise */
		for (int64_t i = 0; i < r->plan->jobs; i++)
			r->jobs[i].interrupted |= r->jobs[i].group && !r->jobs[i].exited;
		r->sum->signal = sig;
		r->no_more = true;
	}
}

static void wait_for_event(struct runner *r)
{
	int64_t at, left;
	size_t n;
	int sig;

	r->polls[0] = (struct pollfd){ .fd = r->signals, .events = POLLIN };
	r->polls[1] = (struct pollfd){ .fd = runner_wake_fd(r), .events = POLLIN };
	n = live_polls(r, 2);
	at = run_watch_sooner(run_watch_sooner(next_event(r), live_next(r)),
			      run_watch_sooner(r->check_one, r->wait.next));
	left = at == NEVER ? -1 : at - os_boot_ms();
	if (at != NEVER && left < 0)
		left = 0;
	if (poll(r->polls, n, left > 60000 ? 60000 : (int)left) > 0) {
		if (r->polls[1].revents)
			runner_woken(r);
		live_polled(r, 2);
	}
	while ((sig = signals_next(r->signals)) > 0)
		take_signal(r, sig);
}

void runner_watch(struct runner *r)
{
	for (;;) {
		runner_take(r);
		if (!r->running && !runner_waits(r))
			return;
		live_show(r);
		wait_for_event(r);
		runner_check(r);
		runner_wait_over(r);
		for (int64_t i = 0; i < r->plan->jobs; i++)
			if (r->jobs[i].group)
				run_watch_tick(r, &r->jobs[i]);
	}
}
