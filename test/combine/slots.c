/* The slots alone: several handles on one file in one process, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/os.h"
#include "kit/folder.h"
#include "store/local/combine_file.h"

#define QUEUE 1
#define LATER (os_boot_ms() + 60000)

static struct arena arena;
static struct stat like = { .st_mode = 0600 };
static struct combine holder, a, b;
static struct combine_call calls[COMBINE_SLOTS];
static struct gate gate;

static int begin(void **state)
{
	like.st_uid = geteuid();
	like.st_gid = getegid();
	gate.fd = -1;
	holder = a = b = (struct combine){ .fd = -1, .slot = -1 };
	return folder_enter(state) ? 0 : -1;
}

static int end(void **state)
{
	combine_close(&holder);
	combine_close(&a);
	combine_close(&b);
	gate_close(&gate);
	arena_free(&arena);
	return folder_leave(state);
}

static void open_all(void)
{
	assert_int_equal(combine_open(&holder, "slots", &like), 0);
	assert_int_equal(combine_open(&a, "slots", &like), 0);
	assert_int_equal(combine_open(&b, "slots", &like), 0);
	assert_int_equal(gate_open(&gate, "gate", &like), 0);
	assert_int_equal(gate_lock(&gate, 0, STR("the test")), 0);
}

static uint32_t word(const struct combine *c)
{
	return c->file->head[c->slot].word;
}

static size_t take(bool first)
{
	return combine_take(&holder, QUEUE, first, calls, COMBINE_SLOTS, &arena);
}

/* Ends the call without waiting. */
static enum combine_end give_up(struct combine *c, struct combine_reply *out)
{
	return combine_result(c, out, &arena);
}

static void test_served(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	assert_true(combine_publish(&b, QUEUE + 1, STR("another queue's"), LATER));
	assert_int_equal(take(true), 1);
	assert_true(str_is(calls[0].bytes, "call"));
	assert_true(calls[0].batch == 0);
	assert_int_equal(take(false), 0);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 3, STR("report"));
	combine_answer(&holder, &calls[0]);
	assert_int_equal(give_up(&a, &reply), COMBINE_RAN);
	assert_int_equal(reply.rc, 3);
	assert_true(str_is(reply.report, "report"));
	assert_int_equal(give_up(&b, &reply), COMBINE_LATE);
}

/* The result of an earlier call never reaches a later one, no matter when the owner gave up. */
static void test_generations(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("one"), LATER));
	assert_int_equal(take(true), 1);
	assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);
	assert_true(combine_publish(&a, QUEUE, STR("two"), LATER));
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("of one"));
	combine_answer(&holder, &calls[0]);
	assert_int_equal(STATE(word(&a)), SLOT_PENDING);
	assert_int_equal(take(false), 1);
	assert_true(str_is(calls[0].bytes, "two"));
	assert_int_equal(holder.file->head[a.slot].reply_n, 0);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("of two"));
	combine_answer(&holder, &calls[0]);
	/* an answered call belongs to its owner */
	combine_reply(&holder, &calls[0], 7, COMBINE_FAULT, 0, STR("too late"));
	assert_int_equal(give_up(&a, &reply), COMBINE_RAN);
	assert_true(str_is(reply.report, "of two"));
}

static void test_given_up(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	assert_int_equal(give_up(&a, &reply), COMBINE_LATE);
	assert_int_equal(take(true), 0);
	assert_true(combine_publish(&a, QUEUE, STR("call"), os_boot_ms()));
	assert_int_equal(take(true), 0); /* its deadline has passed */
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	a.file->head[a.slot].boot++;
	assert_int_equal(take(true), 0); /* from another boot */
	assert_false(combine_publish(&a, QUEUE, str_n(NULL, COMBINE_CALL_MAX + 1), LATER));
}

