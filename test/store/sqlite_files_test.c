/*
 * Files of a SQLite queue are removed or replaced while handles are open: each order once.
 * test/race/lost.c does the same at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "kit/tmp.h"
#include "store/sqlite/sqlite.h"

#define FAILED 99

static char dir[64], uri[100];
static struct store_error err;

static int make_dir(void **state)
{
	(void)state;
	if (!tmp_make(dir, sizeof(dir), "sqlite"))
		return -1;
	snprintf(uri, sizeof(uri), "sqlite:%s/q.db", dir);
	return 0;
}

static const char *file(const char *end)
{
	static char path[2][100];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/q.db%s", dir, end);
	return path[turn];
}

static int drop_dir(void **state)
{
	static const char *const ends[] = { "",       "-wal",  "-shm",    "-gate",
					    "-slots", "-kept", "-journal" };

	(void)state;
	combine_step = NULL;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		unlink(file(ends[i]));
	return rmdir(dir);
}

static struct store *open_as(enum store_mode mode)
{
	struct store_env env = {
		.mode = mode, .opt.timeout_ms = 2000, .opt.who = STR("agent-x"), .err = &err
	};
	struct store *s = NULL;
	int rc = store_open(&s, str_c(uri), &env);

	if (rc)
		fail_msg("open: %d %s", rc, err.text);
	return s;
}

/* --- a counter, in the store -------------------------------------------------------------------------- */

static int add_one(struct edit *e, void *ctx)
{
	struct record *r, fresh = { .key = STR("meta/n") };
	int rc = edit_get(e, STR("meta/n"), &r);
	int64_t n = 0;

	if (rc < 0)
		return rc;
	if (rc == 0)
		str_to_i64(r->hot, &n);
	else
		r = &fresh;
	r->hot = arena_printf(e->arena, "%lld", (long long)n + 1);
	edit_put(e, r);
	*(int64_t *)ctx = n + 1;
	return 0;
}

/* The number after the change, or a fault. */
static int64_t count(struct store *s)
{
	int64_t n = 0;
	struct change c = { .fn = add_one, .ctx = &n, .rc = 0 };
	int rc = s->ops->modify(s, &c, 1);

	return rc < 0 ? rc : n;
}

static int64_t number(struct store *s)
{
	struct arena a = { 0 };
	struct record r;
	int64_t n = 0;
	int rc = s->ops->get(s, STR("meta/n"), &r, &a);

	if (rc == 0)
		str_to_i64(r.hot, &n);
	arena_free(&a);
	return rc < 0 ? rc : n;
}

/* Another program adds one: a mere fork would share SQLite's knowledge of open files. */
static pid_t begin_elsewhere(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "count", uri, (char *)NULL);
		_exit(98);
	}
	return pid;
}

static int count_once(const char *where)
{
	struct store *s;
	int64_t n;

	snprintf(uri, sizeof(uri), "%s", where);
	s = open_as(STORE_WRITE);
	n = count(s);
	store_close(s);
	return n < 0 ? FAILED : (int)n;
}

