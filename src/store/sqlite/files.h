/*
 * The files that SQLite has open for us: their inodes, and whether other processes still find them at
 * their paths.
 *
 * A program may remove or replace the -shm or -wal. A process that still uses the old file then shares neither
 * index nor locks with processes that open the new one. They would overwrite each other's commits. So the
 * store checks the paths, under the gate, before it acknowledges a change:
 *
 *  1. Before it writes (sq_files_settle, sq_files_opened): the database, the -wal and the -shm are the files at
 *     their paths, or we opened them while we held this gate. If a program removes the -gate as well, both
 *     locks are gone. So the holder of the gate first locks the database itself (sq_files_lock), which every
 *     writer has open.
 *  2. After the commit (sq_files_look): they still are. A process that opens a new -shm later finds the commit
 *     in the WAL. This check detects a process that opened one earlier.
 *  3. Before it writes: the index belongs to the WAL as it is. A writer whose -shm was removed after its first check may
 *     begin the WAL anew. Its commit fails by the second check, but an index that another process built meanwhile
 *     describes the frames from before: a commit through it would be lost.
 *
 * No other file can get the inode of a file that we have open, so the inode number identifies it.
 */
#ifndef STORE_SQLITE_FILES_H
#define STORE_SQLITE_FILES_H

#include "base/fs.h"
#include "store/sqlite/sqlite.h"

/* A current xOpen or xShmMap: the results of its system calls, as sqlite/vfs.c observes them. */
struct sq_opening {
	int fd;
	bool known;
	struct stat st;
	sqlite3_file *file; /* the database, while SQLite opens its -shm; else NULL */
};

/* Records the system calls of this thread in *o from now on; NULL: stops. */
void sq_watch_opening(struct sq_opening *o);

/* The size of our sqlite3_file: SQLite's own plus a tail with our data about the file. */
int sq_tail_room(int plain);
void *sq_tail(sqlite3_file *f);

/* fd: SQLite's descriptor, or -1 */
int sq_main_wrap(sqlite3_file *f, const char *name, const struct stat *st, int fd);
/* Is `name` the path of an open database followed by `end`? */
bool sq_main_owns(const char *name, const char *end);
void sq_main_found_shm(struct sq_opening *o);
/* The database's stat at the time of the open; NULL: it was not opened through our VFS. */
const struct stat *sq_main_stat(struct sq *s);
/* The first call returns the database's size at the time of the open; later calls return -1. */
int64_t sq_main_first_size(struct sq *s);

/* Remembers the identity of the WAL and replaces its methods. found: sq_wal_found() */
void sq_wal_wrap(sqlite3_file *f, const struct stat *st, bool found);
size_t sq_wal_room(void); /* in the tail */
/* NULL: the WAL is not open */
const struct fs_id *sq_wal_id(struct sq *s);
/* The salts in the header of the file, which every valid frame repeats. false: they cannot be read. */
#define WAL_SALTS 8
bool sq_wal_salts(struct sq *s, unsigned char out[WAL_SALTS]);

#endif
