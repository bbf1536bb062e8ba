/* The checks of sqlite.h: before and after a write under the gate, are the database, the -wal and the -shm still the files
 * at their paths? A commit to a file that other processes do not find must fail, not be lost without a word. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/os.h"
#include "store/sqlite/sqlite.h"

/* --- the database, with its -shm ----------------------------------------------------------------- */

struct main_file {
	const sqlite3_io_methods *plain;
	sqlite3_io_methods ours;
	const char *name; /* owned by SQLite, which keeps it until it closes the file */
	struct stat st;
	int fd; /* SQLite's descriptor; -1: unknown */
	bool size_told;
	struct fs_id shm;               /* ino is 0: not open */
	const volatile uint32_t *index; /* the index of the WAL, in the -shm */
	enum {
		NOTHING, /* no -shm yet */
		OLD,     /* must be checked before a change uses it */
		CHECKED, /* checked under this gate */
		FRESH,   /* opened under this gate */
		SHARED   /* another handle of this process has opened it */
	} state;
	struct main_file *next;
};

/* The handles of one process share one -shm for each database, because SQLite opens it only once. */
static struct main_file *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- the tail of a sqlite3_file ------------------------------------------------------------------ */

static int plain_size;

int sq_tail_room(int size)
{
	size_t most = sizeof(struct main_file);

	if (most < sq_wal_room())
		most = sq_wal_room();
	plain_size = (size + 15) & ~15;
	return plain_size + (int)most;
}

void *sq_tail(sqlite3_file *f)
{
	return (char *)f + plain_size;
}

/* Runs under SQLite's mutex, so no other handle is using this -shm yet. */
void sq_main_found_shm(struct sq_opening *o)
{
	struct main_file *m = sq_tail(o->file);

	pthread_mutex_lock(&lock);
	m->shm = fs_id_of(&o->st);
	m->state = FRESH;
	pthread_mutex_unlock(&lock);
}

static void share_shm(struct main_file *m)
{
	pthread_mutex_lock(&lock);
	for (struct main_file *i = all; i && !m->shm.ino; i = i->next)
		if (i->st.st_ino == m->st.st_ino && i->st.st_dev == m->st.st_dev)
			m->shm = i->shm;
	m->state = SHARED;
	pthread_mutex_unlock(&lock);
}

static void find_shm(struct main_file *m)
{
	char path[PATH_MAX];

	if (sq_beside(m->name, "-shm", path))
		(void)fs_identify(path, &m->shm);
}

static int map_shm(sqlite3_file *f, int region, int size, int extend, void volatile **out)
{
	struct main_file *m = sq_tail(f);
	struct sq_opening o = { .file = f };
	int rc;

	sq_watch_opening(&o);
	rc = m->plain->xShmMap(f, region, size, extend, out);
	sq_watch_opening(NULL);
	if (rc != SQLITE_OK)
		return rc;
	if (m->state == NOTHING)
		share_shm(m);
	if (!m->shm.ino)
		find_shm(m); /* this SQLite does not let us observe its system calls */
	if (region == 0)
		m->index = (const volatile uint32_t *)*out;
	return rc;
}

static int unmap_shm(sqlite3_file *f, int remove)
{
	struct main_file *m = sq_tail(f);

	pthread_mutex_lock(&lock);
	m->shm = (struct fs_id){ 0 };
	pthread_mutex_unlock(&lock);
	m->state = NOTHING;
	m->index = NULL;
	(void)remove; /* never remove the -shm, even as the last user, because another process may be opening it */
	return m->plain->xShmUnmap(f, 0);
}

static int close_main(sqlite3_file *f)
{
	struct main_file *m = sq_tail(f), **at = &all;

	pthread_mutex_lock(&lock);
	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		*at = m->next;
	pthread_mutex_unlock(&lock);
	return m->plain->xClose(f);
}

int sq_main_wrap(sqlite3_file *f, const char *name, const struct stat *st, int fd)
{
	struct main_file *m = sq_tail(f);

	*m = (struct main_file){
		.plain = f->pMethods, .ours = *f->pMethods, .name = name, .st = *st, .fd = fd
	};
	m->ours.xShmMap = map_shm;
	m->ours.xShmUnmap = unmap_shm;
	m->ours.xClose = close_main;
	f->pMethods = &m->ours;
	pthread_mutex_lock(&lock);
	m->next = all;
	all = m;
	pthread_mutex_unlock(&lock);
	return SQLITE_OK;
}

