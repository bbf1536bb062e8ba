/*
 * Workers drain a queue while they are killed with -9 at random and replaced. At the end every task
 * is Done, once; the log shows each lease that was left behind, and no fence twice; what was
 * acknowledged is there; and the store is sound.
 */
#include "kit.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/secret.h"

#define PROCESSES 20
#define TASKS SCALE(2000, 300)
#define LEASE SCALE(300, 1000)
#define KILLS SCALE(300, 60)

static struct board {
	_Atomic int acked[TASKS + 1]; /* the fence under which `done` was acknowledged */
	_Atomic int lost, spawned;
} * board;

/* false: nothing is left, and nothing will come */
static bool take(struct queue *q, struct str agent, struct request *done, struct arena *a)
{
	struct request rq = kit_request(OP_TAKE, STR(""), agent);
	struct answer ans;

	GIVE(&rq, new_token, token_make(a));
	GIVE(&rq, ttl, LEASE);
	kit_call(q, &rq, &ans, a);
	*done = (struct request){ 0 };
	if (ans.code == NO_TASKS) {
		kit_sleep(ans.wait_ms < 20 ? ans.wait_ms : 20);
		return ans.wait_ms;
	}
	CHECK(ans.code == SUCCESS, "take: %.*s", STRF(ans.message));
	*done = kit_request(OP_DONE, ans.task->id, agent);
	GIVE(done, token, rq.new_token);
	done->fence = ans.lock->fence;
	return true;
}

static void finish(struct queue *q, const struct request *done, struct arena *a)
{
	int n = kit_number(done->id), none = 0;
	struct answer ans;

	kit_sleep(random_below(3));
	kit_call(q, done, &ans, a);
	if (ans.code == LOST_LOCK) {
		board->lost++;
		return;
	}
	CHECK(ans.code == SUCCESS, "done t%d: %.*s", n, STRF(ans.message));
	CHECK(__atomic_compare_exchange_n((int *)&board->acked[n], &none, (int)done->fence, false,
					  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST),
	      "t%d was done under fence %d and under %d", n, none, (int)done->fence);
}

static int work(int me)
{
	struct arena name = { 0 };
	struct str agent = arena_printf(&name, "agent-%d", me);
	struct queue *q = kit_open(STORE_WRITE, 60000);
	struct request done;
	bool more = true;

	while (more) {
		struct arena a = { 0 };

		more = take(q, agent, &done, &a);
		if (done.op)
			finish(q, &done, &a);
		arena_free(&a);
	}
	queue_close(q);
	arena_free(&name);
	return 0;
}

/* --- the killer ------------------------------------------------------------------------------- */

/* Kills and replaces until enough have died or the first finds nothing left to do. */
static int kill_some(pid_t *pids)
{
	int killed = 0;

	while (killed < KILLS) {
		int i = (int)random_below(PROCESSES), status, code;

		kit_sleep(random_below(SCALE(12, 60)));
		if (waitpid(pids[i], &status, WNOHANG) == pids[i]) {
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a worker failed: %d",
			      status);
			pids[i] = 0;
			break;
		}
		kill(pids[i], SIGKILL);
		code = kit_reap(pids[i]);
		if (code == 0) { /* it found nothing left between the look and the kill */
			pids[i] = 0;
			break;
		}
		CHECK(code == 1000 + SIGKILL, "it ended by itself with %d", code);
		killed++;
		pids[i] = kit_spawn(work, board->spawned++);
	}
	return killed;
}

static int kill_and_wait(void)
{
	pid_t pids[PROCESSES];
	int killed;

	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(work, board->spawned++);
	killed = kill_some(pids);
	for (int i = 0; i < PROCESSES; i++) {
		int code = pids[i] ? kit_reap(pids[i]) : 0;

		CHECK(code == 0, "a worker failed: %d", code);
	}
	return killed;
}

/* --- the judge -------------------------------------------------------------------------------- */

struct story {
	int claims, abandoned, done, fence, done_fence;
};

static void read_log(struct queue *q, struct story *stories)
{
	struct request rq = kit_request(OP_LOG, STR(""), STR("judge"));
	struct arena a = { 0 };
	struct answer ans;

	kit_call(q, &rq, &ans, &a);
	for (size_t i = 0; i < ans.n_events; i++) {
		const struct event *e = &ans.events[i];
		struct story *s = &stories[kit_number(e->task)];

		if (str_is(e->name, "claimed")) {
			CHECK(e->fence == s->fence + 1, "%.*s: fence %d after %d", STRF(e->task),
			      (int)e->fence, s->fence);
			CHECK(!s->done, "%.*s was claimed after it was done", STRF(e->task));
			s->fence = (int)e->fence;
			s->claims++;
		} else if (str_is(e->name, "done")) {
			CHECK(e->fence == s->fence, "%.*s: done with an old fence", STRF(e->task));
			s->done_fence = (int)e->fence;
			s->done++;
		}
		s->abandoned += str_is(e->name, "abandoned");
	}
	arena_free(&a);
}

static void check_task(const struct task *t, const struct story *s)
{
	int n = kit_number(t->id);

	CHECK(t->status == DONE, "t%d is %s", n, status_name(t->status));
	CHECK(!t->lock.holder.n, "t%d is still held", n);
	CHECK(s->done == 1, "t%d was done %d times", n, s->done);
	CHECK(!board->acked[n] || board->acked[n] == s->done_fence,
	      "t%d: acknowledged under fence %d", n, board->acked[n]);
	CHECK(t->fence == s->fence && t->attempts == s->claims, "t%d: its counts are wrong", n);
	CHECK(s->abandoned == s->claims - 1 && t->abandoned == s->abandoned,
	      "t%d: %d claims, but abandoned %d times", n, s->claims, s->abandoned);
}

static void judge(int *abandoned, int *acked)
{
	struct queue *q = kit_open(STORE_READ, 20000);
	struct request rq = kit_request(OP_LIST, STR(""), STR("judge"));
	struct story *stories = calloc(TASKS + 1, sizeof(*stories));
	struct arena a = { 0 };
	struct answer ans;

	read_log(q, stories);
	kit_call(q, &rq, &ans, &a);
	CHECK(ans.n_tasks == TASKS, "%d tasks are left", (int)ans.n_tasks);
	for (int i = 0; i < TASKS; i++)
		check_task(&ans.tasks[i], &stories[kit_number(ans.tasks[i].id)]);
	for (int i = 1; i <= TASKS; i++) {
		*abandoned += stories[i].abandoned;
		*acked += board->acked[i] != 0;
	}
	kit_check_store(q);
	free(stories);
	arena_free(&a);
	queue_close(q);
}

static void fill(void)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);

	kit_create(q, TASKS);
	queue_close(q);
}

int main(void)
{
	int64_t start = kit_ms();
	int killed, abandoned = 0, acked = 0;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	fill();
	killed = kill_and_wait();
	judge(&abandoned, &acked);
	CHECK(killed > 10 && abandoned > 0, "only %d were killed, %d leases left behind", killed,
	      abandoned);
	printf("kill: %d tasks, %d processes at a time, %d killed, all Done once, 0 lost, %d abandoned and "
	       "picked up again, %d late, %d acknowledged, %.1f s\n",
	       TASKS, PROCESSES, killed, abandoned, board->lost, acked,
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
