/*
 * SQLite's own VFS with a few calls changed, for fewer system calls.
 *
 * SQLite opens a WAL as if it had to be created, and therefore syncs the folder at each process's first
 * commit: a second fdatasync. We open one that is there and not empty as what it is. Whoever wrote the
 * first bytes into it went SQLite's way and synced the folder with them (see set_durability), or was
 * killed before that (see settle_folder).
 *
 * SQLite looks at every part of a path for links. Links to folders are harmless, since -wal and -shm are
 * found beside the database either way, and the last part has been looked at before (see look()).
 *
 * A WAL's writes are gathered (sqlite_wal.c).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/sqlite/sqlite.h"

static sqlite3_vfs *plain; /* SQLite's own */
static sqlite3_vfs ours;

/* Which file it is, never 0; 0 if there is nothing in it. */
static uint32_t find_bytes(const char *path)
{
	struct stat st;
	uint32_t which;

	if (!path || stat(path, &st) || st.st_size == 0)
		return 0;
	which = (uint32_t)st.st_ino ^ (uint32_t)((uint64_t)st.st_ino >> 32);
	return which ? which : 1;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	uint32_t found = 0;
	int rc = SQLITE_ERROR;

	(void)vfs;
	if ((flags & SQLITE_OPEN_WAL) && (flags & SQLITE_OPEN_CREATE))
		found = find_bytes(name);
	if (found)
		rc = plain->xOpen(plain, name, file, flags & ~SQLITE_OPEN_CREATE, out);
	if (rc != SQLITE_OK) {
		found = 0;
		rc = plain->xOpen(plain, name, file, flags, out);
	}
	return rc == SQLITE_OK && flags & SQLITE_OPEN_WAL ? sq_wal_wrap(file, found) : rc;
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
	char *wal = sqlite3_mprintf("%s-wal", database);
	bool begun = find_bytes(wal) != 0;

	sqlite3_free(wal);
	return begun;
}

static void make_vfs(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS,
		       0); /* too late if SQLite is in use already: no matter */
	plain = sqlite3_vfs_find(NULL);
	if (!plain)
		return;
	ours = *plain;
	ours.pNext = NULL;
	ours.zName = "pawl";
	ours.szOsFile = sq_wal_file_size(plain->szOsFile);
	ours.xOpen = open_file;
	ours.xFullPathname = full_name;
	if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
		ours.zName = plain->zName;
}

const char *sq_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_vfs);
	return ours.zName;
}
