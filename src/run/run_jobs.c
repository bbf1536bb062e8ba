/*
 * Starts and ends a run. The program is searched before the first claim, and the watch on the store
 * begins before it, too: no task is claimed for a program that does not exist, and no change is
 * missed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "core/lease.h"
#include "run/run_private.h"

int run_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct str run_status_text(struct arena *a, int status)
{
	if (WIFSIGNALED(status))
		return arena_printf(a, "signal %d (%s)", WTERMSIG(status),
				    strsignal(WTERMSIG(status)));
	return arena_printf(a, "exit code %d", WEXITSTATUS(status));
}

/* --- calls ---------------------------------------------------------------------------------- */

void runner_call(struct runner *r, const struct request *rq, struct answer *ans, struct arena *a)
{
	struct client *c = r->client;
	struct arena *kept = c->arena, *ring = c->keyring.arena;

	c->arena = a;
	client_call(c, rq, ans);
	c->arena = kept;
	c->keyring.arena = ring;
}

void runner_keep(struct runner *r, struct str *to, struct str text)
{
	if (!str_eq(*to, text))
		*to = arena_str(r->client->arena, text);
}

struct request job_request(const struct job *j, enum op op)
{
	struct request rq = { .op = op };

	GIVE(&rq, id, j->task);
	GIVE(&rq, token, j->token);
	return rq;
}

void job_give_back(struct runner *r, struct job *j, struct str why, struct answer *ans,
		   struct arena *a)
{
	struct request rq = job_request(j, OP_RELEASE);

	GIVE(&rq, reason, why);
	runner_call(r, &rq, ans, a);
}

/* --- the run -------------------------------------------------------------------------------- */

/* Searches like execvp(), but before the runner claims a task, so that a typing error does not fail
 * every task. */
static const char *find_program(struct str name, const char *dir, struct arena *a)
{
	const char *path = getenv("PATH");
	struct str rest = str_c(path ? path : "/bin:/usr/bin");

	if (name.n && memchr(name.p, '/', name.n)) {
		char *file = name.p[0] == '/' ? arena_cstr(a, name) : fs_join(a, str_c(dir), name);

		return access(file, X_OK) == 0 && !fs_is_dir(file) ? file : NULL;
	}
	while (name.n && rest.n) {
		struct str one = str_cut(&rest, ':');
		char *file = fs_join(a, one.n ? one : str_c(dir), name);

		if (access(file, X_OK) == 0 && !fs_is_dir(file))
			return file;
	}
	return NULL;
}

static enum result run_jobs_prepare(struct runner *r)
{
	const struct run_plan *plan = r->plan;
	struct client *c = r->client;
	struct arena *a = c->arena;

	r->program = (struct program){
		.path = find_program(plan->words.v[0], c->conn.config.opt.dir, a),
		.dir = c->conn.config.opt.dir,
		.no_input = plan->jobs > 1,
		.output = -1,
		/* a file or a pipe gets the standard output unchanged */
		.out_to_err = plan->out_to_err || (plan->screen && isatty(STDOUT_FILENO)),
	};
	if (r->program.path)
		return SUCCESS;
	return answer_fail(
		r->ans, USAGE,
		arena_printf(a, "there is no program '%s'",
			     arena_cstr(a, text_line(a, plan->words.v[0]))),
		STR("nothing was claimed; after -- write a program and its arguments, or "
		    "sh -c '...'"));
}

/* Limits each call to a third of the lease, because a renewal could come too late otherwise. */
static void limit_waiting(struct client *c, const struct request *take)
{
	int64_t ttl = HAS(take, ttl) ? take->ttl : settings_number(&c->conn.settings, "lease");

	if (ttl / 3 < c->conn.config.opt.timeout_ms)
		c->conn.config.opt.timeout_ms = ttl / 3 > 0 ? ttl / 3 : 1;
}

static enum result run_jobs_cannot(struct runner *r, const char *what, int fault)
{
	r->ans->applied = 'n';
	return answer_fail(r->ans, API_ERROR,
			   arena_printf(r->client->arena, "%s: %s", what, strerror(-fault)),
			   STR(""));
}

static enum result run_all(struct runner *r)
{
	struct client *c = r->client;
	enum result code;
	int fault;

