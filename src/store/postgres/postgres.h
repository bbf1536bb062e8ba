/*
 * postgres: the parts of the PostgreSQL store, for its own files only.
 *
 *  1. Every change locks the queue's row before it reads or writes records. The lock serialises all changes of the queue,
 *     including those that read absent keys or scan. A change takes its time after the lock was granted.
 *  2. Only bound parameters carry data; the SQL texts consist of constants and the quoted name of the schema.
 *  3. Log entry numbers come from the locked row, so they have no gaps and follow the order of the commits.
 *  4. The connection is in pipeline mode: a statement is sent without waiting, and only a read waits for its result.
 *  5. No message contains a password: messages name the host, the database and the server's own text.
 *
 * Every byte string is a bytea, whatever the database's encoding; the views convert them to text.
 */
#ifndef STORE_POSTGRES_POSTGRES_H
#define STORE_POSTGRES_POSTGRES_H

#include <libpq-fe.h>
#include <sys/types.h>

#include "store/columns.h"
#include "store/local/local_batch.h"
#include "store/store.h"

/* The condition of the index record_due: every lane that has a time. */
#define PG_DUE_LANES "lane>=" LANE_TEXT(LANE_LATER)

#define PG_VERSION 2     /* of the schema */
#define PG_OLDEST 130000 /* server */
#define PG_NET_MS 30000  /* longest silence of a server */
#define PG_FETCH 256     /* rows of a long answer that are read at once */

/* A record that the current change has read or written. */
struct pg_seen {
	struct pg_seen *chain;
	struct str key;
	struct record *rec; /* NULL: the key is absent */
	bool body;          /* rec->body is known */
	bool written;       /* the current change has written it */
	struct pg_seen *next_written;
	bool later; /* its row is not sent yet: see pg_change.c */
	struct pg_seen *next_later;
};
#define PG_SEEN_SLOTS 256
#define PG_SEEN_MOST 2048

/* A statement of this handle. */
struct pg_prepared {
	const char *sql; /* a literal, compared by address */
	char *text;      /* the SQL text, with the schema's name filled in */
	unsigned uses;
	bool named; /* the server knows it by its number here */
	bool fresh; /* the server has not answered yet */
	unsigned
		version; /* part of its name, since a failed batch leaves unknown which names exist */
};
#define PG_PREPARED 96

/* The queue's row, as the current change has locked it. */
struct pg_row {
	int64_t now, floor, seq;
	int64_t tally[STORE_STATUSES];
	bool due; /* records wait to be promoted or removed */
};

/* The answer to a query that the current change wants; see pg_ahead.c. */
enum pg_set_kind { PG_SET_ONE, PG_SET_TOKENS, PG_SET_TARGETS };
struct pg_set {
	enum pg_set_kind kind;
	struct query q;
	struct strs values; /* the tokens or the targets */
	struct strs keys;
	size_t n, limit, promised;
	bool open;         /* a change wants all records */
	bool apart;        /* a separate statement reads it */
	bool whole;        /* there are no more */
	struct index last; /* if not whole: the last record's index, as it was read */
};
#define PG_SETS 12
struct pg_ahead {
	struct strs keys;
	bool parents; /* also read the parents of these tasks */
	struct pg_set sets[PG_SETS];
	size_t n, kept; /* kept: answered by the server */
	bool together;  /* one statement reads the keys and most sets */
	int64_t until;  /* the sets have every record that is eligible until then */
};
/* An answer from the sets, in order. */
struct pg_found {
	const struct record **v;
	size_t n;
	bool bodies;
};
#define PG_AHEAD_MS 1000

/* Writes that are not sent yet; see pg_change.c. */
struct pg_later {
	struct pg_seen *records;
	struct pg_args **entries; /* of the log */
	size_t n_records, n_entries, bytes;
};

struct pg {
	struct store base;
	PGconn *db;       /* NULL: not connected */
	PGconn *listener; /* NULL: not waiting */
	char *conninfo;   /* the URI without our own parameters */
	char *schema;     /* its name, and quoted as an identifier */
	char *name;
	char place[200];        /* host and database, for messages */
	pid_t pid;              /* the process that opened it: no connection survives a fork */
	int64_t q;              /* number of the queue */
	bool pooled;            /* a pooler is between us and the server: sessions are not ours */
	bool broken;            /* the connection failed: connect again before the next call */
	bool warned;            /* the server sent a warning */
	bool deaf;              /* LISTEN does not work here */
	unsigned pending_moves; /* syncs that were sent and not read yet */
	unsigned sent;          /* messages that were sent since the last sync */
	int64_t deadline;       /* by os_boot_ms(): the server must answer before this time */
	int64_t until;          /* the latest deadline for all calls; 0: none */
	char state[6];          /* SQLSTATE of the last failure */
	struct pg_prepared prepared[PG_PREPARED];
	size_t n_prepared;

