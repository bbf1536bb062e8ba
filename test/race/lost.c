/*
 * Files of the queue vanish while agents work. A process removes or replaces its -shm, -gate and
 * -slots, and in the second part its -wal as well. A call may fail with API_ERROR. But no two
 * agents ever get the same fence of a task, and no acknowledged change is lost, except those in a
 * -wal that was removed.
 *
 * Half of the agents keep a handle open, and sometimes use a second one; the others open the queue
 * for each call. Each records every acknowledged claim and comment in shared memory. At the end the
 * queue must have them.
 *
 * lost [SECONDS]: each part takes at least SECONDS.
 */
#include "kit.h"

#include <sqlite3.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/answer.h"
#include "core/event.h"

#define AGENTS 4
#define TASKS 3 /* t1 to t3 are claimed; t4 gets the comments */
#define NOTES 400000
#define ROUND_MS SCALE(1500, 3000)

struct note {
	int task; /* of a claim; 0: it is a comment */
	int64_t fence;
	int agent, number; /* of a comment */
	/* how many -wal files had been removed when the call began and when it ended */
	int from, to;
};

static struct board {
	_Atomic int stop, n, errors, removed, wals;
	struct note notes[NOTES];
} * board;

static bool with_wal;

/* --- agents ---------------------------------------------------------------------------------------- */

static void take_note(struct note n)
{
	int i = board->n++;

	CHECK(i < NOTES, "too many notes");
	n.to = board->wals;
	board->notes[i] = n;
}

static bool call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a)
{
	queue_call(q, rq, ans, a);
	CHECK(ans->code != USAGE && (ans->code != MISCONFIGURED || with_wal), "%s: %.*s",
	      op_name(rq->op), STRF(ans->message));
	if (ans->code == API_ERROR)
		board->errors++;
	return ans->code == SUCCESS;
}

static void comment(struct queue *q, int agent, int number)
{
	struct arena a = { 0 };
	struct request rq = kit_request(OP_COMMENT, STR("t4"), STR("agent"));
	struct note n = { .agent = agent, .number = number, .from = board->wals };
	struct answer ans;

	GIVE(&rq, text, arena_printf(&a, "%d.%d", agent, number));
	if (call(q, &rq, &ans, &a))
		take_note(n);
	arena_free(&a);
}

static void claim(struct queue *q, int agent, int task, int number)
{
	struct arena a = { 0 };
	struct str id = arena_printf(&a, "t%d", task), name = arena_printf(&a, "agent-%d", agent),
		   token = arena_printf(&a, "11111111-1111-4111-8111-%02d%010d", agent, number);
	struct request rq = kit_request(OP_CLAIM, id, name);
	struct note n = { .task = task, .agent = agent, .from = board->wals };
	struct answer ans;

	GIVE(&rq, new_token, token);
	GIVE(&rq, ttl, 100); /* if a release fails, the short lease expires */
	if (call(q, &rq, &ans, &a)) {
		n.fence = ans.lock->fence;
		take_note(n);
		rq = kit_request(OP_RELEASE, id, name);
		GIVE(&rq, token, token);
		call(q, &rq, &ans, &a);
	}
	arena_free(&a);
}

static struct queue *try_open(void)
{
	struct queue_config config = kit_config(20000);
	struct queue *q = NULL;
	struct answer ans = { 0 };
	struct arena a = { 0 };

	if (queue_open(&q, &config, STORE_WRITE, &ans, &a) != SUCCESS) {
		CHECK(with_wal || ans.code == API_ERROR, "%.*s", STRF(ans.message));
		board->errors++;
		q = NULL;
	}
	arena_free(&a);
	return q;
}

static int agent(int n)
{
	bool comes_and_goes = n % 2;
	struct queue *stays = NULL, *q;

	for (int i = 1; !board->stop; i++) {
		if (!stays && !comes_and_goes)
			stays = try_open();
		q = i % 50 && stays ? stays : try_open();
		if (q && i % 3)
			claim(q, n, 1 + (i + n) % TASKS, i);
		else if (q)
			comment(q, n, i);
		if (q && q != stays)
			queue_close(q);
	}
	if (stays)
		queue_close(stays);
	return 0;
}

