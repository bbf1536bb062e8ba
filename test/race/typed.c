/*
 * A lock of the whole queue against a crowd. While one process holds @maintenance, no change of the others
 * gets through, not even one that was under way; heartbeats and reads do. A process that checked
 * the lock before its change began would be caught. All counts must add up to the calls.
 */
#include "kit.h"

#include <sched.h>

#include "base/secret.h"
#include "core/typed.h"

#define CROWD 20
#define TURN 30

static struct board {
	_Atomic int over, ready;
	/* With each new turn, every worker makes TURN calls as fast as it can. Without this limit a crowd on a
	 * busy machine would make ten thousands of calls until @maintenance has its next turn. */
	_Atomic int turn;
	_Atomic long calls[OP_END]; /* calls that succeeded, by operation */
} * board;

/* Fewer rounds on git, where every change is a git commit. */
static int rounds(void)
{
	if (str_starts(str_c(kit_uri()), STR("git:")))
		return SCALE(3, 2);
	return str_starts(str_c(kit_uri()), STR("files:")) ? SCALE(10, 5) : SCALE(15, 10);
}

static const struct str token = { "11111111-1111-4111-8111-111111111111", 36 };

static void call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a)
{
	queue_call(q, rq, ans, a);
	if (!(op_flags(rq->op) & OP_READS))
		board->calls[rq->op]++;
}

static struct queue *open_counting(int64_t timeout_ms)
{
	struct queue_config config = kit_config(timeout_ms);

	config.opt.counting = true;
	return kit_open_as(&config, STORE_WRITE);
}

/* Counts down the calls of a turn. False: there are none left, and a millisecond passed. */
static bool in_turn(int *turn, int *left)
{
	if (*turn != board->turn) {
		*turn = board->turn;
		*left = TURN;
	}
	if (*left) {
		(*left)--;
		return true;
	}
	kit_sleep(1);
	return false;
}

/* Each worker renews a task of its own, or comments on it in its turns. Heartbeats never end. */
static int worker(int n)
{
	struct queue *q = open_counting(60000);
	struct arena a = { 0 };
	struct str agent = arena_printf(&a, "w%d", n), id = arena_printf(&a, "t%d", n + 1);
	struct request claim = kit_request(OP_CLAIM, id, agent),
		       comment = kit_request(OP_COMMENT, id, agent),
		       beat = kit_request(OP_HEARTBEAT, id, agent);
	struct answer ans;
	int turn = -1, left = 0;

	GIVE(&claim, new_token, token);
	GIVE(&comment, text, STR("x"));
	GIVE(&beat, token, token);
	call(q, &claim, &ans, &a);
	CHECK(ans.code == SUCCESS, "claim: %s", result_name(ans.code));
	board->ready++;
	while (!board->over) {
		struct arena scratch = { 0 };

		if (!in_turn(&turn, &left) && n % 4)
			continue;
		if (n % 4)
			call(q, &comment, &ans, &scratch);
		else
			call(q, &beat, &ans, &scratch);
		CHECK(ans.code == SUCCESS, "%s: %.*s", op_name(n % 4 ? OP_COMMENT : OP_HEARTBEAT),
		      STRF(ans.message));
		arena_free(&scratch);
	}
	arena_free(&a);
	queue_close(q);
	return 0;
}

/* The number of lines in the event log. Heartbeats leave none. */
static size_t log_lines(struct queue *q)
{
	struct request rq = kit_request(OP_LOG, STR(""), STR("m"));
	struct arena a = { 0 };
	struct answer ans;
	size_t n;

	queue_call(q, &rq, &ans, &a);
	CHECK(ans.code == SUCCESS, "log: %.*s", STRF(ans.message));
	n = ans.n_events;
	arena_free(&a);
	return n;
}

static int64_t version(struct queue *q)
{
	struct request rq = kit_request(OP_SHOW, STR("t1"), STR("m"));
	struct arena a = { 0 };
	struct answer ans;
	int64_t n;

	queue_call(q, &rq, &ans, &a);
	CHECK(ans.code == SUCCESS, "show: %.*s", STRF(ans.message));
	n = ans.task->version;
	arena_free(&a);
	return n;
}

/* Heartbeats continue: t1's holder sends nothing else. */
static void await_beat(struct queue *q)
{
	int64_t before = version(q), end = kit_ms() + 200000;

	while (version(q) == before) {
		CHECK(kit_ms() < end, "no heartbeat comes through");
		kit_sleep(1);
	}
}

