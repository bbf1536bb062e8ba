/*
 * sqlite: the parts of the SQLite store, for its own files only.
 *
 *  1. Every write transaction and checkpoint happens under the gate. Readers never touch it.
 *  2. Only bound parameters carry data; the SQL texts consist of constants.
 *  3. Every user of a cached statement gives it back reset; a nested scan gets another statement.
 *  4. The store checks that the header is pawl's before SQLite acts on the file.
 */
#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H

#include <limits.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/fs.h"
#include "store/columns.h"
#include "store/local/local_batch.h"
#include "store/local/local_clock.h"
#include "store/store.h"

#define SQ_APPLICATION 0x7061776c /* "pawl" */
#define SQ_VERSION 3              /* of the schema */
#define SQ_OLDEST_SQLITE 3037000  /* SQLITE_OPEN_EXRESCODE */
#define SQ_CACHE 40
#define SQ_READ_WAIT_MS \
	2000 /* a reader waits only while another process recovers the WAL after a crash */

/* The places of sq.wal: what the gate's notes say about the WAL. */
enum {
	WAL_PAGES = 0,
	WAL_DONE = 1,
	WAL_IN_FOLDER = 2 /* number of the WAL whose folder entry is known to be on disk */
};

struct sq_cached {
	sqlite3_stmt *st;
	const char *key; /* a literal, compared by address: the SQL text or a part of it */
	unsigned variant;
	bool busy;
};

/* A row that the current change has read and not written. */
struct sq_seen {
	int64_t rid, wake;
	struct record *rec; /* its body only if has_body */
	bool has_body;
};

#define SQ_SEEN 8

struct sq {
	struct store base;
	sqlite3 *db;
	char *path;         /* absolute */
	struct stat file;   /* the database, at the time of open() */
	int64_t checked_ms; /* last time that a reader checked the files; os_boot_ms() */
	pid_t pid;          /* the process that opened it: no connection survives a fork */
	int64_t q;          /* number of the queue in the database */
	struct gate gate;
	struct combine combine;
	bool owes;       /* we left the gate without serving the processes that wait for it */
	uint32_t served; /* gate_served() when we left the gate */
	int64_t hurry_until;
	struct batch batch;
	struct localclock clock;
	struct anchor anchor;
	bool clock_set; /* the clock has been initialised */

	/* the current change */
	bool changing;
	int64_t now;   /* during a change, only sq_clock_again() moves it */
	int64_t floor; /* new records begin above this revision; -1: not read yet */
	bool whole;    /* a snapshot of everything: scans do not rely on the counts */
	bool all_promoted;
	/* No record of this queue becomes due before next_due while the database has this version; 0: not known. */
	int64_t next_due;
	uint32_t due_version;
	bool durability_set, folder_synced, shape_known;
	bool locked; /* we hold the database's own lock: sq_files_lock() */
	bool lost;   /* its files are gone: disconnect before leaving the gate */
	int64_t tally[STORE_STATUSES];
	bool tally_dirty;
	struct arena arena; /* emptied at the end of the change */
	struct sq_seen seen[SQ_SEEN];
	unsigned n_seen; /* number of rows remembered so far; `seen` has the newest */
	char absent
		[32]; /* the first key without a row in this change; most changes ask for it twice */
	size_t n_absent; /* the length of `absent`; 0: no key so far */

	int depth;          /* nesting depth of read transactions */
	uint32_t wal_pages; /* pages in the WAL after our latest commit */
	uint32_t wal[GATE_NOTES];
	int64_t commits;
	int watch;
	struct sq_cached cache[SQ_CACHE]; /* filled from the front */
	unsigned evict;
	sqlite3_stmt *rollback; /* prepared in advance: a rollback must not need memory */
};

static inline struct sq *sq_of(struct store *s)
{
	return (struct sq *)s;
}

/* --- sqlite/sqlite_statement.c: statements and faults ------------------------------------------------------- */