/* --- removing files ---------------------------------------------------------------------------------- */

/* Removes the file, or replaces it by a copy, as some tools do. */
static void take_away(const char *end, bool replace)
{
	char path[300], copy[310];
	FILE *from, *to;
	int c;

	snprintf(path, sizeof(path), "%s/queue.db%s", kit_folder(), end);
	snprintf(copy, sizeof(copy), "%s-copy", path);
	from = replace ? fopen(path, "rb") : NULL;
	to = from ? fopen(copy, "wb") : NULL;
	while (to && (c = getc(from)) != EOF)
		putc(c, to);
	if (from)
		fclose(from);
	if (to)
		fclose(to);
	if (to ? rename(copy, path) == 0 : unlink(path) == 0)
		board->removed++;
}

static void remove_some(unsigned *seed)
{
	static const char *const ends[] = { "-shm", "-gate", "-slots" };
	unsigned what = (unsigned)rand_r(seed) % (with_wal ? 5 : 4);

	/* both locks at once, as rm queue.db-* does */
	for (unsigned i = 0; i < 3; i++)
		if (what == i || what == 3) /* a gate may also be replaced by a copy of itself */
			take_away(ends[i], i == 1 && rand_r(seed) % 2);
	if (what == 4) {
		take_away("-wal", false);
		board->wals++;
	}
}

static void disturb(int64_t ms)
{
	int64_t end = kit_ms() + ms;
	unsigned seed = (unsigned)getpid();

	while (kit_ms() < end) {
		struct timespec t = { .tv_nsec = rand_r(&seed) % 20000000 };

		nanosleep(&t, NULL);
		remove_some(&seed);
	}
}

/* --- checks at the end -------------------------------------------------------------------------------- */

static int by_fence(const void *x, const void *y)
{
	const struct note *a = x, *b = y;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	return a->fence < b->fence ? -1 : a->fence > b->fence;
}

/* A fence that was lost with a -wal may be granted again. */
static void check_fences(void)
{
	size_t n = 0;

	for (int i = 0; i < board->n; i++) {
		const struct note *x = &board->notes[i];

		if (x->from == board->wals && x->to == board->wals)
			board->notes[n++] = *x;
	}
	board->n = (int)n;
	qsort(board->notes, n, sizeof(board->notes[0]), by_fence);
	for (size_t i = 1; i < n; i++) {
		const struct note *a = &board->notes[i - 1], *b = &board->notes[i];

		CHECK(!a->task || a->task != b->task || a->fence != b->fence,
		      "t%d: fence %lld was given to agent %d and to agent %d%s", a->task,
		      (long long)a->fence, a->agent, b->agent,
		      with_wal ? ", after a -wal was removed" : "");
	}
}

static void check_comments(struct queue *q)
{
	struct arena a = { 0 };
	struct request rq = kit_request(OP_LOG, STR("t4"), STR("judge"));
	struct answer ans;
	size_t room = (size_t)1 << 20;
	bool *there = calloc(AGENTS, room);

	queue_call(q, &rq, &ans, &a);
	CHECK(there && ans.code == SUCCESS, "log: %.*s", STRF(ans.message));
	for (size_t i = 0; i < ans.n_events; i++) {
		int who, number;

		if (str_is(ans.events[i].name, "comment") &&
		    sscanf(arena_cstr(&a, ans.events[i].text), "%d.%d", &who, &number) == 2)
			there[(size_t)who * room + (size_t)number] = true;
	}
	for (int i = 0; i < board->n; i++) {
		const struct note *n = &board->notes[i];

		CHECK(n->task || there[(size_t)n->agent * room + (size_t)n->number],
		      "the comment %d.%d was acknowledged, and is lost", n->agent, n->number);
	}
	free(there);
	arena_free(&a);
}