static void one_round(struct queue *q, struct arena *a)
{
	struct request take = kit_request(OP_LOCK_ACQUIRE, STR("@maintenance"), STR("m")),
		       give = kit_request(OP_LOCK_RELEASE, STR("@maintenance"), STR("m"));
	struct answer ans;
	size_t before;

	GIVE(&take, new_token, token);
	GIVE(&give, token, token);
	board->turn++; /* it is taken from a crowd that is under way, */
	call(q, &take, &ans, a);
	CHECK(ans.code == SUCCESS, "acquire: %.*s", STRF(ans.message));
	before = log_lines(q);
	board->turn++; /* and all of them try during this wait */
	for (int i = 0; i < 3; i++)
		await_beat(q);
	CHECK(log_lines(q) == before, "somebody changed something under @maintenance");
	call(q, &give, &ans, a);
	CHECK(ans.code == SUCCESS, "release: %.*s", STRF(ans.message));
	before = log_lines(q);
	board->turn++;
	for (int64_t end = kit_ms() + 200000; log_lines(q) == before; kit_sleep(1))
		CHECK(kit_ms() < end, "those who waited were not woken");
}

/* Gives up after its timeout, soon after it, and names the holder. */
static void gives_up(void)
{
	struct queue *holder = open_counting(20000), *q = open_counting(300);
	struct request take = kit_request(OP_LOCK_ACQUIRE, STR("@maintenance"), STR("boss")),
		       give = kit_request(OP_LOCK_RELEASE, STR("@maintenance"), STR("boss")),
		       comment = kit_request(OP_COMMENT, STR("t1"), STR("w"));
	struct arena a = { 0 };
	struct answer ans;
	int64_t began;

	GIVE(&take, new_token, token);
	GIVE(&give, token, token);
	GIVE(&comment, text, STR("x"));
	call(holder, &take, &ans, &a);
	CHECK(ans.code == SUCCESS, "acquire: %.*s", STRF(ans.message));
	began = kit_ms();
	call(q, &comment, &ans, &a);
	CHECK(kit_ms() - began >= 300, "gave up after %d ms", (int)(kit_ms() - began));
	CHECK(kit_ms() - began < 10000, "gave up after %d ms", (int)(kit_ms() - began));
	CHECK(ans.code == API_ERROR && ans.applied == 'n' &&
		      str_has_nocase(ans.message, STR("boss")),
	      "%s: %.*s", result_name(ans.code), STRF(ans.message));
	call(holder, &give, &ans, &a);
	queue_close(q);
	queue_close(holder);
	arena_free(&a);
}

static void add_up(long failed)
{
	struct queue *q = kit_open(STORE_READ, 20000);
	struct str uri = str_c(kit_uri());
	struct health h;

	if (!queue_health(q, &h)) {
		CHECK(!str_starts(uri, STR("sqlite:")) && !str_starts(uri, STR("files:")),
		      "nothing was counted");
		printf("nothing is counted on this store; ");
	} else {
		for (int op = OP_NONE; op < OP_END; op++)
			CHECK(h.op[op].done + h.op[op].failed == board->calls[op],
			      "%s: %ld called, %lld + %lld counted", op_name((enum op)op),
			      board->calls[op], (long long)h.op[op].done,
			      (long long)h.op[op].failed);
		CHECK(h.all.failed == failed, "%lld failures counted", (long long)h.all.failed);
		printf("%lld changes counted; ", (long long)h.all.done);
	}
	queue_close(q);
}

int main(void)
{
	pid_t crowd[CROWD];
	struct arena a = { 0 };
	struct queue *q;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	q = kit_open(STORE_WRITE, 20000);
	kit_create(q, CROWD);
	queue_close(q);
	for (int i = 0; i < CROWD; i++)
		crowd[i] = kit_spawn(worker, i);
	CHECK(kit_await(&board->ready, CROWD, 60000), "%d of the crowd came", board->ready);
	q = open_counting(60000);
	for (int i = 0; i < rounds(); i++)
		one_round(q, &a);
	board->over = 1;
	for (int i = 0; i < CROWD; i++)
		CHECK(kit_reap(crowd[i]) == 0, "worker %d", i);
	gives_up();
	add_up(1);
	kit_check_store(q);
	queue_close(q);
	arena_free(&a);
	printf("%d rounds of @maintenance against %d processes: no change came through\n", rounds(),
	       CROWD);
	kit_end();
	return 0;
}