bool sq_main_owns(const char *name, const char *end)
{
	bool owns = false;

	pthread_mutex_lock(&lock);
	for (struct main_file *m = all; m && !owns; m = m->next) {
		size_t n = strlen(m->name);

		owns = strncmp(name, m->name, n) == 0 && strcmp(name + n, end) == 0;
	}
	pthread_mutex_unlock(&lock);
	return owns;
}

static struct main_file *main_of(struct sq *s)
{
	sqlite3_file *f = NULL;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &f);
	return f && f->pMethods && f->pMethods->xShmMap == map_shm ? sq_tail(f) : NULL;
}

const struct stat *sq_main_stat(struct sq *s)
{
	struct main_file *m = main_of(s);

	return m ? &m->st : NULL;
}

int64_t sq_main_first_size(struct sq *s)
{
	struct main_file *m = main_of(s);
	bool first = m && !m->size_told;

	if (m)
		m->size_told = true;
	return first ? (int64_t)m->st.st_size : -1;
}

/* --- are the files still at their paths? ---------------------------------------------------------- */

bool sq_beside(const char *database, const char *end, char *path)
{
	size_t n = strlen(database), m = strlen(end) + 1;

	if (n + m > PATH_MAX)
		return false;
	memcpy(path, database, n);
	memcpy(path + n, end, m);
	return true;
}

static bool at_path(const struct sq *s, const char *end, const struct fs_id *file, int64_t *size)
{
	char path[PATH_MAX];

	return sq_beside(s->path, end, path) && fs_is_at(path, file, size);
}

/* The head of the WAL's index (https://sqlite.org/walformat.html). */
struct index_head {
	uint32_t version, unused, change;
	uint8_t set, big_endian;
	uint16_t page;
	uint32_t frames, pages, checksum[2];
	unsigned char salts[WAL_SALTS];
};

/* false: the index knows no frames. */
static bool index_read(const struct main_file *m, struct index_head *out)
{
	if (!m->index)
		return false;
	memcpy(out, (const void *)(uintptr_t)m->index, sizeof(*out));
	return out->set && out->frames;
}

/* The WAL's minimum size according to its index. SQLite writes frames before it adds them to the index. */
static int64_t wal_size_least(const struct main_file *m)
{
	struct index_head head;

	if (!index_read(m, &head))
		return 0;
	return 32 + head.frames * (24 + (head.page == 1 ? INT64_C(65536) : head.page));
}

/* Rule 3 of sqlite.h. */
static bool index_is_of_wal(struct sq *s, const struct main_file *m)
{
	struct index_head head;
	unsigned char salts[WAL_SALTS];

	return !index_read(m, &head) || !sq_wal_salts(s, salts) ||
	       memcmp(head.salts, salts, WAL_SALTS) == 0;
}

enum sq_files sq_files_check(struct sq *s)
{
	const struct main_file *m = main_of(s);
	const struct fs_id *wal = sq_wal_id(s);
	struct fs_id database;
	int64_t size;

	if (!m)
		return SQ_FILES_STAND;
	database = fs_id_of(&m->st);
	if (!at_path(s, "", &database, NULL))
		return SQ_DATABASE_GONE;
	if (wal && (!at_path(s, "-wal", wal, &size) || size < wal_size_least(m)))
		return SQ_WAL_GONE;
	if (m->shm.ino && !at_path(s, "-shm", &m->shm, NULL))
		return SQ_INDEX_GONE;
	return SQ_FILES_STAND;
}

/* No process may use the index of a lost WAL. SQLite rebuilds the index from the WAL that exists now. */
static void drop_index(struct sq *s)
{
	const struct main_file *m = main_of(s);
	char path[PATH_MAX];

	if (m && m->shm.ino && sq_beside(s->path, "-shm", path) && fs_is_at(path, &m->shm, NULL))
		unlink(path);
}

int sq_files_fail(struct sq *s, enum sq_files what)
{
	const struct store_env *env = &s->base.env;

	switch (what) {
	case SQ_DATABASE_GONE:
		return store_fail(env, STORE_UNREACHABLE, "open the queue again (restart a server)",
				  "%s was removed or replaced while it was open", s->path);
	case SQ_WAL_GONE:
		return store_fail(
			env, STORE_IO,
			"find the missing changes (pawl log) and repeat them; do not touch the -wal "
			"file",
			"%s-wal was removed, replaced or truncated while the queue was in use: the "
			"latest changes are lost",
			s->path);
	case SQ_INDEX_GONE:
		return store_fail(env, STORE_IO, "repeat the call; do not touch the -shm file",
				  "%s-shm was removed or replaced while the queue was in use",
				  s->path);
	case SQ_FILES_STAND:
		break;
	}
	return 0;
}

