/* One run from start to report: makes the queue, runs the agents, removes the queue, merges the parts and checks the history.
 * Whatever fails, the queue is removed first, and the history is kept if it shows a violation. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "proof/check/checker.h"
#include "proof/drive/drive.h"
#include "proof/history/history.h"
#include "proof/torture/torture.h"
#include "proof/torture/torture_private.h"

#define EXCERPT_MAX (256 * 1024)

/* --- files ----------------------------------------------------------------------------------------- */

static enum result no_file(const char *path, int r, struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, API_ERROR, arena_printf(a, "%s: %s", path, strerror(-r)),
			   STR("set TMPDIR to another folder for temporary files"));
}

static enum result make_folder(struct driver *d, struct answer *ans)
{
	const char *tmp = getenv("TMPDIR");
	char *folder = fs_join(d->arena, str_c(tmp && *tmp ? tmp : "/tmp"),
			       STR("pawl-torture-XXXXXX"));

	d->folder = mkdtemp(folder);
	return d->folder ? SUCCESS : no_file(folder, -errno, ans, d->arena);
}

static void remove_parts(struct driver *d)
{
	for (size_t i = 0; i < d->parts.n; i++)
		(void)unlink(d->parts.v[i].p);
}

/* --- collecting results -------------------------------------------------------------------------- */

static struct history_head head_of(const struct torture_plan *plan, struct arena *a)
{
	struct str rest = plan->uri, scheme = str_cut(&rest, ':');

	return (struct history_head){ .pawl = plan->pawl,
				      .store = arena_str(a, scheme),
				      .seed = plan->seed,
				      .agents = plan->agents,
				      .tasks = plan->tasks,
				      .policy = scratch_policy(plan) };
}

static enum result torture_merge(struct driver *d, const char *out, struct answer *ans)
{
	const char **paths = arena_array(d->arena, const char *, d->parts.n);
	struct history_head head = head_of(d->plan, d->arena);
	struct str why = STR("");
	size_t n = 0;
	int r;

	for (size_t i = 0; i < d->parts.n; i++)
		if (fs_exists(d->parts.v[i].p)) /* an agent that was killed at once has no part */
			paths[n++] = d->parts.v[i].p;
	r = history_merge(out, &head, paths, n, d->arena, &why);
	if (!r)
		return SUCCESS;
	ans->applied = 'n';
	return answer_fail(
		ans, API_ERROR,
		arena_printf(d->arena, "cannot merge the parts of the history: %.*s", STRF(why)),
		STR(""));
}

static void add_fault(struct torture_report *out, struct str text, struct arena *a)
{
	out->faults = arena_append(a, out->faults, text);
}

/* Collects the faults that are visible without the checker. */
static void check_neighbours(const struct driver *d, struct torture_report *out)
{
	const struct torture_plan *p = d->plan;

	if (d->board->seen)
		add_fault(out, STR("two locks on a task had the same fence"), d->arena);
	if (d->interrupted || d->store_failed)
		return;
	if (p->mode == TORTURE_DRAIN && out->figures.done != p->tasks)
		add_fault(out,
			  arena_printf(d->arena, "%lld completions of %lld tasks",
				       (long long)out->figures.done, (long long)p->tasks),
			  d->arena);
	for (int64_t i = 0; i < p->rounds; i++)
		if (d->board->winners[i] != 1)
			add_fault(out,
				  arena_printf(d->arena, "round %lld has %d winners",
					       (long long)i + 1, d->board->winners[i]),
				  d->arena);
}

enum result torture_check(const char *path, struct torture_verdict *out, struct answer *ans,
			  struct arena *a)
{
	struct history_log log;
	struct str why = STR("");
	struct buf b = BUF_MAX(EXCERPT_MAX);
	int r = history_load(&log, path, &why);

	*out = (struct torture_verdict){ 0 };
	if (r) {
		answer_fail(ans, USAGE,
			    arena_printf(a, "%s is not a history that can be checked: %s", path,
					 arena_cstr(a, why.n ? why : str_c(strerror(-r)))),
			    STR("pawl torture --history FILE records one"));
	} else {
		struct check_report report;

		history_check(&log, &report, a);
		out->violations = (int64_t)check_violations(&report);
		out->undecided = (int64_t)report.undecided;
		out->endless = (int64_t)report.endless;
		out->calls = (int64_t)report.calls;
		out->unanswered = (int64_t)report.unanswered;
		out->seed = log.head.seed;
		for (int i = 0; i < CHECK_KINDS; i++)
			out->counts[i] = (int64_t)report.counts[i];
		check_print(&report, &log, &b);
		out->text = arena_str(a, buf_str(&b));
	}
	buf_free(&b);
	history_free(&log);
	return r ? ans->code : SUCCESS;
}