	/* the server's time when we last read it, and our boot clock at that moment */
	int64_t server_ms, boot_ms;
	/* a test's clock, see own_time in store.h; NULL: the server's */
	int64_t (*boot)(void);
	int64_t epoch; /* its wall clock minus its boot clock */

	/* the current change or snapshot */
	bool changing;
	unsigned changes; /* that this handle has begun */
	int depth;
	unsigned cursors;
	int64_t now;
	struct pg_row row;
	bool committing; /* COMMIT was sent: after a failure the change may have happened */
	struct arena arena;
	struct pg_seen *seen[PG_SEEN_SLOTS], *written;
	size_t n_seen, n_written, logged; /* logged: bytes of log entries in the arena */
	struct pg_ahead ahead;
	struct pg_later later;

	/* group commit, see pg_group.c */
	struct gate gate;
	struct combine combine;
	struct batch batch;
	struct arena calls; /* the calls of other processes */
	char id[40];        /* of the schema */
	char *meet; /* path of the gate and of the slots, without their endings; NULL: none yet */
	char server[160]; /* the server that this path belongs to */
	bool apart;       /* there is no safe place for the gate */
	bool leading;     /* we hold the gate */
	bool news;        /* we have committed, and have not notified the waiting processes yet */
	int64_t tell_by;  /* by os_boot_ms(): deadline for notifying them */
	bool tidied;      /* we have removed batch numbers that no process needs any more */
};

static inline struct pg *pg_of(struct store *s)
{
	return (struct pg *)s;
}

/* --- postgres/pg_put.c: the parameters of a statement ------------------------------------------------ */

#define PG_ARGS 36

struct pg_args {
	int n;
	Oid types[PG_ARGS];
	const char *values[PG_ARGS];
	int lengths[PG_ARGS], formats[PG_ARGS];
	char numbers[PG_ARGS][8];
	struct arena *a; /* for lists; may be NULL if there are none */
};

void pg_int(struct pg_args *p, int64_t v);
void pg_int_or_null(struct pg_args *p, int64_t v, bool is_null);
void pg_bytes(struct pg_args *p, struct str v);
void pg_bytes_or_null(struct pg_args *p, struct str v); /* NULL if it is empty */
void pg_list(struct pg_args *p, struct strs list);
void pg_text(struct pg_args *p, const char *v);
/* Adds the parameters of a row, which must outlive `out`. */
void pg_row(struct pg_args *out, const struct pg_args *row);
/* Adds a list for each parameter of the rows, which are numbers or byte strings. */
void pg_columns(struct pg_args *out, struct pg_args *const *rows, size_t n);
/* Values of a result; one that the server did not send is empty or 0. */
const char *pg_text_at(const PGresult *r, int row, int col);
int64_t pg_int_at(const PGresult *r, int row, int col);
struct str pg_bytes_at(const PGresult *r, int row, int col);
/* A list of byte strings, in `a`; empty if its form is wrong. */
struct strs pg_list_at(const PGresult *r, int row, int col, struct arena *a);

/* --- postgres/pg_connect.c: the URI --------------------------------------------------------------------- */

int pg_place(struct pg *s, const struct uri *uri);

/* --- postgres/pg_connect.c ---------------------------------------------------------------------------- */

/* Opens another connection to the same place: 0 or a fault. */
int pg_connect_to(struct pg *s, PGconn **out);
/* 0, or the fault that keeps this handle from working. Connects again if the connection failed. */
int pg_guard(struct pg *s);
/* After a read failed with `rc`: was the connection lost, and is there a new one now? Then the read runs again. */
bool pg_again(struct pg *s, int rc);
void pg_disconnect(struct pg *s);
/* Closes a connection that belongs to another process, without a word to the server. */
void pg_abandon(PGconn *db);

/* --- postgres/pg_talk.c: statements and their results ------------------------------------------------- */

/* `sql` is a literal; every $S in it stands for the schema. The statement is sent; its result is read later. */
int pg_send(struct pg *s, const char *sql, const struct pg_args *args);
/* pg_send() without sending s->later first, for a statement that neither reads nor overwrites the deferred writes. */
int pg_send_beside(struct pg *s, const char *sql, const struct pg_args *args);
/* pg_send() for a text that is composed for this call. */
int pg_send_text(struct pg *s, const char *sql, const struct pg_args *args);
/* pg_send() for a composed text that is likely to be used again. */
int pg_send_composed(struct pg *s, const char *sql, const struct pg_args *args);
/* Waits for the results of all statements sent since the last sync. If `out` is not NULL, *out gets the last result, which
 * the caller clears. */
