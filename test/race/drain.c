/* Many processes drain one queue, half of them with done --claim-next: each task is done once. */
#include "kit.h"

#include "base/secret.h"

#define PROCESSES 20
#define TASKS SCALE(2000, 400)

static struct board {
	_Atomic int go;
	_Atomic int done[TASKS + 1], taken[TASKS + 1];
	_Atomic int by[PROCESSES];
} * board;

struct worker {
	struct queue *q;
	int me;
	struct str agent;
	char token[TOKEN_LEN + 1];
	int held; /* the task's number, 0: none */
};

static void hold(struct worker *w, const struct task *t, const struct grant *g)
{
	w->held = kit_number(t->id);
	snprintf(w->token, sizeof(w->token), "%.*s", STRF(g->token));
	CHECK(g->fence == 1, "t%d has fence %d", w->held, (int)g->fence);
	CHECK(board->taken[w->held]++ == 0, "t%d was taken twice", w->held);
}

/* false: nothing is left */
static bool take(struct worker *w)
{
	struct arena a = { 0 };
	struct request rq = kit_request(OP_TAKE, STR(""), w->agent);
	struct answer ans;

	GIVE(&rq, new_token, token_make(&a));
	kit_call(w->q, &rq, &ans, &a);
	CHECK(ans.code == SUCCESS || ans.code == NO_TASKS, "take: %s", result_name(ans.code));
	if (ans.code == SUCCESS)
		hold(w, ans.task, ans.lock);
	arena_free(&a);
	return w->held != 0;
}

static void finish(struct worker *w)
{
	struct arena a = { 0 };
	struct request rq = kit_request(OP_DONE, arena_printf(&a, "t%d", w->held), w->agent);
	struct answer ans;

	GIVE(&rq, token, str_c(w->token));
	if (w->me % 2) {
		GIVE(&rq, claim_next, 1);
		GIVE(&rq, new_token, token_make(&a));
	}
	kit_call(w->q, &rq, &ans, &a);
	CHECK(ans.code == SUCCESS, "done t%d: %.*s", w->held, STRF(ans.message));
	CHECK(board->done[w->held]++ == 0, "t%d was done twice", w->held);
	board->by[w->me]++;
	w->held = 0;
	if (ans.next)
		hold(w, ans.next, ans.next_lock);
	arena_free(&a);
}

static int work(int me)
{
	struct arena a = { 0 };
	struct worker w = { .me = me, .agent = arena_printf(&a, "agent-%d", me) };

	w.q = kit_open(STORE_WRITE, 60000);
	kit_await(&board->go, 1, 60000);
	while (w.held || take(&w))
		finish(&w);
	queue_close(w.q);
	arena_free(&a);
	return 0;
}

static void check_end(void)
{
	struct queue *q = kit_open(STORE_READ, 20000);
	struct request rq = kit_request(OP_OVERVIEW, STR(""), STR("judge"));
	struct arena a = { 0 };
	struct answer ans;

	kit_call(q, &rq, &ans, &a);
	CHECK(ans.counts[DONE] == TASKS && ans.total == TASKS, "%d of %d are Done",
	      (int)ans.counts[DONE], (int)ans.total);
	CHECK(ans.n_tasks == 0, "something is still held");
	for (int i = 1; i <= TASKS; i++)
		CHECK(board->done[i] == 1 && board->taken[i] == 1, "t%d: taken %d times, done %d",
		      i, board->taken[i], board->done[i]);
	kit_check_store(q);
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
	pid_t pids[PROCESSES];
	int64_t start;
	double s;
	int least = TASKS, most = 0;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	fill();
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = kit_spawn(work, i);
	start = kit_ms();
	board->go = 1;
	for (int i = 0; i < PROCESSES; i++) {
		int code = kit_reap(pids[i]);

		CHECK(code == 0, "process %d: %d", i, code);
		least = board->by[i] < least ? board->by[i] : least;
		most = board->by[i] > most ? board->by[i] : most;
	}
	s = (double)(kit_ms() - start + 1) / 1000;
	check_end();
	printf("drain: %d processes, %d tasks, each done once, %d to %d by each, %.1f s, %.0f tasks/s\n",
	       PROCESSES, TASKS, least, most, s, TASKS / s);
	kit_end();
	return 0;
}