	limit_waiting(c, &r->plan->take);
	fault = reaper_start(&r->reaper, r->plan->grace_ms);
	if (fault)
		return run_jobs_cannot(r, "pawl cannot start the process that watches the command",
				       fault);
	r->program.reaper = r->reaper.fd;
	r->signals = signals_open();
	if (r->signals < 0) {
		code = run_jobs_cannot(r, "pawl cannot catch signals", r->signals);
	} else {
		code = client_open(c, STORE_WRITE, r->ans);
		if (code == SUCCESS) {
			/* watch before the first claim, so that no change is missed */
			queue_wake_fd(c->conn.queue);
			runner_watch(r);
		}
		signals_close();
	}
	reaper_stop(&r->reaper);
	if (r->sum->ran && code == SUCCESS)
		return SUCCESS;
	if (r->ans->code == SUCCESS) /* it waited without success, or a signal ended the wait */
		answer_fail(r->ans, NO_TASKS, STR("no task became eligible"),
			    STR("pawl next --explain says why"));
	return r->ans->code;
}

enum result runner_run(struct client *c, const struct run_plan *plan, struct run_sum *sum,
		       struct answer *ans)
{
	struct run_plan own = *plan;
	struct runner r = { .client = c, .plan = &own, .sum = sum, .ans = ans, .check_one = NEVER };
	enum result code;

	*sum = (struct run_sum){ 0 };
	*ans = (struct answer){ 0 };
	GIVE(&own.take, pid, getpid());
	GIVE(&own.take, pid_start, os_process_start(getpid()));
	GIVE(&own.take, boot_id, proc_here(c->arena));
	r.jobs = arena_array(c->arena, struct job, (size_t)own.jobs);
	r.polls = arena_array(c->arena, struct pollfd, (size_t)own.jobs + 3);
	runner_idle(&r);
	if (run_jobs_prepare(&r) != SUCCESS)
		return ans->code;
	c->given_back.on = own.loop;
	code = run_all(&r);
	given_back_free(&c->given_back);
	return code;
}

/* --- lease ------------------------------------------------------------------------------------ */

/*
 * Renews the lease of a job. Its deadline is never later than the expiry in the store, so the
 * runner stops the program before another agent can claim the task.
 */

/* Counts from the time before the call, so that the lease expires here no later than in the
 * store. The remaining time can be less than the lease's length, because the call may have been
 * a repeat. */
void job_lease(struct job *j, int64_t sent, const struct answer *ans)
{
	int64_t left = ans->lock->expires_at - ans->now;

	j->ttl = ans->lock->ttl;
	j->deadline = sent + left;
	j->renew_at = sent + lease_renew_in(left < j->ttl ? left : j->ttl);
}

bool job_settled(const struct job *j, const struct task *t, struct arena *a)
{
	if (!t || t->fence != j->fence)
		return false;
	return t->status == BLOCKED || (t->last.op > OP_NONE && t->last.op < OP_END &&
					op_flags((enum op)t->last.op) & OP_ENDS &&
					secret_eq(t->last.token, token_hash(a, j->token)));
}

void job_renew(struct runner *r, struct job *j)
{
	struct request rq = job_request(j, OP_HEARTBEAT);
	struct arena scratch = { 0 };
	int64_t sent = os_boot_ms();
	struct answer ans;

	runner_call(r, &rq, &ans, &scratch);
	if (ans.code == SUCCESS && ans.lock)
		job_lease(j, sent, &ans);
	else if (job_settled(j, ans.task, &scratch))
		j->settled = true;
	else if (ans.code != API_ERROR || os_boot_ms() >= j->deadline)
		j->lost = true;
	else
		j->renew_at = os_boot_ms() + (j->ttl / 10 < RETRY_MS ? j->ttl / 10 : RETRY_MS);
	arena_free(&scratch);
}

/* --- end -------------------------------------------------------------------------------------- */

/*
 * Reports the result of a task after its program has ended. If the store does not answer, the
 * report is retried until the lease expires. A refused report releases the task, so that no lock
 * stays without a program.
 */

static bool run_end_succeeded(const struct job *j)
{
	return WIFEXITED(j->status) && WEXITSTATUS(j->status) == 0;
}

struct str run_command_text(struct arena *a, struct strs words)
{
	struct buf b = BUF_MAX(4096);
	struct str out;

	for (size_t i = 0; i < words.n && b.n < 200; i++) {
		if (i)
			buf_addc(&b, ' ');
		text_visible(&b, words.v[i], false);
	}
	out = text_cut(a, buf_str(&b), 120);
	out = arena_str(a, out);
	buf_free(&b);
	return out;
}

/* The request that reports the result; OP_NONE: there is nothing to report. */
static struct request report_of(const struct runner *r, const struct job *j, struct arena *a)
{
	struct request rq = job_request(j, run_end_succeeded(j) ? r->plan->on_success
					   : j->interrupted     ? r->plan->on_interrupt
								: r->plan->on_failure);
	struct str what = arena_printf(
		a, "`%s` %s with %s", arena_cstr(a, run_command_text(a, j->words)),
		j->interrupted && !run_end_succeeded(j) ? "was interrupted and ended" : "ended",
		arena_cstr(a, run_status_text(a, j->status)));

