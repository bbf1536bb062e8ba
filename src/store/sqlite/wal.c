/*
 * The WAL's writes, together. SQLite writes a commit as two pieces for each page, each a system call; here
 * pieces that follow one another are gathered and go out as one.
 *
 * What always holds:
 *
 *  1. Something is gathered only inside of the statement that commits (sq_wal_gather, sq_wal_rest). What
 *     SQLite writes earlier, when its cache overflows, goes straight to the file; so a transaction that is
 *     rolled back leaves nothing here that could later fall on what others have committed since.
 *  2. The commit's last frame is followed by a write of all that was gathered, before SQLite can sync it
 *     or tell anybody of it: no reader ever looks for a frame that is not in the file.
 *  3. The pieces are a frame's header and its page, one frame after the other; the WAL's own header may
 *     come before them. Anything else (a page that is written over, checksums that are made anew, a read)
 *     first writes what there is, and ends the gathering for this commit.
 *  4. What could not be written is not kept.
 */
#include "store/sqlite/sqlite.h"

#define ROOM (64 * 1024) /* SQLite's own VFS writes at most 128 KiB at a time */
#define FRAME_HEADER 24

struct tail {
	const sqlite3_io_methods *plain;
	sqlite3_io_methods ours;
	char *bytes;
	sqlite3_int64 at;
	int n;
	uint32_t found;
	enum { STRAIGHT, AT_HEADER, AT_PAGE, AT_LAST_PAGE } state;
};

static int plain_size;

static int rounded(int size)
{
	return (size + 15) & ~15;
}

int sq_wal_file_size(int size)
{
	plain_size = rounded(size);
	return plain_size + (int)sizeof(struct tail);
}

static struct tail *tail_of(sqlite3_file *f)
{
	return (struct tail *)((char *)f + plain_size);
}

static int flush(sqlite3_file *f)
{
	struct tail *t = tail_of(f);
	int n = t->n;

	t->n = 0;
	return n ? t->plain->xWrite(f, t->bytes, n, t->at) : SQLITE_OK;
}

static int end_gathering(sqlite3_file *f)
{
	tail_of(f)->state = STRAIGHT;
	return flush(f);
}

/* A frame's header tells the database's size in pages if the frame ends a commit, else 0. */
static bool ends_commit(const unsigned char *header)
{
	return header[4] || header[5] || header[6] || header[7];
}

/* Does the piece come where it is expected? */
static bool expected(const struct tail *t, int n, sqlite3_int64 at)
{
	if (t->state == STRAIGHT || (t->n && t->at + t->n != at))
		return false;
	return t->state != AT_HEADER || n == FRAME_HEADER;
}

static int add(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct tail *t = tail_of(f);
	int rc = n > ROOM - t->n ? flush(f) : SQLITE_OK;

	if (rc != SQLITE_OK || n > ROOM)
		return rc != SQLITE_OK ? rc : t->plain->xWrite(f, p, n, at);
	if (!t->n)
		t->at = at;
	memcpy(t->bytes + t->n, p, (size_t)n);
	t->n += n;
	return SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct tail *t = tail_of(f);
	int rc;

	if (at == 0 && t->n == 0)
		return t->plain->xWrite(f, p, n, at);
	if (!expected(t, n, at)) {
		rc = end_gathering(f);
		return rc == SQLITE_OK ? t->plain->xWrite(f, p, n, at) : rc;
	}
	rc = add(f, p, n, at);
	if (rc != SQLITE_OK || t->state == AT_LAST_PAGE) {
		int rest = end_gathering(f);

		return rc != SQLITE_OK ? rc : rest;
	}
	if (t->state == AT_PAGE)
		t->state = AT_HEADER;
	else
		t->state = ends_commit(p) ? AT_LAST_PAGE : AT_PAGE;
	return SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xRead(f, p, n, at) : rc;
}

static int wal_sync(sqlite3_file *f, int flags)
{
	int rc = tail_of(f)->n ? end_gathering(f) : SQLITE_OK;

	return rc == SQLITE_OK ? tail_of(f)->plain->xSync(f, flags) : rc;
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xTruncate(f, size) : rc;
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *size)
{
	int rc = end_gathering(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xFileSize(f, size) : rc;
}

static int wal_close(sqlite3_file *f)
{
	struct tail *t = tail_of(f);

	sqlite3_free(t->bytes);
	t->bytes = NULL;
	return t->plain->xClose(f);
}

int sq_wal_wrap(sqlite3_file *f, uint32_t found)
{
	struct tail *t = tail_of(f);

	*t = (struct tail){ .plain = f->pMethods,
			    .ours = *f->pMethods,
			    .bytes = sqlite3_malloc(ROOM),
			    .found = found };
	if (!t->bytes) {
		f->pMethods->xClose(f);
		f->pMethods = NULL;
		return SQLITE_NOMEM;
	}
	t->ours.xWrite = wal_write;
	t->ours.xRead = wal_read;
	t->ours.xSync = wal_sync;
	t->ours.xTruncate = wal_truncate;
	t->ours.xFileSize = wal_size;
	t->ours.xClose = wal_close;
	f->pMethods = &t->ours;
	return SQLITE_OK;
}

/* --- the commit --------------------------------------------------------------------------------- */

/* NULL: there is none, or it is not ours. */
static struct tail *tail_of_wal(struct sq *s)
{
	sqlite3_file *f = NULL;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f);
	return f && f->pMethods && f->pMethods->xWrite == wal_write ? tail_of(f) : NULL;
}

uint32_t sq_wal_found(struct sq *s)
{
	struct tail *t = tail_of_wal(s);

	return t ? t->found : 0;
}

int sq_wal_sync(struct sq *s)
{
	sqlite3_file *f = NULL;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f);
	if (!f || !f->pMethods ||
	    f->pMethods->xSync(f, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) == SQLITE_OK)
		return 0;
	return store_fail(&s->base.env, STORE_IO, NULL, "%s-wal cannot be synced", s->path);
}

void sq_wal_gather(struct sq *s)
{
	struct tail *t = tail_of_wal(s);

	if (t) {
		t->state = AT_HEADER;
		t->n = 0;
	}
}

/* Whatever a commit that failed may have left here is no part of anything. */
void sq_wal_rest(struct sq *s)
{
	struct tail *t = tail_of_wal(s);

	if (t) {
		t->state = STRAIGHT;
		t->n = 0;
	}
}