/* --- the database's own lock ----------------------------------------------------------------------- */

static int fail_locked(struct sq *s)
{
	return store_fail(&s->base.env, STORE_BUSY, "try again; do not touch the -gate file",
			  "another process writes to %s without holding %s-gate", s->path, s->path);
}

/*
 * On Linux flock() does not conflict with SQLite's locks. On other systems it does, so there the gate alone must
 * suffice. We use SQLite's descriptor, because closing a descriptor of our own would drop SQLite's locks.
 */
int sq_files_lock(struct sq *s, int64_t timeout_ms)
{
#ifdef __linux__
	const struct main_file *m = main_of(s);
	int r = m && m->fd >= 0 && !s->locked ? os_lock(m->fd, timeout_ms) : -ENOTSUP;

	s->locked |= r == 0;
	return r == -ETIMEDOUT ? fail_locked(s) : 0;
#else
	(void)s, (void)timeout_ms;
	return 0;
#endif
}

void sq_files_unlock(struct sq *s)
{
	const struct main_file *m = s->locked ? main_of(s) : NULL;

	if (m)
		os_unlock(m->fd);
	s->locked = false;
}

/* --- in a change ---------------------------------------------------------------------------------- */

int sq_files_notice(struct sq *s, enum sq_files what)
{
	if (what == SQ_WAL_GONE)
		drop_index(s);
	s->lost = what != SQ_FILES_STAND;
	return sq_files_fail(s, what);
}

/* sq_files_check() before a write. Removes an index that does not belong to the WAL, so that every process gets a new one. */
static enum sq_files check_before_write(struct sq *s)
{
	const struct main_file *m = main_of(s);
	enum sq_files what = sq_files_check(s);

	if (what != SQ_FILES_STAND || !m || index_is_of_wal(s, m))
		return what;
	drop_index(s);
	return SQ_INDEX_GONE;
}

/* If the files were replaced, an error from SQLite does not mean that the disk is failing. */
int sq_files_blame(struct sq *s, int rc)
{
	char applied = s->base.env.err->applied;
	enum sq_files what = SQ_FILES_STAND;

	if (s->db && !s->lost && (rc == STORE_IO || rc == STORE_CORRUPT || rc == STORE_UNREACHABLE))
		what = check_before_write(s);
	if (what == SQ_FILES_STAND)
		return rc;
	rc = sq_files_notice(s, what);
	s->base.env.err->applied = applied;
	return rc;
}

/* SQLite can rebuild a lost index from the WAL, which has every commit. Reconnecting gives up the database's lock. While
 * we wait for it again, other processes may write, and the new index may vanish, too. So we check again. */
int sq_files_settle(struct sq *s, int64_t left_ms)
{
	int64_t deadline = os_boot_ms() + left_ms;
	enum sq_files what = check_before_write(s);
	struct main_file *m;
	int rc = 0;

	while (what == SQ_INDEX_GONE && rc == 0 && os_boot_ms() <= deadline) {
		sq_disconnect(s);
		rc = sq_guard(s);
		if (rc == 0)
			rc = sq_files_lock(s, deadline - os_boot_ms());
		if (rc == 0)
			what = check_before_write(s);
	}
	if (rc < 0)
		return rc;
	m = main_of(s);
	if (what == SQ_FILES_STAND && m && m->state != NOTHING)
		m->state = CHECKED;
	return sq_files_notice(s, what);
}

int sq_files_opened(struct sq *s)
{
	struct main_file *m = main_of(s);
	const struct fs_id *wal = sq_wal_id(s);
	enum sq_files what = SQ_FILES_STAND;
	int rc;

	if (!m || m->state == CHECKED || m->state == NOTHING)
		return 0;
	if (m->state != FRESH || !wal || wal->size < wal_size_least(m) || !index_is_of_wal(s, m))
		what = check_before_write(s);
	if (what == SQ_FILES_STAND)
		m->state = CHECKED;
	rc = sq_files_notice(s, what);
	if (rc < 0)
		sq_rollback(s);
	return rc;
}

void sq_files_rest(struct sq *s)
{
	struct main_file *m = s->db ? main_of(s) : NULL;

	if (m && m->state != NOTHING)
		m->state = OLD;
}
