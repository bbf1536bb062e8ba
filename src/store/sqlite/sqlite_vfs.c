/*
 * SQLite's own VFS with a few calls replaced, to save system calls, and because the files beside a database
 * may come from a hostile clone.
 *
 * SQLite opens every WAL as if it had to create the file, and therefore syncs the folder at the first commit
 * of each process: a second fdatasync. We open an existing WAL that is not empty without the create flag. The
 * process that wrote its first bytes opened it as SQLite does and synced the folder (see sq_set_durability), or died
 * before that (see sq_settle_folder).
 *
 * SQLite checks every part of a path for links; we skip that check. A link to a folder is harmless, because the -wal
 * and the -shm are beside the database anyway. look() has checked the last part.
 *
 * Invariants:
 *
 *  1. SQLite never reads, makes or removes a rollback journal: a planted one could name a file for SQLite to
 *     delete (its super-journal). If a journal lies beside the database, every access fails.
 *  2. SQLite opens only the database, its -wal and its -shm, and temporary files without a name. It removes
 *     only the -wal of a database that is open.
 *  3. Each named file that it opens is a regular file, not a link; a FIFO does not block us.
 *  4. We know the inode of each of the three files (sqlite/sqlite_files.c), from the open descriptor itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "store/sqlite/sqlite.h"

static sqlite3_vfs *plain; /* SQLite's own VFS */
static sqlite3_vfs ours;

/* --- SQLite's system calls ------------------------------------------------------------------------ */

/*
 * SQLite lets a program replace entries in its table of system calls. This is the only way to see the
 * descriptors that it opens. The whole process shares the table: calls for other databases pass through.
 */
typedef int open_fn(const char *path, int flags, int mode);
typedef int fstat_fn(int fd, struct stat *st);

static open_fn *plain_open;
static fstat_fn *plain_fstat;
static _Thread_local struct sq_opening *opening; /* NULL: not one of ours */

static int open_watched(const char *path, int flags, int mode)
{
	int fd, err;

	if (!opening)
		return plain_open(path, flags, mode);
	do {
		fd = plain_open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
		err = fd < 0 ? errno : 0;
	} while (err == EACCES && fs_is_settling(AT_FDCWD, path));
	opening->fd = fd;
	if (fd < 0)
		errno = err;
	return fd;
}

/* SQLite calls fstat() right after each open, so we need no call of our own. SQLite cannot close a descriptor while
 * another handle has locks on the file, because closing drops the process's locks. It reuses such a descriptor for a
 * later handle, and then there is no open. */
static int fstat_watched(int fd, struct stat *st)
{
	int rc = plain_fstat(fd, st);

	if (opening && !opening->file && opening->fd < 0)
		opening->fd = fd;
	if (opening && rc == 0 && fd == opening->fd) {
		opening->st = *st;
		opening->known = true;
		if (opening->file)
			sq_main_found_shm(opening);
	}
	return rc;
}

static void watch_calls(void)
{
	sqlite3_vfs *base = sqlite3_vfs_find("unix");

	if (!base || base->iVersion < 3 || !base->xGetSystemCall || !base->xSetSystemCall)
		return;
	plain_open = (open_fn *)base->xGetSystemCall(base, "open");
	plain_fstat = (fstat_fn *)base->xGetSystemCall(base, "fstat");
	if (!plain_open || !plain_fstat)
		return;
	base->xSetSystemCall(base, "open", (sqlite3_syscall_ptr)open_watched);
	base->xSetSystemCall(base, "fstat", (sqlite3_syscall_ptr)fstat_watched);
}

