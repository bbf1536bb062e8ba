/*
 * The files store at its worst moments. Every system call that leaves a trace of a change is a
 * step. A process is killed or stopped before each step in turn. Readers must see the state before
 * the change or after it, without waiting. The next writer must bring the folder in line with that
 * state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "kit/folder.h"
#include "kit/scale.h"
#include "queue/queue.h"
#include "store/files/files.h"

/* --- steps ---------------------------------------------------------------------------------------- */

static int step_at, steps; /* 0: none */
static bool stops;

static void step(void)
{
	if (!step_at || ++steps != step_at)
		return;
	if (stops)
		raise(SIGSTOP);
	else
		_exit(77);
}

#define WRAP(type, name, params, args)     \
	type __real_##name params;         \
	type __wrap_##name params;         \
	type __wrap_##name params          \
	{                                  \
		step();                    \
		return __real_##name args; \
	}

/* Another program that acts at the worst moment. */
static void (*intruder)(void);
static const char *intrudes_at;
static int syncs;

static void intrude(const char *name)
{
	void (*fn)(void) = intruder;

	if (!fn || strcmp(intrudes_at, name) != 0)
		return;
	intruder = NULL;
	fn();
}

int __real_linkat(int a, const char *b, int c, const char *d, int e);
int __wrap_linkat(int a, const char *b, int c, const char *d, int e);
int __wrap_linkat(int a, const char *b, int c, const char *d, int e)
{
	step();
	intrude("linkat");
	return __real_linkat(a, b, c, d, e);
}

int __real_fdatasync(int a);
int __wrap_fdatasync(int a);
int __wrap_fdatasync(int a)
{
	step();
	syncs++;
	intrude("fdatasync");
	return __real_fdatasync(a);
}

int __real_futimens(int a, const struct timespec b[2]);
int __wrap_futimens(int a, const struct timespec b[2]);
int __wrap_futimens(int a, const struct timespec b[2])
{
	step();
	intrude("futimens");
	return __real_futimens(a, b);
}

WRAP(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
WRAP(int, unlinkat, (int a, const char *b, int c), (a, b, c))
WRAP(int, mkdirat, (int a, const char *b, mode_t c), (a, b, c))
WRAP(ssize_t, pwrite64, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
WRAP(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))
WRAP(int, ftruncate64, (int a, off_t b), (a, b))
WRAP(int, fsync, (int a), (a))

static const char *boot = "b0000000-0000-4000-8000-000000000001";

struct str __wrap_os_boot_id(struct arena *a);
struct str __wrap_os_boot_id(struct arena *a)
{
	return arena_str(a, str_c(boot));
}

/* --- calls ---------------------------------------------------------------------------------------- */

static const struct str token = { "11111111-1111-4111-8111-111111111111", 36 };

static struct queue *open_queue(enum store_mode mode)
{
	struct queue_config config = { .uri = STR("files:locks"),
				       .policy = policy_default,
				       .opt.timeout_ms = 20000,
				       .opt.who = STR("files_test") };
	struct answer ans = { 0 };
	struct arena a = { 0 };
	struct queue *q = NULL;

	config.policy.claim_creates = true;
	if (queue_open(&q, &config, mode, &ans, &a) != SUCCESS)
		print_error("open: %.*s\n", STRF(ans.message));
	arena_free(&a);
	return q;
}

static struct request request(enum op op, const char *id)
{
	struct request rq = { .op = op };

	GIVE(&rq, agent, STR("tester"));
	if (*id)
		GIVE(&rq, id, str_c(id));
	return rq;
}

/* 0: it succeeded. */
static int call(struct queue *q, const struct request *rq)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	bool bad;

	queue_call(q, rq, &ans, &a);
	bad = ans.code != SUCCESS;
	if (bad)
		fprintf(stderr, "%s: %s %.*s\n", op_name(rq->op), result_name(ans.code),
			STRF(ans.message));
	arena_free(&a);
	return bad;
}

static int act(struct queue *q, enum op op, const char *id)
{
	struct request rq = request(op, id);

	if (op == OP_CREATE)
		GIVE(&rq, title, STR("a task"));
	if (op == OP_CLAIM)
		GIVE(&rq, new_token, token);
	if (op == OP_DONE)
		GIVE(&rq, token, token);
	if (op == OP_REOPEN || op == OP_FAIL || op == OP_REMOVE)
		GIVE(&rq, reason, STR("why"));
	if (op == OP_REMOVE)
		GIVE(&rq, force, 1);
	return call(q, &rq);
}

