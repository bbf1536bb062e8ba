/*
 * One process completes a task while another gives it a sub-task: exactly one of them succeeds,
 * every time. A holder that looked for open sub-tasks before its change began would miss the new
 * one.
 */
#include "kit.h"

#include <sched.h>
#include <time.h>

#define ROUNDS SCALE(300, 60)

static struct board {
	_Atomic int begun, given; /* number of rounds */
	_Atomic int done[SCALE(300, 60)], added[SCALE(300, 60)];
} * board;

static const struct str token = { "11111111-1111-4111-8111-111111111111", 36 };

/* Spins instead of sleeping: the two must start at the same moment. */
static void await_round(_Atomic int *flag, int round)
{
	int64_t end = kit_ms() + 60000;

	while (*flag < round) {
		CHECK(kit_ms() < end, "the other is gone");
		sched_yield();
	}
}

/* One process always waits equally long, the other a little longer each time. */
static void linger(int round)
{
	struct timespec t = { .tv_nsec = round % 16 * 20000L };

	nanosleep(&t, NULL);
}

static enum result call(struct queue *q, struct request rq)
{
	struct arena a = { 0 };
	struct answer ans;

	queue_call(q, &rq, &ans, &a);
	arena_free(&a);
	return ans.code;
}

static int hold(int arg)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);
	struct arena a = { 0 };

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct str id = arena_printf(&a, "t%d", i + 1);
		struct request claim = kit_request(OP_CLAIM, id, STR("holder")),
			       done = kit_request(OP_DONE, id, STR("holder"));

		GIVE(&claim, new_token, token);
		GIVE(&done, token, token);
		CHECK(call(q, claim) == SUCCESS, "claim of %s", id.p);
		board->begun = i + 1;
		linger(i);
		board->done[i] = (int)call(q, done);
		await_round(&board->given, i + 1);
	}
	arena_free(&a);
	queue_close(q);
	return 0;
}

static int give(int arg)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);
	struct arena a = { 0 };

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct request rq = kit_request(OP_CREATE, STR(""), STR("giver"));

		GIVE(&rq, title, STR("a part of it"));
		GIVE(&rq, parent, arena_printf(&a, "t%d", i + 1));
		await_round(&board->begun, i + 1);
		linger(8);
		board->added[i] = (int)call(q, rq);
		board->given = i + 1;
	}
	arena_free(&a);
	queue_close(q);
	return 0;
}

int main(void)
{
	struct queue *q;
	pid_t a, b;
	int done = 0;

	kit_begin();
	board = shared_alloc(sizeof(*board));
	q = kit_open(STORE_WRITE, 20000);
	kit_create(q, ROUNDS);
	a = kit_spawn(hold, 0);
	b = kit_spawn(give, 0);
	CHECK(kit_reap(a) == 0 && kit_reap(b) == 0, "a process failed");
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(board->done[i] == SUCCESS
			      ? board->added[i] == MISCONFIGURED
			      : board->done[i] == INCOMPLETE_SUBTASKS && board->added[i] == SUCCESS,
		      "t%d: done got %d, its new sub-task %d", i + 1, board->done[i],
		      board->added[i]);
		done += board->done[i] == SUCCESS;
	}
	kit_check_store(q);
	queue_close(q);
	printf("guard: %d rounds, done first %d times, the sub-task first %d times\n", ROUNDS, done,
	       ROUNDS - done);
	kit_end();
	return 0;
}
