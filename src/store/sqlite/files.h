/*
 * The files that SQLite has open for us: which inodes they are, and whether others still find them at
 * their paths.
 *
 * A process that goes on with a -shm or -wal that was removed or replaced shares neither index nor
 * locks with those who came later: it overwrites their commits, and they its own. So nothing is
 * acknowledged before a look at the paths, under the gate:
 *
 *  1. Before anything is written (sq_files_settle, sq_files_opened): the database, the -wal and the
 *     -shm are those at their paths, or were opened under this gate.
 *     With the -gate both locks could be gone at once. So the holder of the gate also locks the database
 *     itself (sq_files_lock), which every writer has open, before it looks.
 *  2. After the commit (sq_files_look): they still are. Who opens a new -shm later finds the commit in
 *     the WAL; who opened one earlier is why we look.
 *
 * While we have a file open its inode belongs to no other, so the number is enough to know it by.
 */
#ifndef STORE_SQLITE_FILES_H
#define STORE_SQLITE_FILES_H

#include "store/sqlite/sqlite.h"

/* An xOpen or xShmMap under way: what sqlite/vfs.c sees of its system calls. */
struct sq_opening {
	int fd;
	bool known;
	struct stat st;
	sqlite3_file *file; /* of the database, for its -shm; else NULL */
};

/* From here on this thread's calls are noted there; NULL: no more. */
void sq_watch_opening(struct sq_opening *o);

/* How large a sqlite3_file of ours is, with a tail for what we know about it. */
int sq_tail_room(int plain);

struct sq_file_id {
	dev_t dev;
	ino_t ino;    /* 0: not open */
	int64_t size; /* when it was opened */
};

/* fd: SQLite's, or -1 */
int sq_main_wrap(sqlite3_file *f, const char *name, const struct stat *st, int fd);
/* Is `name` that of an open database with `end` behind it? */
bool sq_main_owns(const char *name, const char *end);
void sq_main_found_shm(struct sq_opening *o);
/* The database's, as it was when it was opened; NULL: not through our VFS. */
const struct stat *sq_main_stat(struct sq *s);
/* Its size then, at the first call; later -1. */
int64_t sq_main_first_size(struct sq *s);

/* Notes which file the WAL is. */
void sq_wal_note(sqlite3_file *f, const struct stat *st, bool found);
/* NULL: the WAL is not open */
const struct sq_file_id *sq_wal_id(struct sq *s);

#endif