static int make_dependent(struct queue *q)
{
	struct request rq = request(OP_CREATE, "t2");
	struct str on[] = { STR("t1") };

	GIVE(&rq, title, STR("waits"));
	GIVE(&rq, depends, ((struct strs){ on, 1 }));
	return call(q, &rq);
}

/* Enough for the next change to make a snapshot first. */
static int make_large(struct queue *q)
{
	struct request rq = request(OP_UPDATE, "t1");
	char *text = malloc(200000);
	int r;

	memset(text, 'x', 200000);
	GIVE(&rq, description, str_n(text, 200000));
	r = call(q, &rq);
	GIVE(&rq, acceptance, str_n(text, 200000));
	rq.has &= ~(UINT64_C(1) << ARG_description);
	r |= call(q, &rq);
	free(text);
	return r;
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* --- stories: the state before, and the change ----------------------------------------------------- */

static int do_nothing(struct queue *q)
{
	(void)q;
	return 0;
}

static int do_create(struct queue *q)
{
	return act(q, OP_CREATE, "t1");
}

static int do_claim(struct queue *q)
{
	return act(q, OP_CLAIM, "t1");
}

static int had_two(struct queue *q)
{
	return do_create(q) || make_dependent(q);
}

static int had_large(struct queue *q)
{
	return had_two(q) || make_large(q);
}

static int had_claimed(struct queue *q)
{
	return had_two(q) || do_claim(q);
}

static int do_done(struct queue *q)
{
	return act(q, OP_DONE, "t1");
}

static int had_done(struct queue *q)
{
	return had_claimed(q) || do_done(q);
}

static int do_archive(struct queue *q)
{
	return act(q, OP_ARCHIVE, "");
}

static int had_archived(struct queue *q)
{
	return had_done(q) || do_archive(q);
}

static int do_reopen(struct queue *q)
{
	return act(q, OP_REOPEN, "t1");
}

static int do_remove(struct queue *q)
{
	return act(q, OP_REMOVE, "t1");
}

static int had_foreign(struct queue *q)
{
	int r = had_two(q);

	write_text("locks/t1.lock",
		   "{\"agent\": \"script\", \"claimed_at\": \"2020-01-01T10:00:00Z\"}");
	return r;
}

struct story {
	const char *name;
	int (*before)(struct queue *), (*change)(struct queue *);
};

static const struct story stories[] = {
	{ "create", do_nothing, do_create },     { "claim", had_two, do_claim },
	{ "snapshot", had_large, do_claim },     { "done", had_claimed, do_done },
	{ "archive", had_done, do_archive },     { "reopen", had_archived, do_reopen },
	{ "remove", had_claimed, do_remove },    { "take over", had_foreign, do_claim },
	{ "claim again", do_nothing, do_claim },
};

/* --- reading the state ----------------------------------------------------------------------------- */

struct look {
	char text[2000];
};

static void add_task(struct buf *b, const struct task *t)
{
	buf_addf(b, "%.*s: %s fence %lld version %lld holder %.*s waits %lld %s %zu\n", STRF(t->id),
		 status_name(t->status), (long long)t->fence, (long long)t->version,
		 STRF(t->lock.holder), (long long)t->open_deps, t->archived_at ? "archived" : "",
		 t->description.n + t->acceptance.n);
}

static int read_all(struct look *out)
{
	struct queue *q = open_queue(STORE_READ);
	struct buf b = BUF_MAX(sizeof(out->text) - 1);
	struct arena a = { 0 };
	struct request list = request(OP_LIST, ""), log = request(OP_LOG, "");
	struct answer ans = { 0 };
	int bad = !q;

	if (!bad) {
		queue_call(q, &list, &ans, &a);
		bad |= ans.code != SUCCESS;
		for (size_t i = 0; i < ans.n_tasks; i++)
			add_task(&b, &ans.tasks[i]);
		queue_call(q, &log, &ans, &a);
		bad |= ans.code != SUCCESS;
		for (size_t i = 0; i < ans.n_events; i++)
			buf_addf(&b, "%.*s ", STRF(ans.events[i].name));
	}
	memset(out, 0, sizeof(*out));
	memcpy(out->text, b.p ? b.p : "", b.n);
	buf_free(&b);
	arena_free(&a);
	queue_close(q);
	return bad;
}

static void same_look(const struct story *s, int at, const struct look *have, const struct look *a,
		      const struct look *b)
{
	if (strcmp(have->text, a->text) != 0 && strcmp(have->text, b->text) != 0)
		fail_msg("%s, step %d: neither before nor after:\n%s\nbefore:\n%s\nafter:\n%s",
			 s->name, at, have->text, a->text, b->text);
}

/* The task's files match their statuses. */
static void check_folder(const struct story *s, int at, const struct look *l)
{
	static const char *const names[] = { "t1.task", "t1.lock", "t1.done", "archive/t1.done",
					     "archive/t1.task" };
	const char *line = strstr(l->text, "t1: ");
	const char *want = "none";

	if (line && memmem(line, strcspn(line, "\n"), "archived", 8))
		want = "archive/t1.done";
	else if (line && !strncmp(line, "t1: Done", 8))
		want = "t1.done";
	else if (line && !strncmp(line, "t1: In Progress", 15))
		want = "t1.lock";
	else if (line)
		want = "t1.task";
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[64];

		snprintf(path, sizeof(path), "locks/%s", names[i]);
		if ((access(path, F_OK) == 0) != !strcmp(names[i], want))
			fail_msg("%s, step %d: %s should%s be there:\n%s", s->name, at, names[i],
				 strcmp(names[i], want) ? " not" : "", l->text);
	}
}