/* Prepares a statement outside the cache; the caller finalizes it. */
int sq_prepare(struct sq *s, const char *sql, sqlite3_stmt **out);
/* Takes the statement from the cache, or prepares it and adds it. `sql` is a literal. */
int sq_take(struct sq *s, const char *sql, sqlite3_stmt **out);
/* For composed SQL texts: one statement for each variant of a key. NULL: call sq_make(). */
sqlite3_stmt *sq_find(struct sq *s, const char *key, unsigned variant);
int sq_make(struct sq *s, const char *sql, const char *key, unsigned variant, sqlite3_stmt **out);
void sq_give(struct sq *s, sqlite3_stmt *st);
/* One step: SQLITE_ROW, SQLITE_DONE, or a fault < 0 with the error filled in. */
int sq_step(struct sq *s, sqlite3_stmt *st);
/* Runs a statement that returns no rows, and gives it back: 0 or a fault. */
int sq_finish(struct sq *s, sqlite3_stmt *st);
int sq_run(struct sq *s, const char *sql); /* one statement without parameters, through the cache */
int sq_exec(struct sq *s, const char *sql); /* several statements, not cached */
int sq_int(struct sq *s, const char *sql, int64_t *out);
void sq_bind(sqlite3_stmt *st, int i, struct str v);
void sq_bind_blob(sqlite3_stmt *st, int i, struct str v);
void sq_bind_some(sqlite3_stmt *st, int i, struct str v); /* a blob; NULL if it is empty */
struct str sq_column(sqlite3_stmt *st, int i);
/* Returns 0, or a fault if this is a child of the process that opened the handle. Connects again after sq_disconnect(). */
int sq_guard(struct sq *s);
/* Before a read: does what sq_guard() does, and also checks the files and the schema. */
int sq_read_guard(struct sq *s);
/* Closes the connection and so releases every lock. It needs no memory. */
void sq_disconnect(struct sq *s);

/* --- sqlite/sqlite_vfs.c: how SQLite reaches its files -------------------------------------------------- */

const char *sq_vfs(void);
/* A number made from the WAL's inode if the WAL existed when we opened it; 0: SQLite made it, and syncs the
 * folder itself. */
uint32_t sq_wal_found(struct sq *s);
bool sq_wal_begun(const char *database);
/* Writes the database's path followed by `end` to path, which has room for PATH_MAX bytes; false: it is too long. */
bool sq_beside(const char *database, const char *end, char *path);
int sq_wal_sync(struct sq *s);
/* Called before and after COMMIT: the writes between the two calls go to the file together. */
void sq_wal_gather(struct sq *s);
void sq_wal_rest(struct sq *s);

/* --- sqlite/sqlite_files.c: do the paths still lead to the files that we have open? --------------------- */

enum sq_files { SQ_FILES_STAND, SQ_DATABASE_GONE, SQ_WAL_GONE, SQ_INDEX_GONE };

enum sq_files sq_files_check(struct sq *s);
/* Returns 0 if all files are in place, or a fault with the error filled in. */
int sq_files_fail(struct sq *s, enum sq_files what);
/* sq_files_fail() under the gate: also sets s->lost. */
int sq_files_notice(struct sq *s, enum sq_files what);
/* Under the gate, after the fault `rc`: if a missing file explains the fault, reports the missing file instead. */
int sq_files_blame(struct sq *s, int rc);
/* Under the gate, before a change: reconnects if another -shm has replaced ours; fails if another file was replaced. */
int sq_files_settle(struct sq *s, int64_t left_ms);
/* Under the gate: keeps out processes that hold another gate file. 0, or STORE_BUSY. */
int sq_files_lock(struct sq *s, int64_t timeout_ms);
void sq_files_unlock(struct sq *s);
/* Under the gate, after SQLite has opened the files and before it writes. */
int sq_files_opened(struct sq *s);
/* Call it at the end of a change: makes the next change check the files again. */
void sq_files_rest(struct sq *s);

/* --- sqlite/sqlite_schema.c: checks that the schema is the one that pawl makes ---------------------------- */

