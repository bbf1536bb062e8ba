/* Another agent may end a job's lock at any time: `lock break`, `remove --force`, a restore. The store wakes the runner
 * after each change, and the runner then checks whether the change ended one of its locks. */
#include "run/run_private.h"

#include "base/os.h"
#include "base/secret.h"

#define PAUSE_MS 200 /* between two checks: other agents may change the queue all the time */
#define IDLE_MS 50   /* the same for a loop that only waits for a task */

static bool lock_watch_works(const struct job *j)
{
	return j->group && !j->exited && !j->lost && !j->settled && !j->unclear;
}

static bool any_works(const struct runner *r)
{
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (lock_watch_works(&r->jobs[i]))
			return true;
	return false;
}

int runner_wake_fd(struct runner *r)
{
	int fd;

	if (!any_works(r) && !r->hopeful) {
		r->check_one = NEVER;
		return -1;
	}
	if (r->check_one != NEVER)
		return -1;
	fd = queue_wake_fd(r->client->conn.queue);
	if (fd < 0)
		r->check_one = os_boot_ms() + queue_pause(r->client->conn.queue, ATTEMPTS_MAX_MS);
	return fd;
}

void runner_woken(struct runner *r)
{
	int64_t now = os_boot_ms(), pause = r->running ? PAUSE_MS : IDLE_MS;

	queue_woken(r->client->conn.queue);
	r->check_one = r->checked_at + pause > now ? r->checked_at + pause : now;
}

/* If a store does not show the hash of the token, the holder's name must suffice. After a failed read the next renewal
 * decides. */
static bool still_held(const struct job *j, const struct answer *ans, struct arena *a)
{
	const struct lock *l = ans->task ? &ans->task->lock : NULL;

	if (ans->code == API_ERROR)
		return true;
	if (!l || l->foreign || !str_eq(l->holder, j->holder))
		return false;
	return !l->token.n || secret_eq(l->token, token_hash(a, j->token));
}

/* Only a renewal decides that the lock is lost: the program itself may have ended it. A successful renewal wakes us
 * again, so the job is not checked a second time. */
static void check_one(struct runner *r, struct job *j)
{
	struct request rq = { .op = OP_LOCK_STATUS };
	struct arena scratch = { 0 };
	struct answer ans;
	bool held;

	GIVE(&rq, id, j->task);
	runner_call(r, &rq, &ans, &scratch);
	held = still_held(j, &ans, &scratch);
	arena_free(&scratch);
	if (held)
		return;
	job_renew(r, j);
	j->unclear = !j->lost && !j->settled;
}

void runner_check(struct runner *r)
{
	if (os_boot_ms() < r->check_one)
		return;
	r->checked_at = os_boot_ms();
	r->check_one = NEVER;
	if (r->hopeful)
		r->wait.next = r->checked_at;
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (lock_watch_works(&r->jobs[i]))
			check_one(r, &r->jobs[i]);
}