static void on_finding(void *ctx, enum check_level level, const char *what, struct str text,
		       struct str fix)
{
	(void)ctx;
	(void)fix;
	if (level == CHECK_BAD)
		fail_msg("%s: %.*s", what, STRF(text));
}

/* The next writer succeeds, and the store's own check finds nothing. */
static void write_after(const struct story *s, int at)
{
	struct queue *q = open_queue(STORE_WRITE);
	struct answer ans = { 0 };
	struct arena a = { 0 };

	assert_non_null(q);
	if (act(q, OP_ID_CLAIM, ""))
		fail_msg("%s, step %d: the next writer failed", s->name, at);
	assert_int_equal(queue_check(q, on_finding, NULL, &ans, &a), SUCCESS);
	arena_free(&a);
	queue_close(q);
}

/* --- the runs -------------------------------------------------------------------------------------- */

static void fresh_folder(const struct story *s)
{
	struct queue *q;

	assert_int_equal(system("rm -rf locks"), 0);
	q = open_queue(STORE_CREATE);
	assert_non_null(q);
	assert_int_equal(s->before(q), 0);
	queue_close(q);
}

static int change_in_child(const struct story *s, int at, bool stop)
{
	struct queue *q;
	int r;

	alarm(60);
	q = open_queue(STORE_WRITE);
	step_at = at;
	steps = 0;
	stops = stop;
	r = !q || s->change(q);
	step_at = 0;
	queue_close(q);
	return r;
}

static pid_t start(const struct story *s, int at, bool stop)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(change_in_child(s, at, stop));
	return pid;
}

static void both_ends(const struct story *s, struct look *before, struct look *after)
{
	struct queue *q;

	fresh_folder(s);
	assert_int_equal(read_all(before), 0);
	q = open_queue(STORE_WRITE);
	assert_int_equal(s->change(q), 0);
	queue_close(q);
	assert_int_equal(read_all(after), 0);
	assert_string_not_equal(before->text, after->text);
}

static int die_at(const struct story *s, int at, const struct look *before,
		  const struct look *after)
{
	struct look seen, later;
	int status;

	fresh_folder(s);
	assert_true(waitpid(start(s, at, false), &status, 0) > 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 0)
		return 0;
	assert_int_equal(WEXITSTATUS(status), 77);
	assert_int_equal(read_all(&seen), 0);
	same_look(s, at, &seen, before, after);
	write_after(s, at);
	assert_int_equal(read_all(&later), 0);
	same_look(s, at, &later, &seen, &seen);
	check_folder(s, at, &later);
	return 1;
}

static void test_death_at_every_step(void **state)
{
	int total = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(stories) / sizeof(*stories); i++) {
		struct look before, after;
		int at = 1;

		both_ends(&stories[i], &before, &after);
		while (die_at(&stories[i], at, &before, &after)) {
			at += SCALE(1, 9);
			total++;
		}
		assert_true(at > 5);
	}
	print_message("%d deaths\n", total);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int stop_at(const struct story *s, int at, const struct look *before,
		   const struct look *after)
{
	struct look seen;
	int64_t began;
	int status;
	pid_t pid;

	fresh_folder(s);
	pid = start(s, at, true);
	assert_true(waitpid(pid, &status, WUNTRACED) == pid);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return 0;
	}
	assert_true(WIFSTOPPED(status));
	began = now_ms();
	assert_int_equal(read_all(&seen), 0);
	assert_true(now_ms() - began < 5000);
	same_look(s, at, &seen, before, after);
	kill(pid, SIGCONT);
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(read_all(&seen), 0);
	same_look(s, at, &seen, after, after);
	check_folder(s, at, &seen);
	return 1;
}

static void test_readers_past_every_step(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stories) / sizeof(*stories); i++) {
		struct look before, after;
		int at = 1;

		both_ends(&stories[i], &before, &after);
		while (stop_at(&stories[i], at, &before, &after))
			at += SCALE(1, 9);
	}
}

