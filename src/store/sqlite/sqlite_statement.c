/* The cache of prepared statements, and the translation of SQLite's errors into faults. sq_give() resets a statement, so
 * that a statement in the cache never keeps a read transaction open. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/sqlite/sqlite.h"

#define CHECKS_EVERY 1000 /* ms */

void sq_disconnect(struct sq *s)
{
	sq_files_unlock(s);
	for (size_t i = 0; i < SQ_CACHE && s->cache[i].st; i++)
		sqlite3_finalize(s->cache[i].st);
	memset(s->cache, 0, sizeof(s->cache));
	sqlite3_finalize(s->rollback);
	s->rollback = NULL;
	sqlite3_close_v2(s->db);
	s->db = NULL;
	s->durability_set = s->folder_synced = s->shape_known = s->lost = false;
}

static int connect_again(struct sq *s)
{
	struct stat st;
	int rc;

	if (lstat(s->path, &st) || st.st_ino != s->file.st_ino || st.st_dev != s->file.st_dev)
		return sq_files_fail(s, SQ_DATABASE_GONE);
	rc = sq_connect(s);
	if (rc < 0)
		sq_disconnect(s);
	return rc;
}

int sq_guard(struct sq *s)
{
	if (s->changing || getpid() == s->pid) /* a change has called this before it began */
		return s->db ? 0 : connect_again(s);
	return store_fail(&s->base.env, STORE_IO, "open the store again in the child",
			  "%s was opened before a fork: SQLite connections do not survive one",
			  s->path);
}

/* A long-lived handle must not keep reading files that were removed or replaced. */
static int check_again(struct sq *s)
{
	int64_t now = os_boot_ms();
	enum sq_files what;

	if (now - s->checked_ms < CHECKS_EVERY)
		return 0;
	s->checked_ms = now;
	what = sq_files_check(s);
	if (what == SQ_FILES_STAND)
		return 0;
	sq_disconnect(s);
	return what == SQ_INDEX_GONE ? connect_again(s) : sq_files_fail(s, what);
}

int sq_read_guard(struct sq *s)
{
	int rc = sq_guard(s);

	if (rc < 0 || s->changing || s->depth)
		return rc;
	rc = check_again(s);
	return rc < 0 ? rc : sq_shape_check(s);
}

/* --- faults ------------------------------------------------------------------------------------- */

static bool no_room(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EFBIG;
}

static bool no_right(int err)
{
	return err == EACCES || err == EPERM || err == EROFS;
}

/* The database exists, but its -wal or -shm does not, and this user cannot create files in the folder. */
static bool needs_writer(struct sq *s)
{
	struct arena a = { 0 };
	const char *dir = arena_cstr(&a, fs_dirname(str_c(s->path)));
	bool closed = faccessat(AT_FDCWD, s->path, F_OK, AT_EACCESS) == 0 &&
		      faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) != 0;

	arena_free(&a);
	return closed;
}

static int fail_device(struct sq *s, int err, const char *text)
{
	const struct store_env *env = &s->base.env;
	const bool absent = err == ENOENT || err == ENOTDIR;

	if (no_room(err))
		return store_fail(env, STORE_FULL, "free some space on the device",
				  "no space is left for %s: %s", s->path, strerror(err));
	if (no_right(err))
		return store_fail(env, STORE_READONLY,
				  "check the owner and mode of the file and its folder",
				  "cannot write to %s or its folder: %s", s->path, strerror(err));
	if (err == ENOENT && needs_writer(s))
		return store_fail(
			env, STORE_READONLY,
			"ask a user who can write to that folder to run any pawl command",
			"cannot read %s: its -wal or -shm file is missing, and this user cannot "
			"create it in the folder",
			s->path);
	if (absent && access(s->path, F_OK) != 0)
		return store_fail(env, STORE_UNREACHABLE, NULL, "%s or its folder is gone",
				  s->path);
	if (absent) /* of an earlier call: SQLite 3.46 reports it with the next failure */
		err = 0;
	return store_fail(env, STORE_IO, NULL, "%s: %s%s%s", s->path, text, err ? ": " : "",
			  err ? strerror(err) : "");
}

