/*
 * Processes that are stopped at the wrong moment. A holder that sleeps past its lease finds, when
 * it continues, that its token is stale. A writer that is stopped in the middle of a change does
 * not block readers, and blocks other writers only until their timeout.
 */
#include "kit.h"

#include "base/fs.h"
#include "cmd/command.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE 300
#define READ_MS 2000

static struct board {
	_Atomic int holding, go, reads, slowest;
	_Atomic int codes[8];
	_Atomic int n;
} * board;

static const char *const names[] = { "t1", "t2", "t3" };
static const struct str holder_token = { "11111111-1111-4111-8111-111111111111", 36 };
static const struct str other_token = { "22222222-2222-4222-8222-222222222222", 36 };

static struct answer act(struct queue *q, enum op op, const char *id, struct str token,
			 struct arena *a)
{
	bool takes = op == OP_CLAIM || op == OP_TAKE;
	struct request rq = kit_request(op, str_c(id), takes ? str_n(token.p, 1) : STR("x"));
	struct answer ans;

	if (takes)
		GIVE(&rq, new_token, token);
	else
		GIVE(&rq, token, token);
	if (takes)
		GIVE(&rq, ttl, str_eq(token, holder_token) ? LEASE : 60000);
	if (op == OP_REVIEW)
		GIVE(&rq, summary, STR("s"));
	if (op == OP_BLOCK || op == OP_FAIL)
		GIVE(&rq, reason, STR("r"));
	if (op == OP_BLOCK)
		GIVE(&rq, unblock_action, STR("u"));
	queue_call(q, &rq, &ans, a);
	return ans;
}

/* --- a holder --------------------------------------------------------------------------------- */

static const enum op late_ops[] = {
	OP_HEARTBEAT, OP_RELEASE, OP_BLOCK, OP_REVIEW, OP_FAIL, OP_DONE
};
#define N_LATE ((int)(sizeof(late_ops) / sizeof(*late_ops)))

/* Claims, sleeps without knowing for how long, and continues as if nothing had happened. */
static int hold(int arg)
{
	const char *id = names[arg];
	struct queue *q = kit_open(STORE_WRITE, 20000);
	struct arena a = { 0 };

	CHECK(act(q, OP_CLAIM, id, holder_token, &a).code == SUCCESS, "claim");
	board->holding = 1;
	kit_await(&board->go, 1, 60000);
	for (int i = 0; i < N_LATE; i++)
		board->codes[board->n++] = (int)act(q, late_ops[i], id, holder_token, &a).code;
	arena_free(&a);
	queue_close(q);
	return 0;
}

static struct task task_now(struct queue *q, const char *id, struct arena *a)
{
	struct answer ans = act(q, OP_SHOW, id, STR(""), a);

	CHECK(ans.code == SUCCESS, "show %s", id);
	return *ans.task;
}

enum other { FINISHED, TAKEN, NOBODY };

/* Another agent takes the task over in this time, and has finished it (or not) when the first one
 * wakes up. */
static void stop_holder(int arg, enum other other)
{
	const char *id = names[arg];
	pid_t pid;
	struct queue *q;
	struct arena a = { 0 };
	struct answer ans;
	struct task before, after;

	board->holding = board->go = board->n = 0;
	pid = kit_spawn(hold, arg);
	CHECK(kit_await(&board->holding, 1, 20000), "it does not hold");
	kill(pid, SIGSTOP);
	kit_sleep(LEASE + 50);
	q = kit_open(STORE_WRITE, 20000);
	if (other != NOBODY) {
		ans = act(q, OP_CLAIM, id, other_token, &a);
		CHECK(ans.code == SUCCESS && ans.lock->fence == 2, "the other: %.*s",
		      STRF(ans.message));
	}
	if (other == FINISHED)
		CHECK(act(q, OP_DONE, id, other_token, &a).code == SUCCESS, "the other's done");
	before = task_now(q, id, &a);
	board->go = 1;
	kill(pid, SIGCONT);
	CHECK(kit_reap(pid) == 0, "the holder failed");
	for (int i = 0; i < N_LATE; i++)
		CHECK(board->codes[i] == LOST_LOCK, "%s got %d", op_name(late_ops[i]),
		      board->codes[i]);
	after = task_now(q, id, &a);
	CHECK(after.version == before.version && after.status == before.status, "%s has changed",
	      id);
	if (other == TAKEN)
		CHECK(act(q, OP_DONE, id, other_token, &a).code == SUCCESS, "the other's done");
	arena_free(&a);
	queue_close(q);
}

/* --- a writer --------------------------------------------------------------------------------- */

