/*
 * The holder is stopped while it has calls of others, past their timeouts, and then continues. The
 * waiting callers are told who holds the lock, and truthfully whether their call may have happened;
 * the ledger knows. A caller that repeats a claim with its token gets the task of the first claim.
 */
#include "ledger.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"

#define MAKERS 3
#define TAKERS 2
#define TIMEOUT SCALE(700, 2500)

static const char *const steps[] = { "taken",     "replied",  "committing",
				     "committed", "answered", "leaving" };
#define STEPS ((int)(sizeof(steps) / sizeof(*steps)))

static struct board {
	_Atomic int go, late_n, unsure, takes;
} * board;

static int make(int where)
{
	struct queue_config config = ledger_config(where, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);

	ledger_comment(q, where, TIMEOUT);
	queue_close(q);
	return 0;
}

static bool names(const struct answer *ans, pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), "(pid %d)", (int)pid);
	return str_has_nocase(ans->message, str_c(text));
}

/* The stopped process; on a slow machine the test itself, which held the gate before. A server knows the session. */
static void check_busy(const struct answer *ans)
{
	CHECK(ans->code == API_ERROR, "%s: %.*s", result_name(ans->code), STRF(ans->message));
	CHECK(names(ans, step_hit()) || names(ans, getppid()) ||
		      (ledger_far() && str_has_nocase(ans->message, STR("changes the queue"))),
	      "it does not say who: %.*s", STRF(ans->message));
}

/* Repeats one claim with the same token until it is answered. */
static int take(int where)
{
	struct queue_config config = ledger_config(where, TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);
	struct request rq = kit_request(OP_TAKE, STR(""), STR("taker"));
	struct arena a = { 0 };
	struct answer ans;

	GIVE(&rq, new_token, token_make(&a));
	GIVE(&rq, type, STR("prize"));
	queue_call(q, &rq, &ans, &a);
	if (ans.code != SUCCESS) {
		if (step_hit() != getpid())
			check_busy(&ans);
		board->unsure += ans.applied == '?';
		CHECK(kit_await(&board->go, 1, 60000), "it never continues");
		queue_call(q, &rq, &ans, &a);
	}
	CHECK(ans.code == SUCCESS, "%.*s", STRF(ans.message));
	CHECK(ans.lock->fence == 1 && str_eq(ans.lock->token, rq.new_token),
	      "not as the first one");
	board->takes++;
	arena_free(&a);
	queue_close(q);
	return 0;
}

/* Does the stopped process hold the lock of the data? With a server, others do not need its gate. */
static bool in_the_way(const char *step)
{
	return !ledger_far() || !strcmp(step, "taken") || !strcmp(step, "replied") ||
	       !strcmp(step, "committing");
}

/* Comes after the holder was stopped: nobody has taken its call. */
static int come_late(int turn)
{
	int where = 0;
	struct queue_config config = ledger_config(where, in_the_way(steps[turn]) ? 100 : TIMEOUT);
	struct queue *q = kit_open_as(&config, STORE_WRITE);
	struct request rq = kit_request(OP_CREATE, STR(""), STR("late"));
	struct arena a = { 0 };
	struct answer ans;

	GIVE(&rq, title, STR("late"));
	queue_call(q, &rq, &ans, &a);
	if (in_the_way(steps[turn])) {
		check_busy(&ans);
		CHECK(ans.applied == 'n', "applied is %c", ans.applied);
	} else {
		CHECK(ans.code == SUCCESS, "stopped at %s: %.*s", steps[turn], STRF(ans.message));
	}
	board->late_n++;
	arena_free(&a);
	queue_close(q);
	return 0;
}

static struct answer ask(struct queue *q, enum op op, const char *type, struct arena *a)
{
	struct request rq = kit_request(op, STR(""), STR("judge"));
	struct answer ans;

	GIVE(&rq, type, str_c(type));
	if (op == OP_CREATE)
		GIVE(&rq, title, STR("a prize"));
	kit_call(q, &rq, &ans, a);
	CHECK(ans.code == SUCCESS, "%.*s", STRF(ans.message));
	return ans;
}

static void make_prizes(void)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);
	struct arena a = { 0 };

	for (int i = 0; i < STEPS * TAKERS * 2; i++)
		ask(q, OP_CREATE, "prize", &a);
	arena_free(&a);
	queue_close(q);
}

/* Each taker has exactly one prize, no matter what it was told on the way. */
static void count_prizes(int expected)
{
	struct queue *q = kit_open(STORE_WRITE, 20000);
	struct arena a = { 0 };
	struct answer ans = ask(q, OP_LIST, "prize", &a);
	int held = 0;

	for (size_t i = 0; i < ans.n_tasks; i++)
		held += ans.tasks[i].lock.holder.n != 0;
	CHECK(held == expected, "%d takers hold %d tasks", expected, held);
	arena_free(&a);
	queue_close(q);
}

/* All wait at the gate. One of them gets it and is stopped after it took the others' calls. */
static void stop_at(const char *step, int turn)
{
	pid_t pids[MAKERS + TAKERS], late;
	struct gate g = { 0 };
	int64_t end = kit_ms() + 30000;

	board->go = 0;
	step_disarm();
	step_watch("published");
	ledger_hold_gate(&g);
	for (int i = 0; i < MAKERS + TAKERS; i++)
		pids[i] = kit_spawn(i < MAKERS ? make : take, 0);
	while (step_seen() < MAKERS + TAKERS && kit_ms() < end)
		kit_sleep(1);
	step_arm(step, 0, SIGSTOP);
	ledger_leave_gate(&g);
	while (!step_hit() && kit_ms() < end)
		kit_sleep(1);
	CHECK(step_hit(), "nobody came to %s", step);
	late = kit_spawn(come_late, turn);
	CHECK(kit_reap(late) == 0, "who came late at %s", step);
	kit_sleep(TIMEOUT);
	kill(step_hit(), SIGCONT);
	board->go = 1;
	kit_reap_all(step, pids, MAKERS + TAKERS);
	ledger_judge();
	count_prizes((turn + 1) * TAKERS);
}

int main(void)
{
	int64_t start = kit_ms();
	const struct ledger_counts *n;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	ledger_begin();
	make_prizes();
	for (int i = 0; i < STEPS; i++)
		stop_at(steps[i], i);
	n = ledger_counts();
	CHECK(n->unsure + board->unsure > 0, "nobody was left in doubt");
	CHECK(board->takes == STEPS * TAKERS && board->late_n == STEPS, "not all came");
	printf("stop: the holder stopped at %d steps; %d calls, %d acknowledged, %d in doubt; %d claims, repeated "
	       "after %d doubts, one task each; %.1f s\n",
	       STEPS, n->asked, n->acked, n->unsure, board->takes, board->unsure,
	       (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