/* --- loss of power --------------------------------------------------------------------------------- */

/* Data that was not synced may be anything afterwards: gone, empty, or the old version. */
static void lose(int how, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "locks/%s", name);
	if (how == 0)
		unlink(path);
	else if (access(path, F_OK) == 0)
		write_text(path, how == 1 ? "" : "\177garbage");
}

static void test_power(void **state)
{
	static const char *const names[] = { "t1.task", "t1.lock", "t1.done", "t2.task" };

	(void)state;
	for (size_t i = 0; i < sizeof(stories) / sizeof(*stories); i++) {
		struct look before, after, seen;

		for (int how = 0; how < 3; how++) {
			both_ends(&stories[i], &before, &after);
			for (size_t n = 0; n < 4; n++)
				/* t2.task of a large queue is synced */
				if (n < 3 || stories[i].before != had_large)
					lose(how, names[n]);
			boot = "b0000000-0000-4000-8000-000000000002";
			assert_int_equal(read_all(&seen), 0);
			same_look(&stories[i], how, &seen, &after, &after);
			write_after(&stories[i], how);
			assert_int_equal(read_all(&seen), 0);
			same_look(&stories[i], how, &seen, &after, &after);
			check_folder(&stories[i], how, &seen);
			boot = "b0000000-0000-4000-8000-000000000001";
		}
	}
}

static void has_status(const char *id, const char *status)
{
	struct look l;
	char want[64];

	snprintf(want, sizeof(want), "%s: %s ", id, status);
	assert_int_equal(read_all(&l), 0);
	if (!strstr(l.text, want))
		fail_msg("%s is not %s:\n%s", id, status, l.text);
}

/* Changes that a script made before the machine went down do not count as a loss of power. */
static void test_script_before_boot(void **state)
{
	(void)state;
	fresh_folder(&stories[3]);
	assert_int_equal(rename("locks/t1.lock", "locks/t1.done"), 0);
	boot = "b0000000-0000-4000-8000-000000000002";
	has_status("t1", "Done");
	write_after(&stories[3], 0);
	has_status("t1", "Done");
	has_status("t2", "Ready");
	assert_int_equal(access("locks/t1.lock", F_OK), -1);
	boot = "b0000000-0000-4000-8000-000000000001";
}

static void die(void)
{
	_exit(77);
}

static int syncs_before;

static void note_syncs(void)
{
	syncs_before = syncs;
}

/* A process dies between its write and its sync. The next one syncs the frame before it names the file that follows
 * the frame. */
static void test_death_before_sync(void **state)
{
	struct queue *q;
	int status = 0;
	pid_t pid;

	(void)state;
	fresh_folder(&stories[3]);
	pid = fork();
	if (pid == 0) {
		intruder = die;
		intrudes_at = "fdatasync";
		_exit(do_done(open_queue(STORE_WRITE)));
	}
	assert_true(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 77);
	q = open_queue(STORE_WRITE);
	syncs = syncs_before = 0;
	intruder = note_syncs;
	intrudes_at = "linkat";
	assert_int_equal(act(q, OP_CREATE, "t9"), 0);
	assert_null(intruder);
	assert_int_equal(syncs_before, 1);
	queue_close(q);
	has_status("t1", "Done");
}

static void write_zeros(const char *path, off_t n)
{
	write_text(path, "");
	assert_int_equal(truncate(path, n), 0);
}

/* A new lock file exists before its change is committed: a torn one blocks nobody. */
static void test_torn_lock(void **state)
{
	(void)state;
	fresh_folder(&stories[1]);
	write_text("locks/.pawl/new.0", "");
	assert_int_equal(link("locks/.pawl/new.0", "locks/t1.lock"), 0);
	write_text("locks/t9.lock", "{\n  \"task_id\": \"t9\",\n  \"agent\": \"an");
	write_zeros("locks/t10.lock", 600);
	boot = "b0000000-0000-4000-8000-000000000002";
	has_status("t1", "Ready");
	write_after(&stories[1], 0);
	has_status("t1", "Ready");
	assert_int_equal(access("locks/t1.lock", F_OK), -1);
	assert_int_equal(access("locks/t9.lock", F_OK), -1);
	assert_int_equal(access("locks/t10.lock", F_OK), -1);
	boot = "b0000000-0000-4000-8000-000000000001";
}

static void is_text(const char *path, const char *text)
{
	struct arena a = { 0 };
	struct str now;

	assert_int_equal(fs_read(&a, path, 1000, &now), 0);
	if (!str_is(now, text))
		fail_msg("%s is now: %.*s", path, STRF(now));
	arena_free(&a);
}