int pg_wait(struct pg *s, PGresult **out);
/* pg_wait() for the last n results that have rows, the oldest first. */
int pg_wait_all(struct pg *s, PGresult **out, size_t n);
/* Makes sure that n statements can be sent before their results must be read. The caller has sent the deferred writes. */
int pg_room(struct pg *s, unsigned n);
/* pg_send() and pg_wait(). */
int pg_ask(struct pg *s, const char *sql, const struct pg_args *args, PGresult **out);
/* Ends the batch without waiting for its results. */
void pg_let_go(struct pg *s);
/* Reads the results that no caller waits for. */
void pg_drain(struct pg *s);
/* By os_boot_ms(): `ms` from now, but not after s->until. */
int64_t pg_end_of(const struct pg *s, int64_t ms);
/* Sets the server's deadline: `ms` from now, and a moment for the network. */
void pg_patience(struct pg *s, int64_t ms);
/* Fills in the error for a failed statement, by its SQLSTATE. */
int pg_fail(struct pg *s, const char *state, const char *text);
/* The connection is gone. */
int pg_lost(struct pg *s, const char *why);
/* The SQL text with the schema ($S) and the server's clock ($C) filled in; the caller frees it. */
char *pg_sql(const struct pg *s, const char *sql);

/* --- postgres/pg_schema.c ----------------------------------------------------------------------------- */

/* Checks the schema, makes it if necessary and if the mode permits it, and finds the queue. */
int pg_attach(struct pg *s);
int pg_queues(struct store *base, name_fn *fn, void *ctx);
int pg_discard(struct store *base);
/* The statements that make the schema; ends with NULL. */
extern const char *const pg_layout[];
/* Refuses the schema of an older or a newer pawl. */
int pg_version_check(struct pg *s, int64_t version);

/* --- postgres/pg_read.c -------------------------------------------------------------------------------- */

#define PG_COLS                                                                                        \
	"r.key,r.rev,r.lane,r.status,r.class_rank,r.priority,r.eligible_at,r.updated_at,r.created_at," \
	"r.due_at,r.id,r.holder,r.token,r.parent,r.type,"                                              \
	"CASE WHEN pg_column_size(r.labels)<=524288 THEN r.labels END,"                                \
	"CASE WHEN pg_column_size(r.depends)<=524288 THEN r.depends END,"                              \
	"CASE WHEN octet_length(r.hot)<=1048576 THEN r.hot END"
/* A body larger than pawl writes counts as absent. A kept answer may hold many tasks, hence its larger limit. */
#define PG_BODY \
	"t.title,t.description,t.acceptance,t.blocker_reason,t.unblock_action,t.summary,t.rest"
/* LIMIT makes the planner look up each row by its key. Without statistics for a new queue it assumes that q=$1 is
 * selective, and would read the whole queue. */
#define PG_JOIN                                                                                     \
	" LEFT JOIN LATERAL (SELECT * FROM $S.text b WHERE b.q=r.q AND b.key=r.key AND "            \
	"octet_length(b.title)+octet_length(b.description)+octet_length(b.acceptance)"              \
	"+octet_length(b.blocker_reason)+octet_length(b.unblock_action)+octet_length(b.summary)"    \
	"+octet_length(b.rest)<=CASE WHEN r.status IS NULL THEN 16777216 ELSE 1835008 END LIMIT 1)" \
	" t ON true"
/* A list's values, each with the queue's number. OFFSET 0 hides that number from the planner, because the values are
 * selective and the queue is not. */
#define PG_EACH(list) "(SELECT $1::bigint AS q,u.v FROM unnest(" list ") u(v) OFFSET 0) k"
enum { PG_COL_BODY = 18, PG_COL_SET = 25 };

/* The record of the row, with all its strings in `a`. */
void pg_row_read(const PGresult *r, int row, bool body, struct record *out, struct arena *a);
/* Within a change. */
void pg_remember(struct pg *s, struct str key, const struct record *r, bool body);
struct pg_seen *pg_seen(struct pg *s, struct str key);
/* Notes that the current change has written this record, which must be remembered already. */
void pg_wrote(struct pg *s, struct str key);
/* Also forgets the records that were read ahead, and the deferred writes. */
void pg_forget_seen(struct pg *s);

