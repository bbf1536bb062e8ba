/* A loop that waits for work. It stays while an open task can become eligible for it, and ends by itself otherwise. The
 * store wakes it after each change; besides, it looks when the next lease or delay is over. */
#include "run/run_private.h"

#include "base/os.h"
#include "queue/queue.h"

#define FAULT_MAX_MS 600000 /* without a limit of its own, a loop waits this long for the store */

/* A loop that released the last task stays a little: another loop may be about to take it. */
#define LINGER_MS 3000

static int64_t run_wait_sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void runner_idle(struct runner *r)
{
	attempts_begin(&r->wait, r->plan->wait_ms);
	r->wait.next = NEVER;
}

/* Another process is in the way, or the network is: both pass. */
static bool run_wait_passes(const struct answer *ans)
{
	return ans->code == API_ERROR &&
	       (str_is(ans->fault, "busy") || str_is(ans->fault, "unreachable"));
}

static bool wait_for_store(struct runner *r)
{
	int64_t now = os_boot_ms(), most = run_wait_sooner(r->plan->wait_ms, FAULT_MAX_MS);

	if (!r->fault_since)
		r->fault_since = now;
	r->wait.next = now + RETRY_MS;
	return r->hopeful = now < r->fault_since + most;
}

/* The tasks that the loop released do not count, unless somebody changes them. */
static void ask_forecast(struct runner *r, struct forecast *p)
{
	struct client *c = r->client;
	struct request rq = r->plan->take;
	struct arena scratch = { 0 };
	struct answer ans = { 0 };
	bool people = r->plan->wait_ms != RUN_FOREVER;

	(void)given_back_except(&c->given_back, c->conn.queue, &rq, false, &scratch);
	if (queue_forecast(c->conn.queue, &rq, people, p, &ans, &scratch) != SUCCESS)
		*p = (struct forecast){ .coming = 1, .wait_ms = RETRY_MS }; /* look again */
	r->sum->stuck = p->stuck;
	runner_keep(r, &r->sum->stuck_id, p->stuck_id);
	arena_free(&scratch);
}

/* Only tasks are left that this loop released, and tasks that wait for them. */
static bool run_wait_lingers(struct runner *r)
{
	int64_t now = os_boot_ms();

	if (!r->sum->again.n) {
		r->alone_since = 0;
		return false;
	}
	if (!r->alone_since)
		r->alone_since = now;
	r->wait.next = run_wait_sooner(r->wait.next, r->alone_since + LINGER_MS);
	return now < r->alone_since + LINGER_MS;
}

static bool wait_for_task(struct runner *r, const struct answer *ans)
{
	struct forecast p = { .wait_ms = ans->wait_ms };

	/* the tasks of its own programs are open, and one that comes due is the quick answer */
	if (!r->running && (!ans->wait_ms || ans->paused))
		ask_forecast(r, &p);
	r->hopeful = r->running || ans->wait_ms || p.coming;
	if (r->hopeful)
		r->alone_since = 0;
	attempts_after(&r->wait, p.wait_ms);
	r->hopeful = r->hopeful || run_wait_lingers(r);
	if (r->hopeful && !r->alone_since && !r->running && !r->told && r->plan->waits)
		r->plan->waits(r->plan->ctx, ans, p.coming);
	r->told |= r->hopeful && !r->alone_since && !r->running;
	return r->hopeful;
}

bool runner_may_wait(struct runner *r, const struct answer *ans)
{
	r->hopeful = false;
	r->wait.next = NEVER;
	if (!r->plan->wait_ms || r->no_more)
		return false;
	if (run_wait_passes(ans))
		return wait_for_store(r);
	r->fault_since = 0;
	return ans->code == NO_TASKS && wait_for_task(r, ans);
}

bool runner_waits(struct runner *r)
{
	if (!r->hopeful || r->no_more || (!r->plan->loop && r->sum->ran))
		return false;
	r->sum->tired = attempts_over(&r->wait);
	r->wait.next = run_wait_sooner(r->wait.next, r->wait.end);
	return !r->sum->tired;
}

void runner_wait_over(struct runner *r)
{
	if (!r->hopeful || os_boot_ms() < r->wait.next)
		return;
	r->wait.next = NEVER;
	r->checked = false;
}