/* A file that nothing shows to be pawl's is foreign, also after a reboot. */
static void test_others_after_boot(void **state)
{
	static const char *const names[] = { "locks/Cargo.lock", "locks/t1.lock", "locks/t1.done",
					     "locks/t2.failed",  "locks/t9.lock", "locks/t8.task" };
	struct queue *q;

	(void)state;
	fresh_folder(&stories[1]);
	assert_int_equal(mkdir("locks/archive", 0777), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		write_text(names[i], "version = 3\n");
	write_text("locks/archive/t1.done", "");
	write_text("locks/empty.lock", "");
	boot = "b0000000-0000-4000-8000-000000000002";
	has_status("t1", "Ready");
	q = open_queue(STORE_WRITE);
	assert_int_equal(act(q, OP_ID_CLAIM, ""), 0);
	queue_close(q);
	has_status("t1", "Ready");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		is_text(names[i], "version = 3\n");
	is_text("locks/archive/t1.done", "");
	is_text("locks/empty.lock", "");
	boot = "b0000000-0000-4000-8000-000000000001";
}

/* Discarding a queue leaves a file that another program wrote over one of its files. */
static void test_others_after_discard(void **state)
{
	struct answer ans = { 0 };
	struct arena a = { 0 };
	struct queue *q;

	(void)state;
	fresh_folder(&stories[3]);
	write_text("locks/t1.lock", "version = 3\n");
	write_text("locks/Cargo.lock", "version = 3\n");
	q = open_queue(STORE_WRITE);
	assert_int_equal(queue_discard(q, &ans, &a), SUCCESS);
	queue_close(q);
	arena_free(&a);
	is_text("locks/t1.lock", "version = 3\n");
	is_text("locks/Cargo.lock", "version = 3\n");
	assert_int_equal(access("locks/t2.task", F_OK), -1);
	assert_int_equal(access("locks/.pawl/state", F_OK), -1);
}

/* A frame that did not reach the disk whole is ignored. */
static void test_torn(void **state)
{
	struct look before, after, seen;
	struct stat st;

	(void)state;
	for (int cut = 0; cut < 3; cut++) {
		int fd;

		both_ends(&stories[1], &before, &after);
		fd = open("locks/.pawl/state", O_RDWR);
		assert_true(fd >= 0 && fstat(fd, &st) == 0);
		if (cut)
			assert_int_equal(ftruncate(fd, st.st_size - cut * 70), 0);
		else
			assert_int_equal(pwrite(fd, "\1\2\3", 3, st.st_size - 9), 3);
		close(fd);
		assert_int_equal(read_all(&seen), 0);
		assert_string_equal(seen.text, before.text);
		write_after(&stories[1], cut);
		assert_int_equal(read_all(&seen), 0);
		assert_string_equal(seen.text, before.text);
		check_folder(&stories[1], cut, &seen);
	}
}

/* --- other programs at the same moment -------------------------------------------------------------- */

#define SCRIPTS "{\"agent\": \"script\", \"expires_at\": \"2999-01-01T00:00:00Z\"}"

static void make_lock(void)
{
	write_text("locks/t1.lock", SCRIPTS);
}

/* The folder's mtime stays, as if both changes had happened within one tick of its clock. */
static void make_lock_unseen(void)
{
	struct stat st;
	struct timespec times[2];

	assert_int_equal(stat("locks", &st), 0);
	make_lock();
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, "locks", times, 0), 0);
}

static enum result code_of(struct queue *q, enum op op, struct str *holder)
{
	struct request rq = request(op, "t1");
	struct arena a = { 0 };
	struct answer ans = { 0 };

	if (op == OP_CLAIM)
		GIVE(&rq, new_token, token);
	else
		GIVE(&rq, token, token);
	queue_call(q, &rq, &ans, &a);
	*holder = ans.task && str_is(ans.task->lock.holder, "script") ? STR("script") : STR("");
	arena_free(&a);
	return ans.code;
}

static void same_file(const char *path, const char *want)
{
	char text[1000] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_string_equal(text, want);
}

/* A script creates the lock between our check and our own creation: the script has it. */
static void test_lock_by_others(void **state)
{
	void (*const ways[])(void) = { make_lock, make_lock_unseen };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct queue *q;
		struct str holder;

		fresh_folder(&stories[1]);
		q = open_queue(STORE_WRITE);
		intruder = ways[i];
		intrudes_at = "linkat";
		assert_int_equal(code_of(q, OP_CLAIM, &holder), CONFLICT);
		assert_null(intruder);
		assert_true(holder.n);
		same_file("locks/t1.lock", SCRIPTS);
		assert_int_equal(code_of(q, OP_DONE, &holder), LOST_LOCK);
		queue_close(q);
	}
}

