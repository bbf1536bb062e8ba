/*
 * sqlite: the parts of the SQLite store, for its own files only.
 *
 *  1. Every write transaction and checkpoint happens under the gate. Readers never touch it.
 *  2. Only bound parameters carry data; the SQL texts are made of constants.
 *  3. A statement taken from the cache is given back reset; a nested scan gets another one.
 *  4. Before SQLite sees the file, its header was found to be ours.
 */
#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "store/local/combine.h"
#include "store/local/gate.h"
#include "store/local/clock.h"
#include "store/store.h"

#define SQ_APPLICATION 0x7061776c /* "pawl" */
#define SQ_OLDEST_SQLITE 3037000  /* SQLITE_OPEN_EXRESCODE */
#define SQ_CACHE 40
#define SQ_STATUSES 16
#define SQ_READ_WAIT_MS \
	2000 /* a reader waits only while the WAL is being recovered after a crash */

struct sq_cached {
	sqlite3_stmt *st;
	const char *key; /* a literal, known by its address: its text, or what that is made for */
	unsigned variant;
	bool busy;
};

/* A row that the change under way has read and not written. */
struct sq_seen {
	int64_t rid, wake;
	struct record *rec; /* without its body */
};

#define SQ_SEEN 8

/* Others' calls in the change under way. */
struct sq_batch {
	uint64_t id;
	struct combine_call calls[COMBINE_SLOTS];
	size_t n;
	bool wrote;
};

struct sq {
	struct store base;
	sqlite3 *db;
	char *path;        /* absolute */
	struct stat file;  /* the database, when it was opened */
	int64_t looked_ms; /* when a reader last looked for the files; os_boot_ms() */
	pid_t pid;         /* who opened it: no connection survives a fork */
	int64_t q;         /* number of the queue in the database */
	struct gate gate;
	struct combine combine;
	bool owes;       /* we left the gate without serving those who wait at it */
	uint32_t served; /* gate_served() then */
	int64_t hurry_until;
	struct sq_batch batch;
	struct localclock clock;
	struct anchor anchor;
	bool clock_set; /* the clock has been initialised */

	/* the change under way */
	bool changing;
	int64_t now;   /* stands still during a change */
	int64_t floor; /* new records begin above this revision; -1: not read yet */
	bool all_promoted;
	bool durability_set, folder_synced, shape_known;
	bool locked; /* the database, too: sq_files_lock() */
	bool lost;   /* its files are gone: to be disconnected before the gate is left */
	int64_t tally[SQ_STATUSES];
	bool tally_dirty;
	struct arena arena; /* emptied at its end */
	struct sq_seen seen[SQ_SEEN];
	unsigned n_seen; /* so far; the newest ones are there */
	char absent
		[32]; /* the first key that this change found no row for; most changes ask for the same */
	size_t n_absent; /* its length; 0: none so far */

	int depth;          /* read transactions, nested */
	uint32_t wal_pages; /* after our latest commit */
	uint32_t wal[GATE_NOTES];
	int64_t commits;
	int watch;
	struct sq_cached cache[SQ_CACHE]; /* filled from the front */
	unsigned evict;
	sqlite3_stmt *rollback; /* prepared before it is needed, when there may be no memory */
};

static inline struct sq *sq_of(struct store *s)
{
	return (struct sq *)s;
}

/* --- sqlite/statement.c: statements and faults ------------------------------------------------------- */

