/* Features of the SQLite store only: foreign files, the gate, the WAL, device faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "core/field.h"
#include "format/record_form.h"
#include "format/pack.h"
#include "kit/scale.h"
#include "kit/skip.h"
#include "kit/tmp.h"
#include "store/sqlite/sqlite.h"

static char dir[64], path[100], uri[160];
static struct store_error err;
static struct arena arena;

/* --- a VFS that counts and fails ---------------------------------------------------------------- */

static sqlite3_vfs *below, counting;
static struct watched {
	sqlite3_io_methods methods;
	const sqlite3_io_methods *original;
} database, wal;
static int syncs, writes, fail_sync, fail_write, short_sizes;

static const sqlite3_io_methods *plain(sqlite3_file *f)
{
	return f->pMethods == &wal.methods ? wal.original : database.original;
}

static bool no_sync;     /* for tests with many changes that are not about durability */
static bool die_in_sync; /* die in the sync of a commit, before SQLite can report it */

static int count_sync(sqlite3_file *f, int flags)
{
	if (die_in_sync)
		_exit(9);
	syncs++;
	if (no_sync)
		return SQLITE_OK;
	return fail_sync ? SQLITE_IOERR_FSYNC : plain(f)->xSync(f, flags);
}

static int count_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	writes++;
	if (fail_write && writes >= fail_write)
		return SQLITE_FULL;
	return plain(f)->xWrite(f, p, n, at);
}

/* As if the file had grown after this look at it. */
static int count_size(sqlite3_file *f, sqlite3_int64 *size)
{
	int rc = database.original->xFileSize(f, size);

	if (rc == SQLITE_OK && short_sizes > 0) {
		short_sizes--;
		*size -= 4096;
	}
	return rc;
}

static int counting_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	struct watched *w = flags & SQLITE_OPEN_WAL       ? &wal
			    : flags & SQLITE_OPEN_MAIN_DB ? &database
							  : NULL;
	int rc = below->xOpen(below, name, f, flags, out);

	(void)v;
	if (rc != SQLITE_OK || !w)
		return rc;
	w->original = f->pMethods;
	w->methods = *w->original;
	w->methods.xSync = count_sync;
	w->methods.xWrite = count_write;
	if (w == &database)
		w->methods.xFileSize = count_size;
	f->pMethods = &w->methods;
	return rc;
}

/* Call it before the store is first used: the store builds on the default VFS. */
static void install_vfs(void)
{
	below = sqlite3_vfs_find(NULL);
	counting = *below;
	counting.pNext = NULL;
	counting.zName = "counting";
	counting.xOpen = counting_open;
	sqlite3_vfs_register(&counting, 1);
}

/* SQLite's own syncs are fdatasync. */
static int folder_syncs;

int fsync(int fd)
{
	folder_syncs++;
	return (int)syscall(SYS_fsync, fd);
}

/* --- helpers ------------------------------------------------------------------------------------ */

static int make_dir(void **state)
{
	(void)state;
	if (!tmp_make(dir, sizeof(dir), "sqlite"))
		return -1;
	snprintf(path, sizeof(path), "%s/q.db", dir);
	snprintf(uri, sizeof(uri), "sqlite:%s", path);
	syncs = writes = fail_sync = fail_write = short_sizes = 0;
	no_sync = false;
	return 0;
}

static int drop_dir(void **state)
{
	char file[400];
	struct dirent *e;
	DIR *d = opendir(dir);

	(void)state;
	while (d && (e = readdir(d))) {
		snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
		if (unlink(file))
			rmdir(file);
	}
	closedir(d);
	arena_free(&arena);
	return rmdir(dir);
}

static int try_open(enum store_mode mode, int64_t timeout_ms, struct store **out)
{
	struct store_env env = {
		.mode = mode, .opt.timeout_ms = timeout_ms, .opt.who = STR("agent-x"), .err = &err
	};

	err = (struct store_error){ 0 };
	return store_open(out, str_c(uri), &env);
}

static struct store *open_ok(enum store_mode mode)
{
	struct store *s = NULL;
	int rc = try_open(mode, 5000, &s);

	if (rc)
		fail_msg("open: %d %s", rc, err.text);
	return s;
}

static int files_in_dir(void)
{
	struct dirent *e;
	DIR *d = opendir(dir);
	int n = 0;

	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static struct str contents(const char *file)
{
	struct str out = { 0 };

	assert_int_equal(fs_read(&arena, file, 64 << 20, &out), 0);
	return out;
}

static void write_file(const char *file, const void *p, size_t n)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fs_write_all(fd, str_n(p, n)), 0);
	close(fd);
}

static void run_sql(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static int64_t ask(const char *sql)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

static int64_t file_size(const char *end)
{
	char file[160];
	struct stat st;

	snprintf(file, sizeof(file), "%s%s", path, end);
	return stat(file, &st) ? -1 : st.st_size;
}

/* Adds one to the number in a record and logs it. */
static int add_one(struct edit *e, void *ctx)
{
	struct record *r;
	int64_t n = 0;
	int rc = edit_get(e, STR("meta/n"), &r);

	if (rc < 0)
		return rc;
	if (rc == 0)
		assert_true(str_to_i64(r->hot, &n));
	else
		r = arena_new(e->arena, struct record);
	r->key = STR("meta/n");
	r->hot = arena_printf(e->arena, "%lld", (long long)n + 1);
	if (ctx) {
		r->body = *(struct str *)ctx;
		r->body_changed = true;
	}
	edit_put(e, r);
	edit_log(e, r->key, STR("one more"));
	return 0;
}

static int change(struct store *s, void *ctx)
{
	struct change c = { .fn = add_one, .ctx = ctx, .rc = 0 };

	return s->ops->modify(s, &c, 1);
}

static int64_t number(struct store *s)
{
	struct record r;
	int64_t n = 0;
	int rc = s->ops->get(s, STR("meta/n"), &r, &arena);

	assert_true(rc >= 0);
	if (rc == 0)
		assert_true(str_to_i64(r.hot, &n));
	return n;
}

static int64_t ms_now(void)
{
	return os_boot_ms();
}

/* --- foreign files ------------------------------------------------------------------------------ */

static void refuse_all(int fault, bool also_create)
{
	struct str before = contents(path);
	struct store *s;

	for (int mode = STORE_READ; mode <= (also_create ? STORE_CREATE : STORE_WRITE); mode++) {
		int rc = try_open(mode, 100, &s);

		if (rc != fault)
			fail_msg("mode %d: %d instead of %d: %s", mode, rc, fault, err.text);
		assert_true(err.text[0]);
		assert_int_equal(err.applied, 'n');
		assert_true(str_eq(before, contents(path)));
		assert_int_equal(files_in_dir(), 1);
	}
}

static void test_not_sqlite(void **state)
{
	char big[9000];

	(void)state;
	memset(big, 'x', sizeof(big));
	write_file(path, "hello", 5);
	refuse_all(STORE_FOREIGN, true);
	write_file(path, big, sizeof(big));
	refuse_all(STORE_FOREIGN, true);
	write_file(path, "SQLite format 3\0and no more", 27);
	refuse_all(STORE_CORRUPT, true);
	write_file(path, "SQLite", 6);
	refuse_all(STORE_CORRUPT, true);
}

static void test_other_program(void **state)
{
	(void)state;
	run_sql("CREATE TABLE t(a);INSERT INTO t VALUES(1)");
	refuse_all(STORE_FOREIGN, true);
	run_sql("PRAGMA application_id=77;PRAGMA user_version=1");
	refuse_all(STORE_FOREIGN, true);
}

/* Our database as one complete file. */
static struct str our_bytes(void)
{
	struct store *s = open_ok(STORE_CREATE);

	for (int i = 0; i < 50; i++)
		assert_int_equal(change(s, NULL), 0);
	store_close(s);
	run_sql("PRAGMA journal_mode=DELETE;PRAGMA journal_mode=WAL");
	return contents(path);
}

static void only_this(struct str bytes)
{
	char file[160];

	write_file(path, bytes.p, bytes.n);
	for (int i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "%s%s", path,
			 (const char *[]){ "-wal", "-shm", "-gate" }[i]);
		unlink(file);
	}
}