/* The store marks the folder twice: before the commit, and after the files have followed. This
 * strikes at the second. */
static void make_lock_at_next(void)
{
	intruder = make_lock;
}

/* A script creates a lock while we rename our files: a read of that task sees it. */
static void test_lock_made_meanwhile(void **state)
{
	struct queue *q;
	struct str holder;

	(void)state;
	fresh_folder(&stories[2]);
	q = open_queue(STORE_WRITE);
	intruder = make_lock_at_next;
	intrudes_at = "futimens";
	assert_int_equal(act(q, OP_CLAIM, "t2"), 0);
	assert_null(intruder);
	assert_int_equal(code_of(q, OP_SHOW, &holder), SUCCESS);
	assert_true(holder.n);
	queue_close(q);
	q = open_queue(STORE_READ);
	assert_int_equal(code_of(q, OP_SHOW, &holder), SUCCESS);
	assert_true(holder.n);
	queue_close(q);
}

static void make_done(void)
{
	write_text("locks/t1.done", "{\"task_id\": \"t1\", \"agent\": \"script\"}");
}

static void make_done_at_next(void)
{
	intruder = make_done;
}

/* The id of the first eligible task; empty: there is none. */
static struct str first_of(struct queue *q, struct arena *a)
{
	struct request rq = { .op = OP_NEXT };
	struct answer ans = { 0 };

	queue_call(q, &rq, &ans, a);
	assert_true(ans.code == SUCCESS || ans.code == NO_TASKS);
	return ans.task ? ans.task->id : STR("");
}

/* The mark on the folder hides it, and still nobody is offered that task. */
static void test_next_after_mark(void **state)
{
	void (*const ways[])(void) = { make_lock_at_next, make_done_at_next };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct arena a = { 0 };
		struct queue *q;

		fresh_folder(&stories[2]);
		q = open_queue(STORE_WRITE);
		intruder = ways[i];
		intrudes_at = "futimens";
		assert_int_equal(act(q, OP_CLAIM, "t2"), 0);
		assert_null(intruder);
		assert_false(str_is(first_of(q, &a), "t1"));
		queue_close(q);
		q = open_queue(STORE_READ);
		assert_false(str_is(first_of(q, &a), "t1"));
		queue_close(q);
		arena_free(&a);
	}
}

static void set_folder_time(time_t at)
{
	const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };

	assert_int_equal(utimensat(AT_FDCWD, "locks", times, 0), 0);
}

/* Several changes of a script have the same mtime where the clock of the folder ticks every few milliseconds. The
 * mtime here is one of the next seconds, so that it is new however slowly the test runs. */
static void test_within_a_tick(void **state)
{
	time_t tick = time(NULL) + 100;
	struct arena a = { 0 };
	struct queue *q;
	char task[40], done[40];

	(void)state;
	fresh_folder(&stories[0]);
	q = open_queue(STORE_READ);
	set_folder_time(tick);
	for (int i = 0; i < 10; i++) {
		snprintf(task, sizeof(task), "locks/s%d.task", i);
		snprintf(done, sizeof(done), "locks/s%d.done", i);
		assert_int_equal(first_of(q, &a).n, 0);
		write_text(task, "{\"description\": \"x\", \"task_id\": \"x\"}");
		set_folder_time(tick);
		assert_true(first_of(q, &a).n > 0);
		assert_int_equal(rename(task, done), 0);
		set_folder_time(tick);
		arena_free(&a);
	}
	queue_close(q);
}

#define RACED 400

/* Makes the locks of all tasks, in the order in which they are offered, and counts them. */
static void lock_all(atomic_int *made)
{
	char name[40];

	for (int i = 0; i < RACED; i++) {
		snprintf(name, sizeof(name), "locks/r%03d.lock", i);
		write_text(name, SCRIPTS);
		atomic_store(made, i + 1);
	}
	_exit(0);
}

static void fill_raced(void)
{
	char name[40];

	for (int i = 0; i < RACED; i++) {
		snprintf(name, sizeof(name), "locks/r%03d.task", i);
		write_text(name, "{\"description\": \"x\"}");
	}
}

