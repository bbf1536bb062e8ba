/* Creates, reads and removes the scratch queue of a torture run. While the run is active, it holds the lock of the task
 * "keeper". So the store does not correct its clock during the run, and another process can see that the queue is in use. */
#include "base/os.h"
#include "proof/check/checker.h"
#include "proof/torture/torture_private.h"
#include "queue/remote_queue.h"

#define BATCH 100
#define NAME "driver"
#define CLOCK_TASK "keeper"
/* Limits how long the driver waits: an agent that it stopped may be in the way. */
#define RENEW_MS 200

struct policy scratch_policy(const struct torture_plan *plan)
{
	struct policy p = policy_default;

	if (plan->served.lease)
		return plan->served;
	p.lease_min = SCRATCH_LEASE_MIN;
	p.lease = p.lock_ttl = 1000;
	p.max_abandoned = plan->mode == TORTURE_MIX ? 3 : 0;
	return p;
}

struct queue_config scratch_config(const struct torture_plan *plan, struct str queue)
{
	const struct queue_config *access = plan->access;

	return (struct queue_config){ .uri = plan->uri,
				      .opt.queue = queue,
				      .policy = scratch_policy(plan),
				      .opt.timeout_ms = plan->timeout_ms,
				      .opt.relaxed = plan->relaxed,
				      .opt.who = STR("pawl torture"),
				      .bearer = access ? access->bearer : NULL,
				      .bearer_ctx = access ? access->bearer_ctx : NULL,
				      .ca_file = access ? access->ca_file : NULL,
				      .tells_resent = true };
}

/* --- creating the queue ---------------------------------------------------------------------------- */

bool scratch_may_double(const struct torture_plan *plan, enum op op)
{
	return plan->served.lease && op == OP_HEARTBEAT;
}

/* If a change was sent to a server twice, its caller cannot know which attempt made it, or whether an earlier call did. So the
 * checker gets no answer: the change was made at most once, at any time. */
void scratch_record(struct history *h, uint64_t call, struct answer *ans)
{
	const struct answer lost = { .code = API_ERROR, .applied = '?' };
	bool maybe = ans->repeated == REPEATED_MAYBE;

	history_answer(h, call, maybe ? &lost : ans);
	if (maybe)
		ans->repeated = 0;
}

static enum result call_all(struct queue *q, struct history *h, const struct request *rqs, size_t n,
			    struct answer *ans, struct arena *a)
{
	struct arena scratch = { 0 };
	struct answer answers[BATCH];
	uint64_t calls[BATCH];
	enum result code = SUCCESS;

	for (size_t i = 0; i < n; i++)
		calls[i] = history_call(h, STR(NAME), &rqs[i]);
	queue_call_many(q, rqs, answers, n, &scratch);
	for (size_t i = 0; i < n; i++) {
		scratch_record(h, calls[i], &answers[i]);
		if (answers[i].code != SUCCESS)
			code = answer_fail(ans, answers[i].code, arena_str(a, answers[i].message),
					   arena_str(a, answers[i].hint));
	}
	arena_free(&scratch);
	return code;
}

static struct request about_keeper(enum op op)
{
	struct request rq = { .op = op };

	GIVE(&rq, agent, STR(NAME));
	GIVE(&rq, id, STR(CLOCK_TASK));
	return rq;
}

/*
 * A store does not set its clock while anything is held. So this lock protects the whole store from
 * the agents' skewed clocks. Without it, the store could accept a skewed time at a moment when no
 * lock is held.
 */
static enum result hold_clock(struct queue *q, struct str clock_token, struct history *h,
			      struct answer *ans, struct arena *a)
{
	struct request rqs[2] = { about_keeper(OP_CREATE), about_keeper(OP_LOCK_ACQUIRE) };

	GIVE(&rqs[0], title, STR("keeps the clock"));
	GIVE(&rqs[0], status, BACKLOG);
	GIVE(&rqs[1], new_token, clock_token);
	GIVE(&rqs[1], ttl, SCRATCH_KEEPER_TTL);
	return call_all(q, h, rqs, 2, ans, a);
}

