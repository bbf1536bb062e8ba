/*
 * The Nth system call of each kind fails, in every operation: N = 1, 2, … to the last one.
 *
 * One point: a process runs the operation with the fault, on a fresh copy of the scene. While it is
 * alive, a second process without faults opens the store. It finds it sound and complete, in the
 * state before or after, repeats the call and gets the right answer. Then the first process does
 * the same and ends without leaking a descriptor. In a variant, the first process dies after its
 * answer, and the others find what a dead process leaves.
 *
 * usage: syscalls [--full|--few] [KIND...]; without --full only some points of each row, including
 * the first and the last; with --few each operation has one of FEW rows, and the number in
 * PAWL_TEST_SAMPLE decides which
 */
#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

#define JSON_ROOM (512 * 1024)
#define FEW SCALE(8, 16) /* at most n_operations, or a sample lacks some of the rows */
/* points of each row and operation */
#define SOME SCALE(3, 2)
#define SOME_MEMORY SCALE(25, 5)
#define HANGS SCALE(20, 60) /* seconds */
#define NO_MEMORY 30

enum how { ONCE = 1, ALWAYS = 2, BOTH = 3 };

/* There is no row with EINTR forever: the caller must retry. There is none with a lock that is
 * never free: the caller must wait. */
static const struct row {
	enum call_kind kind;
	int err;
	const char *name;
	enum how how;
} rows[] = {
#define ROW(kind, err, how)                 \
	{                                   \
		CALL_##kind, err, #err, how \
	}
	ROW(open, EACCES, BOTH),      ROW(open, EMFILE, BOTH),       ROW(open, ENOSPC, BOTH),
	ROW(open, EIO, BOTH),         ROW(open, EINTR, ONCE),        ROW(close, EIO, BOTH),
	ROW(close, EINTR, BOTH),      ROW(read, EIO, BOTH),          ROW(read, EINTR, ONCE),
	ROW(read, FAULT_SHORT, BOTH), ROW(write, ENOSPC, BOTH),      ROW(write, EIO, BOTH),
	ROW(write, EINTR, ONCE),      ROW(write, FAULT_SHORT, BOTH), ROW(sync, EIO, BOTH),
	ROW(sync, ENOSPC, BOTH),      ROW(sync, EINTR, ONCE),        ROW(stat, EACCES, BOTH),
	ROW(stat, EIO, BOTH),         ROW(truncate, EIO, BOTH),      ROW(truncate, ENOSPC, BOTH),
	ROW(truncate, EINTR, ONCE),   ROW(lock, EIO, ONCE),          ROW(lock, ENOLCK, ONCE),
	ROW(lock, EINTR, ONCE),       ROW(map, ENOMEM, BOTH),        ROW(map, EACCES, BOTH),
	ROW(unmap, ENOMEM, BOTH),     ROW(name, EIO, BOTH),          ROW(name, ENOSPC, BOTH),
	ROW(name, EACCES, BOTH),      ROW(list, EIO, BOTH),          ROW(mode, EPERM, BOTH),
	ROW(path, EACCES, BOTH),      ROW(watch, EMFILE, BOTH),      ROW(memory, ENOMEM, BOTH),
#undef ROW
};

/* Written by the process with the fault, for the process that checks. */
static struct outcome {
	struct calls calls;
	int code, code_again;
	char applied;
	char message[500], message_again[500];
	int left_open;
	char json[JSON_ROOM], json_again[JSON_ROOM];
} * outcome;

/* The results without a fault. */
static struct golden {
	struct tree scene;
	struct arena a;
	struct str before, after, json;
	int64_t calls[CALL_KINDS];
} golden;

static char folder[64];
static char wrong[1000];