static int put_and_stop(struct edit *e, void *ctx)
{
	struct record *r = arena_new(e->arena, struct record);

	(void)ctx;
	*r = (struct record){ .key = STR("test/stopped"), .hot = STR("x") };
	edit_put(e, r);
	raise(SIGSTOP);
	return 0;
}

static int write_and_stop(int arg)
{
	struct store_error err = { 0 };
	struct store_env env = { .mode = STORE_WRITE,
				 .opt.timeout_ms = 20000,
				 .opt.who = STR("a sleeper"),
				 .err = &err };
	struct change change = { .fn = put_and_stop, .ctx = NULL, .rc = 0 };
	struct store *s;
	int r;

	(void)arg;
	CHECK(store_open(&s, str_c(kit_uri()), &env) == 0, "%s", err.text);
	r = s->ops->modify(s, &change, 1);
	CHECK(r == 0, "%s", err.text);
	store_close(s);
	return 0;
}

static void timed(struct queue *q, enum op op, const char *id)
{
	struct arena a = { 0 };
	int64_t start = kit_ms();
	struct answer ans = act(q, op, id, STR(""), &a);
	int ms = (int)(kit_ms() - start);

	CHECK(ans.code == SUCCESS, "%s: %.*s", op_name(op), STRF(ans.message));
	board->reads++;
	if (ms > board->slowest)
		board->slowest = ms;
	arena_free(&a);
}

static int read_all(int arg)
{
	struct queue *q;

	(void)arg;
	alarm(READ_MS / 1000);
	q = kit_open(STORE_READ, READ_MS);
	timed(q, OP_SHOW, "t1");
	timed(q, OP_LIST, "");
	timed(q, OP_LOG, "");
	timed(q, OP_NEXT, "");
	timed(q, OP_OVERVIEW, "");
	timed(q, OP_LOCKS, "");
	timed(q, OP_LOCK_STATUS, "t1");
	timed(q, OP_ID_PEEK, "");
	queue_close(q);
	return 0;
}

/* A reader that was open before also continues. */
static int read_long(int arg)
{
	struct queue *q = kit_open(STORE_READ, READ_MS);

	(void)arg;
	timed(q, OP_LIST, "");
	board->holding = 1;
	kit_await(&board->go, 1, 20000);
	alarm(READ_MS / 1000);
	timed(q, OP_LIST, "");
	timed(q, OP_NEXT, "");
	queue_close(q);
	return 0;
}

static int write_in_vain(int arg)
{
	struct queue *q = kit_open(STORE_WRITE, 200);
	struct arena a = { 0 };
	int64_t start = kit_ms();
	struct answer ans = act(q, OP_TAKE, "", other_token, &a);
	int64_t ms = kit_ms() - start;

	(void)arg;
	CHECK(ans.code == API_ERROR && ans.applied == 'n', "take: %s", result_name(ans.code));
	CHECK(str_has_nocase(ans.message, STR("a sleeper")), "it does not say who: %.*s",
	      STRF(ans.message));
	CHECK(ms >= 150 && ms < 3000, "it waited %d ms", (int)ms);
	arena_free(&a);
	queue_close(q);
	return 0;
}

/* --- commands while a writer is stopped ------------------------------------------------------- */

#define PROGRAM_S 30 /* much less than the timeout that it is given */

static const char *const reads[] = {
	"list",
	"list --all",
	"tree",
	"graph",
	"report",
	"stats",
	"queues",
	"show t1",
	"find t",
	"export --output tasks.json",
	"export --format md --output tasks",
	"backup saved.pawl",
	"log",
	"log t1",
	"next",
	"next --explain",
	"status",
	"status t1",
	"id peek",
	"lock check t1",
	"lock status t1",
	"lock list",
	"guard t1",
	"lock typed",
	"lock health",
	"audit",
	"config list",
	"prime",
	"config get lock.timeout",
	"emergency status",
	"token list",
};
#define N_READS (sizeof(reads) / sizeof(*reads))

static bool about(const char *line, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(line, name, n) && (line[n] == ' ' || !line[n]);
}

/* Fails if a command that only reads is missing here, so that new ones get added. */
static void check_reads(void)
{
	for (size_t i = 0; commands[i]; i++) {
		bool tried = commands[i]->flags & (C_WRITE | C_LOCAL | C_HIDDEN);

		for (size_t k = 0; k < N_READS; k++)
			tried = tried || about(reads[k], commands[i]->name);
		CHECK(tried, "%s only reads, and is not tried here", commands[i]->name);
	}
}

struct program {
	const char *words, *timeout; /* timeout NULL: from the environment */
	const char *output;
};

static struct program program;