static int64_t count_elsewhere(void)
{
	pid_t pid = begin_elsewhere();
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* --- before a change ------------------------------------------------------------------------------------ */

/* Removing an index loses nothing: the handle makes a new one and continues, and so do handles opened
 * meanwhile. */
static void test_index_removed(void **state)
{
	struct store *s = open_as(STORE_CREATE);

	(void)state;
	assert_true(count(s) == 1);
	assert_int_equal(unlink(file("-shm")), 0);
	assert_true(count_elsewhere() == 2);
	assert_true(count(s) == 3);
	assert_true(count_elsewhere() == 4);
	assert_true(count(s) == 5);
	store_close(s);
}

static void test_index_replaced(void **state)
{
	struct store *s = open_as(STORE_CREATE);
	int fd;

	(void)state;
	assert_true(count(s) == 1);
	assert_int_equal(rename(file("-shm"), file("-kept")), 0);
	fd = open(file("-shm"), O_RDWR | O_CREAT, 0644);
	assert_int_equal(ftruncate(fd, 32768), 0);
	close(fd);
	assert_true(count_elsewhere() == 2);
	assert_true(count(s) == 3);
	store_close(s);
}

/* SQLite shares one index between the handles of a process. While one of them has the removed
 * index, none may write with it. */
static void test_index_removed_under_two_handles(void **state)
{
	struct store *a = open_as(STORE_CREATE), *b = open_as(STORE_WRITE);

	(void)state;
	assert_true(count(a) == 1 && count(b) == 2);
	assert_int_equal(unlink(file("-shm")), 0);
	assert_true(count_elsewhere() == 3);
	assert_true(count(a) == STORE_IO);
	assert_non_null(strstr(err.text, "-shm was removed"));
	assert_int_equal(err.applied, 'n');
	store_close(b);
	assert_true(count(a) == 4);
	store_close(a);
}

/* Changes in a removed WAL are lost. Each handle that had it open reports that once; nothing later
 * is lost. */
static void test_wal_removed(void **state)
{
	struct store *a = open_as(STORE_CREATE);
	int64_t left;

	(void)state;
	assert_true(count(a) == 1);
	assert_int_equal(unlink(file("-wal")), 0);
	assert_true(count(a) == STORE_IO);
	assert_non_null(strstr(err.text, "-wal was removed"));
	assert_int_equal(err.applied, 'n');
	left = number(a);
	assert_true(left == 0 || left == 1);
	assert_true(count(a) == left + 1);
	assert_true(count_elsewhere() == left + 2);
	store_close(a);
}

/* A process that opens the others' index finds a WAL that is shorter than the index says. */
static void test_wal_removed_under_others(void **state)
{
	struct store *a = open_as(STORE_CREATE);

	(void)state;
	assert_true(count(a) == 1);
	assert_int_equal(unlink(file("-wal")), 0);
	assert_true(count_elsewhere() == FAILED); /* reports it, and drops the index */
	assert_true(count(a) == STORE_IO);
	assert_true(count_elsewhere() < FAILED);
	assert_true(count(a) > 0);
	store_close(a);
}

static void test_wal_cut(void **state)
{
	struct store *a = open_as(STORE_CREATE);

	(void)state;
	assert_true(count(a) == 1 && count(a) == 2);
	assert_int_equal(truncate(file("-wal"), 5000), 0);
	assert_true(count(a) == STORE_IO);
	assert_true(count(a) > 0);
	store_close(a);
}

static void test_database_replaced(void **state)
{
	struct store *a = open_as(STORE_CREATE);
	struct arena mem = { 0 };
	struct str bytes;

	(void)state;
	assert_true(count(a) == 1);
	assert_int_equal(fs_read(&mem, file(""), 1 << 20, &bytes), 0);
	assert_int_equal(fs_write_atomic(file(""), bytes, 0644), 0);
	assert_true(count(a) == STORE_UNREACHABLE);
	assert_true(count(a) == STORE_UNREACHABLE);
	store_close(a);
	arena_free(&mem);
}

/* A process that waits at a removed gate moves to the new one. */
static void test_gate_removed(void **state)
{
	struct store *a = open_as(STORE_CREATE);
	struct stat ours, there;

	(void)state;
	assert_true(count(a) == 1);
	assert_int_equal(unlink(file("-gate")), 0);
	assert_true(count_elsewhere() == 2);
	assert_true(count(a) == 3);
	assert_int_equal(fstat(sq_of(a)->gate.fd, &ours), 0);
	assert_int_equal(stat(file("-gate"), &there), 0);
	assert_true(ours.st_ino == there.st_ino);
	store_close(a);
}

/* A reader that stays open does not read forever from an index that nobody else writes. */
static void test_reader_follows(void **state)
{
	struct store *w = open_as(STORE_CREATE), *r;

	(void)state;
	assert_true(count(w) == 1);
	store_close(w);
	r = open_as(STORE_READ);
	assert_true(number(r) == 1);
	assert_int_equal(unlink(file("-shm")), 0);
	assert_true(count_elsewhere() == 2);
	sq_of(r)->checked_ms = 0;
	assert_true(number(r) == 2);
	store_close(r);
}

/* --- during a change ------------------------------------------------------------------------------------- */

static const char *at_step, *victims[3];

/* In the middle of a commit. */
static void remove_at(const char *step)
{
	if (!at_step || strcmp(step, at_step) != 0)
		return;
	at_step = NULL;
	for (int i = 0; i < 3 && victims[i]; i++)
		unlink(file(victims[i]));
}

static void remove_in_commit(const char *step, const char *first, const char *second)
{
	at_step = step;
	victims[0] = first;
	victims[1] = second;
	combine_step = remove_at;
}

static void test_removed_before_commit(void **state)
{
	static const char *const ends[] = { "-shm", "-wal", "" };
	struct store *a;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		a = open_as(STORE_CREATE);
		assert_true(count(a) > 0);
		remove_in_commit("committing", ends[i], NULL);
		assert_true(count(a) < 0);
		assert_int_equal(err.applied, '?');
		assert_non_null(strstr(err.text, "removed"));
		store_close(a);
	}
}