/* Checks the schema, in a transaction, once for each connection. */
int sq_shape_check(struct sq *s);
/* In a change: fails if a newer pawl has changed the schema since we opened the database. */
int sq_version_check(struct sq *s);
/* Refuses the schema of an older or a newer pawl. */
int sq_version_fail(struct sq *s, int64_t version);

/* --- sqlite/sqlite_schema.c: the layout of the file ---------------------------------------------------- */

/* The statements that make an empty database. */
extern const char sq_schema[];

int sq_connect(struct sq *s);
/* Finds, checks and opens the file; lays it out if necessary and if the mode permits it. */
int sq_attach(struct sq *s);
/* Lays out the file, and the queue in it, if they are new and the mode allows it. */
int sq_settle_layout(struct sq *s);
int sq_settle_queue(struct sq *s);
/* If a database does not work on this file system, returns advice for the user; else NULL. */
const char *sq_place_refusal(const char *network_fs);
int sq_queues(struct store *base, name_fn *fn, void *ctx);
int sq_discard(struct store *base);

/* --- sqlite/sqlite_read.c: a record as a row ------------------------------------------------------------ */

enum sq_col {
	COL_RID,
	COL_KEY,
	COL_REV,
	COL_LANE,
	COL_WAKE,
	COL_STATUS,
	COL_CLASS,
	COL_PRIORITY,
	COL_ELIGIBLE,
	COL_UPDATED,
	COL_CREATED,
	COL_DUE,
	COL_ID,
	COL_HOLDER,
	COL_TOKEN,
	COL_PARENT,
	COL_TYPE,
	COL_LABELS,
	COL_DEPENDS,
	COL_HOT,
	COL_TEXTS /* COLUMN_TEXTS of them, then the rest of the body */
};

/* Column names without a table in front: SQLite prepares them faster. */
#define SQ_COLS                                                                                      \
	"record.rid,key,rev,lane,wake,status,class_rank,priority,eligible_at,updated_at,created_at," \
	"due_at,id,holder,token,parent,type," SQ_UP_TO(labels, 524288) "," SQ_UP_TO(                 \
		depends, 524288) "," SQ_UP_TO(hot, 1048576)
/* Yields NULL for a blob larger than pawl writes, and SQLite does not read it: the length is in the row's header.
 * The queue then refuses the record as damaged. */
#define SQ_UP_TO(column, most)                                                                 \
	"CASE WHEN typeof(" #column ")='blob'AND length(" #column ")<=" #most " THEN " #column \
	" END"
/* The texts of a task, and the rest. */
#define SQ_BODY "title,description,acceptance,blocker_reason,unblock_action,summary,rest"
/* A body larger than pawl writes counts as absent. A kept answer may hold many tasks, hence its larger limit. */
#define SQ_BODY_SIZE                                                                  \
	"length(title)+length(description)+length(acceptance)+length(blocker_reason)" \
	"+length(unblock_action)+length(summary)+length(rest)"
#define SQ_TASK_MAX 1835008
#define SQ_ANSWER_MAX 16777216
#define SQ_JOIN_BODY                                               \
	" LEFT JOIN body ON body.rid=record.rid AND " SQ_BODY_SIZE \
	"<=CASE WHEN status IS NULL THEN 16777216 ELSE 1835008 END"

/* A record whose strings point into its statement's row. */
struct sq_row {
	int64_t rid, wake;
	struct record rec;
	struct str *list; /* the items of labels and depends */
	char *names;      /* items that had to be unescaped */
	size_t room;
	struct buf body; /* the body, if it was joined from several columns */
};