/* --- a run --------------------------------------------------------------------------------------- */

/* Merges the parts in their folder, or at the path where the history is to stay, and checks the
 * result. */
static enum result torture_make_verdict(struct driver *d, struct torture_report *out,
					struct answer *ans)
{
	const char *path = d->plan->history;
	enum result code;
	bool bad;

	if (!path)
		path = fs_join(d->arena, str_c(d->folder), STR("history.jsonl"));
	check_neighbours(d, out);
	code = torture_merge(d, path, ans);
	if (code == SUCCESS)
		code = torture_check(path, &out->verdict, ans, d->arena);
	bad = code != SUCCESS || out->verdict.violations || out->faults.n;
	if (d->plan->history || bad)
		out->history = str_c(path);
	else
		(void)unlink(path);
	return code;
}

static enum result run_all(struct driver *d, struct torture_report *out, struct answer *ans)
{
	enum result code = scratch_make(&d->own, d->queue, d->clock_token, d->history, &d->made,
					ans, d->arena);

	if (code == SUCCESS)
		driver_run(d);
	if (code == SUCCESS && d->trouble.n) {
		ans->applied = 'n';
		code = answer_fail(ans, API_ERROR, d->trouble,
				   d->store_failed ? STR("repair the store and run it again: "
							 "`pawl doctor` checks it")
						   : STR(""));
	}
	out->figures = d->figures;
	out->interrupted = d->interrupted;
	if (code == SUCCESS)
		code = scratch_read(d->plan, d->board, out, d->history, ans, d->arena);
	return code;
}

/* Checks the history even if the store failed: an earlier broken promise matters more. */
static enum result decide_despite(struct driver *d, struct torture_report *out, struct answer *ans,
				  enum result code)
{
	struct answer verdict = { 0 };

	if (torture_make_verdict(d, out, &verdict) != SUCCESS)
		return code;
	if (out->verdict.violations || out->faults.n)
		return SUCCESS;
	ans->message = arena_printf(d->arena, "%.*s; the %lld calls until then break no promise",
				    STRF(ans->message), (long long)out->verdict.calls);
	return code;
}

/* Removes the queue first in every case, so that nothing of the run stays in the user's store. */
static enum result run_and_check(struct driver *d, struct torture_report *out, struct answer *ans)
{
	struct answer removal = { 0 };
	enum result code = run_all(d, out, ans);
	int r = history_close(d->history);

	out->removed = !d->made || scratch_remove(d->plan, d->queue, &removal, d->arena) == SUCCESS;
	out->stayed = removal.message;
	if (code == SUCCESS && r)
		code = no_file(d->folder, r, ans, d->arena);
	if (code == SUCCESS)
		return torture_make_verdict(d, out, ans);
	return d->store_failed ? decide_despite(d, out, ans, code) : code;
}

enum result torture_run(const struct torture_plan *plan, struct torture_report *out,
			struct answer *ans, struct arena *a)
{
	struct driver d = { .own = *plan, .plan = &d.own, .random = plan->seed, .arena = a };
	enum result code;
	int r;

	if (plan->driver.n)
		return drive_run(plan, out, ans, a);
	*out = (struct torture_report){ 0 };
	d.clock_token = token_make(a);
	out->queue = d.queue = arena_printf(a, QUEUE_SCRATCH "%.*s", 12, token_make(a).p);
	d.board = board_make(plan);
	d.bodies = arena_array(a, struct body, (size_t)plan->agents);
	if (!d.board)
		return answer_fail(ans, API_ERROR, STR("cannot get shared memory"), STR(""));
	code = make_folder(&d, ans);
	if (code == SUCCESS) {
		const char *part = driver_part(&d, "driver");

		r = history_open(&d.history, part, NULL);
		code = r ? no_file(part, r, ans, a) : run_and_check(&d, out, ans);
		remove_parts(&d);
		(void)rmdir(d.folder); /* fails if the history stays in it */
	}
	board_free(d.board);
	return code;
}

bool torture_left(const struct torture_plan *plan, struct str queue, struct arena *a)
{
	return str_starts(queue, STR(QUEUE_SCRATCH)) && scratch_idle(plan, queue, a);
}

enum result torture_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a)
{
	if (!str_starts(queue, STR(QUEUE_SCRATCH)))
		return answer_fail(
			ans, USAGE,
			arena_printf(a, "'%.*s' is not a scratch queue of a torture", STRF(queue)),
			STR("its name begins with " QUEUE_SCRATCH));
	return scratch_remove(plan, queue, ans, a);
}

/* --- race ------------------------------------------------------------------------------------- */