static void test_removed_after_commit(void **state)
{
	struct store *a = open_as(STORE_CREATE);

	(void)state;
	assert_true(count(a) == 1);
	remove_in_commit("committed", "-shm", NULL);
	assert_true(count(a) == STORE_IO);
	assert_int_equal(err.applied, '?');
	assert_true(count(a) == 3); /* it had happened */
	store_close(a);
}

static pid_t other;

/* Both locks vanish during our write: another writer must still wait for us. */
static void let_another_in(const char *step)
{
	if (strcmp(step, "committing") != 0 || other)
		return;
	unlink(file("-gate"));
	unlink(file("-shm"));
	other = begin_elsewhere();
	usleep(200000);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
}

/* The number that the other writer got. */
static int both_locks_removed(struct store *a)
{
	int status;

	other = 0;
	combine_step = let_another_in;
	/* unknown outcome: a process that opened the new -shm may not know of it */
	assert_true(count(a) == STORE_IO);
	assert_int_equal(err.applied, '?');
	combine_step = NULL;
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_true(WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 3);
	return WEXITSTATUS(status);
}

static void test_both_locks_removed(void **state)
{
	struct store *a = open_as(STORE_CREATE);
	int n;

	(void)state;
	assert_true(count(a) == 1);
	n = both_locks_removed(a);
	assert_true(count(a) == n + 1);
	store_close(a);
}

/* SQLite cannot close the descriptor of a handle while the process has another one, and gives it to the next handle. */
static void test_both_locks_removed_under_a_second_handle(void **state)
{
	struct store *a = open_as(STORE_CREATE), *b;
	int n;

	(void)state;
	assert_true(count(a) == 1);
	b = open_as(STORE_WRITE);
	assert_true(number(b) == 1);
	store_close(b);
	b = open_as(STORE_WRITE);
	n = both_locks_removed(b);
	store_close(b);
	assert_true(count(a) == n + 1);
	store_close(a);
}

static int to_reader, from_reader;

/* The other program: builds an index by a read, waits, and then adds one twice. */
static int read_then_count(const char *where, int in, int out)
{
	struct store *s;
	int64_t n = 0;
	char c = 0;

	snprintf(uri, sizeof(uri), "%s", where);
	s = open_as(STORE_WRITE);
	if (number(s) < 0 || write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
		return FAILED;
	for (int i = 0; i < 2 && n >= 0; i++)
		n = count(s);
	store_close(s);
	return n < 0 ? FAILED : (int)n;
}

static void begin_reader(void)
{
	int to[2], from[2];
	char in[12], out[12], c;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	snprintf(in, sizeof(in), "%d", to[0]);
	snprintf(out, sizeof(out), "%d", from[1]);
	other = fork();
	if (other == 0) {
		execl("/proc/self/exe", "count", uri, in, out, (char *)NULL);
		_exit(98);
	}
	close(to[0]);
	close(from[1]);
	to_reader = to[1];
	from_reader = from[0];
	assert_int_equal(read(from_reader, &c, 1), 1);
}

static void let_a_reader_in(const char *step)
{
	if (strcmp(step, "committing") != 0 || other)
		return;
	unlink(file("-shm"));
	begin_reader();
}

/* While another process builds a new index, our commit restarts the WAL. The other must not write through that index: its
 * frames would follow frames that are gone. */
static void test_wal_begun_anew_under_an_index(void **state)
{
	struct store *a = open_as(STORE_CREATE);
	int status;

	(void)state;
	for (int i = 1; i <= 3; i++)
		assert_true(count(a) == i);
	sq_checkpoint(sq_of(a)); /* so that the next commit restarts the WAL */
	other = 0;
	combine_step = let_a_reader_in;
	assert_true(count(a) == STORE_IO);
	assert_int_equal(err.applied, '?');
	combine_step = NULL;
	store_close(a);
	assert_int_equal(write(to_reader, "", 1), 1);
	assert_int_equal(waitpid(other, &status, 0), other);
	close(to_reader);
	close(from_reader);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != FAILED);
	unlink(file("-shm")); /* what the next process finds is in the WAL */
	a = open_as(STORE_READ);
	assert_int_equal(number(a), WEXITSTATUS(status));
	store_close(a);
}