/* Not in the cache: the caller finalizes it. */
int sq_prepare(struct sq *s, const char *sql, sqlite3_stmt **out);
/* From the cache, or made and put there. `sql` is a literal. */
int sq_take(struct sq *s, const char *sql, sqlite3_stmt **out);
/* For texts that are put together: one for each variant of a key. NULL: it has to be made. */
sqlite3_stmt *sq_find(struct sq *s, const char *key, unsigned variant);
int sq_make(struct sq *s, const char *sql, const char *key, unsigned variant, sqlite3_stmt **out);
void sq_give(struct sq *s, sqlite3_stmt *st);
/* One step: SQLITE_ROW, SQLITE_DONE, or a fault < 0 with the error filled in. */
int sq_step(struct sq *s, sqlite3_stmt *st);
/* Steps a statement that has no rows to its end, and gives it back: 0 or a fault. */
int sq_finish(struct sq *s, sqlite3_stmt *st);
int sq_run(struct sq *s, const char *sql);  /* without parameters, through the cache */
int sq_exec(struct sq *s, const char *sql); /* once, several statements */
int sq_int(struct sq *s, const char *sql, int64_t *out);
/* The database's latest error as a fault. */
int sq_fail(struct sq *s);
void sq_bind(sqlite3_stmt *st, int i, struct str v);
void sq_bind_blob(sqlite3_stmt *st, int i, struct str v);
void sq_bind_some(sqlite3_stmt *st, int i, struct str v); /* a blob; NULL if it is empty */
struct str sq_column(sqlite3_stmt *st, int i);
/* 0, or a fault in a child process. Connects again after sq_disconnect(). */
int sq_guard(struct sq *s);
/* The same before a read. */
int sq_read_guard(struct sq *s);
/* Needs no memory, and lets go of every lock. */
void sq_disconnect(struct sq *s);

/* --- sqlite/vfs.c: how SQLite reaches its files -------------------------------------------------- */

const char *sq_vfs(void);
/* Its inode if it was there when we opened it; 0: SQLite made it, and syncs the folder itself. */
uint32_t sq_wal_found(struct sq *s);
bool sq_wal_begun(const char *database);
int sq_wal_sync(struct sq *s);

/* --- sqlite/files.c: are the files still those at their paths? ----------------------------------- */

enum sq_files { SQ_FILES_STAND, SQ_DATABASE_GONE, SQ_WAL_GONE, SQ_INDEX_GONE };

enum sq_files sq_files_look(struct sq *s);
/* Fills in the error; 0 if all stand. */
int sq_files_fail(struct sq *s, enum sq_files what);
/* The same under the gate; sets s->lost. */
int sq_files_notice(struct sq *s, enum sq_files what);
/* Under the gate: if files that are gone explain the fault `rc`, says so. */
int sq_files_blame(struct sq *s, int rc);
/* Under the gate, before a change: connects again if the -shm is another one, else a fault. */
int sq_files_settle(struct sq *s, int64_t left_ms);
/* Under the gate: against those who wait at another one. 0, or STORE_BUSY. */
int sq_files_lock(struct sq *s, int64_t timeout_ms);
void sq_files_unlock(struct sq *s);
/* Under the gate, once SQLite has opened them, before anything is written. */
int sq_files_opened(struct sq *s);
/* The change is over: what was looked at has to be looked at again. */
void sq_files_rest(struct sq *s);

/* --- sqlite/shape.c: is it the schema that pawl makes? ------------------------------------------- */

/* In a transaction; once for each connection. */
int sq_shape_check(struct sq *s);
/* In a change: does nobody else have migrated it since? */
int sq_version_check(struct sq *s);
int sq_version_fail(struct sq *s, int64_t version);
/* That of an older version, before it is migrated. */
int sq_shape_is(struct sq *s, int version);

/* --- sqlite/schema.c: what the file has to look like -------------------------------------------- */

/* Steps before `whole` add to one another. That one makes all of a layout anew; those after it add to it again. */
struct sq_layout {
	const char *const *steps; /* steps[i] leads from version i to i + 1 */
	int version, whole;
};

/* A test puts a longer or shorter one here. */
extern const struct sq_layout *sq_layout;

/* In the transaction that migrates: moves everything from the tables of an older version to new ones, which `make`
 * makes. */
int sq_rebuild(struct sq *s, int64_t version, const char *make);
int sq_connect(struct sq *s);
/* Finds, checks and opens the file; lays it out or migrates it if it needs that and may. */
int sq_attach(struct sq *s);
/* NULL, or why a database cannot be there. */
const char *sq_place_refusal(const char *network_fs);
int sq_queues(struct store *base, name_fn *fn, void *ctx);
int sq_discard(struct store *base);

/* --- sqlite/row.c: a record as a row ------------------------------------------------------------ */

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
	COL_TEXTS /* SQ_TEXTS of them, then the rest of the body */
};