	if (rq.op == OP_DONE || rq.op == OP_REVIEW)
		GIVE(&rq, summary, r->plan->summary.n ? r->plan->summary : what);
	else if (rq.op != OP_NONE)
		GIVE(&rq, reason, what);
	if (rq.op == OP_BLOCK)
		GIVE(&rq, unblock_action,
		     arena_printf(a, "find out why the command failed, then: pawl unblock %.*s",
				  STRF(j->task)));
	return rq;
}

static void run_end_tally(struct runner *r, const struct job *j, const struct run_end *e)
{
	struct run_sum *s = r->sum;

	if (e->code == LOST_LOCK)
		s->lost++;
	else if (e->code != SUCCESS)
		s->troubled++;
	else if (run_end_succeeded(j))
		s->succeeded++;
	else if (j->interrupted)
		s->interrupted++;
	else
		s->failed++;
	if (!run_end_succeeded(j) && e->code != LOST_LOCK)
		s->last_status = j->status;
	if (e->became == READY && r->plan->loop) /* also if the program itself released the task */
		given_back_add(&r->client->given_back, r->client->conn.queue, j->task);
}

static void run_end_finish(struct runner *r, struct job *j, struct run_end *e)
{
	e->task = j->task;
	e->title = j->title;
	e->fence = j->fence;
	e->status = j->status;
	e->interrupted = j->interrupted && !run_end_succeeded(j);
	if (e->answer && e->answer->task)
		e->became = e->answer->task->status;
	run_end_tally(r, j, e);
	job_relay_end(r, j);
	if (r->plan->ended)
		r->plan->ended(r->plan->ctx, e);
	reaper_drop(r->reaper.fd, j->group);
	arena_free(&j->arena);
	*j = (struct job){ 0 };
	r->running--;
	r->checked = false;
	runner_idle(r);
}

void job_lost(struct runner *r, struct job *j)
{
	struct run_end e = {
		.code = LOST_LOCK,
		.message = arena_printf(
			&j->arena, "the lock on %.*s (fence %lld) was lost, so pawl ended `%s`",
			STRF(j->task), (long long)j->fence,
			arena_cstr(&j->arena, run_command_text(&j->arena, j->words))),
		.hint = arena_printf(
			&j->arena,
			"pawl cannot undo its changes to files; `pawl log %.*s` shows the history of the task",
			STRF(j->task)),
	};

	run_end_finish(r, j, &e);
}

/* The queue refused the report, for example because of open sub-tasks. The program has ended, so
 * the runner releases the task instead of keeping the lock. */
static void report_refused(struct runner *r, struct job *j, const struct answer *refusal,
			   struct run_end *e, struct arena *a)
{
	struct answer back = { 0 };

	e->code = refusal->code;
	e->message = refusal->message;
	e->hint = refusal->hint;
	if (refusal->code == API_ERROR)
		return;
	job_give_back(r, j, refusal->message, &back, a);
	if (back.code == SUCCESS && back.task)
		e->became = back.task->status;
}

static void check_settled(struct runner *r, struct job *j, struct run_end *e, struct answer *ans,
			  struct arena *a)
{
	struct request rq = job_request(j, OP_SHOW);

	e->settled = true;
	runner_call(r, &rq, ans, a);
}

void job_report(struct runner *r, struct job *j)
{
	struct arena scratch = { 0 };
	struct request rq = report_of(r, j, &scratch);
	struct answer ans = { 0 };
	struct run_end e = { .answer = &ans, .settled = j->settled };

	if (rq.op == OP_NONE || j->settled)
		rq.op = OP_SHOW;
	runner_call(r, &rq, &ans, &scratch);
	if (ans.code == API_ERROR && os_boot_ms() < j->deadline) {
		j->report_at = os_boot_ms() + RETRY_MS;
		arena_free(&scratch);
		return;
	}
	if (rq.op == OP_SHOW)
		e.code = SUCCESS;
	else if (ans.code != SUCCESS && job_settled(j, ans.task, &scratch))
		check_settled(r, j, &e, &ans, &scratch);
	else if (ans.code == LOST_LOCK)
		j->lost = true;
	else if (ans.code != SUCCESS)
		report_refused(r, j, &ans, &e, &scratch);
	if (j->lost)
		job_lost(r, j);
	else
		run_end_finish(r, j, &e);
	arena_free(&scratch);
}