void sq_row_read(sqlite3_stmt *st, bool body, struct sq_row *row);
void sq_row_free(struct sq_row *row);
/* Within a change: a later put of this record needs no second read. NULL outside a change. */
struct sq_seen *sq_row_remember(struct sq *s, const struct sq_row *row);
/* Within a change: remembers that `key` has no row. */
void sq_row_remember_absent(struct sq *s, struct str key);
bool sq_row_absent(const struct sq *s, struct str key);
struct sq_seen *sq_row_seen(struct sq *s, struct str key);
/* The whole record of a row that the change has read before. */
int sq_row_again(struct sq *s, struct sq_seen *seen, struct record *out, struct arena *a);
void sq_row_forget(struct sq *s, struct str key);
/* 0 and the row without its body, 1 if the key is absent. The row lives until the caller gives the statement back. */
int sq_row_find(struct sq *s, struct str key, struct sq_row *row, sqlite3_stmt **st);
/* The row's statement must still be active, so that the row and its body belong to one state. */
int sq_row_body(struct sq *s, int64_t rid, bool task, struct arena *a, struct str *out);

/* --- sqlite/sqlite_columns.c: the columns that people read ------------------------------------------------ */

/* A list as a JSON array. */
void sq_list_write(struct buf *out, struct strs list);
/* The next item lies in `json`, or in *room, which must have space for all of `json`. false: no more items. */
bool sq_list_next(struct str *json, char **room, struct str *item);
/* Binds the columns of column_copies to the parameters from i on; `a` holds their texts. */
void sq_bind_copies(sqlite3_stmt *st, int i, const struct record *r, struct arena *a);
/* Defines the functions of sqlite_columns.c in SQL, or removes them. */
void sq_functions(struct sq *s, bool on);

/* --- sqlite/sqlite_put.c ------------------------------------------------------------------------------- */

int sq_put(struct sq *s, const struct record *r);
int sq_drop(struct sq *s, struct str key);
int sq_tally_flush(struct sq *s);

/* --- sqlite/sqlite_query.c ----------------------------------------------------------------------------- */

int sq_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx);
int sq_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
int sq_count(struct store *base, const struct query *q, int64_t *n);
int sq_tally(struct store *base, int64_t *counts);
/* All reads between these two calls see one state. */
int sq_read_begin(struct sq *s);
void sq_read_end(struct sq *s);

/* --- sqlite/sqlite_read.c ------------------------------------------------------------------------------- */

int sq_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx);

/* --- sqlite/sqlite_group.c ------------------------------------------------------------------------------ */

/* 0 or a fault. */
int sq_gate_open(struct sq *s);
/* 0, -ETIMEDOUT, or a fault. */
int sq_enter(struct sq *s, int64_t timeout_ms);
/* sq_enter() without waiting in line: lets processes that wait go first. 0, -ETIMEDOUT, or a fault. */
int sq_enter_now(struct sq *s);
void sq_leave(struct sq *s);
/* Is the gate that we hold the file at its path? */
bool sq_gate_right(const struct sq *s);
/* For the holder, before it writes: makes sure that no other process writes, even if the gate was replaced. 0, or
 * a fault. */
int sq_gate_hold(struct sq *s, int64_t deadline);
/* Runs fn under the gate; waits for it as a change does. */
int sq_under_gate(struct sq *s, int (*fn)(struct sq *, int64_t left_ms));

/* --- sqlite/sqlite_change.c ---------------------------------------------------------------------------- */

int sq_modify(struct store *base, struct change *changes, size_t n);
/* The functions that batch_ops calls by these names. */
int sq_lead(struct store *base, int64_t deadline);
int sq_lead_again(struct store *base, int64_t left_ms);
int sq_change_alone(struct store *base, struct change *c, int64_t deadline);
/* Opens the gate: 0, or the fault that keeps this handle from writing. */
int sq_may_write(struct sq *s);
/* Writes the puts, drops and log entries of the edit. */
int sq_apply(struct sq *s, const struct edit *e);

/* --- sqlite/sqlite_transaction.c ----------------------------------------------------------------------- */

int sq_begin(struct sq *s, int64_t left_ms);
int sq_commit(struct sq *s);
/* Makes a checkpoint if the WAL has grown; call it before the transaction. */
void sq_shorten_wal(struct sq *s);
/* Tells the gate's next holder how long the WAL is. */
void sq_announce_wal(struct sq *s);
/* The version of the data that this handle sees; another process's commit changes it. */
uint32_t sq_data_version(struct sq *s);
/* Call it after our own commit: next_due already covers every record in it. */
void sq_keep_due(struct sq *s);
/* Rolls back the transaction, unless it was committed or SQLite has rolled it back already. */
void sq_rollback(struct sq *s);
/* Call it under the gate. The caller may ignore a failure. */
void sq_checkpoint(struct sq *s);