static enum result torture_scratch_renew(const struct torture_plan *plan, struct queue *q,
					 struct str clock_token, struct history *h,
					 struct answer *ans, struct arena *a)
{
	struct request rq = about_keeper(OP_HEARTBEAT);

	GIVE(&rq, token, clock_token);
	GIVE(&rq, ttl, SCRATCH_KEEPER_TTL);
	if (scratch_may_double(plan, rq.op))
		GIVE(&rq, request_id, token_make(a));
	return call_all(q, h, &rq, 1, ans, a);
}

bool scratch_renew(const struct torture_plan *plan, struct str queue, struct str clock_token,
		   struct history *h)
{
	struct queue_config config = scratch_config(plan, queue);
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q;
	bool good;

	if (config.opt.timeout_ms > RENEW_MS)
		config.opt.timeout_ms = RENEW_MS;
	good = queue_open(&q, &config, STORE_WRITE, &ans, &a) == SUCCESS;
	if (good) {
		good = torture_scratch_renew(plan, q, clock_token, h, &ans, &a) == SUCCESS;
		queue_close(q);
	}
	arena_free(&a);
	return good;
}

bool scratch_idle(const struct torture_plan *plan, struct str queue, struct arena *a)
{
	struct queue_config config = scratch_config(plan, queue);
	struct request rq = about_keeper(OP_LOCK_STATUS);
	struct answer ans = { 0 };
	struct queue *q;

	if (queue_open(&q, &config, STORE_READ, &ans, a) != SUCCESS)
		return false;
	queue_call(q, &rq, &ans, a);
	queue_close(q);
	if (ans.code != SUCCESS)
		return ans.code == NOT_FOUND;
	return !ans.task->lock.holder.n || ans.task->lock.expires_at <= ans.now;
}

static enum result create_some(struct queue *q, struct history *h, int from, int n,
			       struct answer *ans, struct arena *a)
{
	struct request rqs[BATCH] = { 0 };
	struct arena ids = { 0 };
	enum result code;

	for (int i = 0; i < n; i++) {
		rqs[i].op = OP_CREATE;
		GIVE(&rqs[i], agent, STR(NAME));
		GIVE(&rqs[i], id, arena_printf(&ids, "k%d", from + i));
		GIVE(&rqs[i], title, rqs[i].id);
		GIVE(&rqs[i], class_rank, EXPEDITE + (from + i) % 4);
		GIVE(&rqs[i], priority, (from + i) * 7 % 11);
	}
	code = call_all(q, h, rqs, (size_t)n, ans, a);
	arena_free(&ids);
	return code;
}

/* Renews the lock on the clock task in between, because creating all tasks may take longer than its lease. */
static enum result create_all(const struct torture_plan *plan, struct queue *q,
			      struct str clock_token, struct history *h, struct answer *ans,
			      struct arena *a)
{
	int64_t renewed = os_boot_ms();
	int tasks = (int)plan->tasks;
	enum result code = SUCCESS;

	for (int from = 0; code == SUCCESS && from < tasks; from += BATCH) {
		code = create_some(q, h, from, tasks - from < BATCH ? tasks - from : BATCH, ans, a);
		if (code != SUCCESS || os_boot_ms() - renewed < SCRATCH_KEEPER_TTL / 3)
			continue;
		code = torture_scratch_renew(plan, q, clock_token, h, ans, a);
		renewed = os_boot_ms();
	}
	return code;
}

/* A server has its own policy. */
static enum result learn_policy(struct torture_plan *plan, struct queue *q, struct answer *ans,
				struct arena *a)
{
	struct frame_facts f;

	if (!queue_is_remote(q))
		return SUCCESS;
	if (queue_facts(q, &f, ans, a) == SUCCESS)
		plan->served = f.policy;
	return ans->code;
}

enum result scratch_make(struct torture_plan *plan, struct str queue, struct str clock_token,
			 struct history *h, bool *made, struct answer *ans, struct arena *a)
{
	struct queue_config config = scratch_config(plan, queue);
	struct queue *q;
	enum result code = queue_open(&q, &config, STORE_CREATE, ans, a);