/* A task whose lock was there before the call is not offered by it, by handles that stay and by new ones. */
static void test_locks_as_fast_as_can_be(void **state)
{
	atomic_int *made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct queue *stays;
	int before, status, calls = 0;
	pid_t pid;

	(void)state;
	assert_true(made != MAP_FAILED);
	fresh_folder(&stories[0]);
	fill_raced();
	stays = open_queue(STORE_READ);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		lock_all(made);
	do {
		struct arena a = { 0 };
		struct queue *q = calls++ % 2 ? open_queue(STORE_READ) : stays;
		struct str id;
		int64_t n;

		before = atomic_load(made);
		id = first_of(q, &a);
		if (id.n)
			assert_true(str_to_i64(str_n(id.p + 1, 3), &n) && n >= before);
		else
			assert_true(atomic_load(made) >= RACED - 1);
		arena_free(&a);
		if (q != stays)
			queue_close(q);
	} while (before < RACED);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	queue_close(stays);
	munmap(made, sizeof(*made));
}

/* A script overwrites our lock while we renew it: the script's stays, and we have lost the lock. */
static void test_overwritten(void **state)
{
	struct str holder;
	struct queue *q;

	(void)state;
	fresh_folder(&stories[3]);
	q = open_queue(STORE_WRITE);
	intruder = make_lock;
	intrudes_at = "fdatasync";
	assert_int_equal(code_of(q, OP_HEARTBEAT, &holder), SUCCESS);
	assert_null(intruder);
	same_file("locks/t1.lock", SCRIPTS);
	assert_int_equal(code_of(q, OP_HEARTBEAT, &holder), LOST_LOCK);
	assert_true(holder.n);
	same_file("locks/t1.lock", SCRIPTS);
	queue_close(q);
}

/* --- a long read ------------------------------------------------------------------------------------ */

static int open_store(struct store **s, enum store_mode mode, struct store_error *err)
{
	struct store_env env = {
		.rules = &queue_rules, .mode = mode, .opt.timeout_ms = 5000, .err = err
	};

	return store_open(s, STR("files:locks"), &env);
}

/* The first call on a handle reads a script's lock. The lock expires at the time in its file. */
static void test_lock_read_first(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
	struct store_error err = { 0 };
	struct arena a = { 0 };
	struct record r;
	struct store *s;

	(void)state;
	fresh_folder(&stories[1]);
	make_lock();
	/* The store reads a file that has just changed once more, when its clock is set. */
	assert_int_equal(utimensat(AT_FDCWD, "locks/t1.lock", old, 0), 0);
	assert_int_equal(open_store(&s, STORE_READ, &err), 0);
	assert_int_equal(s->ops->get(s, STR("task/t1"), &r, &a), 0);
	assert_true(r.ix.eligible_at == INT64_C(32472144000000)); /* see SCRIPTS */
	arena_free(&a);
	store_close(s);
}

static int seen_tasks;

/* After the first task, another process claims the others. */
static int claim_others(const struct record *r, void *ctx)
{
	int status;
	pid_t pid;

	(void)ctx;
	assert_true(r->body.n > 0);
	if (seen_tasks++)
		return 0;
	pid = fork();
	if (pid == 0) {
		struct queue *q = open_queue(STORE_WRITE);

		_exit(act(q, OP_CLAIM, "t2") || act(q, OP_CLAIM, "t3") || act(q, OP_CREATE, "t4"));
	}
	assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}

static void test_changed_while_read(void **state)
{
	struct query q = { .pick = PICK_ALL, .body = true };
	struct store_error err = { 0 };
	struct store *s;
	struct queue *w;

	(void)state;
	fresh_folder(
		&stories[2]); /* once there is a snapshot, their texts are only in their files */
	w = open_queue(STORE_WRITE);
	assert_int_equal(act(w, OP_CREATE, "t3"), 0);
	assert_int_equal(make_large(w) || do_claim(w), 0);
	queue_close(w);
	assert_int_equal(open_store(&s, STORE_READ, &err), 0);
	seen_tasks = 0;
	assert_int_equal(s->ops->scan(s, &q, claim_others, NULL), 0);
	assert_int_equal(seen_tasks, 3);
	store_close(s);
}

/* A text that was only in its file, which another process has replaced. */
static int read_late(void *ctx)
{
	struct store *s = ctx;
	struct record r = { .body = STR("x") };
	struct arena a = { 0 };
	int rc;

	if (!seen_tasks)
		claim_others(&r, NULL);
	rc = s->ops->get(s, STR("task/t2"), &r, &a);
	arena_free(&a);
	return rc;
}

static void test_changed_in_snapshot(void **state)
{
	struct store_error err = { 0 };
	struct store *s;
	struct queue *w;

	(void)state;
	fresh_folder(&stories[2]);
	w = open_queue(STORE_WRITE);
	assert_int_equal(act(w, OP_CREATE, "t3"), 0);
	assert_int_equal(make_large(w) || do_claim(w), 0);
	queue_close(w);
	assert_int_equal(open_store(&s, STORE_READ, &err), 0);
	seen_tasks = 0;
	assert_int_equal(s->ops->snapshot(s, true, read_late, s), STORE_MOVED);
	assert_int_equal(seen_tasks, 1);
	assert_int_equal(s->ops->snapshot(s, true, read_late, s), 0);
	store_close(s);
}