/* --- sqlite/sqlite_durability.c ------------------------------------------------------------------------ */

/* Tells SQLite which commits to sync; call it before the first transaction. */
int sq_set_durability(struct sq *s);
/* Under the gate, before a commit: the WAL's folder entry is on disk. */
int sq_settle_folder(struct sq *s);
/* Under the gate: makes every visible commit durable, including commits of other processes. */
int sq_make_durable(struct sq *s);

/* --- sqlite/sqlite_store.c ----------------------------------------------------------------------------- */

int64_t sq_now(struct store *base);
/* At the start of a change: sets s->now, and saves the anchor if it is new. */
int sq_clock_change(struct sq *s);

/* Writes the anchor to the database. */
int sq_clock_save(struct sq *s);
/* Moves s->now forward within a change, for the calls of other processes. */
void sq_clock_again(struct sq *s);

/* --- sqlite/sqlite_group.c ----------------------------------------------------------------------------- */

void sq_group_open(struct sq *s);

/* --- sqlite/sqlite_check.c, sqlite/sqlite_repair.c ----------------------------------------------------------------------------- */

int sq_check(struct store *base, check_fn *fn, void *ctx);

/* A condition that every pawl database meets, and the statements that restore it (sqlite/sqlite_repair.c). */
struct sq_rule {
	const char *what;
	const char *sql;               /* a query for the number of rows that break the condition */
	const char *good, *bad, *does; /* texts for doctor; `good` may be NULL */
	const char *saves;  /* rows of `body` to save before the repair; NULL: it removes no data */
	const char *repair; /* statements */
};
extern const struct sq_rule sq_rules[]; /* ends with a NULL `what` */
int sq_repair(struct store *base, enum repair_step step, const struct repair_sink *sink);

/* --- files ------------------------------------------------------------------------------------ */

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
 *  2. After the commit (sq_files_check): they still are. A process that opens a new -shm later finds the commit
 *     in the WAL. This check detects a process that opened one earlier.
 *  3. Before it writes: the index belongs to the current WAL. A writer whose -shm was removed after its first check may
 *     restart the WAL. The second check then fails its commit. But an index that another process has built
 *     since then describes the earlier frames, so a commit through that index would be lost.
 *
 * No other file can get the inode of a file that we have open, so the inode number identifies the file.
 */

/* An xOpen or xShmMap in progress, with the results of its system calls, as sqlite/sqlite_vfs.c observes them. */
struct sq_opening {
	int fd;
	bool known;
	struct stat st;
	sqlite3_file *file; /* the database, while SQLite opens its -shm; else NULL */
};

/* Starts to record this thread's system calls in *o. If o is NULL, it stops. */
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

/* Remembers the WAL's identity and replaces its methods. found: see sq_wal_found(). */
void sq_wal_wrap(sqlite3_file *f, const struct stat *st, bool found);
size_t sq_wal_room(void); /* in the tail */
/* NULL: the WAL is not open */
const struct fs_id *sq_wal_id(struct sq *s);
/* The salts in the WAL's header, which every valid frame repeats. false: they cannot be read. */
#define WAL_SALTS 8
bool sq_wal_salts(struct sq *s, unsigned char out[WAL_SALTS]);

/* --- header ----------------------------------------------------------------------------------- */

/*
 * The header of a database file, read before SQLite acts on the file.
 */

struct sq_header {
	enum { SQ_EMPTY, SQ_BLANK, SQ_OURS } state;
	bool wal;
};

/* 0, or the fault that explains why the file cannot be used. Changes nothing. */
int sq_header_read(struct sq *s, struct sq_header *out);
/* Under the gate: truncates a file that holds only zeros. */
int sq_header_clear(struct sq *s);

#endif