	*made = code == SUCCESS;
	if (!*made)
		return code;
	code = learn_policy(plan, q, ans, a);
	if (code == SUCCESS)
		code = hold_clock(q, clock_token, h, ans, a);
	if (code == SUCCESS)
		code = create_all(plan, q, clock_token, h, ans, a);
	queue_close(q);
	return code;
}

/* --- at the end ------------------------------------------------------------------------------------ */

static enum result read_tasks(struct queue *q, const struct board *b, struct history *h,
			      struct answer *ans, struct arena *a)
{
	bool *there = arena_array(a, bool, (size_t)b->tasks + MADE);
	struct request rq = { .op = OP_LIST };
	struct answer all;

	queue_call(q, &rq, &all, a);
	if (all.code != SUCCESS)
		return answer_fail(ans, all.code, all.message, all.hint);
	for (size_t i = 0; i < all.n_tasks; i++) {
		int k = board_task(b, all.tasks[i].id);

		history_final(h, all.tasks[i].id, all.now, &all.tasks[i]);
		if (k >= 0)
			there[k] = true;
	}
	for (int k = 0; k < board_tasks(b); k++)
		if (!there[k])
			history_final(h, board_id(b, a, k), all.now, NULL);
	return SUCCESS;
}

static bool torture_scratch_named(const struct event *e, const char *one, const char *other)
{
	return str_is(e->name, one) || str_is(e->name, other);
}

static enum result read_log(struct queue *q, struct torture_report *report, struct answer *ans,
			    struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer all;

	queue_call(q, &rq, &all, a);
	if (all.code != SUCCESS)
		return answer_fail(ans, all.code, all.message, all.hint);
	for (size_t i = 0; i < all.n_events; i++) {
		report->figures.takeovers += torture_scratch_named(&all.events[i], "abandoned",
								   "resumed");
		report->figures.done += torture_scratch_named(&all.events[i], "done", "approved");
	}
	return SUCCESS;
}

struct examination {
	struct torture_report *report;
	struct arena *arena;
};

static void on_finding(void *ctx, enum check_level level, const char *what, struct str text,
		       struct str fix)
{
	struct examination *x = ctx;

	(void)fix;
	if (level == CHECK_BAD)
		x->report->faults = arena_append(
			x->arena, x->report->faults,
			arena_printf(x->arena, "the store: %s: %.*s", what, STRF(text)));
}

/* The log of the run must agree with the records, and nothing may look changed. */
static enum result audit_log(struct queue *q, struct torture_report *report, struct answer *ans,
			     struct arena *a)
{
	const struct audit_plan plan = { .queue = q };
	struct audit_report found;
	enum result code = audit_queue(&plan, &found, ans, a);

	for (size_t i = 0; code == SUCCESS && i < found.n_findings; i++)
		report->faults = arena_append(a, report->faults,
					      arena_printf(a, "the event log: %.*s: %.*s",
							   STRF(found.findings[i].task),
							   STRF(found.findings[i].text)));
	return code;
}

enum result scratch_read(const struct torture_plan *plan, const struct board *b,
			 struct torture_report *report, struct history *h, struct answer *ans,
			 struct arena *a)
{
	struct queue_config config = scratch_config(plan, report->queue);
	struct arena scratch = { 0 };
	struct queue *q;
	enum result code = queue_open(&q, &config, STORE_READ, ans, a);

	if (code != SUCCESS)
		return code;
	code = read_tasks(q, b, h, ans, &scratch);
	if (code == SUCCESS)
		code = read_log(q, report, ans, &scratch);
	if (code == SUCCESS)
		code = queue_check(q, on_finding, &(struct examination){ report, a }, ans, a);
	if (code == SUCCESS)
		code = audit_log(q, report, ans, a);
	ans->message = arena_str(a, ans->message);
	ans->hint = arena_str(a, ans->hint);
	arena_free(&scratch);
	queue_close(q);
	return code;
}

enum result scratch_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a)
{
	struct queue_config config = scratch_config(plan, queue);
	struct queue *q;
	enum result code = queue_open(&q, &config, STORE_WRITE, ans, a);

	if (code != SUCCESS)
		return code;
	code = queue_discard(q, ans, a);
	queue_close(q);
	return code;
}