/* The next holder learns which calls the dead one had taken, and from which batch. */
static void test_left_over(void **state)
{
	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("ran"), LATER));
	assert_true(combine_publish(&b, QUEUE, STR("taken"), LATER));
	assert_int_equal(take(true), 2);
	combine_reply(&holder, &calls[calls[0].slot == (unsigned)a.slot ? 0 : 1], 7, COMBINE_RAN, 0,
		      STR("r"));
	assert_int_equal(take(false), 0);
	assert_int_equal(take(true), 2);
	for (int i = 0; i < 2; i++)
		assert_true(calls[i].batch == (calls[i].slot == (unsigned)a.slot ? 7 : 0));
}

/* A batch number of an earlier call does not stay in the slot. */
static void test_old_batch(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("one"), LATER));
	assert_int_equal(take(true), 1);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("r"));
	combine_answer(&holder, &calls[0]);
	assert_int_equal(give_up(&a, &reply), COMBINE_RAN);
	assert_true(combine_publish(&a, QUEUE, STR("two"), LATER));
	assert_int_equal(take(true), 1);
	assert_int_equal(take(true), 1);
	assert_true(calls[0].batch == 0);
}

static void test_nudge(void **state)
{
	struct combine_reply reply = { 0 };
	int nudged;

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	assert_true(combine_publish(&b, QUEUE, STR("call"), LATER));
	combine_nudge(&holder);
	nudged = (STATE(word(&a)) == SLOT_NUDGED) + (STATE(word(&b)) == SLOT_NUDGED);
	assert_int_equal(nudged, 1);
	gate_unlock(&gate);
	assert_int_equal(combine_wait(&a, &gate, STR("a"), LATER, &reply, &arena), COMBINE_GATE);
	assert_int_equal(take(true), 2); /* nudged or not */
}

/* A process that is nudged and finds the gate taken keeps waiting. */
static void test_nudged_in_vain(void **state)
{
	struct combine_reply reply = { 0 };
	struct gate other = { .fd = -1 };

	(void)state;
	open_all();
	assert_int_equal(gate_open(&other, "gate", &like), 0);
	assert_true(combine_publish(&a, QUEUE, STR("call"), os_boot_ms() + 30));
	combine_nudge(&holder);
	assert_int_equal(STATE(word(&a)), SLOT_NUDGED);
	assert_int_equal(combine_wait(&a, &other, STR("a"), os_boot_ms() + 30, &reply, &arena),
			 COMBINE_LATE);
	gate_close(&other);
}

/* All slots are in use and one handle asks again: the holder's array has room for exactly these. */
static void test_full(void **state)
{
	static struct combine all[COMBINE_SLOTS];
	struct combine_call *few = arena_array(&arena, struct combine_call, 1);
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	for (int i = 0; i < COMBINE_SLOTS; i++) {
		all[i] = (struct combine){ .fd = -1, .slot = -1 };
		assert_int_equal(combine_open(&all[i], "slots", &like), 0);
		assert_true(combine_publish(&all[i], QUEUE, STR("call"), LATER));
	}
	assert_false(combine_publish(&a, QUEUE, STR("call"), LATER));
	assert_int_equal(take(true), COMBINE_SLOTS);
	assert_int_equal(give_up(&all[5], &reply), COMBINE_UNKNOWN);
	assert_int_equal(give_up(&all[6], &reply), COMBINE_UNKNOWN);
	assert_true(combine_publish(&all[5], QUEUE, STR("again"), LATER));
	assert_true(combine_publish(&all[6], QUEUE, STR("again"), LATER));
	assert_int_equal(combine_take(&holder, QUEUE, false, few, 0, &arena), 0);
	assert_int_equal(combine_take(&holder, QUEUE, false, few, 1, &arena), 1);
	combine_close(&all[9]); /* now a slot is free */
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	for (int i = 0; i < COMBINE_SLOTS; i++)
		combine_close(&all[i]);
}