/* Without a table's name in front: SQLite prepares that faster. */
#define SQ_COLS                                                                                      \
	"record.rid,key,rev,lane,wake,status,class_rank,priority,eligible_at,updated_at,created_at," \
	"due_at,id,holder,token,parent,type," SQ_UP_TO(labels, 524288) "," SQ_UP_TO(                 \
		depends, 524288) "," SQ_UP_TO(hot, 1048576)
/* Bytes that pawl cannot have written are not even read: SQLite tells a blob's length without that. What is missing
 * then makes the record one that cannot be used. */
#define SQ_UP_TO(column, most)                                                                 \
	"CASE WHEN typeof(" #column ")='blob'AND length(" #column ")<=" #most " THEN " #column \
	" END"
/* The texts of a task, and the rest. */
#define SQ_BODY "title,description,acceptance,blocker_reason,unblock_action,summary,rest"
/* What is larger than pawl writes it is not there. A kept answer may hold many tasks. */
#define SQ_BODY_SIZE                                                                  \
	"length(title)+length(description)+length(acceptance)+length(blocker_reason)" \
	"+length(unblock_action)+length(summary)+length(rest)"
#define SQ_TASK_MAX 1835008
#define SQ_ANSWER_MAX 16777216
#define SQ_JOIN_BODY                                               \
	" LEFT JOIN body ON body.rid=record.rid AND " SQ_BODY_SIZE \
	"<=CASE WHEN status IS NULL THEN 16777216 ELSE 1835008 END"

/* A record whose strings lie in its statement's row. */
struct sq_row {
	int64_t rid, wake;
	struct record rec;
	struct str *list; /* the items of labels and depends */
	char *names;      /* those that are not in the row as they are */
	size_t room;
	struct buf body; /* if it had to be put together */
};

void sq_row_read(sqlite3_stmt *st, bool body, struct sq_row *row);
void sq_row_free(struct sq_row *row);
/* Within a change: no need to read it again before it is written. */
void sq_row_remember(struct sq *s, const struct sq_row *row);
/* The same for one that is not there. */
void sq_row_remember_absent(struct sq *s, struct str key);
bool sq_row_absent(const struct sq *s, struct str key);
const struct sq_seen *sq_row_seen(const struct sq *s, struct str key);
void sq_row_forget(struct sq *s, struct str key);
/* 0 and the row without its body, 1 if there is none. It lives until the statement is given back. */
int sq_row_find(struct sq *s, struct str key, struct sq_row *row, sqlite3_stmt **st);
/* Of a row whose statement still is under way, so that both belong to one state. */
int sq_row_body(struct sq *s, int64_t rid, bool task, struct arena *a, struct str *out);

/* --- sqlite/column.c: what people read ----------------------------------------------------------- */

#define SQ_TEXTS 6  /* columns of `body` with a text of the task */
#define SQ_WORDS 5  /* columns of `event` */
#define SQ_COPIES 9 /* columns of `record` that copy a part of `hot` */

enum sq_kind {
	SQ_STRING,
	SQ_INTEGER,
	SQ_TIME /* as text: the views are parsed at each start, and shorter so */
};

struct sq_copy {
	uint8_t tag;
	enum sq_kind kind;
};

extern const uint8_t sq_text_tags[SQ_TEXTS], sq_entry_tags[SQ_WORDS];
extern const struct sq_copy sq_copies[SQ_COPIES];

/* Packed bytes as n columns and the rest. Bytes that could not be joined again stay whole, as the rest. */
void sq_split(const uint8_t *tags, size_t n, struct str packed, struct str *columns,
	      struct buf *rest);
void sq_join(const uint8_t *tags, size_t n, const struct str *columns, struct str rest,
	     struct buf *out);
/* A list as a JSON array. */
void sq_list_write(struct buf *out, struct strs list);
/* The next item: in `json`, or in *room, which has space for all of it. false: there is none. */
bool sq_list_next(struct str *json, char **room, struct str *item);
/* The parameters from i on, by sq_copies; what they need is in `a`. */
void sq_bind_copies(sqlite3_stmt *st, int i, const struct record *r, struct arena *a);
/* The same as functions of SQL, for a while. */
void sq_functions(struct sq *s, bool on);