static void test_newer(void **state)
{
	char *bytes;
	struct str ours = our_bytes();

	(void)state;
	bytes = arena_cstr(&arena, ours);
	bytes[60 + 2] = 3; /* user_version 768 more than it was */
	only_this(str_n(bytes, ours.n));
	refuse_all(STORE_NEWER, true);
	assert_non_null(strstr(err.text, "version 77"));
}

/* The file stays as it is, for the pawl that wrote it. */
static void test_older(void **state)
{
	char *bytes;
	struct str ours = our_bytes();

	(void)state;
	bytes = arena_cstr(&arena, ours);
	for (char version = 1; version < SQ_VERSION; version++) {
		bytes[60 + 3] = version; /* user_version */
		only_this(str_n(bytes, ours.n));
		refuse_all(STORE_OLDER, true);
		assert_non_null(strstr(err.text, "older pawl"));
		assert_non_null(strstr(err.hint, "pawl export -o tasks.json"));
		assert_non_null(strstr(err.hint, "pawl import tasks.json"));
	}
}

static void test_damaged(void **state)
{
	struct str ours = our_bytes();
	char *bytes = arena_cstr(&arena, ours);
	const size_t cuts[] = { 600, 4095, 4096, ours.n - 4096, ours.n - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		only_this(str_n(ours.p, cuts[i]));
		refuse_all(STORE_CORRUPT, true);
	}
	bytes[16] = 7; /* an impossible page size */
	only_this(str_n(bytes, ours.n));
	refuse_all(STORE_CORRUPT, true);
	memcpy(bytes, ours.p, ours.n);
	bytes[60 + 3] = 0; /* ours, but without a version */
	only_this(str_n(bytes, ours.n));
	refuse_all(STORE_CORRUPT, true);
}

/* A checkpoint may make the file grow between the look at its size and the look at its header. */
static struct str grown; /* the file's content after the store has waited to look again */