static bool fault_found(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool fault_found(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(wrong, sizeof(wrong), fmt, ap);
	va_end(ap);
	return false;
}

/* --- the process with the fault ------------------------------------------------------------------ */

static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void keep(const struct answer *ans, int *code, char *message, char *json)
{
	struct arena a = { 0 };

	*code = (int)ans->code;
	snprintf(message, 500, "%.*s", STRF(ans->message));
	snprintf(json, JSON_ROOM, "%s", scene_json(ans, &a).p);
	arena_free(&a);
}

static void do_again(const struct operation *op, struct queue **q, struct arena *a)
{
	struct answer ans = { 0 };

	if (!*q)
		scene_open(q, op->mode, &ans, a);
	if (ans.code == SUCCESS && op->what == DO_CALL)
		scene_do(op, q, &ans, a);
	keep(&ans, &outcome->code_again, outcome->message_again, outcome->json_again);
}

static _Noreturn void play(const struct operation *op, const struct call_fault *fault, int *ends)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q = NULL;
	int before = count_open();
	char go;

	alarm(HANGS);
	/* it prints a message */
	if (fault->kind == CALL_memory && !freopen("/dev/null", "w", stderr))
		_exit(1);
	if (op->what != DO_OPEN && scene_open(&q, op->mode, &ans, &a) != SUCCESS)
		_exit(1);
	calls_arm(fault);
	scene_do(op, &q, &ans, &a);
	calls_disarm();
	outcome->calls = calls;
	outcome->applied = ans.applied;
	keep(&ans, &outcome->code, outcome->message, outcome->json);
	if (write(ends[1], "!", 1) != 1 || read(ends[1], &go, 1) != 1)
		_exit(1);
	do_again(op, &q, &a);
	queue_close(q);
	outcome->left_open = count_open() - before;
	_exit(0);
}

/* --- the process that checks --------------------------------------------------------------------- */

static struct str dump_now(struct queue *q, struct arena *a)
{
	struct str bad = scene_check(q, a), dump;

	if (bad.n) {
		fault_found("the store is not sound: %.*s", STRF(bad));
		return STR("");
	}
	dump = scene_dump(q, a);
	if (!dump.n)
		fault_found("the store cannot be read");
	return dump;
}

/* The failed operation's answer must be true. */
static bool judge_answer(const struct operation *op, const struct call_fault *fault, bool ended,
			 struct str dump)
{
	/* the last sync of a change is that of its commit */
	bool unsynced = fault->kind == CALL_sync && fault->nth && fault->always &&
			op->what == DO_CALL && op->mode != STORE_READ;
	bool is_before = str_eq(dump, golden.before), is_after = str_eq(dump, golden.after);

	if (!is_before && !is_after)
		return fault_found("the state is neither the one before nor the one after");
	if (ended)
		return true;
	if (outcome->code == SUCCESS) {
		if (!is_after)
			return fault_found("it reported success, and nothing has changed");
		if (unsynced)
			return fault_found("it reported success, and nothing was synced");
		if (op->what == DO_CALL && !str_is(golden.json, outcome->json))
			return fault_found("a wrong answer: %.300s", outcome->json);
		return true;
	}
	if (outcome->code != API_ERROR && outcome->code != MISCONFIGURED)
		return fault_found("a fault became %s: %s", result_name((enum result)outcome->code),
				   outcome->message);
	if (!outcome->message[0])
		return fault_found("a fault without a text");
	if (outcome->applied != 'n' && outcome->applied != '?')
		return fault_found("it does not say whether it was applied: %s", outcome->message);
	if (outcome->applied == 'n' && !is_before)
		return fault_found("it said 'not applied', but it was: %s", outcome->message);
	return true;
}

static bool repeat(const struct operation *op, struct arena *a)
{
	struct answer ans = { 0 };
	struct queue *q = NULL;
	struct str dump;

	if (scene_open(&q, op->mode, &ans, a) != SUCCESS)
		return fault_found("it cannot be opened again: %.*s", STRF(ans.message));
	if (op->what == DO_CALL)
		scene_do(op, &q, &ans, a);
	if (ans.code != SUCCESS) {
		queue_close(q);
		return fault_found("said again: %s: %.*s", result_name(ans.code),
				   STRF(ans.message));
	}
	dump = dump_now(q, a);
	queue_close(q);
	if (!dump.n)
		return false;
	if (!str_eq(dump, golden.after))
		return fault_found("said again, the state is not the one after");
	if (op->what == DO_CALL && !str_eq(golden.json, scene_json(&ans, a)))
		return fault_found("said again, a wrong answer: %.300s", scene_json(&ans, a).p);
	return true;
}