/* Is it a task or a lock of the whole queue? */
static inline bool sq_is_packed(const struct record *r)
{
	return str_starts(r->key, STR("task/")) || str_starts(r->key, STR("lock/"));
}

/* --- sqlite/put.c ------------------------------------------------------------------------------- */

int sq_put(struct sq *s, const struct record *r);
int sq_drop(struct sq *s, struct str key);
int sq_tally_flush(struct sq *s);

/* --- sqlite/query.c ----------------------------------------------------------------------------- */

int sq_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx);
int sq_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
int sq_count(struct store *base, const struct query *q, int64_t *n);
int sq_tally(struct store *base, int64_t *counts);
int sq_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx);
/* Everything read between the two belongs to one state. */
int sq_read_begin(struct sq *s);
void sq_read_end(struct sq *s);

/* --- sqlite/gate.c ------------------------------------------------------------------------------ */

/* 0 or a fault. */
int sq_gate_open(struct sq *s);
/* What others are told of who is in their way. */
struct str sq_our_name(const struct sq *s);
/* 0, -ETIMEDOUT, or a fault. */
int sq_enter(struct sq *s, int64_t timeout_ms);
/* The same without waiting in line: who comes after others lets them go first. */
int sq_enter_now(struct sq *s);
void sq_leave(struct sq *s);
/* Is it the file at its path that we hold? */
bool sq_gate_right(const struct sq *s);
/* For its holder, before it writes: nobody else does, also if the gate was replaced. 0, or a fault. */
int sq_gate_hold(struct sq *s, int64_t deadline);
/* Waits for the gate like a change. */
int sq_under_gate(struct sq *s, int (*fn)(struct sq *, int64_t left_ms));

/* --- sqlite/change.c ---------------------------------------------------------------------------- */

int sq_modify(struct store *base, struct change *changes, size_t n);
/* 0, or why this handle cannot write now; opens the gate. */
int sq_may_write(struct sq *s);
/* Writes what the edit has put, dropped and logged. */
int sq_apply(struct sq *s, const struct edit *e);
int sq_begin(struct sq *s, int64_t left_ms);
/* Ends what sq_begin() began, unless it was committed, or SQLite took it back itself. */
void sq_rollback(struct sq *s);
/* Under the gate. Its failure harms nobody. */
void sq_checkpoint(struct sq *s);
/* Under the gate: all that can be seen is on disk afterwards, whoever committed it. */
int sq_make_durable(struct sq *s);

/* --- sqlite/clock.c ----------------------------------------------------------------------------- */

int64_t sq_now(struct store *base);
/* At the start of a change: sets s->now, and saves the anchor if it is new. */
int sq_clock_change(struct sq *s);

/* Writes the anchor as it is. */
int sq_clock_save(struct sq *s);
/* Time goes on within a change. */
void sq_clock_again(struct sq *s);

/* --- sqlite/batch.c ----------------------------------------------------------------------------- */

/* Who waits: hands the change to whoever holds the gate. false: it cannot be handed over. */
bool sq_batch_ask(struct sq *s, const struct change *c, int64_t deadline);
int sq_batch_accept(struct sq *s, struct change *c, enum combine_end end,
		    const struct combine_reply *reply);
/* Who holds the gate: runs what others wait for, in the open transaction. */
int sq_batch_run(struct sq *s, struct arena *a, bool *worth);
/* After the commit, or what came instead of it: answers them. */
void sq_batch_end(struct sq *s, int fault);
/* Are there several that wait for the one who holds the gate? */
bool sq_batch_waits(struct sq *s);
/* After the gate was left. false: nobody waits. */
bool sq_batch_nudge(struct sq *s);
/* Does this process run the calls of others, and let others run its own? */
bool sq_takes_part(const struct sq *s);

/* --- sqlite/check.c ----------------------------------------------------------------------------- */

int sq_check(struct store *base, check_fn *fn, void *ctx);

#endif