int usleep(useconds_t us)
{
	if (grown.n)
		write_file(path, grown.p, grown.n);
	grown = (struct str){ 0 };
	return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0,
			    &(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

static void test_grows_meanwhile(void **state)
{
	struct str ours = our_bytes();
	struct store *s;

	(void)state;
	only_this(ours);
	assert_int_equal(truncate(path, (off_t)ours.n - 4096), 0);
	grown = ours;
	short_sizes = 1;
	s = open_ok(STORE_WRITE);
	assert_int_equal(short_sizes, 0);
	assert_true(grown.n == 0);
	assert_true(number(s) == 50);
	store_close(s);
}

/* The WAL of a truncated database does not restore the pages that the database lacks. */
static void test_cut_with_wal(void **state)
{
	struct store *s;
	struct str big = { 0 };
	char *text;

	(void)state;
	text = mem_alloc(200000);
	memset(text, 'b', 200000);
	big = str_n(text, 200000);
	s = open_ok(STORE_CREATE);
	assert_int_equal(change(s, &big), 0);
	for (int i = 0; i < 60; i++) {
		store_close(s);
		s = open_ok(STORE_WRITE);
		assert_int_equal(change(s, NULL), 0);
	}
	store_close(s);
	free(text);
	assert_true(file_size("-wal") > 0);
	assert_true(file_size("") > 200000);
	assert_int_equal(truncate(path, 100000), 0);
	assert_int_equal(try_open(STORE_WRITE, 100, &s), STORE_CORRUPT);
	assert_true(file_size("") == 100000);
}

/* Damaged pages are found when they are used, and stay as they are. */
static void test_damaged_inside(void **state)
{
	struct str ours = our_bytes();
	char *bytes = arena_cstr(&arena, ours);
	struct store *s;

	(void)state;
	memset(bytes + 108, 0x5a, ours.n - 108);
	only_this(str_n(bytes, ours.n));
	s = open_ok(STORE_WRITE);
	assert_int_equal(change(s, NULL), STORE_CORRUPT);
	assert_int_equal(err.applied, 'n');
	store_close(s);
	assert_true(str_eq(str_n(bytes, ours.n), contents(path)));
}

static void test_no_file(void **state)
{
	struct store *s;
	char other[140];

	(void)state;
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(try_open(STORE_READ, 100, &s), STORE_ABSENT);
	assert_int_equal(try_open(STORE_WRITE, 100, &s), STORE_ABSENT);
	assert_non_null(strstr(err.hint, "pawl init"));
	assert_int_equal(files_in_dir(), 0);

	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(try_open(STORE_CREATE, 100, &s), STORE_FOREIGN);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(try_open(STORE_CREATE, 100, &s), STORE_FOREIGN);
	assert_int_equal(unlink(path), 0);
	write_file(other, "", 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(try_open(STORE_CREATE, 100, &s), STORE_FOREIGN);
	assert_int_equal(files_in_dir(), 2);

	snprintf(uri, sizeof(uri), "sqlite:%s/no/such/q.db", dir);
	assert_int_equal(try_open(STORE_CREATE, 100, &s), STORE_UNREACHABLE);
	assert_int_equal(try_open(STORE_WRITE, 100, &s), STORE_UNREACHABLE);
}

static void test_empty_file(void **state)
{
	struct store *s;

	(void)state;
	write_file(path, "", 0);
	refuse_all(STORE_ABSENT, false);
	s = open_ok(STORE_CREATE);
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	assert_true(ask("PRAGMA application_id") == SQ_APPLICATION);
}

/* The file that remains if creating the layout was interrupted after the switch to WAL. */
static void test_blank_file(void **state)
{
	struct store *s;

	(void)state;
	run_sql("PRAGMA journal_mode=WAL;BEGIN;CREATE TABLE t(a);ROLLBACK");
	assert_true(file_size("") > 0);
	refuse_all(STORE_ABSENT, false);
	s = open_ok(STORE_CREATE);
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
}

static void test_network(void **state)
{
	(void)state;
	assert_null(sq_place_refusal(NULL));
	assert_non_null(strstr(sq_place_refusal("nfs"), "git:"));
}

/* --- columns and versions ----------------------------------------------------------------------- */

/* The columns have the tags and the kinds of their fields. */
static void test_columns(void **state)
{
	static const char *const texts[] = { "title",          "description",    "acceptance",
					     "blocker_reason", "unblock_action", "summary" };
	static const char *const copies[] = { "assignee", "agent_run",   "attempts",
					      "fence",    "archived_at", "holder",
					      "host",     "acquired_at", "expires_at" };
	struct buf b = BUF_MAX(1000);
	struct event e = { .name = STR("n"),
			   .task = STR("t"),
			   .agent = STR("a"),
			   .run = STR("r"),
			   .text = STR("x") };

	(void)state;
	for (size_t i = 0; i < COLUMN_TEXTS; i++)
		assert_int_equal(field_find(str_c(texts[i]))->tag, column_text_tags[i]);
	for (size_t i = 0; i < COLUMN_COPIES; i++) {
		const struct field *f = field_find(str_c(copies[i]));

		assert_true(f->tag == column_copies[i].tag && f->kind == column_copies[i].kind);
	}
	event_pack(&e, &b);
	for (size_t i = 0; i < COLUMN_WORDS; i++)
		assert_int_equal(b.p[3 * i], column_entry_tags[i]);
	buf_free(&b);
}

/* A task's texts come back unchanged, with any bytes. */
static void test_any_text_comes_back(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < SCALE(20000, 2000); i++) {
		struct str columns[COLUMN_TEXTS];
		struct buf packed = BUF_MAX(1000), rest, again = BUF_MAX(2000);
		char noise[300];

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (char)((seed = seed * 1103515245 + 12345) >> 16);
		for (int tag = 1; tag < 30; tag++)
			if (noise[tag] % 3 == 0)
				pack_str(&packed, (uint8_t)(noise[99] % 50 ? tag : noise[tag] & 31),
					 str_n(noise, noise[40 + tag] % 9
							      ? (size_t)(noise[tag] & 15)
							      : 200));
		if (noise[98] % 50 == 0)
			buf_add(&packed, noise, (size_t)(noise[0] & 31));
		if (noise[97] % 50 ==
		    0) /* pack_str() would write this field's length in one byte */
			buf_add(&packed, "\x1f\x81\0x", 4);
		column_split(column_text_tags, COLUMN_TEXTS, buf_str(&packed), columns, &rest);
		column_join(column_text_tags, COLUMN_TEXTS, columns, buf_str(&rest), &again);
		assert_true(str_eq(buf_str(&packed), buf_str(&again)));
		buf_free(&packed);
		buf_free(&rest);
		buf_free(&again);
	}
}

/* A process that has the database open while a newer pawl changes the schema writes nothing more, and says why. */
static void test_newer_meanwhile(void **state)
{
	struct store *s = open_ok(STORE_CREATE), *reader;
	struct record r;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	reader = open_ok(STORE_READ);
	assert_true(number(reader) == 1);
	run_sql("CREATE TABLE more(x);PRAGMA user_version=9999");
	assert_int_equal(change(s, NULL), STORE_NEWER);
	run_sql("ALTER TABLE body RENAME COLUMN summary TO more");
	assert_int_equal(reader->ops->get(reader, STR("meta/n"), &r, &arena), STORE_NEWER);
	store_close(reader);
	store_close(s);
	assert_true(ask("SELECT count(*) FROM event") == 1);
}

/* --- dying in the commit ------------------------------------------------------------------------ */

static int refuse(struct edit *e, void *ctx)
{
	(void)ctx;
	edit_put(e, &(struct record){ .key = STR("meta/refused") });
	return 7;
}

static void die_in_commit(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct store *s = open_ok(STORE_WRITE);

		die_in_sync = true;
		change(s, NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 9);
}

/* A later change did not see the dead commit, even if it only refused. So the commit must not come
 * back when SQLite reads the WAL again. */
static void test_dead_commit_stays_dead(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	struct change c = { .fn = refuse };

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	die_in_commit();
	assert_true(number(s) == 1);
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	assert_int_equal(c.rc, 7);
	store_close(s);
	s = open_ok(STORE_WRITE);
	assert_true(number(s) == 1);
	assert_int_equal(change(s, NULL), 0);
	assert_true(number(s) == 2);
	store_close(s);
}

/* --- the gate ----------------------------------------------------------------------------------- */

static int stop_inside(struct edit *e, void *ctx)
{
	int rc = add_one(e, NULL);

	(void)!write(*(int *)ctx, "x", 1);
	raise(SIGSTOP);
	return rc;
}

/* A process that is stopped in the middle of its change. */
static pid_t stopped_writer(void)
{
	int fds[2], status;
	char c;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct change ch = { .fn = stop_inside, .ctx = &fds[1], .rc = 0 };
		struct store *s = open_ok(STORE_WRITE);

		s->ops->modify(s, &ch, 1);
		_exit(0);
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	waitpid(pid, &status, WUNTRACED);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void test_stopped_writer(void **state)
{
	struct store *s = open_ok(STORE_CREATE), *reader;
	int64_t start;
	char pid_text[30];
	pid_t pid;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	pid = stopped_writer();
	start = ms_now();
	reader = open_ok(STORE_READ);
	assert_true(number(reader) == 1);
	assert_true(reader->ops->now(reader) > 0);
	store_close(reader);
	assert_true(ms_now() - start < 1000);

	start = ms_now();
	assert_int_equal(try_open(STORE_WRITE, 300, &s), 0);
	assert_true(number(s) == 1);
	assert_int_equal(change(s, NULL), STORE_BUSY);
	assert_true(ms_now() - start >= 250 && ms_now() - start < 3000);
	assert_int_equal(err.applied, 'n');
	assert_non_null(strstr(err.text, "agent-x"));
	snprintf(pid_text, sizeof(pid_text), "pid %ld", (long)pid);
	assert_non_null(strstr(err.text, pid_text));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(change(s, NULL), 0);
	assert_true(number(s) == 2);
	store_close(s);
}

/* A program that does not know the gate holds SQLite's own lock. */
static void test_foreign_lock(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	int64_t start;
	sqlite3 *db;

	(void)state;
	store_close(s);
	assert_int_equal(try_open(STORE_WRITE, 300, &s), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	start = ms_now();
	assert_int_equal(change(s, NULL), STORE_BUSY);
	assert_true(ms_now() - start >= 200 && ms_now() - start < 3000);
	assert_true(number(s) == 0);
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	assert_int_equal(change(s, NULL), 0);
	sqlite3_close(db);
	store_close(s);
}

static void test_bad_gate(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	char gate[140], other[140];

	(void)state;
	store_close(s);
	snprintf(gate, sizeof(gate), "%s-gate", path);
	snprintf(other, sizeof(other), "%s/other", dir);
	write_file(other, "precious", 8);
	assert_int_equal(unlink(gate), 0);
	assert_int_equal(symlink(other, gate), 0);
	s = open_ok(STORE_WRITE);
	assert_int_equal(change(s, NULL), STORE_FOREIGN);
	store_close(s);
	assert_true(str_is(contents(other), "precious"));
	assert_int_equal(unlink(gate), 0);
	s = open_ok(STORE_WRITE);
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
}

static void test_fork(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	pid = fork();
	if (pid == 0) {
		struct record r;
		int64_t counts[16];
		int ok = change(s, NULL) == STORE_IO && strstr(err.text, "fork") &&
			 s->ops->get(s, STR("meta/n"), &r, &arena) == STORE_IO &&
			 s->ops->tally(s, counts) == STORE_IO;

		store_close(s);
		_exit(ok ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(change(s, NULL), 0);
	assert_true(number(s) == 2);
	store_close(s);
}

static void test_create_race(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		pid_t pids[8];
		struct store *s;
		int status;

		for (int i = 0; i < 8; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				int ok = try_open(STORE_CREATE, 20000, &s) == 0 &&
					 change(s, NULL) == 0;

				if (!ok)
					fprintf(stderr, "%s\n", err.text);
				else
					store_close(s);
				_exit(ok ? 0 : 1);
			}
		}
		for (int i = 0; i < 8; i++) {
			waitpid(pids[i], &status, 0);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		}
		s = open_ok(STORE_READ);
		assert_true(number(s) == 8);
		store_close(s);
		drop_dir(NULL);
		assert_int_equal(make_dir(NULL), 0);
	}
}

/* --- the WAL ------------------------------------------------------------------------------------ */

static void test_wal_bounded(void **state)
{
	struct store *s = open_ok(STORE_CREATE);

	(void)state;
	no_sync = true;
	for (int i = 0; i < 5000; i++)
		assert_int_equal(change(s, NULL), 0);
	store_close(s);
	assert_true(file_size("-wal") < 5 << 20);
	assert_true(ask("SELECT count(*) FROM event") == 5000);
}

/* Each process runs alone: the next one must find a short WAL, and not read more and more. */
static void test_wal_bounded_alone(void **state)
{
	struct store *s = open_ok(STORE_CREATE);

	(void)state;
	no_sync = true;
	for (int i = 0; i < 600; i++) {
		store_close(s);
		s = open_ok(STORE_WRITE);
		assert_int_equal(change(s, NULL), 0);
	}
	assert_true(number(s) == 600);
	store_close(s);
	assert_true(file_size("-wal") < 1 << 20);
}

static void test_one_sync(void **state)
{
	struct store *s = open_ok(STORE_CREATE);

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(change(s, NULL), 0);
		store_close(s);
		s = open_ok(STORE_WRITE);
		syncs = 0;
	}
	assert_int_equal(change(s, NULL), 0);
	assert_int_equal(syncs, 1);
	assert_true(number(s) == 4);
	assert_int_equal(syncs, 1);
	store_close(s);
	assert_int_equal(syncs, 1);
}

/* A process was killed before it could sync the folder of a new WAL; the first that finds it syncs
 * the folder, once. */
static void test_folder_sync(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	char gate[140];

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	snprintf(gate, sizeof(gate), "%s-gate", path);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(unlink(gate), 0); /* and with it the note */
		folder_syncs = 0;
		for (int i = 0; i < 3; i++) {
			s = open_ok(STORE_WRITE);
			assert_int_equal(change(s, NULL), 0);
			assert_int_equal(change(s, NULL), 0);
			store_close(s);
			assert_int_equal(folder_syncs, 1);
		}
	}
	/* there is no WAL any more */
	run_sql("PRAGMA journal_mode=DELETE;PRAGMA journal_mode=WAL");
	s = open_ok(STORE_WRITE);
	assert_int_equal(change(s, NULL), 0); /* SQLite syncs the folder */
	assert_int_equal(folder_syncs, 1);
	store_close(s);
	s = open_ok(STORE_WRITE);
	assert_int_equal(change(s, NULL), 0);
	assert_int_equal(folder_syncs, 2); /* for a new WAL */
	store_close(s);
}

static void test_refusal_is_free(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	struct change c = { .fn = refuse, .ctx = NULL, .rc = 0 };

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	syncs = writes = 0;
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	assert_int_equal(c.rc, 7);
	assert_int_equal(syncs, 0);
	assert_int_equal(writes, 0);
	store_close(s);
}

static int expiring(struct edit *e, void *ctx)
{
	for (int i = 0; i < 20; i++) {
		struct record r = { .key = arena_printf(e->arena, "going/%d", i),
				    .ix = { .lane = i % 2 ? LANE_GOING : LANE_LATER,
					    .eligible_at = e->now + 20 } };

		edit_put(e, &r);
	}
	(void)ctx;
	return 0;
}

/* Records that came due are moved and swept along with a change, but not with one that is refused
 * and rolled back. */
static void test_refusal_moves_nothing(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	struct change c = { .fn = expiring, .ctx = NULL, .rc = 0 };
	int before;

	(void)state;
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	usleep(30000);
	before = sqlite3_total_changes(sq_of(s)->db);
	c.fn = refuse;
	for (int i = 0; i < 3; i++)
		assert_int_equal(s->ops->modify(s, &c, 1), 0);
	assert_int_equal(sqlite3_total_changes(sq_of(s)->db), before);
	assert_true(ask("SELECT count(*) FROM record WHERE lane=4") == 10);
	assert_int_equal(change(s, NULL), 0);
	assert_true(ask("SELECT count(*) FROM record WHERE lane=4") == 0);
	assert_true(ask("SELECT count(*) FROM record WHERE lane=1 AND wake=0") == 10);
	store_close(s);
}

/* --- a cache that overflows --------------------------------------------------------------------- */

static char page[4000];

/* More pages than fit into the cache. */
static int put_many(struct edit *e, void *ctx)
{
	int n = *(int *)ctx;

	for (int i = 0; i < n; i++) {
		struct record r = { .key = arena_printf(e->arena, "task/big%d", i),
				    .ix = { .status = 2, .lane = LANE_READY },
				    .body = str_n(page, sizeof(page)),
				    .body_changed = true };

		r.ix.id = arena_printf(e->arena, "big%d", i * 7 % n);
		edit_put(e, &r);
	}
	return 0;
}

static int fault(struct edit *e, void *ctx)
{
	(void)ctx;
	return store_fail(&e->store->env, STORE_IO, NULL, "a fault");
}

static void small_cache(struct store *s)
{
	assert_int_equal(sqlite3_exec(sq_of(s)->db, "PRAGMA cache_size=10", NULL, NULL, NULL),
			 SQLITE_OK);
}

static void others_change(int times)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct store *s = open_ok(STORE_WRITE);

		for (int i = 0; i < times; i++)
			if (change(s, NULL)) {
				fprintf(stderr, "%d %s\n", err.fault, err.text);
				_exit(1);
			}
		store_close(s);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void assert_sound(int64_t n)
{
	struct store *s = open_ok(STORE_READ);

	assert_true(number(s) == n);
	store_close(s);
	assert_true(ask("SELECT count(*) FROM event") == n);
	assert_true(ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") ==
		    1);
}

/* A change is rolled back after a part of it went to the WAL. Then others commit, then we make a
 * change. None of the others' changes may be lost. */
static void test_taken_back(void **state)
{
	enum { CHANGE, READ, CHECKPOINT, CLOSE, ALL };

	(void)state;
	for (int round = 0; round < 2 * ALL; round++) {
		int after = round % ALL, n = 20 + 7 * round;
		struct store *s = open_ok(STORE_CREATE);
		struct change two[] = { { .fn = put_many, .ctx = &n }, { .fn = fault } };

		small_cache(s);
		assert_int_equal(change(s, NULL), 0);
		writes = 0;
		assert_int_equal(s->ops->modify(s, two, 2), STORE_IO);
		assert_true(writes > 0); /* otherwise the test shows nothing */
		others_change(30);
		if (after == CHANGE)
			assert_int_equal(change(s, NULL), 0);
		else if (after == READ)
			assert_true(number(s) == 31);
		else if (after == CHECKPOINT)
			sq_checkpoint(sq_of(s));
		store_close(s);
		assert_sound(after == CHANGE ? 32 : 31);
		drop_dir(NULL);
		assert_int_equal(make_dir(NULL), 0);
	}
}

/* The same if SQLite itself rolls back: the nth write fails for lack of room. */
static void test_taken_back_by_sqlite(void **state)
{
	(void)state;
	for (int n = 1; n < 100; n = n * 3 / 2 + 1) {
		int count = 40, rc;
		struct store *s = open_ok(STORE_CREATE);
		struct change big = { .fn = put_many, .ctx = &count };

		small_cache(s);
		assert_int_equal(change(s, NULL), 0);
		writes = 0;
		fail_write = n;
		rc = s->ops->modify(s, &big, 1);
		fail_write = 0;
		others_change(30);
		assert_int_equal(change(s, NULL), 0);
		store_close(s);
		assert_sound(32);
		assert_true(ask("SELECT count(*) FROM body") == (rc ? 0 : count));
		drop_dir(NULL);
		assert_int_equal(make_dir(NULL), 0);
	}
}

/* And without memory, at an unpredictable place. */
static sqlite3_mem_methods memory;
static int allocations, fail_allocation;

static void *count_malloc(int n)
{
	allocations++;
	return fail_allocation && allocations >= fail_allocation ? NULL : memory.xMalloc(n);
}

static void *count_realloc(void *p, int n)
{
	allocations++;
	return fail_allocation && allocations >= fail_allocation ? NULL : memory.xRealloc(p, n);
}

static void install_memory(void)
{
	sqlite3_mem_methods mine;

	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);
	mine = memory;
	mine.xMalloc = count_malloc;
	mine.xRealloc = count_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
}

static void test_no_memory(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	int count = 40, total;
	struct change big = { .fn = put_many, .ctx = &count };
	int64_t n = 1;

	(void)state;
	small_cache(s);
	assert_int_equal(change(s, NULL), 0);
	allocations = 0;
	assert_int_equal(s->ops->modify(s, &big, 1), 0);
	total = allocations;
	for (int i = 1; i < total; i += total / 25 + 1) {
		allocations = 0;
		fail_allocation = i;
		(void)s->ops->modify(s, &big, 1);
		fail_allocation = 0;
		others_change(5);
		assert_int_equal(change(s, NULL), 0);
		n += 6;
		assert_true(number(s) == n);
	}
	store_close(s);
	assert_sound(n);
}

/* A committed change is complete in the file for a process that recovers it after a crash,
 * including the checksums of frames that were overwritten. */
static void test_overflow_survives(void **state)
{
	char wal_path[140];
	struct str database_bytes, wal_bytes;

	(void)state;
	for (int relaxed = 0; relaxed < 2; relaxed++) {
		struct store_env env = { .mode = STORE_CREATE,
					 .opt.timeout_ms = 5000,
					 .opt.relaxed = relaxed,
					 .opt.who = STR("a"),
					 .err = &err };
		int count = 100;
		struct change many[] = { { .fn = put_many, .ctx = &count },
					 { .fn = put_many, .ctx = &count } };
		struct store *s;

		assert_int_equal(store_open(&s, str_c(uri), &env), 0);
		small_cache(s);
		assert_int_equal(change(s, NULL), 0);
		assert_int_equal(change(s, NULL), 0);
		assert_int_equal(s->ops->modify(s, many, 2), 0);
		snprintf(wal_path, sizeof(wal_path), "%s-wal", path);
		database_bytes = contents(path);
		wal_bytes = contents(wal_path);
		store_close(s);
		only_this(database_bytes);
		write_file(wal_path, wal_bytes.p, wal_bytes.n);
		assert_sound(2);
		assert_true(ask("SELECT count(*) FROM body") == count);
		drop_dir(NULL);
		assert_int_equal(make_dir(NULL), 0);
	}
}

/* --- device faults ------------------------------------------------------------------------------ */

static void test_sync_fails(void **state)
{
	struct store *s = open_ok(STORE_CREATE);

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	fail_sync = 1;
	assert_int_equal(change(s, NULL), STORE_IO);
	assert_int_equal(err.applied, '?');
	fail_sync = 0;
	assert_int_equal(change(s, NULL), 0);
	assert_true(number(s) >= 2);
	store_close(s);
	assert_true(ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") ==
		    1);
}

/* The nth write fails for lack of room, for every n until it succeeds. */
static void test_no_room(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	int n, rc = STORE_FULL;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	for (n = 1; rc == STORE_FULL; n++) {
		assert_true(number(s) == 1);
		writes = 0;
		fail_write = n;
		rc = change(s, NULL);
		if (rc)
			assert_int_equal(err.applied, 'n');
		fail_write = 0;
	}
	assert_int_equal(rc, 0);
	assert_true(n > 2); /* a small commit is one write */
	assert_true(number(s) == 2);
	store_close(s);
	assert_true(ask("SELECT count(*) FROM event") == 2);
}

/* The exit code of a child that runs fn(). */
static int in_child(int (*fn)(void), bool as_root)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!as_root && getuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(100);
		_exit(fn());
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int full_in_child(void)
{
	struct rlimit limit;
	struct store *s = open_ok(STORE_WRITE);
	struct str big = str_n(mem_alloc(400000), 400000);

	memset((char *)big.p, 'x', big.n);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 200000;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (change(s, &big) != STORE_FULL || err.applied != 'n' || number(s) != 1) {
		fprintf(stderr, "%d %c %s\n", err.fault, err.applied, err.text);
		return 1;
	}
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (change(s, &big) != 0 || number(s) != 2)
		return 2;
	store_close(s);
	return 0;
}

static void test_file_limit(void **state)
{
	struct store *s = open_ok(STORE_CREATE);

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	assert_int_equal(in_child(full_in_child, true), 0);
	assert_true(ask("SELECT count(*) FROM event") == 2);
}

/* On a disk without space even for the gate: a fault, not a signal. */
static int full_disk(void)
{
	char big[4096] = { 0 }, gate[140];
	struct store *s;
	int fd, rc;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=300k"))
		return 77;
	s = open_ok(STORE_CREATE);
	if (change(s, NULL))
		return 1;
	store_close(s);
	snprintf(gate, sizeof(gate), "%s-gate", path);
	unlink(gate);
	snprintf(gate, sizeof(gate), "%s/fill", dir);
	fd = open(gate, O_WRONLY | O_CREAT, 0644);
	while (write(fd, big, sizeof(big)) > 0)
		;
	close(fd);
	s = open_ok(STORE_WRITE);
	rc = change(s, NULL);
	if (rc != STORE_FULL || err.applied != 'n')
		return 2;
	unlink(gate);
	return change(s, NULL) == 0 && number(s) == 2 ? 0 : 3;
}

static void test_full_disk(void **state)
{
	int code = in_child(full_disk, true);

	(void)state;
	if (code == 77)
		skip_because("needs the right to mount");
	assert_int_equal(code, 0);
}

static void test_gate_cut(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	char gate[140];

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	snprintf(gate, sizeof(gate), "%s-gate", path);
	assert_int_equal(truncate(gate, 0), 0);
	assert_int_equal(change(s, NULL), 0);
	assert_int_equal(change(s, NULL), 0);
	assert_true(file_size("-gate") > GATE_SIZE); /* complete, with its counters */
	assert_true(number(s) == 3);
	store_close(s);
}

static int as_nobody(void)
{
	struct store *s;
	int rc;

	rc = try_open(STORE_WRITE, 100, &s);
	if (rc == 0)
		rc = change(s, NULL);
	if (rc != STORE_READONLY || err.applied != 'n')
		return 2;
	if (try_open(STORE_READ, 100, &s) != 0 || number(s) != 1)
		return 3;
	store_close(s);
	snprintf(uri, sizeof(uri), "sqlite:%s/new.db", dir);
	if (try_open(STORE_CREATE, 100, &s) != STORE_READONLY)
		return 4;
	return 0;
}

static void test_read_only_folder(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	int code;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	chmod(dir, 0555);
	chmod(path, 0444);
	code = in_child(as_nobody, false);
	chmod(dir, 0755);
	assert_int_equal(code, 0);
	assert_true(ask("SELECT count(*) FROM event") == 1);
}

static int read_without_shm(void)
{
	struct store *s;
	struct record r;
	int rc = try_open(STORE_READ, 100, &s);

	if (rc == 0)
		rc = s->ops->get(s, STR("meta/n"), &r, &arena);
	if (rc != STORE_READONLY || strstr(err.text, "gone") || !strstr(err.text, "cannot read")) {
		fprintf(stderr, "%d %s\n", rc, err.text);
		return 1;
	}
	return 0;
}

static void test_reader_without_shm(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	char shm[140];
	int rc;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	snprintf(shm, sizeof(shm), "%s-shm", path);
	unlink(shm);
	chmod(dir, 0555);
	rc = in_child(read_without_shm, false);
	chmod(dir, 0755);
	assert_int_equal(rc, 0);
}

static void test_deleted(void **state)
{
	struct store *s = open_ok(STORE_CREATE);

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(change(s, NULL), STORE_UNREACHABLE);
	store_close(s);
}

/* --- kill -9 ------------------------------------------------------------------------------------ */

static _Noreturn void write_until_killed(int out)
{
	struct store *s = open_ok(STORE_WRITE);

	for (;;) {
		int64_t n;

		if (change(s, NULL))
			_exit(1);
		n = number(s);
		(void)!write(out, &n, sizeof(n));
		if (n % 7 == 0) {
			store_close(s);
			s = open_ok(STORE_WRITE);
		}
	}
}

static void test_kill(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	unsigned seed = 1;
	int64_t acknowledged = 0, rounds = SCALE(200, 50);

	(void)state;
	store_close(s);
	for (int round = 0; round < rounds; round++) {
		int fds[2];
		int64_t n;
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (pid == 0)
			write_until_killed(fds[1]);
		close(fds[1]);
		if (round % 2) /* otherwise it may be killed before it has done anything */
			assert_int_equal(read(fds[0], &acknowledged, sizeof(n)), sizeof(n));
		usleep(500 + rand_r(&seed) % 8000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while (read(fds[0], &n, sizeof(n)) == sizeof(n))
			acknowledged = n;
		close(fds[0]);
		s = open_ok(STORE_READ);
		n = number(s);
		assert_true(n == acknowledged || n == acknowledged + 1);
		acknowledged = n;
		store_close(s);
	}
	assert_true(acknowledged >= rounds / 2);
	assert_true(ask("SELECT count(*) FROM event") == acknowledged);
	assert_true(ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") ==
		    1);
}

/* --- clock and check ---------------------------------------------------------------------------- */

static int64_t wall_ms, boot_ms;

static int64_t wall(void)
{
	return wall_ms;
}

static int64_t boot(void)
{
	return boot_ms;
}

static struct store *open_in_boot(const char *boot_id, enum store_mode mode)
{
	struct store_env env = { .mode = mode,
				 .opt.timeout_ms = 1000,
				 .opt.who = STR("a"),
				 .opt.wall = wall,
				 .opt.boot = boot,
				 .opt.boot_id = str_c(boot_id),
				 .err = &err };
	struct store *s = NULL;

	assert_int_equal(store_open(&s, str_c(uri), &env), 0);
	return s;
}

static int hold(struct edit *e, void *ctx)
{
	struct record r = { .key = STR("task/held"),
			    .ix = { .lane = LANE_LATER,
				    .status = 3,
				    .holder = STR("h"),
				    .eligible_at = e->now + 60000,
				    .id = STR("held") } };

	if (*(int *)ctx)
		edit_put(e, &r);
	else
		edit_drop(e, r.key);
	edit_log(e, r.key, STR("x"));
	return 0;
}

static void test_clock(void **state)
{
	int on = 1;
	struct change c = { .fn = hold, .ctx = &on, .rc = 0 };
	struct store *s, *other;
	int64_t now;

	(void)state;
	wall_ms = 1000000000, boot_ms = 5000;
	s = open_in_boot("one", STORE_CREATE);
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	now = s->ops->now(s);
	assert_true(now == wall_ms);
	wall_ms += 3600000; /* set by hand while a task is held */
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	assert_true(s->ops->now(s) == now);
	other = open_in_boot("one", STORE_READ);
	assert_true(other->ops->now(other) == now);
	on = 0;
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	assert_true(s->ops->now(s) == now);
	/* now nothing is held, and the store follows */
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	assert_true(s->ops->now(s) == wall_ms);
	assert_true(other->ops->now(other) == wall_ms);
	store_close(other);
	store_close(s);

	now = wall_ms;
	boot_ms = 10; /* another boot, with a clock that lost its battery */
	wall_ms = 1000;
	on = 1;
	other = open_in_boot("two", STORE_READ);
	assert_true(other->ops->now(other) == now);
	s = open_in_boot("two", STORE_WRITE);
	boot_ms += 70000;
	assert_true(other->ops->now(other) == now + 70000);
	store_close(other);
	store_close(s);
}

struct findings {
	int bad, note, all;
	char bad_what[40], fix[300]; /* the latest finding */
};

static void note_finding(void *ctx, enum check_level level, const char *what, struct str text,
			 struct str fix)
{
	struct findings *f = ctx;

	f->all++;
	f->bad += level == CHECK_BAD;
	f->note += level == CHECK_NOTE;
	if (level == CHECK_BAD)
		snprintf(f->bad_what, sizeof(f->bad_what), "%s", what);
	if (fix.n)
		snprintf(f->fix, sizeof(f->fix), "%.*s", STRF(fix));
	assert_true(text.n > 0);
	assert_true(level == CHECK_OK || fix.n > 0);
}

static struct findings check(void)
{
	struct findings f = { 0 };
	struct store *s = open_ok(STORE_READ);

	assert_int_equal(s->ops->check(s, note_finding, &f), 0);
	store_close(s);
	return f;
}

static void test_check(void **state)
{
	int on = 1;
	struct change c = { .fn = hold, .ctx = &on, .rc = 0 };
	struct store *s = open_ok(STORE_CREATE);
	struct findings f;

	(void)state;
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	store_close(s);
	f = check();
	assert_true(f.all >= 9);
	assert_int_equal(f.bad, 0);
	assert_int_equal(f.note, 0);
	chmod(path, 0666);
	assert_int_equal(check().note, 1);
	chmod(path, 0644);
	run_sql("UPDATE tally SET n=5 WHERE status=3");
	f = check();
	assert_int_equal(f.bad, 1);
	assert_string_equal(f.bad_what, "counts");
	run_sql("UPDATE tally SET n=1 WHERE status=3;INSERT INTO link VALUES(1,'task/x',1)");
	f = check();
	assert_int_equal(f.bad, 1);
	assert_string_equal(f.bad_what, "links");
}

static int check_as_other(void)
{
	struct findings f = check();

	return f.bad != 5 || strcmp(f.bad_what, "permissions") != 0;
}

static int check_read_only(void)
{
	return check().bad;
}

static void test_check_rights(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	int rc;

	(void)state;
	assert_int_equal(change(s, NULL), 0);
	chmod(dir, 0555);
	for (int i = 0; i < 4; i++) {
		char file[140];

		snprintf(file, sizeof(file), "%s%s", path,
			 (const char *[]){ "", "-wal", "-shm", "-gate" }[i]);
		chmod(file, 0444);
	}
	rc = in_child(check_as_other, false);
	chmod(dir, 0755);
	assert_int_equal(rc, 0);
	if (getuid() == 0)
		assert_int_equal(check_read_only(), 0);
	store_close(s);
}

static void test_quoted_fix(void **state)
{
	struct findings f;
	struct store *s;

	(void)state;
	snprintf(path, sizeof(path), "%s/it's $(me).db", dir);
	snprintf(uri, sizeof(uri), "sqlite:%s", path);
	s = open_ok(STORE_CREATE);
	store_close(s);
	chmod(path, 0666);
	f = check();
	assert_int_equal(f.note, 1);
	assert_non_null(strstr(f.fix, "/it'\\''s $(me).db'"));
	snprintf(uri, sizeof(uri), "sqlite:%s?queue=x; touch y", path);
	assert_int_equal(try_open(STORE_WRITE, 100, &s), STORE_ABSENT);
	assert_string_equal(err.hint, "pawl init --queue 'x; touch y'");
	snprintf(uri, sizeof(uri), "sqlite:%s?queue=plain", path);
	assert_int_equal(try_open(STORE_WRITE, 100, &s), STORE_ABSENT);
	assert_string_equal(err.hint, "pawl init --queue plain");
}

/* --- cost --------------------------------------------------------------------------------------- */

#define MANY 20000

/* Eligible tasks, and as many of a better rank that are held for long. */
static int fill(struct edit *e, void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 2 * MANY; i++) {
		struct record r = { .ix = { .status = 2,
					    .class_rank = 3,
					    .priority = i % 5,
					    .created_at = i,
					    .updated_at = i } };

		r.ix.id = arena_printf(e->arena, "t%d", i);
		r.key = arena_printf(e->arena, "task/t%d", i);
		r.ix.lane = LANE_READY;
		if (i >= MANY) {
			r.ix.lane = LANE_LATER;
			r.ix.class_rank = 1;
			r.ix.eligible_at = e->now + 3600000 + i;
			r.ix.status = 3;
			r.ix.holder = STR("somebody");
			r.ix.token = r.ix.id;
		}
		edit_put(e, &r);
	}
	return 0;
}

static int count_work(void *ctx)
{
	++*(int *)ctx;
	return 0;
}

static int take_first(struct edit *e, void *ctx)
{
	struct record *r;
	int rc = edit_first(e, ctx, &r);

	if (rc)
		return rc;
	r->ix.lane = LANE_LATER;
	r->ix.eligible_at = e->now + 60000;
	edit_put(e, r);
	return 0;
}

static int stop_at_first(const struct record *r, void *ctx)
{
	(void)r, (void)ctx;
	return 1;
}

/* In thousands of steps of SQLite's virtual machine: each call looks at a few rows, not at
 * thousands. */
static void test_cost(void **state)
{
	struct store *s = open_ok(STORE_CREATE);
	struct query queries[] = {
		{ .pick = PICK_ELIGIBLE },
		{ .pick = PICK_ELIGIBLE, .class_rank = 3 },
		{ .pick = PICK_ELIGIBLE, .waiting = LANES_WAITING },
		{ .pick = PICK_LATER },
		{ .pick = PICK_LATER, .waiting = LANES_WAITING },
		{ .pick = PICK_ALL },
		{ .pick = PICK_ALL, .statuses = 1 << 3 },
		{ .pick = PICK_ALL, .token = STR("t20007") },
		{ .pick = PICK_ALL, .after = STR("task/t15000") },
		{ .pick = PICK_ALL, .parent = STR("task/x") },
		{ .pick = PICK_ALL, .depends_on = STR("task/x") },
	};
	struct change c = { .fn = fill, .ctx = NULL, .rc = 0 };
	int64_t n;
	int work = 0;

	(void)state;
	assert_int_equal(s->ops->modify(s, &c, 1), 0);
	sqlite3_progress_handler(sq_of(s)->db, 1000, count_work, &work);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		work = 0;
		assert_int_equal(s->ops->scan(s, &queries[i], stop_at_first, NULL), 0);
		if (work > 2)
			fail_msg("query %zu: %d thousand steps", i, work);
	}
	for (int i = 0; i < 2; i++) {
		work = 0;
		c = (struct change){ .fn = take_first, .ctx = &queries[i], .rc = 0 };
		assert_int_equal(s->ops->modify(s, &c, 1), 0);
		assert_int_equal(c.rc, 0);
		assert_true(work <= 2);
	}
	work = 0;
	assert_int_equal(s->ops->count(s, &(struct query){ .statuses = 1 << 2 }, &n), 0);
	assert_true(n == MANY);
	assert_true(work <= 1);
	store_close(s);
}

