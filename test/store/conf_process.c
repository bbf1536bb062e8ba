/* Several processes: invariants 1, 2, 3 and 9. No store is open in a process that forks. */
#include "conf.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"

#define WORKERS 4

/* Rounds of each test; PAWL_TEST_ROUNDS for slow stores. */
static int rounds(void)
{
	int64_t n;

	return str_to_i64(str_c(getenv("PAWL_TEST_ROUNDS")), &n) ? (int)n : 25;
}

/* Shared memory of parent and children. */
static struct board {
	_Atomic int ready, go, in_edit, release, runs, done;
} * board;

static const struct str counter = { "meta/counter", 12 };

static void clear_board(void)
{
	if (!conf_shared())
		skip_because("this store is in the memory of one process");
	if (!board)
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		abort();
	memset(board, 0, sizeof(*board));
}

static bool await(_Atomic int *flag, int least, int64_t ms)
{
	int64_t end = conf_real_ms() + ms;

	while (*flag < least && conf_real_ms() < end)
		usleep(1000);
	return *flag >= least;
}

static pid_t spawn(struct conf *c, int (*work)(struct conf *))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	alarm(300); /* on a server, with connections, a round takes seconds */
	_exit(work(c));
}

static int reap(pid_t pid)
{
	int status = 0;

	if (pid <= 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Exit codes of children: 0, or a code for the error. */
#define CHILD_OPEN 2
#define CHILD_MODIFY 3

static int increment(struct edit *e, void *ctx)
{
	struct record *r;
	int64_t n = 0;
	int rc = edit_get(e, counter, &r);

	(void)ctx;
	if (rc < 0)
		return rc;
	if (rc > 0) {
		r = arena_new(e->arena, struct record);
		r->key = counter;
	} else if (!str_to_i64(r->hot, &n)) {
		return 9;
	}
	r->hot = arena_printf(e->arena, "%lld", (long long)n + 1);
	edit_put(e, r);
	edit_log(e, counter, r->hot);
	return 0;
}

static int64_t count_now(struct conf *c)
{
	struct record *r = conf_get(c, counter);
	int64_t n = 0;

	if (r)
		assert_true(str_to_i64(r->hot, &n));
	return n;
}

static void open_parent(struct conf *c)
{
	c->s = conf_open(c, STORE_WRITE);
	assert_non_null(c->s);
}

/* --- serialised --------------------------------------------------------------------------------- */

static int work_increment(struct conf *c)
{
	c->s = conf_open(c, STORE_WRITE);
	if (!c->s)
		return CHILD_OPEN;
	board->ready++;
	await(&board->go, 1, 20000);
	for (int i = 0; i < rounds(); i++) {
		int rc = conf_modify(c, increment, NULL);

		if (rc) {
			fprintf(stderr, "modify: %d %s\n", rc, c->err.text);
			return CHILD_MODIFY;
		}
	}
	store_close(c->s);
	return 0;
}

static int check_count(const struct entry *e, void *ctx)
{
	int64_t n = 0;

	assert_true(str_to_i64(e->data, &n));
	assert_int_equal(n, ++*(int64_t *)ctx);
	return 0;
}

static void test_no_lost_update(void **state)
{
	struct conf *c = *state;
	pid_t pid[WORKERS];
	int64_t last = 0;

	clear_board();
	for (int i = 0; i < WORKERS; i++)
		pid[i] = spawn(c, work_increment);
	await(&board->ready, WORKERS, 20000);
	board->go = 1;
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(reap(pid[i]), 0);
	open_parent(c);
	assert_int_equal(count_now(c), WORKERS * rounds());
	assert_int_equal(c->s->ops->entries(c->s, &(struct entry_query){ 0 }, check_count, &last),
			 0);
	assert_int_equal(last, WORKERS * rounds());
}

static int work_create(struct conf *c)
{
	c->env.opt.queue = arena_printf(&c->a, "%s-new", c->queue);
	board->ready++;
	await(&board->go, 1, 20000);
	c->s = conf_open(c, STORE_CREATE);
	if (!c->s)
		return CHILD_OPEN;
	return conf_modify(c, increment, NULL) ? CHILD_MODIFY : 0;
}

static void test_create_at_once(void **state)
{
	struct conf *c = *state;
	pid_t pid[WORKERS];

	clear_board();
	for (int i = 0; i < WORKERS; i++)
		pid[i] = spawn(c, work_create);
	await(&board->ready, WORKERS, 20000);
	board->go = 1;
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(reap(pid[i]), 0);
	c->env.opt.queue = arena_printf(&c->a, "%s-new", c->queue);
	open_parent(c);
	assert_int_equal(count_now(c), WORKERS);
}

/* --- a process that stays in its edit ----------------------------------------------------------- */

static int sit(struct edit *e, void *ctx)
{
	struct conf *c = ctx;
	struct record *r = arena_new(e->arena, struct record);

	*r = conf_task(c, "from-sitter");
	edit_put(e, r);
	increment(e, NULL);
	board->runs++;
	board->in_edit = 1;
	if (board->runs == 1)
		await(&board->release, 1, 20000);
	return 0;
}

static int work_sit(struct conf *c)
{
	int rc;

	c->env.opt.who = STR("first-writer");
	c->s = conf_open(c, STORE_WRITE);
	if (!c->s)
		return CHILD_OPEN;
	rc = conf_modify(c, sit, c);
	board->done = 1;
	store_close(c->s);
	return rc ? CHILD_MODIFY : 0;
}

static void test_readers_do_not_wait(void **state)
{
	struct conf *c = *state;
	pid_t pid;
	int64_t began, took, n;

	clear_board();
	pid = spawn(c, work_sit);
	assert_true(await(&board->in_edit, 1, 20000));
	began = conf_real_ms();
	c->s = conf_open(c, STORE_READ);
	assert_non_null(c->s);
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
	assert_null(conf_get(c, STR("task/from-sitter")));
	assert_int_equal(c->s->ops->count(c->s, &(struct query){ 0 }, &n), 0);
	assert_true(n == 0);
	took = conf_real_ms() - began;
	assert_int_equal(board->done, 0);
	board->release = 1;
	assert_int_equal(reap(pid), 0);
	assert_true(took < 5000);
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "from-sitter ");
	assert_int_equal(count_now(c), 1);
}

/* A store either makes the second writer wait, or lets it pass and runs the first one's edit
 * again. */
static void test_timeout(void **state)
{
	struct conf *c = *state;
	int64_t began, took;
	pid_t pid;
	int rc;

	clear_board();
	pid = spawn(c, work_sit);
	assert_true(await(&board->in_edit, 1, 20000));
	c->env.opt.timeout_ms = 300;
	open_parent(c);
	began = conf_real_ms();
	rc = conf_modify(c, increment, NULL);
	took = conf_real_ms() - began;
	board->release = 1;
	assert_int_equal(reap(pid), 0);
	if (rc == 0) {
		assert_true(board->runs > 1);
		assert_int_equal(count_now(c), 2);
		return;
	}
	assert_int_equal(rc, STORE_BUSY);
	assert_int_equal(c->err.fault, STORE_BUSY);
	assert_int_equal(c->err.applied, 'n');
	assert_true(took >= 300 && took < 3000);
	assert_non_null(strstr(c->err.text, "first-writer"));
	assert_int_equal(conf_modify(c, increment, NULL), 0);
	assert_int_equal(count_now(c), 2);
}

static void test_killed_in_edit(void **state)
{
	struct conf *c = *state;
	pid_t pid;

	clear_board();
	pid = spawn(c, work_sit);
	assert_true(await(&board->in_edit, 1, 20000));
	kill(pid, SIGKILL);
	assert_int_equal(reap(pid), 1000 + SIGKILL);
	open_parent(c);
	assert_null(conf_get(c, STR("task/from-sitter")));
	assert_int_equal(count_now(c), 0);
	assert_int_equal(conf_modify(c, increment, NULL), 0);
	assert_int_equal(count_now(c), 1);
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
}

static int work_commit_forever(struct conf *c)
{
	c->s = conf_open(c, STORE_WRITE);
	if (!c->s)
		return CHILD_OPEN;
	while (conf_modify(c, increment, NULL) == 0)
		board->done++;
	return CHILD_MODIFY;
}

/* An acknowledged change survives the death of its process at any moment. */
static void test_killed_after_commit(void **state)
{
	struct conf *c = *state;
	int64_t told = 0;

	for (int i = 1; i <= 5; i++) {
		pid_t pid;
		int64_t n;

		clear_board();
		pid = spawn(c, work_commit_forever);
		assert_true(await(&board->done, i * 3, 20000));
		kill(pid, SIGKILL);
		assert_int_equal(reap(pid), 1000 + SIGKILL);
		told += board->done;
		open_parent(c);
		n = count_now(c);
		assert_true(n >= told &&
			    n <= told + 1); /* one may have died between commit and report */
		told = n;
		store_close(c->s);
		c->s = NULL;
	}
}

/* --- waking up ---------------------------------------------------------------------------------- */

static int work_change_on_go(struct conf *c)
{
	if (!await(&board->go, 1, 20000))
		return 1;
	c->s = conf_open(c, STORE_WRITE);
	if (!c->s)
		return CHILD_OPEN;
	return conf_modify(c, increment, NULL) ? CHILD_MODIFY : 0;
}

static void test_wake(void **state)
{
	struct conf *c = *state;
	struct pollfd p = { .events = POLLIN };
	pid_t pid;

	clear_board();
	pid = spawn(c, work_change_on_go);
	open_parent(c);
	p.fd = c->s->ops->wake_fd(c->s);
	c->s->ops->wake_clear(c->s);
	board->go = 1;
	assert_int_equal(reap(pid), 0);
	if (p.fd < 0)
		skip_because("this store wakes nobody");
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(count_now(c), 1);
	c->s->ops->wake_clear(c->s);
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* --- a queue that is removed --------------------------------------------------------------------- */

#define TOGETHER 5

static int put_together(struct edit *e, void *ctx)
{
	struct conf *c = ctx;

	for (int i = 0; i < TOGETHER; i++) {
		struct record *r = arena_new(e->arena, struct record);

		*r = conf_task(c, arena_printf(e->arena, "t%d", i).p);
		edit_put(e, r);
	}
	return 0;
}

/* A process that opens it finds a whole change, nothing, or no queue. */
static int open_and_look(struct conf *c)
{
	int64_t n = 0;
	int rc;

	c->env.mode = board->runs++ % 2 ? STORE_CREATE : STORE_WRITE;
	rc = store_open(&c->s, str_c(conf_uri()), &c->env);
	if (rc && rc != STORE_ABSENT)
		print_error("open: %d %s\n", rc, c->err.text);
	if (rc)
		return rc == STORE_ABSENT ? 0 : CHILD_OPEN;
	rc = conf_modify(c, put_together, c);
	if (rc == 0)
		rc = c->s->ops->count(c->s, &(struct query){ 0 }, &n);
	if (rc == STORE_ABSENT) /* removed in between */
		rc = n = 0;
	store_close(c->s);
	if (rc)
		print_error("modify: %d %s\n", rc, c->err.text);
	return rc ? CHILD_MODIFY : n && n != TOGETHER ? 4 : 0;
}

static int work_open(struct conf *c)
{
	int rc = 0;

	board->ready++;
	while (rc == 0 && !board->release)
		rc = open_and_look(c);
	return rc;
}

/* A round takes many syncs, so a slow disk makes fewer of them. */
static void test_discard_while_used(void **state)
{
	struct conf *c = *state;
	int64_t end = os_boot_ms() + 60000;
	pid_t pid[WORKERS];

	clear_board();
	for (int i = 0; i < WORKERS; i++)
		pid[i] = spawn(c, work_open);
	await(&board->ready, WORKERS, 20000);
	for (int i = 0; i < rounds() && (i < 2 || os_boot_ms() < end); i++) {
		c->s = conf_open(c, STORE_CREATE);
		assert_non_null(c->s);
		await(&board->runs, board->runs + 2, 20000);
		if (c->s->ops->discard(c->s))
			fail_msg("discard: %s", c->err.text);
		store_close(c->s);
	}
	c->s = NULL;
	board->release = 1;
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(reap(pid[i]), 0);
}

int conf_process(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST_CLOSED(test_no_lost_update),
		CONF_TEST_CLOSED(test_create_at_once),
		CONF_TEST_CLOSED(test_readers_do_not_wait),
		CONF_TEST_CLOSED(test_timeout),
		CONF_TEST_CLOSED(test_killed_in_edit),
		CONF_TEST_CLOSED(test_killed_after_commit),
		CONF_TEST_CLOSED(test_wake),
		CONF_TEST_CLOSED(test_discard_while_used),
	};

	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