/* A failed init may leave nothing. */
static bool look(const struct operation *op, const struct call_fault *fault, bool ended,
		 struct arena *a)
{
	struct answer ans = { 0 };
	struct queue *q = NULL;
	struct str dump;

	if (scene_open(&q, STORE_READ, &ans, a) != SUCCESS) {
		if (op->from_nothing && ans.code == MISCONFIGURED &&
		    (ended || outcome->code != SUCCESS))
			return true;
		return fault_found("it cannot be opened: %.*s", STRF(ans.message));
	}
	dump = dump_now(q, a);
	queue_close(q);
	return dump.n && judge_answer(op, fault, ended, dump);
}

static bool finish(const struct operation *op, pid_t pid, int end)
{
	int code;

	if (write(end, "!", 1) != 1)
		return fault_found("it is gone");
	code = kit_reap(pid);
	if (code)
		return fault_found("it ended with %d when it continued", code);
	if (outcome->code_again != SUCCESS)
		return fault_found("said again by itself: %s", outcome->message_again);
	if (op->what == DO_CALL && !str_is(golden.json, outcome->json_again))
		return fault_found("said again by itself, a wrong answer: %.300s",
				   outcome->json_again);
	if (outcome->left_open)
		return fault_found("%d descriptors were left open", outcome->left_open);
	return true;
}

static bool examine(const struct operation *op, const struct call_fault *fault, bool dies,
		    pid_t pid, int end)
{
	struct arena a = { 0 };
	char ready;
	bool ended = read(end, &ready, 1) != 1, ok = true;
	int code = 0;

	if (dies && !ended)
		kill(pid, SIGKILL);
	if (dies || ended)
		code = kit_reap(pid);
	if (ended && code == 1000 + SIGALRM)
		ok = fault_found("it hangs");
	else if (ended && (code != NO_MEMORY || fault->kind != CALL_memory))
		ok = fault_found("it ended with %d", code);
	ok = ok && look(op, fault, ended, &a) && repeat(op, &a);
	arena_free(&a);
	if (ended || dies)
		return ok;
	if (ok)
		return finish(op, pid, end);
	kill(pid, SIGKILL);
	kit_reap(pid);
	return false;
}

/* true: the point passes */
static bool try_point(const struct operation *op, const struct call_fault *fault, bool dies)
{
	int ends[2];
	pid_t pid;
	bool ok;

	scene_restore(op, &golden.scene);
	outcome->code = -1;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no pipe");
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "cannot fork");
	if (pid == 0) {
		close(ends[0]);
		play(op, fault, ends);
	}
	close(ends[1]);
	ok = examine(op, fault, dies, pid, ends[0]);
	close(ends[0]);
	return ok;
}

/* --- all points ---------------------------------------------------------------------------------- */

static struct str dump_of(enum store_mode mode, struct arena *a)
{
	struct answer ans = { 0 };
	struct queue *q;
	struct str dump;

	CHECK(scene_open(&q, mode, &ans, a) == SUCCESS, "%.*s", STRF(ans.message));
	dump = scene_dump(q, a);
	queue_close(q);
	return dump;
}