/* The next owner of a dead process's slot ends the call in it. */
static void test_reuse(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	open_all();
	pid = fork();
	if (pid == 0) {
		struct combine c = { .fd = -1, .slot = -1 };

		if (combine_open(&c, "slots", &like) ||
		    !combine_publish(&c, QUEUE, STR("x"), LATER))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(take(true), 1); /* the dead process's call */
	assert_true(combine_publish(&a, QUEUE, STR("new"), LATER));
	assert_int_equal(a.slot, 0);
	combine_answer(&holder, &calls[0]);
	assert_int_equal(STATE(word(&a)), SLOT_PENDING);
	assert_int_equal(take(false), 1);
	assert_true(str_is(calls[0].bytes, "new"));
}

static void test_words(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	for (uint32_t w = 0; w < 8; w++) { /* of another generation, or not ours */
		a.file->head[a.slot].word = (a.word & ~7u) + 80 + w;
		assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);
		assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	}
	a.file->head[a.slot].word = WITH(a.word, SLOT_IDLE);
	assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);
}

/* The file was truncated in the middle of a text and then extended again: the gap has zeros. */
static void test_zeros(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("a call"), LATER));
	a.file->text[a.slot].call[3] = '\0';
	assert_int_equal(take(true), 1);
	assert_int_equal(calls[0].bytes.n, 0);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("a report"));
	combine_answer(&holder, &calls[0]);
	a.file->text[a.slot].reply[7] = '\0';
	assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);

	/* the end of a head was lost: the call was run, so it must not be run again */
	assert_true(combine_publish(&a, QUEUE, STR("a call"), LATER));
	assert_int_equal(take(false), 1);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("a report"));
	combine_answer(&holder, &calls[0]);
	memset((char *)&a.file->head[a.slot] + 16, 0, sizeof(struct head) - 16);
	assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);

	/* only the checksums were lost */
	assert_true(combine_publish(&a, QUEUE, STR("a call"), LATER));
	a.file->head[a.slot].call_sum = 0;
	assert_int_equal(take(false), 1);
	assert_int_equal(calls[0].bytes.n, 0);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("a report"));
	combine_answer(&holder, &calls[0]);
	a.file->head[a.slot].reply_sum = 0;
	assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);
}

/* Impossible lengths, ends and states. */
static void test_malformed(void **state)
{
	struct combine_reply reply = { 0 };
	struct head *h;

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	h = &a.file->head[a.slot];
	h->call_n = UINT32_MAX;
	h->call_sum = combine_sum(str_n(a.file->text[a.slot].call, COMBINE_CALL_MAX));
	assert_int_equal(take(true), 1);
	assert_int_equal(calls[0].bytes.n, COMBINE_CALL_MAX);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("r"));
	combine_answer(&holder, &calls[0]);
	h->reply_n = UINT32_MAX;
	h->reply_sum = combine_sum(str_n(a.file->text[a.slot].reply, COMBINE_REPLY_MAX));
	h->end = 77;
	assert_int_equal(give_up(&a, &reply), COMBINE_UNKNOWN);
	assert_int_equal(reply.report.n, COMBINE_REPLY_MAX);
	for (uint32_t s = SLOT_DONE + 1; s < 8; s++) {
		h->word = WITH(a.word, s);
		assert_int_equal(take(true), 0);
		combine_nudge(&holder);
	}
	holder.file->top = holder.file->turn = holder.file->expected = UINT32_MAX;
	assert_true(combine_publish(&b, QUEUE, STR("call"), LATER));
	assert_int_equal(take(true), 1);
	combine_nudge(&holder);
	combine_learn(&holder, 1);
}

static void test_file(void **state)
{
	uint32_t other = COMBINE_LAYOUT + 1;
	int fd;

	(void)state;
	open_all();
	assert_true(combine_stands(&a));
	assert_int_equal(rename("slots", "moved"), 0);
	assert_false(combine_stands(&a));
	assert_int_equal(rename("moved", "slots"), 0);
	assert_true(combine_stands(&a));
	assert_int_equal(truncate("slots", 4096), 0);
	assert_false(combine_stands(&a));
	combine_close(&b);
	assert_int_equal(combine_open(&b, "slots", &like), 0); /* the file is filled up */
	assert_true(combine_stands(&a));
	assert_int_equal(unlink("slots"), 0);
	assert_false(combine_stands(&a));
	combine_close(&a);
	fd = open("slots", O_RDWR | O_CREAT, 0600);
	assert_int_equal(pwrite(fd, &other, sizeof(other), 0), sizeof(other));
	close(fd);
	assert_int_equal(combine_open(&a, "slots", &like), -EPROTO);
	assert_true(a.hopeless);
	assert_false(combine_stands(&a));
}

