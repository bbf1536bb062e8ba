/* The load test. Each process owns its part of the shared memory, and the queue is compared with the acknowledged calls at the
 * end, so a lost change shows even if every call succeeded. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "proof/torture/torture_load.h"
#include "proof/torture/torture_private.h"

#define REPEATS 3

/* In each cycle a process creates a task, claims it and completes it. */
enum step { MAKE, TAKE, FINISH, STEPS };

/* One process's part of the shared memory. */
struct worker {
	_Atomic int64_t calls;
	int64_t codes[TORTURE_CODES], went[STEPS]; /* went: calls that succeeded */
	char failure[300];
};

struct load {
	const struct torture_plan *plan;
	struct str queue;
	pid_t *pids;
	size_t size;
	_Atomic bool *stop;
	struct worker *workers;
	uint32_t *waits; /* in µs; `calls` of them for each process */
	struct load_report *out;
	struct arena *arena;
};

static int64_t torture_load_micros(void)
{
	return os_monotonic_ns() / 1000;
}

/* --- a process ------------------------------------------------------------------------------------- */

static struct request step_request(int64_t who, int64_t i, struct str token, struct arena *a)
{
	static const enum op ops[STEPS] = { OP_CREATE, OP_CLAIM, OP_DONE };
	enum step step = (enum step)(i % STEPS);
	struct request rq = { .op = ops[step] };

	GIVE(&rq, agent, arena_printf(a, "p%lld", (long long)who));
	GIVE(&rq, id, arena_printf(a, "p%lld-%lld", (long long)who, (long long)(i / STEPS)));
	if (step == MAKE) {
		GIVE(&rq, title, rq.id);
		GIVE(&rq, request_id, rq.id);
	} else if (step == TAKE)
		GIVE(&rq, new_token, token);
	else
		GIVE(&rq, token, token);
	if (step == TAKE)
		GIVE(&rq, ttl, policy_default.lease_max);
	return rq;
}

static void note_answer(struct worker *w, int64_t i, const struct answer *ans)
{
	w->codes[ans->code]++;
	w->went[i % STEPS] += ans->code == SUCCESS;
	if (ans->code != SUCCESS && !w->failure[0])
		snprintf(w->failure, sizeof(w->failure), "%s: %.*s", result_name(ans->code),
			 STRF(ans->message));
	w->calls++;
}

/* Repeats a call whose answer was lost, because the repeat gets the outcome. */
static void torture_load_call(struct queue *q, const struct request *rq, struct answer *ans,
			      struct arena *a)
{
	for (int i = 0; i < REPEATS; i++) {
		queue_call(q, rq, ans, a);
		if (ans->code != API_ERROR || ans->applied != '?')
			break;
	}
}

static int torture_load_work(void *ctx, int who)
{
	const struct load *l = ctx;
	struct queue_config config = scratch_config(l->plan, l->queue);
	struct worker *w = &l->workers[who];
	struct arena own = { 0 };
	struct str token = STR("");
	struct answer ans = { 0 };
	struct queue *q;

	config.policy.lease_max = policy_default.lease_max;
	if (queue_open(&q, &config, STORE_WRITE, &ans, &own) != SUCCESS) {
		note_answer(w, 0, &ans);
		return 0;
	}
	for (int64_t i = 0; i < l->plan->calls && !*l->stop; i++) {
		struct arena a = { 0 };
		struct request rq;
		int64_t began;

		if (i % STEPS == MAKE)
			token = token_make(&own);
		rq = step_request(who, i, token, &a);
		began = torture_load_micros();
		torture_load_call(q, &rq, &ans, &a);
		l->waits[who * l->plan->calls + w->calls] =
			(uint32_t)(torture_load_micros() - began);
		note_answer(w, i, &ans);
		arena_free(&a);
	}
	queue_close(q);
	arena_free(&own);
	return 0;
}

/* --- all processes --------------------------------------------------------------------------------- */

static void torture_load_spawn(struct load *l, int who)
{
	l->pids[who] = crew_start(torture_load_work, l, who);
	if (l->pids[who] < 0) {
		l->out->faults = arena_append(l->arena, l->out->faults,
					      arena_printf(l->arena, "cannot start a process: %s",
							   strerror(-l->pids[who])));
		*l->stop = true;
	}
}

static void note_end(struct load *l, int64_t who, int status)
{
	if (WIFSIGNALED(status))
		l->out->faults = arena_append(
			l->arena, l->out->faults,
			arena_printf(l->arena, "process p%lld was killed by signal %d (%s)",
				     (long long)who, WTERMSIG(status),
				     strsignal(WTERMSIG(status))));
}

static bool any_left(struct load *l)
{
	bool left = false;
	int status;

	for (int64_t i = 0; i < l->plan->agents; i++) {
		if (crew_ended(&l->pids[i], &status))
			note_end(l, i, status);
		left = left || l->pids[i] > 0;
	}
	return left;
}

static void torture_load_show(struct load *l, int64_t ms)
{
	struct torture_figures f = { .ms = ms, .left_ms = -1 };

	for (int64_t i = 0; i < l->plan->agents; i++)
		f.calls += l->workers[i].calls;
	if (l->plan->progress)
		l->plan->progress(l->plan->ctx, &f, "working");
}

