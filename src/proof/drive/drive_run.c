/* One run: starts a process of the command for each agent, sends calls, reads answers, kills and stops processes, and has the
 * history checked. However it ends, no process of the command is left and its folder is removed. */
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/text.h"
#include "proof/drive/drive_private.h"
#include "proof/torture/torture_private.h"

#define POLL_IDLE_MS 2
#define END_MS 2000 /* for the processes of the command, after their input was closed */

static int64_t drive_now(void)
{
	return os_monotonic_ns() / 1000000;
}

/* --- disturbance ---------------------------------------------------------------------------------- */

/* An agent, mostly one in a call or with a lock. A killed `create` could leave a task that nobody knows. */
static struct worker *drive_victim(struct drive *d)
{
	struct worker *found = NULL;

	for (int i = 0; i < 8; i++) {
		struct worker *w = &d->workers[drive_roll(d, (uint32_t)d->n)];

		if (w->continues_at || (w->busy && w->call.verb == DRIVE_CREATE))
			continue;
		found = w;
		if (w->busy || w->hold.live)
			break;
	}
	return found;
}

static bool drive_kill_one(struct drive *d)
{
	struct worker *w = drive_victim(d);

	if (!w)
		return false;
	history_event(d->history, "kill", str_c(w->name), w->child.pid, 0);
	child_kill(&w->child);
	history_event(d->history, "killed", str_c(w->name), 0, 0);
	if (w->busy)
		agent_unanswered(d, w);
	w->busy = w->dropped = false;
	if (drive_roll(d, 3) == 0)
		agent_forget(w);
	else if (w->hold.live && drive_roll(d, 2)) /* it is started again too late */
		w->wakes_at = d->now + (drive_roll(d, 2) ? d->plan->lease_ms : 0) +
			      drive_roll(d, 200);
	return drive_spawn(d, w);
}

static bool drive_stop_one(struct drive *d)
{
	struct worker *w = drive_victim(d);
	int64_t until;

	if (!w)
		return false;
	until = w->hold.live && w->hold.until > d->now ? w->hold.until : d->now + d->plan->lease_ms;
	child_signal(&w->child, SIGSTOP);
	history_event(d->history, "stop", str_c(w->name), w->child.pid, 0);
	w->continues_at = until + 20 + drive_roll(d, 200);
	return true;
}

static void drive_continue(struct drive *d, bool all)
{
	for (int i = 0; i < d->n; i++) {
		struct worker *w = &d->workers[i];

		if (!w->continues_at || (!all && d->now < w->continues_at))
			continue;
		history_event(d->history, "continue", str_c(w->name), w->child.pid, 0);
		child_signal(&w->child, SIGCONT);
		w->continues_at = 0;
		w->deadline = d->now + d->plan->timeout_ms;
		w->sent_us = os_monotonic_ns() / 1000;
	}
}

static void drive_strike(struct drive *d, int64_t all, int64_t *made, bool (*one)(struct drive *))
{
	int64_t span = d->plan->ms ? d->plan->ms : 1, ms = d->now - d->began;
	int64_t due = ms >= span ? all : all * ms / span;

	while (*made < due && !d->trouble.n && one(d))
		++*made;
}

static void drive_disturb(struct drive *d)
{
	drive_continue(d, false);
	if (d->step != DRIVE_MIXING && d->step != DRIVE_DRAINING)
		return;
	drive_strike(d, d->plan->kills, &d->figures.kills, drive_kill_one);
	drive_strike(d, d->plan->stops, &d->figures.stops, drive_stop_one);
}

/* --- a step of the run ---------------------------------------------------------------------------- */

/* Of the last two steps only the first agent is part. */
static int drive_crew(const struct drive *d)
{
	return d->step >= DRIVE_LAST ? 1 : d->n;
}

static bool drive_time_is_up(const struct drive *d)
{
	const struct torture_plan *p = d->plan;

	if (d->step != DRIVE_MIXING)
		return false;
	return (p->calls && d->figures.calls >= p->calls) || d->now - d->began >= p->ms;
}

/* Lets idle agents send; false: all have finished this step. */
static bool drive_send_all(struct drive *d)
{
	bool more = false, up = drive_time_is_up(d);

	for (int i = 0; i < drive_crew(d) && !d->trouble.n; i++) {
		struct worker *w = &d->workers[i];

		if (up && !w->busy)
			w->over = true;
		if (!w->busy && !w->over && !w->continues_at && d->now >= w->wakes_at &&
		    agent_choose(d, w))
			drive_send(d, w);
		more |= w->busy || !w->over;
	}
	return more;
}

