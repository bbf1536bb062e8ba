/*
 * The check of a file before SQLite acts on it. The first bytes tell whether pawl made the file. If not, the file
 * must not change, nor get a -wal, -shm or -gate beside it. We read the bytes through the handle that SQLite has
 * opened, because closing a descriptor of our own would drop this process's locks on the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"

#define HEADER 108 /* the file's 100 bytes, and the head of the schema's root page */
#define PAGE 4096
#define WAL_HEADER 32
#define WAL_FRAME 24
#define CHECKS 5
#define POLL_AGAIN_US 2000

static uint32_t sq_header_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t sq_header_be16(const unsigned char *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* --- does every page exist? --------------------------------------------------------------------- */

/* An interrupted checkpoint leaves a database that is too short; the WAL then holds all missing pages. */
static bool wal_covers(int fd, uint32_t page_size, uint32_t have, uint32_t want)
{
	unsigned char head[WAL_HEADER], frame[WAL_FRAME], *seen;
	uint32_t missing = want - have;
	off_t at = WAL_HEADER;
	struct stat st;

	if (fstat(fd, &st) || st.st_size / (off_t)(WAL_FRAME + page_size) < (off_t)missing)
		return false;
	if (pread(fd, head, sizeof(head), 0) != WAL_HEADER || sq_header_be32(head + 8) != page_size)
		return false;
	seen = calloc(missing, 1);
	while (seen && missing && pread(fd, frame, sizeof(frame), at) == WAL_FRAME) {
		uint32_t page = sq_header_be32(frame);

		if (memcmp(frame + 8, head + 16, 8) != 0)
			break; /* a frame from before the WAL restarted */
		if (page > have && page <= want && !seen[page - have - 1]) {
			seen[page - have - 1] = 1;
			missing--;
		}
		at += WAL_FRAME + (off_t)page_size;
	}
	free(seen);
	return missing == 0;
}

static bool all_pages(struct sq *s, uint32_t page_size, uint32_t pages, int64_t size)
{
	uint32_t have = (uint32_t)(size / page_size);
	char wal[PATH_MAX];
	bool ok;
	int fd;

	if (pages <= have)
		return true;
	if (!sq_beside(s->path, "-wal", wal))
		return false;
	fd = open(wal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = wal_covers(fd, page_size, have, pages);
	close(fd);
	return ok;
}

/* --- the header --------------------------------------------------------------------------------- */

static int fail_damaged(struct sq *s, const char *what)
{
	return store_fail(&s->base.env, STORE_CORRUPT,
			  "restore a backup, or try: sqlite3 PATH .recover", "%s is damaged: %s",
			  s->path, what);
}

static int fail_foreign(struct sq *s, const char *what)
{
	return store_fail(&s->base.env, STORE_FOREIGN, "name another path", "%s %s", s->path, what);
}

static bool sq_header_sane(const unsigned char *h, uint32_t page_size)
{
	return page_size >= 512 && (page_size & (page_size - 1)) == 0 && h[21] == 64 &&
	       h[22] == 32 && h[23] == 32 && h[18] >= 1 && h[18] <= 2 && h[19] >= 1 && h[19] <= 2;
}

/* An interrupted layout leaves a single page without a table and without an application id. */
static bool sq_header_blank(const unsigned char *h)
{
	return sq_header_be32(h + 28) <= 1 && sq_header_be32(h + 68) == 0 &&
	       sq_header_be32(h + 60) == 0 && h[100] == 0x0d && sq_header_be16(h + 103) == 0;
}

static int sq_header_validate(struct sq *s, const unsigned char *h, int64_t size,
			      struct sq_header *out)
{
	uint32_t page_size = sq_header_be16(h + 16) == 1 ? 65536 : sq_header_be16(h + 16);
	uint32_t version = sq_header_be32(h + 60);

	if (!sq_header_sane(h, page_size))
		return fail_damaged(s, "its header is invalid");
	if (size >= page_size && sq_header_blank(h)) {
		*out = (struct sq_header){ .state = SQ_BLANK, .wal = h[18] == 2 };
		return 0;
	}
	if (sq_header_be32(h + 68) != SQ_APPLICATION)
		return fail_foreign(s, "is a SQLite database of another program");
	if (version == 0)
		return fail_damaged(s, "it has no schema version");
	if (version != SQ_VERSION)
		return sq_version_fail(s, version);
	if (!all_pages(s, page_size, sq_header_be32(h + 28), size))
		return fail_damaged(s, "its end is missing");
	*out = (struct sq_header){ .state = SQ_OURS, .wal = h[18] == 2 };
	return 0;
}

/* The power failed during a layout, before the bytes of the first page reached the disk. */
static bool only_zeros(sqlite3_file *file, sqlite3_int64 size)
{
	char page[PAGE] = { 0 };

	return size <= PAGE && file->pMethods->xRead(file, page, (int)size, 0) == SQLITE_OK &&
	       page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

int sq_header_clear(struct sq *s)
{
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (file->pMethods->xFileSize(file, &size) != SQLITE_OK || !size ||
	    !only_zeros(file, size) || file->pMethods->xTruncate(file, 0) == SQLITE_OK)
		return 0;
	return store_fail(&s->base.env, STORE_IO, NULL, "%s cannot be truncated", s->path);
}

/* The first call uses the size that the open recorded, which costs no system call. Later calls ask the system. */
static bool find_size(struct sq *s, sqlite3_file *file, sqlite3_int64 *size)
{
	*size = sq_main_first_size(s);
	return *size > 1 || file->pMethods->xFileSize(file, size) == SQLITE_OK;
}

static int read_once(struct sq *s, struct sq_header *out)
{
	unsigned char h[HEADER] = { 0 };
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;
	struct stat st;
	int rc;

	*out = (struct sq_header){ .state = SQ_EMPTY };
	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (!file || !file->pMethods || !find_size(s, file, &size))
		return store_fail(&s->base.env, STORE_IO, NULL, "cannot read %s", s->path);
	if (size == 0 && !stat(s->path, &st) && st.st_size == 1)
		return fail_foreign(s,
				    "is not a SQLite database"); /* SQLite ignores a single byte */
	if (size == 0)
		return 0;
	rc = file->pMethods->xRead(file, h, HEADER, 0);
	if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
		return store_fail(&s->base.env, STORE_IO, NULL, "cannot read %s", s->path);
	if (only_zeros(file, size))
		return 0;
	if (memcmp(h, "SQLite format 3", size < 16 ? (size_t)size : 16) != 0)
		return fail_foreign(s, "is not a SQLite database");
	if (size < 512)
		return fail_damaged(s, "it is truncated");
	return sq_header_validate(s, h, size, out);
}

/* A checkpoint may be writing to the file while we read it, so we read a file that seems damaged several times. */
int sq_header_read(struct sq *s, struct sq_header *out)
{
	int rc = read_once(s, out);

	for (int tries = 1; rc == STORE_CORRUPT && tries < CHECKS; tries++) {
		usleep(POLL_AGAIN_US);
		rc = read_once(s, out);
	}
	return rc;
}