/* Each call is taken once, even if `turn` has wrapped around or has an arbitrary value. */
static void test_turn(void **state)
{
	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("one"), LATER));
	assert_true(combine_publish(&b, QUEUE, STR("other"), LATER));
	holder.file->top = 3;
	holder.file->turn = UINT32_MAX; /* UINT32_MAX + 1 is not a multiple of 3 slots */
	assert_int_equal(take(true), 2);
	assert_int_not_equal(calls[0].slot, calls[1].slot);
}

/* The disk has no space for the file: this process gives it up, and the next one tries again. */
static void test_no_room(void **state)
{
	struct rlimit before, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 64 * 1024;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(combine_open(&a, "slots", &like), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(a.hopeless && !a.file);
	assert_int_equal(combine_open(&b, "slots", &like), 0);
	assert_true(combine_publish(&b, QUEUE, STR("call"), LATER));
}

/* The holder owns the file, even if the gate was replaced and there are two. */
static void test_owner(void **state)
{
	(void)state;
	open_all();
	assert_true(combine_own(&holder));
	assert_false(combine_own(&b));
	combine_disown(&holder);
	assert_true(combine_own(&b));
	combine_close(&b); /* as if its process had died */
	assert_true(combine_own(&holder));
}

/* A look changes nothing: the owner can still withdraw its call. */
static void test_look(void **state)
{
	struct combine_reply reply = { 0 };

	(void)state;
	open_all();
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	assert_true(combine_publish(&b, QUEUE + 1, STR("another queue's"), LATER));
	assert_int_equal(combine_check(&holder, QUEUE, calls, COMBINE_SLOTS, &arena), 1);
	assert_true(str_is(calls[0].bytes, "call"));
	assert_int_equal(STATE(word(&a)), SLOT_PENDING);
	assert_int_equal(give_up(&a, &reply), COMBINE_LATE);
	assert_int_equal(combine_check(&holder, QUEUE, calls, COMBINE_SLOTS, &arena), 0);
}

/* A call that nobody takes is withdrawn before its deadline; one that a holder has taken is not. */
static void test_patience(void **state)
{
	struct combine_reply reply = { 0 };
	struct gate other = { .fd = -1 };

	(void)state;
	open_all();
	a.patience = b.patience = 20;
	assert_int_equal(gate_open(&other, "gate", &like), 0);
	assert_true(combine_publish(&a, QUEUE, STR("call"), LATER));
	assert_int_equal(combine_wait(&a, &other, STR("a"), LATER, &reply, &arena), COMBINE_ALONE);
	assert_int_equal(take(true), 0);
	assert_true(combine_publish(&b, QUEUE, STR("call"), os_boot_ms() + 60));
	assert_int_equal(take(true), 1);
	assert_int_equal(combine_wait(&b, &other, STR("b"), os_boot_ms() + 60, &reply, &arena),
			 COMBINE_UNKNOWN);
	gate_close(&other);
}

/* A stay in line ends when the patience does: afterwards the owner has time to run its call. Tries several times: other
 * load on the machine may spoil a run, but not every run. */
static void test_patience_in_line(void **state)
{
	struct combine_reply reply = { 0 };
	struct gate other = { .fd = -1 };
	enum combine_end got = COMBINE_LATE;

	(void)state;
	open_all();
	a.patience = 1150;
	assert_int_equal(gate_open(&other, "gate", &like), 0);
	for (int i = 0; i < 3 && got == COMBINE_LATE; i++) {
		int64_t deadline = os_boot_ms() + 2000;

		assert_true(combine_publish(&a, QUEUE, STR("call"), deadline));
		got = combine_wait(&a, &other, STR("a"), deadline, &reply, &arena);
	}
	assert_int_equal(got, COMBINE_ALONE);
	gate_close(&other);
}

/* --- turns -------------------------------------------------------------------------------------- */

#define STAY 500 /* ms */

static int64_t waits_since; /* 0: nobody waits */

/* The gate calls this. The owner of an orphaned call gets its answer when it has stood in line for long, after the time
 * in which it lets others go first. */
int flock(int fd, int operation)
{
	int64_t start = os_boot_ms();
	int r = (int)syscall(SYS_flock, fd, operation), err = errno;

	if (waits_since && !(operation & LOCK_NB) && start - waits_since >= GATE_POLITE_MS &&
	    os_boot_ms() - start >= STAY)
		combine_answer(&holder, &calls[0]);
	errno = err;
	return r;
}

static pid_t start_writer(void)
{
	struct gate g = { .fd = -1 };
	pid_t pid = fork();

	if (pid == 0)
		_exit(gate_open(&g, "gate", &like) || gate_lock(&g, 60000, STR("a writer")));
	return pid;
}

/* A process that does not wait in line leaves the free gate to a process in line, however slow that process is. */
static void test_line_goes_first(void **state)
{
	struct gate other = { .fd = -1 };
	int status = 0, got;
	pid_t writer;

	(void)state;
	open_all();
	assert_int_equal(gate_open(&other, "gate", &like), 0);
	writer = start_writer();
	while (!gate_line(&gate))
		usleep(1000);
	kill(writer, SIGSTOP);
	assert_true(waitpid(writer, &status, WUNTRACED) == writer && WIFSTOPPED(status));
	gate_unlock(&gate);
	got = gate_try(&other, STR("a"));
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	assert_int_equal(got, -ETIMEDOUT);
	assert_int_equal(gate_try(&other, STR("a")), 0);
	gate_close(&other);
}

/* The holder has died, and the line is never empty. */
static enum combine_end wait_among_writers(void)
{
	struct combine_reply reply = { 0 };
	struct gate other = { .fd = -1 };
	int64_t deadline = os_boot_ms() + 15000;
	enum combine_end got;
	pid_t writer;

	open_all();
	writer = start_writer();
	while (!gate_line(&gate))
		usleep(1000);
	assert_int_equal(gate_open(&other, "gate", &like), 0);
	assert_true(combine_publish(&a, QUEUE, STR("call"), deadline));
	assert_int_equal(take(true), 1);
	combine_reply(&holder, &calls[0], 7, COMBINE_RAN, 0, STR("r"));
	waits_since = os_boot_ms();
	got = combine_wait(&a, &other, STR("a"), deadline, &reply, &arena);
	waits_since = 0;
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	gate_close(&other);
	return got;
}

static void test_line(void **state)
{
	(void)state;
	assert_int_equal(wait_among_writers(), COMBINE_RAN);
}

static void serve_another_queue(const char *step)
{
	if (strcmp(step, "sleeping") == 0)
		gate_count_served(&gate);
}

static void test_line_among_other_queues(void **state)
{
	enum combine_end got;

	(void)state;
	combine_step = serve_another_queue;
	got = wait_among_writers();
	combine_step = NULL;
	assert_int_equal(got, COMBINE_RAN);
}

/* Each file has a number of its own, for all its users. */
static void test_number(void **state)
{
	uint64_t number;

	(void)state;
	open_all();
	number = combine_number(&holder);
	assert_true(number && combine_number(&a) == number);
	combine_close(&b);
	assert_int_equal(combine_open(&b, "others", &like), 0);
	assert_true(combine_number(&b) && combine_number(&b) != number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
		T(test_served),
		T(test_generations),
		T(test_given_up),
		T(test_left_over),
		T(test_old_batch),
		T(test_nudge),
		T(test_nudged_in_vain),
		T(test_full),
		T(test_reuse),
		T(test_words),
		T(test_malformed),
		T(test_zeros),
		T(test_file),
		T(test_no_room),
		T(test_turn),
		T(test_owner),
		T(test_look),
		T(test_patience),
		T(test_patience_in_line),
		T(test_number),
		T(test_line_goes_first),
		T(test_line),
		T(test_line_among_other_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