static void drive_wait(struct drive *d, struct pollfd *fds)
{
	for (int i = 0; i < d->n; i++)
		fds[i] = (struct pollfd){ .fd = d->workers[i].child.out, .events = POLLIN };
	if (poll(fds, (nfds_t)d->n, POLL_IDLE_MS) <= 0)
		return;
	for (int i = 0; i < d->n && !d->trouble.n; i++) {
		d->now = drive_now();
		/* the process may be another one than the one that was polled: then there is nothing to read */
		if (fds[i].revents && fds[i].fd == d->workers[i].child.out)
			drive_read(d, &d->workers[i]);
	}
}

static void drive_find_silent(struct drive *d)
{
	for (int i = 0; i < d->n; i++) {
		const struct worker *w = &d->workers[i];

		if (w->busy && !w->continues_at && d->now > w->deadline)
			drive_give_up(
				d,
				"the driver of %s did not answer `%s` within %lld s; expected %s",
				w->name, drive_verb_name(w->call.verb),
				(long long)d->plan->timeout_ms / 1000,
				drive_expected(w->call.verb));
	}
}

static bool drive_going_on(struct drive *d)
{
	d->interrupted |= crew_interrupted();
	return !d->trouble.n && !d->interrupted && !history_error(d->history);
}

static void drive_show(struct drive *d, int64_t *shown)
{
	const struct torture_plan *p = d->plan;

	if (!p->progress || d->now - *shown < CREW_PROGRESS_MS)
		return;
	*shown = d->now;
	d->figures.ms = d->now - d->began;
	d->figures.left_ms = d->step == DRIVE_MIXING ? p->ms - d->figures.ms : -1;
	p->progress(p->ctx, &d->figures, "working");
}

static bool drive_step(struct drive *d, enum drive_step step)
{
	struct pollfd *fds = arena_array(d->arena, struct pollfd, (size_t)d->n);
	int64_t shown = d->now = drive_now();

	d->step = step;
	for (int i = 0; i < d->n; i++) {
		d->workers[i].over = false;
		d->workers[i].wakes_at = 0;
	}
	while (drive_going_on(d) && drive_send_all(d)) {
		drive_wait(d, fds);
		d->now = drive_now();
		drive_disturb(d);
		drive_find_silent(d);
		drive_show(d, &shown);
	}
	return drive_going_on(d);
}

static bool drive_rounds(struct drive *d)
{
	for (d->round = 0; d->round < d->plan->rounds; d->round++) {
		d->target = d->round + 1;
		if (!drive_step(d, DRIVE_CREATING) || !drive_step(d, DRIVE_ROUND) ||
		    !drive_step(d, DRIVE_FINISHING))
			return false;
	}
	return true;
}

static bool drive_work(struct drive *d)
{
	bool drain = d->plan->mode == TORTURE_DRAIN;

	if (d->plan->mode == TORTURE_CLAIMS) {
		d->began = drive_now();
		return drive_rounds(d);
	}
	d->target = d->plan->tasks;
	if (!drive_step(d, DRIVE_CREATING))
		return false;
	d->began = drive_now();
	return drive_step(d, drain ? DRIVE_DRAINING : DRIVE_MIXING);
}

/* --- the run -------------------------------------------------------------------------------------- */

/* Lets all processes end together. A run that had to stop early kills them. */
static void drive_end_workers(struct drive *d)
{
	int64_t end = os_boot_ms() + END_MS;

	drive_continue(d, true);
	for (int i = 0; i < d->n; i++)
		if (!drive_going_on(d))
			child_kill(&d->workers[i].child);
		else if (d->workers[i].child.pid)
			child_close(&d->workers[i].child);
	for (int i = 0; i < d->n; i++)
		child_end(&d->workers[i].child, end);
}

/* Every agent's process ends before the last step, and with it the locks that only live in a process. */
static void drive_all(struct drive *d)
{
	bool good = true;

	for (int i = 0; i < d->n && good; i++)
		good = drive_spawn(d, &d->workers[i]);
	good = good && drive_work(d);
	d->figures.ms = drive_now() - d->began;
	good = good && drive_step(d, DRIVE_FINISHING);
	drive_end_workers(d);
	good = good && drive_spawn(d, &d->workers[0]) && drive_step(d, DRIVE_LAST) &&
	       drive_step(d, DRIVE_READING);
	drive_end_workers(d);
	os_end_children();
	d->figures.done = d->completed;
	d->figures.left_ms = -1;
	if (d->plan->progress)
		d->plan->progress(d->plan->ctx, &d->figures, "checking");
}