/* sqlite3_system_errno() is often 0, because SQLite reads errno too late; each file keeps its own last errno. */
static int device_errno(struct sq *s)
{
	static const int which[] = { SQLITE_FCNTL_JOURNAL_POINTER /* the WAL */,
				     SQLITE_FCNTL_FILE_POINTER };
	int err = sqlite3_system_errno(s->db);

	for (size_t i = 0; err == 0 && i < sizeof(which) / sizeof(which[0]); i++) {
		sqlite3_file *file = NULL;

		sqlite3_file_control(s->db, "main", which[i], &file);
		if (file && file->pMethods)
			file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &err);
	}
	return err;
}

/* sqlite/sqlite_vfs.c fails the access check for a journal that exists. */
static int fail_journal(struct sq *s)
{
	return store_fail(
		&s->base.env, STORE_FOREIGN,
		"if both files came with a repository, trust neither; otherwise move the journal away",
		"%s-journal exists: pawl's databases have no rollback journal, and rolling one back "
		"could overwrite and delete files",
		s->path);
}

static int fail_busy(struct sq *s)
{
	return store_fail(&s->base.env, STORE_BUSY,
			  "try again, or end the other program that has the database open",
			  "%s is locked by a program that is not pawl", s->path);
}

/* Is the -wal or the -shm something other than a regular file? */
static bool fail_beside(struct sq *s)
{
	static const char *const ends[] = { "-wal", "-shm" };
	struct arena a = { 0 };
	struct stat st;
	bool bad = false;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && !bad; i++) {
		const char *path = arena_printf(&a, "%s%s", s->path, ends[i]).p;

		bad = lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
		if (bad)
			store_fail(&s->base.env, STORE_FOREIGN,
				   "move it away; pawl creates a new one",
				   "%s is %s, not a regular file", path,
				   S_ISLNK(st.st_mode)   ? "a symbolic link"
				   : S_ISDIR(st.st_mode) ? "a folder"
							 : "a pipe or a device");
	}
	arena_free(&a);
	return bad;
}

/* The schema version, if a newer pawl changed the schema while we had the database open; 0: the schema is ours. */
static int64_t newer_version(struct sq *s)
{
	sqlite3_stmt *st = NULL;
	int64_t version = 0;

	if (sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		version = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return version > SQ_VERSION ? version : 0;
}

/* Our SQL is correct, so a table or a column is missing. */
static int fail_schema(struct sq *s, const char *text)
{
	struct arena a = { 0 };
	const char *kept =
		arena_cstr(&a, str_c(text)); /* newer_version() overwrites SQLite's error text */
	int64_t version = newer_version(s);
	int rc = version ? sq_version_fail(s, version)
			 : store_fail(&s->base.env, STORE_CORRUPT,
				      "keep a copy, then try: sqlite3 PATH .recover",
				      "%s is damaged: %s", s->path, kept);

	arena_free(&a);
	return rc;
}

/* The database's latest error as a fault. */
static int sq_fail(struct sq *s)
{
	const struct store_env *env = &s->base.env;
	const char *text = sqlite3_errmsg(s->db);
	int code = sqlite3_extended_errcode(s->db);

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return fail_busy(s);
	case SQLITE_FULL:
		return fail_device(s, ENOSPC, text);
	case SQLITE_READONLY:
		if (fail_beside(s))
			return STORE_FOREIGN;
		return fail_device(s, code == SQLITE_READONLY_DBMOVED ? ENOENT : EACCES, text);
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return fail_device(s, EACCES, text);
	case SQLITE_IOERR:
		if (code == SQLITE_IOERR_ACCESS)
			return fail_journal(s);
		/* fall through */
	case SQLITE_CANTOPEN:
		return fail_beside(s) ? STORE_FOREIGN : fail_device(s, device_errno(s), text);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR:
	case SQLITE_SCHEMA:
	case SQLITE_TOOBIG:
		return fail_schema(s, text);
	default:
		return store_fail(env, STORE_IO, NULL, "%s: %s (SQLite error %d)", s->path, text,
				  code);
	}
}