/* Moves the tasks into the database, so that the first removed -wal does not take them along. */
static int checkpoint(int arg)
{
	char path[300];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/queue.db", kit_folder());
	CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
	CHECK(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) == SQLITE_OK,
	      "%s", sqlite3_errmsg(db));
	sqlite3_close(db);
	return arg;
}

static void begin(void)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-gate", "-slots" };
	struct queue *q;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		take_away(ends[i], false);
	q = kit_open(STORE_CREATE, 20000);
	kit_create(q, TASKS + 1);
	queue_close(q);
	CHECK(kit_reap(kit_spawn(checkpoint, 0)) == 0, "no checkpoint");
}

static void on_finding(void *ctx, enum check_level level, const char *what, struct str text,
		       struct str fix)
{
	(void)what, (void)text, (void)fix;
	if (level == CHECK_BAD)
		*(bool *)ctx = true;
}

/* A checkpoint that readers cut short leaves a file that is useless without its WAL. Then every
 * call must say so. */
static bool damaged(void)
{
	struct queue_config config = kit_config(20000);
	struct queue *q = NULL;
	struct answer ans = { 0 };
	struct arena a = { 0 };
	struct request rq = kit_request(OP_LOG, STR("t4"), STR("judge"));
	bool bad = queue_open(&q, &config, STORE_READ, &ans, &a) == MISCONFIGURED;

	if (!bad)
		queue_call(q, &rq, &ans, &a);
	bad |= ans.code == MISCONFIGURED || ans.code == NOT_FOUND; /* or the database is like new */
	if (!bad)
		queue_check(q, on_finding, &bad, &ans, &a);
	if (q)
		queue_close(q);
	arena_free(&a);
	return bad;
}

/* Waits for calls after the last removal. A damaged database may not accept any. */
static void some_more_calls(void)
{
	int64_t end = kit_ms() + 5000;
	int before = board->n;

	do
		kit_sleep(100);
	while (board->n < before + 20 && kit_ms() < end);
}

/* false: the database is damaged, there is nothing to check. */
static bool part(bool wal, int64_t ms)
{
	pid_t pids[AGENTS];
	struct queue *q;
	int kept, made;

	with_wal = wal;
	begin();
	memset(board, 0, offsetof(struct board, notes));
	for (int i = 0; i < AGENTS; i++)
		pids[i] = kit_spawn(agent, i);
	disturb(ms);
	some_more_calls();
	board->stop = 1;
	for (int i = 0; i < AGENTS; i++)
		CHECK(kit_reap(pids[i]) == 0, "an agent failed");
	made = board->n;
	if (wal && damaged())
		return false;
	q = kit_open(STORE_WRITE, 20000);
	check_fences();
	kept = board->n;
	check_comments(q);
	kit_check_store(q);
	queue_close(q);
	CHECK(kept > 10, "nothing was done");
	printf("lost: %d files removed (%d -wal), %d calls acknowledged, %d of them to be kept, %d errors\n",
	       board->removed, board->wals, made, kept, board->errors);
	return true;
}

/* In short rounds: the more -wal files are removed, the likelier the database is damaged. */
static void part_with_wal(int64_t ms)
{
	int64_t end = kit_ms() + ms;
	int rounds = 0, sound = 0;

	do {
		rounds++;
		sound += part(true, ROUND_MS);
	} while (kit_ms() < end || (!sound && rounds < 6));
	CHECK(sound, "a -wal that is removed always damages the database");
	printf("lost: %d of %d rounds left a database without damage\n", sound, rounds);
}

int main(int argc, char **argv)
{
	int64_t ms = argc > 1 ? 1000 * strtol(argv[1], NULL, 10) : ROUND_MS;

	kit_begin();
	if (!str_starts(str_c(kit_uri()), STR("sqlite:")))
		kit_end();
	board = shared_alloc(sizeof(*board));
	part(false, ms);
	part_with_wal(ms);
	kit_end();
	return 0;
}
