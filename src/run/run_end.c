/*
 * Reports the result of a task after its program has ended. If the store does not answer, the
 * report is retried until the lease expires. A refused report releases the task, so that no lock
 * stays without a program.
 */
#include <sys/wait.h>

#include "base/os.h"
#include "base/text.h"
#include "run/run_private.h"

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

/* The task stays held after pawl ends, so the lock must not name pawl's process: the next caller would
 * take the lock of a dead process. A failure is ignored; then the lock only ends earlier. */
static void run_end_leave_held(struct runner *r, const struct job *j, struct arena *a)
{
	struct request rq = job_request(j, OP_HEARTBEAT);
	struct answer ans;

	GIVE(&rq, pid, 0);
	runner_call(r, &rq, &ans, a);
}

void job_report(struct runner *r, struct job *j)
{
	struct arena scratch = { 0 };
	struct request rq = report_of(r, j, &scratch);
	struct answer ans = { 0 };
	struct run_end e = { .answer = &ans, .settled = j->settled };

	if (rq.op == OP_NONE && !j->settled && !j->lost)
		run_end_leave_held(r, j, &scratch);
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