/* --- files that SQLite may touch --------------------------------------------------------------------------- */

static int64_t ask_open(enum store_mode mode)
{
	struct store_env env = {
		.mode = mode, .opt.timeout_ms = 100, .opt.who = STR("x"), .err = &err
	};
	struct store *s = NULL;
	int64_t n = store_open(&s, str_c(uri), &env);

	if (n == 0) {
		n = mode == STORE_READ ? number(s) : count(s);
		store_close(s);
	}
	return n;
}

static void test_journal(void **state)
{
	struct store *a = open_as(STORE_CREATE);

	(void)state;
	assert_true(count(a) == 1);
	store_close(a);
	assert_int_equal(fs_write_atomic(file("-journal"), STR("x"), 0644), 0);
	assert_true(ask_open(STORE_READ) == STORE_FOREIGN);
	assert_true(ask_open(STORE_WRITE) == STORE_FOREIGN);
	assert_non_null(strstr(err.text, "-journal exists"));
	assert_int_equal(access(file("-journal"), F_OK), 0);
	assert_int_equal(unlink(file("-journal")), 0);
	assert_true(ask_open(STORE_WRITE) == 2);
}

/* This also holds for files that a statement of our own connection opens or deletes. */
static void test_only_its_files(void **state)
{
	struct store *a = open_as(STORE_CREATE);
	sqlite3_vfs *vfs = sqlite3_vfs_find(sq_vfs());
	char sql[200];

	(void)state;
	assert_true(count(a) == 1);
	snprintf(sql, sizeof(sql), "ATTACH '%s' AS x", file("-kept"));
	assert_int_not_equal(sqlite3_exec(sq_of(a)->db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_not_equal(access(file("-kept"), F_OK), 0);
	assert_int_equal(fs_write_atomic(file("-kept"), STR("x"), 0644), 0);
	assert_int_not_equal(vfs->xDelete(vfs, file("-kept"), 0), SQLITE_OK);
	assert_int_not_equal(vfs->xDelete(vfs, file(""), 0), SQLITE_OK);
	assert_int_equal(access(file("-kept"), F_OK), 0);
	store_close(a);
	assert_int_not_equal(vfs->xDelete(vfs, file("-wal"), 0), SQLITE_OK); /* no longer its own */
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(test_index_removed),
		T(test_index_replaced),
		T(test_index_removed_under_two_handles),
		T(test_wal_removed),
		T(test_wal_removed_under_others),
		T(test_wal_cut),
		T(test_database_replaced),
		T(test_gate_removed),
		T(test_reader_follows),
		T(test_removed_before_commit),
		T(test_removed_after_commit),
		T(test_both_locks_removed),
		T(test_both_locks_removed_under_a_second_handle),
		T(test_wal_begun_anew_under_an_index),
		T(test_journal),
		T(test_only_its_files),
	};

	if (argc > 3)
		return read_then_count(argv[1], (int)strtol(argv[2], NULL, 10),
				       (int)strtol(argv[3], NULL, 10));
	if (argc > 1)
		return count_once(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