static void make_golden(const struct operation *op)
{
	struct call_fault none = { 0 };

	tree_free(&golden.scene);
	arena_free(&golden.a);
	golden = (struct golden){ 0 };
	scene_make(op, &golden.scene);
	golden.before = dump_of(op->mode, &golden.a);
	golden.after = golden.before;
	if (op->what == DO_CALL) {
		struct answer ans = { 0 };
		struct queue *q;

		scene_open(&q, op->mode, &ans, &golden.a);
		scene_do(op, &q, &ans, &golden.a);
		golden.json = scene_json(&ans, &golden.a);
		queue_close(q);
		golden.after = dump_of(STORE_READ, &golden.a);
		CHECK((op->mode == STORE_READ) == str_eq(golden.before, golden.after),
		      "%s does not do what it should: %s", op->name, golden.json.p);
	}
	CHECK(try_point(op, &none, false), "%s without a fault: %s", op->name, wrong);
	memcpy(golden.calls, outcome->calls.seen, sizeof(golden.calls));
}

static struct tally {
	int64_t points, failed;
} tallies[sizeof(rows) / sizeof(*rows)][2];

static bool full, few;
static size_t sample;

static void try_one(const struct operation *op, const struct row *row, const struct call_fault *f,
		    bool dies, struct tally *t)
{
	t->points++;
	if (try_point(op, f, dies))
		return;
	t->failed++;
	printf("# %s: %s %s, number %d%s%s: %s\n", op->name, call_names[row->kind], row->name,
	       (int)f->nth, f->always ? " and all later ones" : "", dies ? ", and death" : "",
	       wrong);
}

static void try_row(const struct operation *op, const struct row *row, bool always, struct tally *t)
{
	int64_t all = golden.calls[row->kind], some = row->kind == CALL_memory ? SOME_MEMORY : SOME;
	int64_t step = full || all <= some ? 1 : (all - 1) / (some - 1);

	for (int64_t n = 1; n <= all; n += n + step > all && n < all ? all - n : step) {
		struct call_fault f = { row->kind, row->err, n, always };

		if (full || t->points % 2)
			try_one(op, row, &f, true, t);
		if (full || t->points % 2 == 0)
			try_one(op, row, &f, false, t);
	}
}

static bool wanted(const struct row *row, char **kinds)
{
	for (char **k = kinds; *k; k++)
		if (strcmp(*k, call_names[row->kind]) == 0)
			return true;
	return !*kinds;
}

static void try_operation(const struct operation *op, char **kinds)
{
	bool made = false;

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		if (!wanted(&rows[r], kinds) ||
		    (few && (r + (size_t)(op - operations) + sample) % FEW))
			continue;
		if (!made)
			make_golden(op);
		made = true;
		if (rows[r].how & ONCE)
			try_row(op, &rows[r], false, &tallies[r][0]);
		if (rows[r].how & ALWAYS)
			try_row(op, &rows[r], true, &tallies[r][1]);
	}
}

static int report(char **kinds)
{
	int n = 0, failed = 0;
	int64_t points = 0;

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		for (int always = 0; always < 2; always++) {
			const struct tally *t = &tallies[r][always];

			if (!wanted(&rows[r], kinds) || !(rows[r].how & (always ? ALWAYS : ONCE)))
				continue;
			printf("%sok %d - %s %s %s: %d points\n", t->failed ? "not " : "", ++n,
			       call_names[rows[r].kind], rows[r].name, always ? "always" : "once",
			       (int)t->points);
			points += t->points;
			failed += t->failed != 0;
		}
	}
	printf("1..%d\n# %d points in %d operations\n", n, (int)points, (int)n_operations);
	return failed != 0;
}

int main(int argc, char **argv)
{
	char **kinds = argv + 1;
	const char *number = getenv("PAWL_TEST_SAMPLE");

	(void)argc;
	sample = number ? strtoul(number, NULL, 10) : 0;
	if (*kinds && strncmp(*kinds, "--", 2) == 0) {
		full = strcmp(*kinds, "--full") == 0;
		few = !full;
		kinds++;
	}
	signal(SIGPIPE, SIG_IGN);
	outcome = shared_alloc(sizeof(*outcome));
	scene_begin(tree_place(folder, sizeof(folder)));
	for (size_t i = 0; i < n_operations; i++)
		try_operation(&operations[i], kinds);
	tree_clear(folder);
	rmdir(folder);
	return report(kinds);
}
