/*
 * The WAL's writes, together. SQLite writes a commit as two pieces for each page, each a system call; here
 * pieces that follow one another are gathered and go out as one.
 *
 * What always holds: a commit's last frame is followed by a write of all that was gathered, before SQLite
 * can sync it or tell anybody of it, so no reader ever looks for a frame that is not in the file. Nothing
 * is read, measured, cut or closed before it is written. A piece of a form that is not known here is
 * written at once.
 */
#include "store/sqlite.h"

#define ROOM (64 * 1024) /* SQLite's own VFS writes at most 128 KiB at a time */
#define FRAME_HEADER 24

struct tail {
	const sqlite3_io_methods *plain;
	char *bytes;
	sqlite3_int64 at;
	int n;
	enum { NO_FRAME, IN_FRAME, IN_LAST_FRAME } state;
};

static int plain_size;
static sqlite3_io_methods gathering;

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

/* A frame's header tells the database's size in pages if the frame ends a commit, else 0. */
static bool ends_commit(const unsigned char *header)
{
	return header[4] || header[5] || header[6] || header[7];
}

/* true: it may wait for more. */
static bool follow(struct tail *t, const void *p, int n)
{
	bool frame = t->state != NO_FRAME, last = t->state == IN_LAST_FRAME;

	t->state = NO_FRAME;
	if (!frame && n == FRAME_HEADER) {
		t->state = ends_commit(p) ? IN_LAST_FRAME : IN_FRAME;
		return true;
	}
	return frame && !last;
}

static int gather(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct tail *t = tail_of(f);
	bool wait = follow(t, p, n);
	int rc = SQLITE_OK;

	if (t->n && (t->at + t->n != at || n > ROOM - t->n))
		rc = flush(f);
	if (rc != SQLITE_OK || n > ROOM)
		return rc != SQLITE_OK ? rc : t->plain->xWrite(f, p, n, at);
	if (!t->n)
		t->at = at;
	memcpy(t->bytes + t->n, p, (size_t)n);
	t->n += n;
	return wait ? SQLITE_OK : flush(f);
}

static int wal_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	int rc = flush(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xRead(f, p, n, at) : rc;
}

static int wal_sync(sqlite3_file *f, int flags)
{
	int rc = flush(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xSync(f, flags) : rc;
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = flush(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xTruncate(f, size) : rc;
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *size)
{
	int rc = flush(f);

	return rc == SQLITE_OK ? tail_of(f)->plain->xFileSize(f, size) : rc;
}

/* What is still here belongs to a transaction that was rolled back. */
static int wal_close(sqlite3_file *f)
{
	struct tail *t = tail_of(f);

	sqlite3_free(t->bytes);
	t->bytes = NULL;
	return t->plain->xClose(f);
}

int sq_wal_wrap(sqlite3_file *f)
{
	struct tail *t = tail_of(f);

	*t = (struct tail){ .plain = f->pMethods, .bytes = sqlite3_malloc(ROOM) };
	if (!t->bytes) {
		f->pMethods->xClose(f);
		f->pMethods = NULL;
		return SQLITE_NOMEM;
	}
	gathering = *t->plain;
	gathering.xWrite = gather;
	gathering.xRead = wal_read;
	gathering.xSync = wal_sync;
	gathering.xTruncate = wal_truncate;
	gathering.xFileSize = wal_size;
	gathering.xClose = wal_close;
	f->pMethods = &gathering;
	return SQLITE_OK;
}
