/*
 * Finds, checks and opens the database: the place, the connection, and whether SQLite opened the file
 * that was checked. Nothing that the file says is trusted before its schema was compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/sqlite/sqlite.h"

#define VALUE_MAX (64 << 20) /* bytes in a row: more than any record that pawl writes */

/* --- the place ---------------------------------------------------------------------------------- */

static int fail_missing(struct sq *s)
{
	struct arena a = { 0 };
	const char *dir = arena_cstr(&a, fs_dirname(str_c(s->path)));
	int rc;

	if (fs_is_dir(dir))
		rc = store_fail(&s->base.env, STORE_ABSENT, "pawl init", "there is no queue at %s",
				s->path);
	else
		rc = store_fail(&s->base.env, STORE_UNREACHABLE,
				"create the folder, or name another path", "there is no folder %s",
				dir);
	arena_free(&a);
	return rc;
}

static int fail_path(struct sq *s, int err)
{
	const struct store_env *env = &s->base.env;

	switch (err) {
	case ENOENT:
	case ENOTDIR:
		return fail_missing(s);
	case EACCES:
	case EPERM:
	case EROFS:
		return store_fail(env, STORE_READONLY,
				  "check the owner and mode of the file and its folder",
				  "cannot open %s: %s", s->path, strerror(err));
	case ENOSPC:
	case EDQUOT:
		return store_fail(env, STORE_FULL, "free some space on the device",
				  "no space is left for %s: %s", s->path, strerror(err));
	default:
		return store_fail(env, STORE_IO, NULL, "%s: %s", s->path, strerror(err));
	}
}

/* Like SQLite, but with mode 0666 before the umask: agents share a queue by a umask of 002. */
static int make_file(struct sq *s)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return errno == EEXIST ? 0 : fail_path(s, errno);
	close(fd); /* the file is new, so this drops no lock that this process has on it */
	return 0;
}

static int sq_open_stat(struct sq *s, bool *there)
{
	const struct store_env *env = &s->base.env;
	mode_t mode;

	*there = lstat(s->path, &s->file) == 0;
	if (!*there)
		return errno == ENOENT ? 0 : fail_path(s, errno);
	mode = s->file.st_mode;
	if (S_ISREG(mode))
		return 0;
	if (S_ISLNK(mode))
		return store_fail(env, STORE_FOREIGN, "name the file that it points to",
				  "%s is a symbolic link, not a database", s->path);
	return store_fail(env, STORE_FOREIGN, "name a file", "%s is %s, not a database", s->path,
			  S_ISDIR(mode) ? "a folder" : "a pipe, a socket or a device");
}

const char *sq_place_refusal(const char *network_fs)
{
	if (!network_fs)
		return NULL;
	return "put the queue on a local disk, or share it through git:";
}

static int check_place(struct sq *s)
{
	const char *network = os_network_fs(s->path), *advice = sq_place_refusal(network);

	if (!advice)
		return 0;
	return store_fail(&s->base.env, STORE_UNSUPPORTED, advice,
			  "%s is on a network file system (%s), where SQLite's locks do not work",
			  s->path, network);
}

static int find_file(struct sq *s)
{
	bool there;
	int rc = sq_open_stat(s, &there);

	if (rc < 0 || there)
		return rc < 0 ? rc : check_place(s);
	if (s->base.env.mode != STORE_CREATE)
		return fail_missing(s);
	rc = check_place(s);
	if (rc == 0)
		rc = make_file(s);
	if (rc == 0)
		rc = sq_open_stat(s, &there);
	return rc;
}

/* --- the connection ----------------------------------------------------------------------------- */

static int count_pages(void *ctx, sqlite3 *db, const char *name, int pages)
{
	(void)db, (void)name;
	((struct sq *)ctx)->wal_pages = (uint32_t)pages;
	return SQLITE_OK;
}

/* The file may be hostile: https://sqlite.org/security.html. Only a schema can make SQLite run code from the file,
 * and sqlite/sqlite_schema.c compares the schema before the store uses it. */
static void sq_open_distrust(sqlite3 *db)
{
	static const int off[] = { SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
				   SQLITE_DBCONFIG_TRUSTED_SCHEMA,
				   SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION };

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		sqlite3_db_config(db, off[i], 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_exec(db, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
}

int sq_connect(struct sq *s)
{
	bool reads = s->base.env.mode == STORE_READ;
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

	flags |= reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
	s->next_due = 0;
	if (sqlite3_open_v2(s->path, &s->db, flags, sq_vfs()) != SQLITE_OK)
		return s->db ? fail_path(s, sqlite3_system_errno(s->db)) : fail_path(s, ENOMEM);
	if (!reads && sqlite3_db_readonly(s->db, "main") == 1)
		return fail_path(s, EACCES);
	sqlite3_busy_timeout(s->db, SQ_READ_WAIT_MS);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sq_open_distrust(s->db);
	sqlite3_wal_hook(s->db, count_pages, s); /* replaces SQLite's automatic checkpoints */
	return 0;
}

/* --- both --------------------------------------------------------------------------------------- */

/* The file may have been replaced after sq_open_stat() and before SQLite opened it. */
static int same_file(struct sq *s)
{
	const struct stat *st = sq_main_stat(s);

	if (!st || (st->st_ino == s->file.st_ino && st->st_dev == s->file.st_dev))
		return 0;
	return sq_files_fail(s, SQ_DATABASE_GONE);
}

int sq_attach(struct sq *s)
{
	int rc = find_file(s);

	if (rc == 0)
		rc = sq_connect(s);
	if (rc == 0)
		rc = same_file(s);
	if (rc == 0)
		rc = sq_settle_layout(s);
	if (rc == 0)
		rc = sq_settle_queue(s);
	return rc;
}