/* --- statements --------------------------------------------------------------------------------- */

int sq_prepare(struct sq *s, const char *sql, sqlite3_stmt **out)
{
	if (sqlite3_prepare_v3(s->db, sql, -1, 0, out, NULL) == SQLITE_OK)
		return 0;
	return sq_fail(s);
}

sqlite3_stmt *sq_find(struct sq *s, const char *key, unsigned variant)
{
	for (struct sq_cached *c = s->cache; c < s->cache + SQ_CACHE && c->st; c++) {
		if (c->key == key && c->variant == variant && !c->busy) {
			c->busy = true;
			return c->st;
		}
	}
	return NULL;
}

/* An empty place, else the place of a statement that is not in use; NULL if all are in use. */
static struct sq_cached *find_place(struct sq *s)
{
	for (size_t i = 0; i < SQ_CACHE; i++)
		if (!s->cache[i].st)
			return &s->cache[i];
	for (size_t i = 0; i < SQ_CACHE; i++) {
		struct sq_cached *c = &s->cache[s->evict++ % SQ_CACHE];

		if (!c->busy) {
			sqlite3_finalize(c->st);
			return c;
		}
	}
	return NULL;
}

int sq_make(struct sq *s, const char *sql, const char *key, unsigned variant, sqlite3_stmt **out)
{
	int rc = sq_prepare(s, sql, out);
	struct sq_cached *c;

	if (rc < 0)
		return rc;
	c = find_place(s);
	if (c)
		*c = (struct sq_cached){ .st = *out, .key = key, .variant = variant, .busy = true };
	return 0;
}

int sq_take(struct sq *s, const char *sql, sqlite3_stmt **out)
{
	*out = sq_find(s, sql, 0);
	return *out ? 0 : sq_make(s, sql, sql, 0, out);
}

void sq_give(struct sq *s, sqlite3_stmt *st)
{
	if (!st)
		return;
	for (size_t i = 0; i < SQ_CACHE && s->cache[i].st; i++) {
		if (s->cache[i].st == st) {
			sqlite3_reset(st);
			s->cache[i].busy = false;
			return;
		}
	}
	sqlite3_finalize(st);
}

int sq_step(struct sq *s, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	return rc == SQLITE_ROW || rc == SQLITE_DONE ? rc : sq_fail(s);
}

int sq_finish(struct sq *s, sqlite3_stmt *st)
{
	int rc = sq_step(s, st);

	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

int sq_run(struct sq *s, const char *sql)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, sql, &st);

	return rc < 0 ? rc : sq_finish(s, st);
}

int sq_exec(struct sq *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sq_fail(s);
}

int sq_int(struct sq *s, const char *sql, int64_t *out)
{
	sqlite3_stmt *st;
	int rc = sq_prepare(s, sql, &st);

	if (rc < 0)
		return rc;
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return rc < 0 ? rc : 0;
}

void sq_bind(sqlite3_stmt *st, int i, struct str v)
{
	sqlite3_bind_text64(st, i, v.n ? v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

void sq_bind_blob(sqlite3_stmt *st, int i, struct str v)
{
	sqlite3_bind_blob64(st, i, v.n ? v.p : "", v.n, SQLITE_STATIC);
}

void sq_bind_some(sqlite3_stmt *st, int i, struct str v)
{
	if (v.n)
		sq_bind_blob(st, i, v);
	else
		sqlite3_bind_null(st, i);
}

struct str sq_column(sqlite3_stmt *st, int i)
{
	const char *p = sqlite3_column_blob(st, i);

	return str_n(p, (size_t)sqlite3_column_bytes(st, i));
}