/* A relative path keeps its meaning when the process changes its folder. */
static void test_relative(void **state)
{
	struct store *s;
	char *before = getcwd(NULL, 0);

	(void)state;
	assert_int_equal(chdir(dir), 0);
	snprintf(uri, sizeof(uri), "sqlite:file:q");
	s = open_ok(STORE_CREATE);
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	s = open_ok(STORE_WRITE);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(change(s, NULL), 0);
	store_close(s);
	assert_int_equal(chdir(before), 0);
	free(before);
	snprintf(path, sizeof(path), "%s/file:q", dir);
	assert_true(file_size("") > 0 && file_size("-gate") > 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_not_sqlite),
		T(test_other_program),
		T(test_newer),
		T(test_older),
		T(test_damaged),
		T(test_grows_meanwhile),
		T(test_cut_with_wal),
		T(test_damaged_inside),
		T(test_no_file),
		T(test_empty_file),
		T(test_blank_file),
		T(test_network),
		T(test_columns),
		T(test_any_text_comes_back),
		T(test_newer_meanwhile),
		T(test_dead_commit_stays_dead),
		T(test_stopped_writer),
		T(test_foreign_lock),
		T(test_bad_gate),
		T(test_fork),
		T(test_create_race),
		T(test_wal_bounded),
		T(test_wal_bounded_alone),
		T(test_one_sync),
		T(test_folder_sync),
		T(test_refusal_is_free),
		T(test_refusal_moves_nothing),
		T(test_taken_back),
		T(test_taken_back_by_sqlite),
		T(test_no_memory),
		T(test_overflow_survives),
		T(test_sync_fails),
		T(test_no_room),
		T(test_file_limit),
		T(test_full_disk),
		T(test_gate_cut),
		T(test_read_only_folder),
		T(test_reader_without_shm),
		T(test_deleted),
		T(test_kill),
		T(test_clock),
		T(test_check),
		T(test_check_rights),
		T(test_quoted_fix),
		T(test_cost),
		T(test_relative),
	};

	install_memory();
	install_vfs();
	return cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