void sq_watch_opening(struct sq_opening *o)
{
	if (o)
		o->fd = -1;
	opening = o;
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Opens the file, and closes it again if it is not a regular file. */
static int open_plain(const char *name, sqlite3_file *file, int flags, int *out,
		      struct sq_opening *o)
{
	int rc;

	*o = (struct sq_opening){ 0 };
	sq_watch_opening(o);
	rc = plain->xOpen(plain, name, file, flags, out);
	sq_watch_opening(NULL);
	if (rc != SQLITE_OK)
		return rc;
	if ((o->known || lstat(name, &o->st) == 0) && S_ISREG(o->st.st_mode))
		return SQLITE_OK;
	file->pMethods->xClose(file);
	file->pMethods = NULL;
	return SQLITE_CANTOPEN;
}

/* found: the WAL existed and was not empty, so SQLite need not sync its folder. */
static int open_wal(const char *name, sqlite3_file *file, int flags, int *out)
{
	struct sq_opening o;
	bool found = true;
	int rc = open_plain(name, file, flags & ~SQLITE_OPEN_CREATE, out, &o);

	if (rc == SQLITE_OK && o.st.st_size == 0 && flags & SQLITE_OPEN_CREATE) {
		file->pMethods->xClose(file);
		file->pMethods = NULL;
		rc = SQLITE_CANTOPEN;
	}
	if (rc != SQLITE_OK) {
		found = false;
		rc = open_plain(name, file, flags, out, &o);
	}
	if (rc == SQLITE_OK)
		sq_wal_wrap(file, &o.st, found);
	return rc;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct sq_opening o;
	int rc;

	(void)vfs;
	file->pMethods = NULL;
	if (flags & SQLITE_OPEN_WAL)
		return open_wal(name, file, flags, out);
	if (flags & SQLITE_OPEN_MAIN_DB) {
		rc = open_plain(name, file, flags, out, &o);
		return rc == SQLITE_OK ? sq_main_wrap(file, name, &o.st, o.known ? o.fd : -1) : rc;
	}
	return name ? SQLITE_CANTOPEN : plain->xOpen(plain, name, file, flags, out);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
	int rc = plain->xAccess(plain, name, flags, out);

	(void)vfs;
	if (rc == SQLITE_OK && *out && ends_with(name, "-journal"))
		return SQLITE_IOERR_ACCESS; /* sq_fail() explains it */
	return rc;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	return sq_main_owns(name, "-wal") ? plain->xDelete(plain, name, sync) : SQLITE_IOERR_DELETE;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int room, char *out)
{
	(void)vfs;
	if (name[0] != '/' || strlen(name) >= (size_t)room)
		return plain->xFullPathname(plain, name, room, out);
	snprintf(out, (size_t)room, "%s", name);
	return SQLITE_OK;
}

bool sq_wal_begun(const char *database)
{
	char path[PATH_MAX];
	struct fs_id wal;

	return sq_beside(database, "-wal", path) && fs_identify(path, &wal) && wal.size > 0;
}

static void make_vfs(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS,
		       0); /* only for speed; has no effect if the process already uses SQLite */
	plain = sqlite3_vfs_find(NULL);
	if (!plain)
		return;
	watch_calls();
	ours = *plain;
	ours.pNext = NULL;
	ours.zName = "pawl";
	ours.szOsFile = sq_tail_room(plain->szOsFile);
	ours.xOpen = open_file;
	ours.xAccess = access_file;
	ours.xDelete = delete_file;
	ours.xFullPathname = full_name;
	if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
		ours.zName =
			"pawl"; /* every open fails then, which is safer than SQLite's own VFS */
}

const char *sq_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_vfs);
	return ours.zName;
}

/* --- wal -------------------------------------------------------------------------------------- */

/*
 * The WAL's identity, and its writes, gathered into one. SQLite writes a commit in two pieces for each page, each
 * with its own system call. We gather the pieces and write them together, which also makes the sync cheaper.
 *
 * Invariants:
 *
 *  1. We gather only while COMMIT runs (sq_wal_gather, sq_wal_rest). If SQLite's cache overflows earlier, its
 *     writes go straight to the file. So a transaction that is rolled back leaves nothing in the buffer.
 *  2. All bytes are in the file before SQLite learns that the last frame of the commit is written. So no reader
 *     looks for a frame that is not in the file yet.
 *  3. We expect a frame's header, its page, the next header and so on, without a gap. Before any other write, and
 *     before a read, we write the gathered bytes, and we gather no more in this commit.
 *  4. If a write fails, its bytes are dropped.
 */

#define ROOM (64 * 1024) /* SQLite's own VFS writes at most 128 KiB at a time */
#define FRAME_HEADER 24
#define WAL_SALTS_AT 16 /* in the header of the file */

struct wal_file {
	sqlite3_file *of;
	uint32_t found; /* a number for a WAL that was there; 0: it was missing or empty */
	struct fs_id id;
	const sqlite3_io_methods *plain;
	sqlite3_io_methods ours;
	char *bytes; /* NULL until the first commit */
	sqlite3_int64 at;
	int n;
	enum { STRAIGHT, AT_HEADER, AT_PAGE, AT_LAST_PAGE } state;
};

size_t sq_wal_room(void)
{
	return sizeof(struct wal_file);
}

/* --- writes -------------------------------------------------------------------------------------- */

static int sq_wal_flush(sqlite3_file *f)
{
	struct wal_file *w = sq_tail(f);
	int n = w->n;

	w->n = 0;
	return n ? w->plain->xWrite(f, w->bytes, n, w->at) : SQLITE_OK;
}

static int end_gathering(sqlite3_file *f)
{
	struct wal_file *w = sq_tail(f);

	w->state = STRAIGHT;
	return sq_wal_flush(f);
}

/* A frame's header holds the database size in pages if the frame ends a commit, else 0. */
static bool ends_commit(const unsigned char *header)
{
	return header[4] || header[5] || header[6] || header[7];
}