/* --- postgres/pg_read.c ------------------------------------------------------------------------------- */

int64_t pg_now(struct store *base);
/* Records the time that the server's clock showed just now. */
void pg_clock_set(struct pg *s, int64_t server_ms);
/* The time of a snapshot, from the time that the server gave. */
int64_t pg_clock_from(const struct pg *s, int64_t server_ms);
int pg_get(struct store *base, struct str key, struct record *out, struct arena *a);
int pg_tally(struct store *base, int64_t *counts);
int pg_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx);
int pg_snapshot(struct store *base, bool all, int (*fn)(void *ctx), void *ctx);
/* Reads `key` by name within a change, with its body. */
int pg_load(struct pg *s, struct strs keys);
int pg_read_begin(struct pg *s);
int pg_read_end(struct pg *s, int rc);

/* --- postgres/pg_scan.c ------------------------------------------------------------------------------- */

int pg_scan(struct store *base, const struct query *q, record_fn *fn, void *ctx);
int pg_count(struct store *base, const struct query *q, int64_t *n);
/* Sends a query that is read together with the lock. */
int pg_scan_send(struct pg *s, const struct query *q);
/* Adds branches that find the keys of a query by rank, each key with the number n. */
void pg_scan_keys(struct pg *s, const struct query *q, int n, struct pg_args *args,
		  struct buf *sql);

/* --- postgres/pg_ahead.c ------------------------------------------------------------------------------ */

/* Sends the queries for the changes' wants; a NULL want: not known. */
int pg_ahead_send(struct pg *s, const struct wants *const *w, size_t n);
size_t pg_ahead_results(const struct pg *s);
/* Keeps the results of pg_ahead_send(). */
void pg_ahead_keep(struct pg *s, PGresult **r);
/* In a change: reads the records that are not known yet, in one round trip. */
int pg_ahead_more(struct pg *s, const struct wants *const *w, size_t n);
/* false: ask the server. */
bool pg_ahead_find(struct pg *s, const struct query *q, struct pg_found *out);

/* --- postgres/pg_change.c, pg_put.c ---------------------------------------------------------------------- */

int pg_modify(struct store *base, struct change *changes, size_t n);
/* Begins a transaction, locks the queue's row, and reads the records that the changes want. After a failure there is no
 * transaction. */
int pg_lock(struct pg *s, int64_t left_ms, const struct wants *const *w, size_t n);
int pg_rollback(struct pg *s, int rc);
int pg_commit(struct pg *s);
int pg_may_write(struct pg *s);
/* Sends the puts, drops and log entries of the edit, or keeps them in s->later. */
int pg_apply(struct pg *s, const struct edit *e);
/* Sends an UPDATE for a record whose row exists. */
int pg_update(struct pg *s, const struct record *r);
/* Adds the key and the columns that a claim changes. */
void pg_claim_columns(struct pg_args *p, const struct record *r);

/* --- postgres/pg_change.c ------------------------------------------------------------------------------ */

/* Defers an update. The record must be remembered, its row exists, and only columns that a claim changes differ. */
int pg_later_update(struct pg *s, struct str key);
int pg_later_entry(struct pg *s, const struct entry *e);
/* Sends all deferred writes. */
int pg_later_send(struct pg *s);

/* --- postgres/pg_group.c: group commit ---------------------------------------------------------------- */

void pg_group_open(struct pg *s);
void pg_group_close(struct pg *s);
/* 0: we hold the gate; -ETIMEDOUT: another process does; 1: there is none. */
int pg_group_enter(struct pg *s);
void pg_group_leave(struct pg *s);
/* May we run other processes' calls on this connection? */
bool pg_group_leads(struct pg *s);
/* The wants of the calls that are waiting now, allocated in s->calls. */
size_t pg_group_hints(struct pg *s, const struct wants **out, size_t room);
/* The parts of batch_ops with these names, in pg_change.c. */
int pg_lead(struct store *base, int64_t deadline);
int pg_lead_again(struct store *base, int64_t left_ms);
int pg_change_alone(struct store *base, struct change *c, int64_t deadline);

/* --- postgres/pg_wake.c ------------------------------------------------------------------------------- */

int pg_wake_fd(struct store *base);
void pg_wake_clear(struct store *base);
void pg_wake_close(struct pg *s);
/* Notifies the waiting processes after a commit, or after a COMMIT whose outcome is unknown. */
void pg_tell(struct pg *s);

/* --- postgres/pg_check.c ------------------------------------------------------------------------------ */

int pg_check(struct store *base, check_fn *fn, void *ctx);

#endif
