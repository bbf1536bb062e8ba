/* Many processes claim one task at the same moment, again and again: one winner each, fence + 1. */
#include "kit.h"

#include <pthread.h>

#include "base/secret.h"

#define PROCESSES 64
#define ROUNDS SCALE(200, 40)

static struct board {
	pthread_barrier_t start, end; /* of a round */
	_Atomic int winners[1000];    /* by round */
	_Atomic int64_t fence[1000];
	_Atomic int winner[1000];
	_Atomic int64_t longest; /* wait for an answer, ms */
} * board;

static struct request claim(struct arena *a, struct str agent)
{
	struct request rq = kit_request(OP_CLAIM, STR("t1"), agent);

	GIVE(&rq, new_token, token_make(a));
	return rq;
}

/* Only the winner can give it back, and only once all others have lost. */
static void release(struct queue *q, struct str token, struct str agent, struct arena *a)
{
	struct request rq = kit_request(OP_RELEASE, STR("t1"), agent);
	struct answer ans;

	GIVE(&rq, token, token);
	kit_call(q, &rq, &ans, a);
	CHECK(ans.code == SUCCESS, "release: %.*s", STRF(ans.message));
}

static void note_wait(int64_t ms)
{
	int64_t was = board->longest;

	while (ms > was && !__atomic_compare_exchange_n((int64_t *)&board->longest, &was, ms, false,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void play(struct queue *q, int me, int round)
{
	struct arena a = { 0 };
	struct str agent = arena_printf(&a, "agent-%d", me);
	struct request rq = claim(&a, agent);
	struct answer ans;
	int64_t start = kit_ms();

	kit_call(q, &rq, &ans, &a);
	note_wait(kit_ms() - start);
	CHECK(ans.code == SUCCESS || ans.code == CONFLICT, "claim: %s", result_name(ans.code));
	if (ans.code == SUCCESS) {
		board->winners[round]++;
		board->fence[round] = ans.lock->fence;
		board->winner[round] = me;
	}
	pthread_barrier_wait(&board->end);
	if (ans.code == SUCCESS)
		release(q, rq.new_token, agent, &a);
	arena_free(&a);
}

static int work(int me)
{
	struct queue *q = kit_open(STORE_WRITE, 60000);

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&board->start);
		play(q, me, round);
	}
	queue_close(q);
	return 0;
}

static void create_task(void)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);

	kit_create(q, 1);
	queue_close(q);
}

static int check_rounds(void)
{
	bool won[PROCESSES] = { false };
	int different = 0;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(board->winners[i] == 1, "round %d has %d winners", i, board->winners[i]);
		CHECK(board->fence[i] == i + 1, "round %d has fence %d", i, (int)board->fence[i]);
		different += !won[board->winner[i]];
		won[board->winner[i]] = true;
	}
	return different;
}

static void make_board(void)
{
	pthread_barrierattr_t shared;

	board = shared_alloc(sizeof(*board));
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&board->start, &shared, PROCESSES);
	pthread_barrier_init(&board->end, &shared, PROCESSES);
}

int main(void)
{
	pid_t pids[PROCESSES];
	int64_t start;
	int different;

	make_board();
	kit_begin();
	create_task();
	start = kit_ms();
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(work, i);
	for (int i = 0; i < PROCESSES; i++) {
		int code = kit_reap(pids[i]);

		CHECK(code == 0, "process %d: %d", i, code);
	}
	different = check_rounds();
	printf("claim_race: %d processes, %d rounds, one winner each (%d different ones), fence %d, "
	       "longest wait %d ms, %.1f s\n",
	       PROCESSES, ROUNDS, different, (int)board->fence[ROUNDS - 1], (int)board->longest,
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