static bool is_expected(const struct wal_file *w, int n, sqlite3_int64 at)
{
	if (w->state == STRAIGHT || (w->n && w->at + w->n != at))
		return false;
	return (w->state == AT_HEADER) == (n == FRAME_HEADER);
}

static int sq_wal_gather_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct wal_file *w = sq_tail(f);
	int rc = n > ROOM - w->n ? sq_wal_flush(f) : SQLITE_OK;

	if (rc != SQLITE_OK || n > ROOM)
		return rc != SQLITE_OK ? rc : w->plain->xWrite(f, p, n, at);
	if (!w->n)
		w->at = at;
	memcpy(w->bytes + w->n, p, (size_t)n);
	w->n += n;
	return SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct wal_file *w = sq_tail(f);
	int rc;

	if (at == 0 && !w->n) /* the header of a new WAL comes before the frames */
		return w->plain->xWrite(f, p, n, at);
	if (!is_expected(w, n, at)) {
		rc = end_gathering(f);
		return rc == SQLITE_OK ? w->plain->xWrite(f, p, n, at) : rc;
	}
	rc = sq_wal_gather_write(f, p, n, at);
	if (rc != SQLITE_OK || w->state == AT_LAST_PAGE) {
		int rest = end_gathering(f);

		return rc != SQLITE_OK ? rc : rest;
	}
	if (w->state == AT_PAGE)
		w->state = AT_HEADER;
	else
		w->state = ends_commit(p) ? AT_LAST_PAGE : AT_PAGE;
	return SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	struct wal_file *w = sq_tail(f);
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? w->plain->xRead(f, p, n, at) : rc;
}

static int wal_sync(sqlite3_file *f, int flags)
{
	struct wal_file *w = sq_tail(f);
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? w->plain->xSync(f, flags) : rc;
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct wal_file *w = sq_tail(f);
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? w->plain->xTruncate(f, size) : rc;
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *size)
{
	struct wal_file *w = sq_tail(f);
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? w->plain->xFileSize(f, size) : rc;
}

static int wal_close(sqlite3_file *f)
{
	struct wal_file *w = sq_tail(f);

	sqlite3_free(w->bytes);
	w->bytes = NULL;
	return w->plain->xClose(f);
}

/* --- identity ------------------------------------------------------------------------------------ */

/* Never 0. */
static uint32_t short_number(ino_t inode)
{
	uint32_t n = (uint32_t)inode ^ (uint32_t)((uint64_t)inode >> 32);

	return n ? n : 1;
}

void sq_wal_wrap(sqlite3_file *f, const struct stat *st, bool found)
{
	struct wal_file *w = sq_tail(f);

	*w = (struct wal_file){ .of = f,
				.found = found ? short_number(st->st_ino) : 0,
				.id = fs_id_of(st),
				.plain = f->pMethods,
				.ours = *f->pMethods };
	w->ours.xWrite = wal_write;
	w->ours.xRead = wal_read;
	w->ours.xSync = wal_sync;
	w->ours.xTruncate = wal_truncate;
	w->ours.xFileSize = wal_size;
	w->ours.xClose = wal_close;
	f->pMethods = &w->ours;
}

/* NULL: it is not open, or the open file is not a WAL. */
static struct wal_file *wal_of(struct sq *s)
{
	sqlite3_file *f = NULL;
	struct wal_file *w;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f);
	w = f && f->pMethods ? sq_tail(f) : NULL;
	return w && w->of == f ? w : NULL;
}

uint32_t sq_wal_found(struct sq *s)
{
	struct wal_file *w = wal_of(s);

	return w ? w->found : 0;
}

const struct fs_id *sq_wal_id(struct sq *s)
{
	struct wal_file *w = wal_of(s);

	return w ? &w->id : NULL;
}

bool sq_wal_salts(struct sq *s, unsigned char out[WAL_SALTS])
{
	struct wal_file *w = wal_of(s);

	return w && w->plain->xRead(w->of, out, WAL_SALTS, WAL_SALTS_AT) == SQLITE_OK;
}

int sq_wal_sync(struct sq *s)
{
	struct wal_file *w = wal_of(s);

	if (!w || wal_sync(w->of, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) == SQLITE_OK)
		return 0;
	return store_fail(&s->base.env, STORE_IO, NULL, "cannot sync %s-wal", s->path);
}

/* --- the commit ---------------------------------------------------------------------------------- */

void sq_wal_gather(struct sq *s)
{
	struct wal_file *w = wal_of(s);

	if (!w)
		return;
	if (!w->bytes)
		w->bytes = sqlite3_malloc(ROOM);
	w->state = w->bytes ? AT_HEADER : STRAIGHT;
	w->n = 0;
}

/* Drops the bytes that a failed commit may have left. */
void sq_wal_rest(struct sq *s)
{
	struct wal_file *w = wal_of(s);

	if (!w)
		return;
	w->state = STRAIGHT;
	w->n = 0;
}
