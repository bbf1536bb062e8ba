/*
 * The WAL: its identity, and its writes gathered into one. SQLite writes a commit in two pieces for each page, each
 * with its own system call. We gather the pieces and write them together, which also makes the sync cheaper.
 *
 * Invariants:
 *
 *  1. We gather only while COMMIT runs (sq_wal_gather, sq_wal_rest). If SQLite's cache overflows earlier, its
 *     writes go straight to the file. So a transaction that is rolled back leaves nothing in the buffer.
 *  2. All bytes are in the file before SQLite learns that the last frame of the commit is written. So no reader
 *     looks for a frame that is not in the file yet.
 *  3. We expect the header of a frame, its page, the next header and so on, without a gap. At any other write, and
 *     at a read, we first write what we have, and gather no more in this commit.
 *  4. If a write fails, its bytes are dropped.
 */
#include "store/sqlite/files.h"

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

/* The header of a frame holds the size of the database in pages if the frame ends a commit, else 0. */
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

/* A commit that failed may have left bytes. They belong to nothing. */
void sq_wal_rest(struct sq *s)
{
	struct wal_file *w = wal_of(s);

	if (!w)
		return;
	w->state = STRAIGHT;
	w->n = 0;
}