/* Two plain races: the drain (every task is completed once) and the claims (one winner). */

#define LONG_LEASE 60000
#define SHORT_LEASE 500

/* --- drain ---------------------------------------------------------------------------------------- */

/* If agents get killed, leases must be short enough for others to take over. */
static int64_t torture_race_lease(const struct torture_plan *p)
{
	int64_t least = scratch_policy(p).lease_min;

	if (!p->kills && !p->stops)
		return LONG_LEASE;
	return least > SHORT_LEASE ? least : SHORT_LEASE;
}

static void torture_race_rest(int64_t ms)
{
	struct timespec t = { 0, (ms < 20 ? ms : 20) * 1000000 };

	nanosleep(&t, NULL);
}

/* false: no task is left, and none will become eligible */
static bool torture_race_take(struct agent *ag)
{
	struct request rq = agent_request(ag, OP_TAKE, -1);
	struct answer ans;

	GIVE(&rq, new_token, token_make(&ag->arena));
	GIVE(&rq, ttl, torture_race_lease(ag->plan));
	agent_insist(ag, &rq, &ans);
	if (ans.code == NO_TASKS && ans.wait_ms)
		torture_race_rest(ans.wait_ms);
	return ans.code == SUCCESS || ans.wait_ms;
}

/* Every second agent claims its next task in the same call. */
static void torture_race_finish(struct agent *ag, struct hold *h)
{
	struct request rq = agent_request(ag, OP_DONE, h->task);
	struct answer ans;

	GIVE(&rq, token, arena_str(&ag->arena, str_c(h->token)));
	if (ag->me % 2) {
		GIVE(&rq, claim_next, 1);
		GIVE(&rq, new_token, token_make(&ag->arena));
		GIVE(&rq, ttl, torture_race_lease(ag->plan));
	}
	agent_insist(ag, &rq, &ans);
	h->over = true;
}

/* Repeats the call of the agent's killed predecessor that got no answer. */
static void take_over(struct agent *ag)
{
	struct request rq;
	struct answer ans;

	if (ag->mind->pending && agent_recall(ag, &rq))
		agent_insist(ag, &rq, &ans);
	arena_free(&ag->arena);
}

void race_drain(struct agent *ag)
{
	bool more = true;

	take_over(ag);

	while (more && !ag->board->stop) {
		struct hold *h = agent_hold(ag);

		if (h)
			torture_race_finish(ag, h);
		else
			more = torture_race_take(ag);
		arena_free(&ag->arena);
	}
}

/* --- claims --------------------------------------------------------------------------------------- */

/* Only the winner can release the lock, and it does so only after all others have lost. */
static void torture_race_play(struct agent *ag, int round)
{
	struct request rq = agent_request(ag, OP_CLAIM, 0);
	struct answer ans;
	bool won;

	GIVE(&rq, new_token, token_make(&ag->arena));
	GIVE(&rq, ttl, LONG_LEASE);
	agent_insist(ag, &rq, &ans);
	won = ans.code == SUCCESS;
	ag->board->winners[round] += won;
	board_meet(ag->board, &ag->board->end);
	if (!won)
		return;
	rq = agent_request(ag, OP_RELEASE, 0);
	GIVE(&rq, token, ans.lock->token);
	agent_insist(ag, &rq, &ans);
}

void race_claims(struct agent *ag)
{
	for (int64_t round = 0; round < ag->plan->rounds; round++) {
		board_meet(ag->board, &ag->board->start);
		torture_race_play(ag, (int)round);
		arena_free(&ag->arena);
	}
}

/* --- crew ------------------------------------------------------------------------------------- */

/* Starts and reaps child processes. A child must not outlive the driver, and must not get the terminal's signals. */

#define TICK_MS 4

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

static struct sigaction before[CAUGHT];
static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

void crew_catch(void)
{
	struct sigaction catch = { .sa_handler = on_signal };

	interrupted = 0;
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &catch, &before[i]);
}

void crew_release(void)
{
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &before[i], NULL);
}

bool crew_interrupted(void)
{
	return interrupted;
}

pid_t crew_start(int (*live)(void *ctx, int who), void *ctx, int who)
{
	pid_t driver = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < CAUGHT; i++)
			signal(caught[i], SIG_IGN);
		os_end_with(driver);
		_exit(live(ctx, who));
	}
	return pid < 0 ? -errno : pid;
}

bool crew_ended(pid_t *pid, int *status)
{
	if (*pid <= 0 || waitpid(*pid, status, WNOHANG) != *pid)
		return false;
	*pid = 0;
	return true;
}

void crew_pause(void)
{
	const struct timespec tick = { 0, TICK_MS * 1000000 };

	nanosleep(&tick, NULL);
}
