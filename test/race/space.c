/*
 * Processes in several time namespaces share one queue; their boot-time clocks are hours apart. No
 * agent takes over a lease before it has expired, and no lease lasts longer than requested. Agents
 * take over expired leases: time passes equally for all. Skipped if a process may not make a time
 * namespace.
 */
#include "kit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"
#include "kit/timens.h"

#define TASKS 3
#define SHORT 25 /* ms */
#define LONG 250
#define RUN_MS SCALE(2000, 3000)

static const struct {
	long s, ns;
} spaces[] = { { 0, 0 }, { 100000, 0 }, { 7, 3500000 }, { -60, 0 } };

#define PROCESSES ((int)(sizeof(spaces) / sizeof(spaces[0])))

/* `until` is a time at which the lease has not yet expired; it is written after the answer came. */
static struct board {
	struct {
		_Atomic int fence;
		_Atomic int64_t until;
	} tasks[TASKS + 1];
	_Atomic int claims, took_over, calls_of[PROCESSES];
} * board;

static void judge_claim(const struct answer *ans, int64_t asked, int64_t ttl)
{
	int n = kit_number(ans->task->id);
	int64_t fence = ans->lock->fence, answered = kit_ms();
	int64_t before = board->tasks[n].until;

	CHECK(board->tasks[n].fence != fence - 1 || answered >= before,
	      "t%d was taken over %d ms before its lease expired", n, (int)(before - answered));
	CHECK(ans->lock->expires_at - ans->now <= ttl, "a lease of %d ms for %d",
	      (int)(ans->lock->expires_at - ans->now), (int)ttl);
	board->claims++;
	board->took_over += fence > 1;
	board->tasks[n].until = asked + ttl;
	board->tasks[n].fence = (int)fence;
}

static void renew(struct queue *q, const struct answer *claimed, struct arena *a)
{
	int n = kit_number(claimed->task->id);
	struct request rq = kit_request(OP_HEARTBEAT, claimed->task->id, STR("worker"));
	int64_t asked = kit_ms();
	struct answer ans;

	GIVE(&rq, token, claimed->lock->token);
	GIVE(&rq, ttl, (int64_t)LONG);
	kit_call(q, &rq, &ans, a);
	if (ans.code != SUCCESS)
		return;
	CHECK(ans.lock->expires_at - ans.now <= LONG, "renewed for %d ms",
	      (int)(ans.lock->expires_at - ans.now));
	if (board->tasks[n].fence == (int)claimed->lock->fence)
		board->tasks[n].until = asked + LONG;
}

static void work(int me)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);
	int64_t end = kit_ms() + RUN_MS;

	while (kit_ms() < end) {
		struct request rq = kit_request(OP_TAKE, STR(""), STR("worker"));
		struct arena a = { 0 };
		struct answer ans;
		int64_t asked = kit_ms(), ttl = random_below(3) ? SHORT : LONG;

		GIVE(&rq, ttl, ttl);
		GIVE(&rq, new_token, token_make(&a));
		kit_call(q, &rq, &ans, &a);
		board->calls_of[me]++;
		if (ans.code == SUCCESS) {
			judge_claim(&ans, asked, ttl);
			if (!random_below(4))
				renew(q, &ans, &a);
		}
		arena_free(&a);
		kit_sleep(1);
	}
	queue_close(q);
}

/* A new namespace applies to the children of the process that makes it. */
static int enter_and_work(int me)
{
	pid_t pid;

	if (spaces[me].s && !timens_for_children(spaces[me].s, spaces[me].ns))
		return 77;
	pid = fork();
	if (pid == 0) {
		work(me);
		_exit(0);
	}
	return kit_reap(pid);
}

static int try_to_enter(int arg)
{
	(void)arg;
	return timens_for_children(1, 0) ? 0 : 77;
}

int main(void)
{
	pid_t pids[PROCESSES];
	struct queue *q;

	if (kit_reap(kit_spawn(try_to_enter, 0)) == 77) {
		printf("needs the right to make a time namespace\n");
		return 77;
	}
	kit_begin();
	board = shared_alloc(sizeof(*board));
	q = kit_open(STORE_WRITE, 20000);
	kit_create(q, TASKS);
	queue_close(q);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(enter_and_work, i);
	for (int i = 0; i < PROCESSES; i++) {
		int code = kit_reap(pids[i]);

		CHECK(code == 0, "process %d: %d", i, code);
		CHECK(board->calls_of[i] > 1, "process %d made no calls", i);
	}
	CHECK(board->took_over > PROCESSES, "only %d leases expired", board->took_over);
	printf("space: %d claims in %d time namespaces, %d of expired leases; none too early\n",
	       board->claims, PROCESSES, board->took_over);
	kit_end();
	return 0;
}
