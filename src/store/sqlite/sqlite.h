/*
 * sqlite: the parts of the SQLite store, for its own files only.
 *
 *  1. Every write transaction and checkpoint happens under the gate. Readers never touch it.
 *  2. Only bound parameters carry data; the SQL texts are made of constants.
 *  3. A statement taken from the cache is given back reset; a nested scan gets another one.
 *  4. Before SQLite sees the file, its header was found to be ours.
 */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

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
	int64_t rid, due;
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
	char *path;       /* absolute */
	struct stat file; /* the database, when it was opened */
	int64_t opened_ms;
	pid_t pid; /* who opened it: no connection survives a fork */
	int64_t q; /* number of the queue in the database */
	struct gate gate;
	struct combine combine;
	struct sq_batch batch;
	struct localclock clock;
	struct anchor anchor;
	bool clock_set; /* the clock has been initialised */

	/* the change under way */
	bool changing;
	int64_t now;   /* stands still during a change */
	int64_t floor; /* new records begin above this revision; -1: not read yet */
	bool all_promoted;
	bool durability_set, folder_synced;
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

/* --- sqlite_stmt.c: statements and faults ------------------------------------------------------- */

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
struct str sq_column(sqlite3_stmt *st, int i);
/* 0, or a fault in a child process. Connects again after sq_disconnect(). */
int sq_guard(struct sq *s);
/* Needs no memory, and lets go of every lock. */
void sq_disconnect(struct sq *s);

/* --- sqlite_vfs.c: how SQLite reaches its files -------------------------------------------------- */

const char *sq_vfs(void);
int sq_wal_file_size(int plain); /* of a file that sq_wal_wrap() may be called for */
/* found: sq_wal_found() */
int sq_wal_wrap(sqlite3_file *f, uint32_t found);
/* Its inode if it was there when we opened it; 0: SQLite made it, and syncs the folder itself. */
uint32_t sq_wal_found(struct sq *s);
/* Around the statement that commits. */
void sq_wal_gather(struct sq *s);
void sq_wal_rest(struct sq *s);
bool sq_wal_begun(const char *database);
int sq_wal_sync(struct sq *s);

/* --- sqlite_schema.c: what the file has to look like -------------------------------------------- */

struct sq_layout {
	const char *const *steps; /* steps[i] leads from version i to i + 1 */
	int version;
};

/* A test puts a longer or shorter one here. */
extern const struct sq_layout *sq_layout;

int sq_connect(struct sq *s);
/* Finds, checks and opens the file; lays it out or migrates it if it needs that and may. */
int sq_attach(struct sq *s);
/* NULL, or why a database cannot be there. */
const char *sq_place_refusal(const char *network_fs);
int sq_queues(struct store *base, name_fn *fn, void *ctx);
int sq_discard(struct store *base);

/* --- sqlite_row.c: a record as a row ------------------------------------------------------------ */

enum sq_col {
	COL_RID,
	COL_KEY,
	COL_REV,
	COL_LANE,
	COL_DUE,
	COL_STATUS,
	COL_CLASS,
	COL_PRIORITY,
	COL_ELIGIBLE,
	COL_UPDATED,
	COL_CREATED,
	COL_ID,
	COL_HOLDER,
	COL_TOKEN,
	COL_PARENT,
	COL_TYPE,
	COL_LABELS,
	COL_DEPENDS,
	COL_HOT,
	COL_BODY
};

/* Without a table's name in front: SQLite prepares that faster. */
#define SQ_COLS                                                                                 \
	"rid,key,rev,lane,due,status,class_rank,priority,eligible_at,updated_at,created_at,id," \
	"holder,token,parent,type,labels,depends,hot"

/* A record whose strings lie in its statement's row. */
struct sq_row {
	int64_t rid, due;
	struct record rec;
	struct str *list; /* the items of labels and depends */
	size_t room;
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
int sq_row_body(struct sq *s, int64_t rid, struct arena *a, struct str *out);

/* --- sqlite_put.c ------------------------------------------------------------------------------- */

int sq_put(struct sq *s, const struct record *r);
int sq_drop(struct sq *s, struct str key);
int sq_tally_flush(struct sq *s);

/* --- sqlite_query.c ----------------------------------------------------------------------------- */

int sq_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx);
int sq_snapshot(struct store *s, int (*fn)(void *ctx), void *ctx);
int sq_count(struct store *base, const struct query *q, int64_t *n);
int sq_tally(struct store *base, int64_t *counts);
int sq_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx);
/* Everything read between the two belongs to one state. */
int sq_read_begin(struct sq *s);
void sq_read_end(struct sq *s);

/* --- sqlite_change.c ---------------------------------------------------------------------------- */

int sq_modify(struct store *base, struct change *changes, size_t n);
/* 0, or why this handle cannot write now; opens the gate. */
int sq_may_write(struct sq *s);
/* Waits for the gate like a change. */
int sq_under_gate(struct sq *s, int (*fn)(struct sq *, int64_t left_ms));
/* Writes what the edit has put, dropped and logged. */
int sq_apply(struct sq *s, const struct edit *e);
int sq_begin(struct sq *s, int64_t left_ms);
/* Ends what sq_begin() began, unless it was committed, or SQLite took it back itself. */
void sq_rollback(struct sq *s);
/* Under the gate. Its failure harms nobody. */
void sq_checkpoint(struct sq *s);
/* Under the gate: all that can be seen is on disk afterwards, whoever committed it. */
int sq_make_durable(struct sq *s);

/* --- sqlite_clock.c ----------------------------------------------------------------------------- */

int64_t sq_now(struct store *base);
/* At the start of a change: sets s->now, and saves the anchor if it is new. */
int sq_clock_change(struct sq *s);

/* Writes the anchor as it is. */
int sq_clock_save(struct sq *s);
/* Time goes on within a change. */
void sq_clock_again(struct sq *s);

/* --- sqlite_batch.c ----------------------------------------------------------------------------- */

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
/* After the gate was left. */
void sq_batch_nudge(struct sq *s);

/* --- sqlite_check.c ----------------------------------------------------------------------------- */

int sq_check(struct store *base, check_fn *fn, void *ctx);

#endif