static int run_program(int arg)
{
	const char *argv[16] = { getenv("PAWL"), "--store", kit_uri() };
	struct str rest = str_c(program.words);
	struct arena a = { 0 };
	int n = 3;

	(void)arg;
	if (program.timeout) {
		argv[n++] = "--timeout";
		argv[n++] = program.timeout;
	}
	while (rest.n && n < 15)
		argv[n++] = arena_cstr(&a, str_cut(&rest, ' '));
	setenv("HOME", kit_folder(), 1);
	CHECK(chdir(kit_folder()) == 0, "no folder");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("XDG_STATE_HOME");
	CHECK(freopen(program.output, "w", stdout) && freopen(program.output, "w", stderr),
	      "no output");
	alarm(PROGRAM_S);
	execv(argv[0], (char *const *)(uintptr_t)argv);
	return 127;
}

static int try_program(const char *words, const char *timeout, const char *output)
{
	program = (struct program){ words, timeout, output };
	return kit_reap(kit_spawn(run_program, 0));
}

static void read_with_program(void)
{
	check_reads();
	for (size_t i = 0; i < N_READS; i++) {
		int code = try_program(reads[i], "10m", "/dev/null");

		CHECK(code != USAGE && code < API_ERROR, "`pawl %s` ended with %d", reads[i], code);
		board->reads++;
	}
}

/* The program gives up after its timeout and not long after it; the message names the holder. */
static void give_up_with_program(const char *words, const char *variable, const char *value,
				 const char *timeout, int64_t ms)
{
	struct arena a = { 0 };
	char *file = fs_join(&a, str_c(kit_folder()), STR("said"));
	int64_t start = kit_ms(), took;
	struct str said;
	int code;

	if (variable)
		setenv(variable, value, 1);
	code = try_program(words, timeout, file);
	took = kit_ms() - start;
	if (variable)
		unsetenv(variable);
	CHECK(code == API_ERROR, "`pawl %s` ended with %d", words, code);
	CHECK(took >= ms && took < ms + 8000, "`pawl %s` waited %d of %d ms", words, (int)took,
	      (int)ms);
	CHECK(fs_read(&a, file, 1 << 16, &said) == 0 && str_has_nocase(said, STR("a sleeper")) &&
		      str_has_nocase(said, STR("waited")),
	      "`pawl %s` does not say who: %.*s", words, STRF(said));
	unlink(file);
	arena_free(&a);
}

static void stop_writer(void)
{
	pid_t reader, writer;
	struct queue *q;
	struct arena a = { 0 };
	int status;

	board->holding = board->go = 0;
	reader = kit_spawn(read_long, 0);
	CHECK(kit_await(&board->holding, 1, 20000), "no reader");
	writer = kit_spawn(write_and_stop, 0);
	CHECK(waitpid(writer, &status, WUNTRACED) == writer && WIFSTOPPED(status),
	      "it did not stop");
	board->go = 1;
	CHECK(kit_reap(reader) == 0, "a reader waited");
	CHECK(kit_reap(kit_spawn(read_all, 0)) == 0, "a new reader waited");
	CHECK(kit_reap(kit_spawn(write_in_vain, 0)) == 0, "a second writer");
	CHECK(kit_reap(kit_spawn(read_all, 0)) == 0, "a reader waited, after a writer had");
	give_up_with_program("create x", "PAWL_LOCK_CLI_TIMEOUT", "0.4s", NULL, 400);
	give_up_with_program("remove t5", "QUEUE_LOCK_CLI_TIMEOUT", "0.3", NULL, 300);
	give_up_with_program("claim t5", "PAWL_PROFILE", "testing", NULL, 1000);
	give_up_with_program("claim t5", "PAWL_LOCK_TIMEOUT", "1s", "0.2s", 200);
	read_with_program();
	kill(writer, SIGCONT);
	CHECK(kit_reap(writer) == 0, "the writer did not finish");
	q = kit_open(STORE_WRITE, 20000);
	CHECK(act(q, OP_TAKE, "", other_token, &a).code == SUCCESS, "a writer after it");
	kit_check_store(q);
	arena_free(&a);
	queue_close(q);
}

int main(void)
{
	int64_t start = kit_ms();
	struct queue *q;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	q = kit_open(STORE_WRITE, 20000);
	kit_create(q, 5);
	queue_close(q);
	stop_holder(0, FINISHED);
	stop_holder(1, TAKEN);
	stop_holder(2, NOBODY);
	stop_writer();
	printf("stop: a stopped holder changed nothing (%d late calls: LOST_LOCK); %d reads past a stopped "
	       "writer, slowest %d ms; %.1f s\n",
	       3 * N_LATE, board->reads, board->slowest, (double)(kit_ms() - start) / 1000);
	kit_end();
	return 0;
}