/* --- discarding a queue ----------------------------------------------------------------------------- */

/* Pawl 0.1 wrote no due date, and so no flag for it. */
static void test_older(void **state)
{
	struct store_error err = { 0 };
	struct arena a = { 0 };
	struct str text, now;
	struct store *s;
	struct queue *q;
	char *flags;

	(void)state;
	fresh_folder(&stories[1]);
	boot = "b0000000-0000-4000-8000-000000000002"; /* the first change makes a snapshot */
	q = open_queue(STORE_WRITE);
	assert_int_equal(act(q, OP_ID_CLAIM, ""), 0);
	queue_close(q);
	assert_int_equal(fs_read(&a, "locks/.pawl/state", 1 << 20, &text), 0);
	flags = memmem(text.p, text.n, "task/t1", 7); /* its key follows the record's head */
	assert_non_null(flags);
	flags[-9] &= ~32; /* WITH_DUE */
	assert_int_equal(fs_write_atomic("locks/.pawl/state", text, 0666), 0);
	for (int mode = STORE_READ; mode <= STORE_CREATE; mode++) {
		assert_int_equal(open_store(&s, mode, &err), STORE_OLDER);
		assert_non_null(strstr(err.text, "locks was written by an older pawl"));
		assert_non_null(strstr(err.hint, "pawl export -o tasks.json"));
		assert_int_equal(fs_read(&a, "locks/.pawl/state", 1 << 20, &now), 0);
		assert_true(str_eq(text, now));
	}
	boot = "b0000000-0000-4000-8000-000000000001";
	arena_free(&a);
}

static void test_discard(void **state)
{
	struct store_error err = { 0 };
	struct store *s;
	struct look l;

	(void)state;
	fresh_folder(&stories[5]);
	write_text("locks/README", "not ours\n");
	assert_int_equal(open_store(&s, STORE_WRITE, &err), 0);
	assert_int_equal(files_discard(s), 0);
	store_close(s);
	assert_int_equal(open_store(&s, STORE_WRITE, &err), STORE_ABSENT);
	assert_int_equal(access("locks/t2.task", F_OK), -1);
	assert_int_equal(access("locks/archive", F_OK), -1);
	assert_int_equal(access("locks/README", F_OK), 0);
	assert_int_equal(open_store(&s, STORE_CREATE, &err), 0);
	store_close(s);
	assert_int_equal(read_all(&l), 0);
	assert_string_equal(l.text, "");
}

/* It is discarded whole or not at all, whenever the process dies; `init` completes a partial
 * one. */
static int discard_child(int at)
{
	struct store_error err = { 0 };
	struct store *s;

	alarm(60);
	if (open_store(&s, STORE_WRITE, &err))
		return 1;
	step_at = at;
	return files_discard(s) != 0;
}

static void test_death_in_discard(void **state)
{
	struct look before, seen;
	int status = 0;

	(void)state;
	for (int at = 1;; at++) {
		struct store_error err = { 0 };
		struct store *s = NULL;
		pid_t pid;
		int rc;

		fresh_folder(&stories[5]);
		assert_int_equal(read_all(&before), 0);
		pid = fork();
		if (pid == 0)
			_exit(discard_child(at));
		assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		if (WEXITSTATUS(status) == 0)
			break;
		rc = open_store(&s, STORE_WRITE, &err);
		store_close(s);
		if (rc == 0) {
			assert_int_equal(read_all(&seen), 0);
			assert_string_equal(seen.text, before.text);
			continue;
		}
		assert_int_equal(rc, STORE_ABSENT);
		assert_int_equal(open_store(&s, STORE_CREATE, &err), 0);
		store_close(s);
		assert_int_equal(read_all(&seen), 0);
		assert_string_equal(seen.text, "");
	}
}

static int enter(void **state)
{
	return folder_enter(state) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_death_at_every_step, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_readers_past_every_step, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_power, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_script_before_boot, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_death_before_sync, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_torn_lock, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_others_after_boot, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_others_after_discard, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_torn, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_older, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_lock_by_others, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_lock_made_meanwhile, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_overwritten, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_lock_read_first, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_changed_while_read, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_changed_in_snapshot, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_next_after_mark, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_within_a_tick, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_locks_as_fast_as_can_be, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_discard, enter, folder_leave),
		cmocka_unit_test_setup_teardown(test_death_in_discard, enter, folder_leave),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