static enum result drive_checked(struct drive *d, const char *part, struct torture_report *out,
				 struct answer *ans)
{
	const struct torture_plan *p = d->plan;
	struct history_head head = { .pawl = p->pawl,
				     .store = STR("driver"),
				     .driver = p->driver,
				     .seed = p->seed,
				     .agents = p->agents,
				     .tasks = p->tasks,
				     .policy = policy_default };
	const char *path = p->history;
	struct str why = STR("");
	enum result code = SUCCESS;

	if (!path)
		path = fs_join(d->arena, str_c(d->folder), STR("history.jsonl"));
	if (history_merge(path, &head, &part, 1, d->arena, &why)) {
		ans->applied = 'n';
		code = answer_fail(
			ans, API_ERROR,
			arena_printf(d->arena, "cannot write the history: %.*s", STRF(why)),
			STR(""));
	}
	if (code == SUCCESS)
		code = torture_check(path, &out->verdict, ans, d->arena);
	if (p->history || code != SUCCESS || out->verdict.violations)
		out->history = str_c(path);
	else
		(void)unlink(path);
	return code;
}

/* A run that had to stop early is checked all the same: a broken promise matters more. */
static enum result drive_decide(struct drive *d, const char *part, struct torture_report *out,
				struct answer *ans)
{
	enum result code = drive_checked(d, part, out, ans);

	out->figures = d->figures;
	out->interrupted = d->interrupted;
	out->removed = true;
	if (code != SUCCESS || !d->trouble.n || out->verdict.violations)
		return code;
	ans->applied = 'n';
	return answer_fail(ans, API_ERROR,
			   arena_printf(d->arena,
					"%.*s; the %lld calls until then break no promise",
					STRF(d->trouble), (long long)out->verdict.calls),
			   STR("doc/proof/drivers.md describes the lines of a driver"));
}

static int drive_unlink(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

static enum result drive_no_file(const char *path, int r, struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, API_ERROR, arena_printf(a, "%s: %s", path, strerror(-r)),
			   STR("set TMPDIR to another folder for temporary files"));
}

static enum result drive_in_folder(struct drive *d, struct torture_report *out, struct answer *ans)
{
	const char *part = fs_join(d->arena, str_c(d->folder), STR("calls"));
	enum result code;
	struct sigaction pipes;
	int r;

	d->home = fs_join(d->arena, str_c(d->folder), STR("driver"));
	r = fs_make_dirs(d->home, 0700);
	if (!r)
		r = history_open(&d->history, part, NULL);
	if (r)
		return drive_no_file(part, r, ans, d->arena);
	crew_catch();
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, &pipes);
	os_adopt_orphans(true);
	drive_all(d);
	os_adopt_orphans(false);
	sigaction(SIGPIPE, &pipes, NULL);
	crew_release();
	r = history_close(d->history);
	code = r ? drive_no_file(part, r, ans, d->arena) : drive_decide(d, part, out, ans);
	(void)unlink(part);
	(void)nftw(d->home, drive_unlink, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return code;
}

enum result drive_run(const struct torture_plan *plan, struct torture_report *out,
		      struct answer *ans, struct arena *a)
{
	struct drive d = { .plan = plan, .random = plan->seed, .arena = a, .n = (int)plan->agents };
	const char *tmp = getenv("TMPDIR"), *why;
	char *folder = fs_join(a, str_c(tmp && *tmp ? tmp : "/tmp"), STR("pawl-torture-XXXXXX"));
	enum result code;

	*out = (struct torture_report){ .removed = true };
	d.words = drive_split(plan->driver, a, &why);
	if (!d.words)
		return answer_fail(
			ans, USAGE, arena_printf(a, "--driver: %s", why),
			STR("name a program and its arguments: --driver './my-driver --db x'"));
	d.workers = arena_array(a, struct worker, (size_t)d.n);
	for (int i = 0; i < d.n; i++)
		snprintf(d.workers[i].name, sizeof(d.workers[i].name), "a%d", i);
	d.ids.arena = d.ended.arena = a;
	d.folder = mkdtemp(folder);
	if (!d.folder)
		return drive_no_file(folder, -errno, ans, a);
	code = drive_in_folder(&d, out, ans);
	(void)rmdir(d.folder); /* fails if the history stays in it */
	return code;
}