static void torture_load_watch(struct load *l)
{
	int64_t began = os_boot_ms(), shown = 0;

	for (int64_t i = 0; i < l->plan->agents && !*l->stop; i++)
		torture_load_spawn(l, (int)i);
	torture_load_show(l, 0);
	while (any_left(l)) {
		l->out->ms = os_boot_ms() - began;
		if (crew_interrupted())
			*l->stop = true;
		if (l->out->ms - shown >= CREW_PROGRESS_MS) {
			shown = l->out->ms;
			torture_load_show(l, shown);
		}
		crew_pause();
	}
	l->out->ms = os_boot_ms() - began;
}

static void run_all(struct load *l)
{
	crew_catch();
	torture_load_watch(l);
	crew_release();
	l->out->interrupted = crew_interrupted();
}

/* --- the figures ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Collects the waits of all processes, without gaps, and sorts them. */
static size_t torture_load_gather(struct load *l)
{
	size_t n = 0;

	for (int64_t i = 0; i < l->plan->agents; i++) {
		int64_t calls = l->workers[i].calls;

		memmove(l->waits + n, l->waits + i * l->plan->calls,
			(size_t)calls * sizeof(*l->waits));
		n += (size_t)calls;
	}
	qsort(l->waits, n, sizeof(*l->waits), by_size);
	return n;
}

static int64_t torture_load_percentile(const uint32_t *sorted, size_t n, size_t percent)
{
	return n ? sorted[(n * percent + 99) / 100 - 1] : 0;
}

static void add_up(struct load *l)
{
	struct load_report *r = l->out;
	size_t n = torture_load_gather(l);
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += l->waits[i];
	r->calls = (int64_t)n;
	r->mean_us = n ? sum / (int64_t)n : 0;
	r->p50_us = torture_load_percentile(l->waits, n, 50);
	r->p95_us = torture_load_percentile(l->waits, n, 95);
	r->p99_us = torture_load_percentile(l->waits, n, 99);
	r->longest_us = torture_load_percentile(l->waits, n, 100);
	for (int64_t i = 0; i < l->plan->agents; i++) {
		const struct worker *w = &l->workers[i];

		for (int code = 0; code < TORTURE_CODES; code++)
			r->codes[code] += w->codes[code];
		if (w->failure[0] && !r->failure.n)
			r->failure = arena_str(l->arena, str_c(w->failure));
	}
	r->succeeded = r->codes[SUCCESS];
}

static void torture_load_compare(struct load *l, const char *what, int64_t there,
				 int64_t acknowledged)
{
	if (there != acknowledged)
		l->out->faults = arena_append(
			l->arena, l->out->faults,
			arena_printf(l->arena, "%lld tasks are %s, %lld were acknowledged",
				     (long long)there, what, (long long)acknowledged));
}

/* Does the queue have everything that was acknowledged, and nothing else? */
static enum result torture_load_check(struct load *l, struct answer *ans)
{
	struct queue_config config = scratch_config(l->plan, l->queue);
	struct request rq = { .op = OP_OVERVIEW };
	int64_t went[STEPS] = { 0 }, all = 0;
	struct answer now;
	struct queue *q;

	if (queue_open(&q, &config, STORE_READ, ans, l->arena) != SUCCESS)
		return ans->code;
	queue_call(q, &rq, &now, l->arena);
	queue_close(q);
	if (now.code != SUCCESS)
		return answer_fail(ans, now.code, now.message, now.hint);
	for (int64_t i = 0; i < l->plan->agents; i++)
		for (int step = 0; step < STEPS; step++)
			went[step] += l->workers[i].went[step];
	for (int i = 0; i < STATUS_END; i++)
		all += now.counts[i];
	torture_load_compare(l, "there", all, went[MAKE]);
	torture_load_compare(l, "In Progress", now.counts[IN_PROGRESS], went[TAKE] - went[FINISH]);
	torture_load_compare(l, "Done", now.counts[DONE], went[FINISH]);
	return SUCCESS;
}

/* --- a run ----------------------------------------------------------------------------------------- */

static bool share_memory(struct load *l)
{
	size_t n = (size_t)l->plan->agents;
	char *map;

	l->size = sizeof(*l->workers) * (n + 1) + sizeof(*l->waits) * n * (size_t)l->plan->calls;
	map = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return false;
	l->stop = (_Atomic bool *)map;
	l->workers = (struct worker *)(void *)map + 1;
	l->waits = (uint32_t *)(void *)(l->workers + n);
	return true;
}

static enum result run_and_check(struct load *l, struct answer *ans)
{
	struct queue_config config = scratch_config(l->plan, l->queue);
	struct answer removal = { 0 };
	struct queue *q;
	enum result code = queue_open(&q, &config, STORE_CREATE, ans, l->arena);

	l->out->removed = true;
	if (code != SUCCESS)
		return code;
	queue_close(q); /* no handle may be open while it forks */
	run_all(l);
	add_up(l);
	code = torture_load_check(l, ans);
	l->out->removed = scratch_remove(l->plan, l->queue, &removal, l->arena) == SUCCESS;
	l->out->stayed = removal.message;
	return code;
}

enum result load_run(const struct torture_plan *plan, struct load_report *out, struct answer *ans,
		     struct arena *a)
{
	struct load l = { .plan = plan, .out = out, .arena = a };
	enum result code;

	*out = (struct load_report){ 0 };
	out->queue = l.queue = arena_printf(a, QUEUE_SCRATCH "%.*s", 12, token_make(a).p);
	l.pids = arena_array(a, pid_t, (size_t)plan->agents);
	if (!share_memory(&l)) {
		ans->applied = 'n';
		return answer_fail(ans, API_ERROR, STR("cannot get shared memory"),
				   STR("fewer processes or operations need less"));
	}
	code = run_and_check(&l, ans);
	munmap(l.stop, l.size);
	return code;
}
