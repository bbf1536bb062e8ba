/*
 * The head of a database file. The input: its size and that of its -wal in units of 512 bytes (one
 * byte each), how many bytes of the rest are the -wal's (two), the rest. The file is never touched,
 * and a foreign file gets no other file beside it either.
 */
#include <fcntl.h>
#include <unistd.h>

#include "kit.h"
#include "base/fs.h"
#include "store/sqlite/sqlite.h"

#define UNIT 512

static const char *dir;
static char database[128], wal[136], uri[144];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	dir = fuzz_dir();
	snprintf(database, sizeof(database), "%s/q.db", dir);
	snprintf(wal, sizeof(wal), "%s-wal", database);
	snprintf(uri, sizeof(uri), "sqlite:%s", database);
	return 0;
}

/* The store waits and looks again at a file that seems damaged; nobody changes it here, so do not
 * wait. */
int usleep(useconds_t us)
{
	(void)us;
	return 0;
}

/* With zeros up to `size`. */
static void write_padded(const char *path, struct str bytes, size_t size)
{
	fuzz_write(path, bytes);
	if (size > bytes.n)
		CHECK(truncate(path, (off_t)size) == 0);
}

static struct str content(const char *path, struct arena *a)
{
	struct str text = STR("");

	CHECK(fs_read(a, path, 1 << 20, &text) == 0);
	return text;
}

static int judge(struct sq_header *h, struct store_error *err)
{
	struct sq s = { .path = database, .base.env.err = err };
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, rc;

	CHECK(sqlite3_open_v2(database, &s.db, flags, sq_vfs()) == SQLITE_OK);
	sqlite3_db_config(s.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	rc = sq_header_read(&s, h);
	CHECK(sqlite3_close(s.db) == SQLITE_OK);
	return rc;
}

/* The store itself also leaves a refused file alone. */
static void check_refused(void)
{
	struct store_error err = { 0 };
	struct store_env env = { .mode = STORE_WRITE, .opt.who = STR("fuzz"), .err = &err };
	struct store *s = NULL;

	CHECK(store_open(&s, str_c(uri), &env) < 0);
	CHECK(err.fault < 0 && err.text[0]);
}

static bool only_zeros(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i])
			return false;
	return true;
}

static void check_state(int rc, const struct sq_header *h, const struct store_error *err,
			struct str before)
{
	CHECK(rc == err->fault && !rc == !err->text[0]);
	if (rc < 0) {
		CHECK(rc == STORE_CORRUPT || rc == STORE_FOREIGN || rc == STORE_NEWER ||
		      rc == STORE_OLDER);
	} else if (h->state == SQ_OURS) {
		CHECK(str_starts(before, STR("SQLite format 3\0")) && before.n >= 512);
		CHECK(memcmp(before.p + 68, "pawl", 4) == 0);
		CHECK(memcmp(before.p + 60, "\0\0\0\3", 4) == 0);
	} else if (h->state == SQ_EMPTY) {
		CHECK(only_zeros(before));
	} else {
		CHECK(memcmp(before.p + 68, "\0\0\0\0", 4) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct store_error err = { 0 };
	struct sq_header h;
	struct str rest, before, wal_before;
	size_t n;
	int rc;

	if (size < 4)
		return 0;
	rest = str_n((const char *)data + 4, size - 4);
	n = (size_t)data[2] << 8 | data[3];
	n = n < rest.n ? n : rest.n;
	write_padded(database, str_n(rest.p, rest.n - n), (size_t)data[0] * UNIT);
	if (n)
		write_padded(wal, str_n(rest.p + rest.n - n, n), (size_t)data[1] * UNIT);
	else
		unlink(wal);
	before = content(database, &a);
	wal_before = n ? content(wal, &a) : STR("");

	rc = judge(&h, &err);
	check_state(rc, &h, &err, before);
	if (rc < 0 || h.state != SQ_OURS)
		check_refused();
	CHECK(str_eq(content(database, &a), before));
	CHECK(!n || str_eq(content(wal, &a), wal_before));
	CHECK(fuzz_only(dir, (const char *[]){ "q.db", n ? "q.db-wal" : "q.db", NULL }));
	arena_free(&a);
	return 0;
}
