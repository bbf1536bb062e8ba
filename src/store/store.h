/*
 * store: atomicity, and nothing else.
 *
 * A store keeps records and a log. It never learns what a task, a lease or a status is: policy reads
 * records, decides, and hands back a write-set; the store applies that write-set whole or not at
 * all. Invariants of every store:
 *
 *  1. A write-set is applied whole or not at all. After modify() reports success the change is durable.
 *  2. Two changes that read a common key are serialised: the later one sees the writes of the earlier one.
 *  3. get() and scan() outside of a change see only committed states and never wait for a writer.
 *  4. An edit that refuses (returns > 0) or fails leaves no trace.
 *  5. A record's `rev` grows with every put of it. A record that was never put, or was dropped, is absent.
 *  6. Log entries commit with their write-set, in commit order; a cursor stays valid forever.
 *  7. An eligible record is one in LANE_READY, or in LANE_LATER with eligible_at <= now. Order among them
 *     is index_cmp(), the same on every store.
 *  8. A record in LANE_GOING is absent for every reader from its eligible_at on, and may be swept then.
 *  9. A change waits for other writers at most env.opt.timeout_ms. Then it fails with STORE_BUSY, names the
 *     process that holds the gate, and has applied nothing.
 * 10. After a failure err->applied tells whether the change can have happened: 'n' no, '?' unknown. An
 *     edit must recognise its own earlier effect (by its token), since a caller may repeat it after '?'.
 *
 * Calls return 0, a documented condition > 0, or a STORE_* fault < 0 with *env.err filled in.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "core/index.h"

enum store_fault {
	STORE_BUSY = -1,         /* another process holds the gate past the timeout */
	STORE_FULL = -2,         /* no space is left on the device */
	STORE_READONLY = -3,     /* the user has no permission to write here */
	STORE_IO = -4,           /* the device or the server failed */
	STORE_UNREACHABLE = -5,  /* the folder or the server does not exist or does not answer */
	STORE_ABSENT = -6,       /* the place exists, but holds no queue */
	STORE_FOREIGN = -7,      /* another program wrote the data */
	STORE_NEWER = -8,        /* a newer pawl wrote the data */
	STORE_CORRUPT = -9,      /* damaged data */
	STORE_UNSUPPORTED = -10, /* a URI, a file system or a module that this build cannot serve */
	STORE_MOVED = -11, /* replaced during the read; the caller reads again from the start */
	STORE_OLDER = -12  /* an older pawl wrote the data, and this one cannot read them */
};

const char *store_fault_name(int fault); /* "busy" */

struct store_error {
	int fault;    /* enum store_fault */
	char applied; /* 'n' or '?' */
	char text[400], hint[600];
};

/* --- records ------------------------------------------------------------------------------------ */

struct record {
	struct str key; /* namespaced: "task/t1", "meta/counter"; at most 200 bytes */
	int64_t rev;
	struct index ix;
	struct str hot;  /* small, rewritten at every put */
	struct str body; /* may be large; put() writes it only if body_changed */
	bool body_changed;
};

/* More than the number of statuses, and a power of two, because it also masks a status that was read. */
#define STORE_STATUSES 16

enum pick {
	PICK_ALL,      /* every task, by created_at, then id */
	PICK_ELIGIBLE, /* invariant 7, by index_cmp() */
	PICK_LATER,    /* LANE_LATER with eligible_at in the future, by eligible_at, then id */
	PICK_OTHERS,   /* every record that is not a task, in any order; ignores `after` */
	PICK_WAITING /* the tasks that PICK_ELIGIBLE omits, though they may come later: LANE_LATER with eligible_at in the future, LANE_WAITING, and
			* LANE_NONE with a holder; by index_cmp() */
};

struct query {
	enum pick pick;
	unsigned
		waiting; /* set of LANE_BIT(): treat these lanes like LANE_LATER: eligible_at decides whether a record is picked */
	unsigned statuses; /* set of 1 << status; 0: any */
	int class_rank;    /* 0: any */
	bool held;         /* only records with a holder */
	struct str holder, token, type, label, parent,
		depends_on; /* empty: any; parent, depends_on: keys */
	struct str
		text; /* a store may leave out records whose body cannot hold it; the caller checks the rest */
	struct str
		after; /* PICK_ALL: only tasks after the task with this key; empty answer if it is absent */
	int64_t at;   /* compare times with this one, which is not before the last change; 0: now */
	bool body;    /* load bodies as well */
	size_t limit; /* 0: all */
};

/* Does the record belong to the answer, apart from order, `after`, `text` and limit? */
bool query_matches(const struct query *q, const struct index *ix, int64_t now);
/* The order of the answer. */
int query_cmp(const struct query *q, const struct index *a, const struct index *b);
/* Does the query ask for statuses alone? Then query_sum() has the number of matches. */
bool query_only_statuses(const struct query *q);
/* The sum of the counts of tally() that the query asks for. */
int64_t query_sum(const struct query *q, const int64_t *counts);
/* The query as count() needs it: without limit, bodies, `text` and `after`. */
struct query query_to_count(const struct query *q);

/* 0: continue; > 0: stop, the scan returns 0; < 0: the scan returns it. The strings of `r` live until
 * the function returns. */
typedef int record_fn(const struct record *r, void *ctx);

/* --- the log ------------------------------------------------------------------------------------ */

struct entry {
	struct str cursor; /* opaque; the store assigns it */
	int64_t at;
	struct str key; /* the record that the entry is about; may be empty */
	struct str data;
};

struct entry_query {
	struct str key;       /* empty: entries of all records */
	struct str after;     /* a cursor; empty: from the first entry */
	size_t last;          /* only the newest N entries, the oldest of them first; 0: all */
	int64_t since, until; /* only entries with since <= at < until; 0: no limit */
	/* Does the entry count towards `last`? The entries in between come, too. It gets the entry_fn's ctx, and the
	 * store may ask twice. NULL: every entry counts. */
	bool (*counts)(const struct entry *e, void *ctx);
	/* Some entries after `since` may follow older entries, so the store must not stop its search at an older
	 * entry. Entries that edit_log() wrote are in the order of their times. */
	bool unordered;
};

/* Is the entry's time within since and until? */
static inline bool entry_in_time(const struct entry_query *q, int64_t at)
{
	return at >= q->since && (!q->until || at < q->until);
}

/* Does an entry that the query asks for count towards q->last? */
static inline bool entry_counts(const struct entry_query *q, const struct entry *e, void *ctx)
{
	return !q->counts || q->counts(e, ctx);
}

/* As for record_fn: the strings of `e` live until the function returns. */
typedef int entry_fn(const struct entry *e, void *ctx);

/* --- changes ------------------------------------------------------------------------------------ */

struct edit_item {
	struct edit_item *next;
	struct record rec;
	bool dropped;
	struct edit_item *chain; /* next item with the same hash */
	size_t serial;           /* 0 for the first item of the change, then 1, 2, … */
};

struct edit_entry {
	struct edit_entry *next;
	struct entry entry; /* no cursor yet */
};

/* A write-set under construction, and the state that it is based on. */
struct edit {
	struct store *store;
	struct arena *arena; /* lives until the change ends */
	int64_t now;
	struct edit_item *items;            /* one for each key, in no order */
	struct edit_entry *entries, **last; /* in order */
	struct edit_item **table;           /* items by the hash of their key */
	size_t n_items, n_slots;
	int64_t forget; /* see edit_forget(); 0: no */
	unsigned forget_except;
};

/* Must have no effects except through the calls below, because the store may run it again, on newer records.
 * 0: commit the write-set; > 0: a refusal, nothing is written; < 0: a fault, which modify() returns. */
typedef int edit_fn(struct edit *e, void *ctx);

/* Reads see the edit's own write-set. The record and its strings live in e->arena. The caller may modify
 * the record; only edit_put() adds it to the write-set. 0, 1 if the key is absent, or a fault. */
int edit_get(struct edit *e, struct str key, struct record **out);
/* Sees the state at its start: a put or drop by `fn` does not change the scan that is under way. */
int edit_scan(struct edit *e, const struct query *q, record_fn *fn, void *ctx);
/* The entries about one record: the store's, then those of earlier edits in the same commit and of this edit, which
 * have no cursor yet. q: only `key` and `last`. fn returns 0 or a fault. */
int edit_entries(struct edit *e, const struct entry_query *q, entry_fn *fn, void *ctx);
/* The first record of q's answer: 0, 1 if the answer is empty, or a fault. */
int edit_first(struct edit *e, const struct query *q, struct record **out);
/* Copies *r into the write-set, but not its strings, which must live until the change ends. */
void edit_put(struct edit *e, struct record *r);
void edit_drop(struct edit *e, struct str key);
void edit_log(struct edit *e, struct str key, struct str data);
/* The log needs no entries before this time, except those about records with one of these statuses. A store may remove
 * them at the commit, or keep them. All cursors stay valid. */
void edit_forget(struct edit *e, int64_t before, unsigned except);
/* For an import: an entry with a time in the past. */
void edit_log_at(struct edit *e, int64_t at, struct str key, struct str data);

/* The records and queries that a change is likely to read. A store on a server reads them together with its lock. The
 * store never relies on it: a read that is missing here costs one more round trip. Stores may ignore it. */
struct wants {
	struct strs keys;
	const struct query *queries; /* as for edit_scan() */
	size_t n_queries;
	bool parents; /* of the tasks among `keys` */
};

struct change {
	edit_fn *fn;
	void *ctx;
	int rc;                    /* out: the return value of fn */
	const struct wants *wants; /* NULL: not known */
};

/*
 * For stores in which one process may run the changes of others: packs a change as bytes, without
 * secrets. Without a relay, or in a store that does not use it, each process runs its own fn.
 */
struct relay {
	void (*pack)(const struct change *c, struct buf *out);
	/* Makes another process's packed change runnable here, with memory from `a`: 0, or -EBADMSG. */
	int (*adopt)(struct str bytes, struct change *out, struct arena *a);
	/* After fn agreed or refused: packs the result for the process that owns the change. */
	void (*report)(const struct change *c, struct buf *out);
	/* The records that an adopted change is likely to read, with memory from `a`; may be NULL. */
	const struct wants *(*wants)(const struct change *c, struct arena *a);
	/* In the owner: fills in the result as if fn had run here; the caller has set rc. 0, or -EBADMSG. */
	int (*accept)(struct change *c, struct str report);
};

/* --- the interface ------------------------------------------------------------------------------ */

enum store_mode { STORE_READ, STORE_WRITE, STORE_CREATE };

struct store_counts;

struct task;

/* The queue's policy, for a store whose files other programs write. The store applies it to the tasks in them. */
struct store_rules {
	/* A task's index. Its strings are the task's own; `a` holds its lists of keys. */
	void (*index)(const struct task *t, struct index *out, struct arena *a);
	/* A sub-task of `parent`, or a task that `t` depends on, changed its status; 0: the task is absent. */
	bool (*sub_moved)(struct task *parent, int64_t from, int64_t to);
	bool (*dep_moved)(struct task *t, int64_t from, int64_t to);
	/* The lock file of `t` is gone. */
	void (*lock_gone)(struct task *t, int64_t now);
};

/* The caller's options. The client fills them in, the queue passes them on, the store keeps them. */
struct store_options {
	struct str queue;   /* name of the queue in the store; empty: default */
	const char *dir;    /* where a store starts its search; NULL: the current folder */
	int64_t timeout_ms; /* for each change; store_patience() replaces it */
	int64_t net_ms;     /* a server's longest silence; 0: the store's default */
	struct backoff
		backoff; /* for a store that retries; the store sets its fields deadline and made */
	bool counting;   /* adds to counts() */
	bool cached;     /* reads may use this machine's copy without asking the server */
	bool write_status; /* a store that keeps only locks also sets the status in the task's file */
	bool relaxed;      /* durability = normal: survives kill -9, not loss of power */
	struct str who;    /* our name, shown to processes that wait for us */
	int64_t (*wall)(void); /* the machine's clocks, which tests replace; NULL: the real ones */
	int64_t (*boot)(void);
	struct str boot_id;
	bool own_time; /* only tests: wall and boot also replace a server's clock */
};

struct store_env {
	struct store_options opt;
	enum store_mode mode;
	bool trial; /* modify() makes every check of a change, then rolls it back; see store_trial() */
	const struct store_rules *rules; /* NULL: for stores that only pawl writes to */
	const struct relay *relay;       /* NULL: each process runs its own changes */
	int64_t as_of; /* out: wall time of the copy that reads use; 0: reads use the store itself */
	struct store_error *err; /* never NULL */
};

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_BAD };
/* One finding of check(): the object that was checked, its condition, and how to repair it. */
typedef void check_fn(void *ctx, enum check_level level, const char *what, struct str text,
		      struct str fix);
/* The `fix` of a finding that `pawl doctor --fix` repairs is this text, followed by the repair. */
#define CHECK_REPAIRS "pawl doctor --fix: "

struct repair_part {
	const char *name;
	struct str bytes;
};
/* Saves data that a repair removes. Each function returns 0 or -errno; after an error the repair changes nothing. A
 * store may repeat a change, so the same data may come twice. */
struct repair_sink {
	int (*keep)(void *ctx, const char *what, struct str name, const char *why,
		    const struct repair_part *parts, size_t n);
	/* Makes everything durable that was saved so far. */
	int (*settle)(void *ctx);
	void *ctx;
};
/* The two steps of a repair. REPAIR_BLOCKS repairs faults that block every change, such as a ref's lock that a dead
 * process left. REPAIR_DATA repairs all others, while the caller holds the lock of the whole queue. */
enum repair_step { REPAIR_BLOCKS, REPAIR_DATA };

typedef void name_fn(void *ctx, struct str name);

struct uri {
	struct str text, scheme, path; /* "sqlite", "/a/q.db" */
	struct str fragment, params;   /* after '#', after '?' */
};

struct store_ops {
	const char *scheme;
	/* STORE_CREATE also makes a missing place, schema or queue, and changes nothing where all three
	 * exist. The other modes never create. No mode changes a place that holds foreign, older, newer or damaged
	 * data. */
	int (*open)(struct store **out, const struct uri *uri, const struct store_env *env);
	void (*close)(struct store *s);
	/* The store's clock, ms since 1970. It advances evenly even if someone sets the wall clock. */
	int64_t (*now)(struct store *s);
	/* 0, 1 if the key is absent. The record and its body live in `a`. */
	int (*get)(struct store *s, struct str key, struct record *out, struct arena *a);
	int (*scan)(struct store *s, const struct query *q, record_fn *fn, void *ctx);
	/* The number of matches (PICK_ALL; ignores text and limit). */
	int (*count)(struct store *s, const struct query *q, int64_t *n);
	/* The number of tasks of each status, in counts[STORE_STATUSES], without a read of each task. */
	int (*tally)(struct store *s, int64_t *counts);
	/* Runs the edits one after the other in one commit. Each edit sees the writes of the earlier ones; an
	 * edit that refuses does not stop the others. Fills in every rc. 0: the commit is durable, or there was
	 * nothing to commit. After a fault no edit counts as done, whatever its rc. */
	int (*modify)(struct store *s, struct change *changes, size_t n);
	int (*entries)(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx);
	/* Runs `fn` and returns its result: all its reads through `s` see one committed state. If a body of that
	 * state no longer exists, get() fails with STORE_MOVED. `all`: fn reads many records. Without it, a store
	 * whose files other programs write may check only the records that it returns, as get() does. */
	int (*snapshot)(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
	/* A descriptor that is readable when something may have changed; wake_clear() drains it; -1: poll. */
	int (*wake_fd)(struct store *s);
	void (*wake_clear)(struct store *s);
	/* For doctor: reports every check of the place that needs no write. */
	int (*check)(struct store *s, check_fn *fn, void *ctx);
	/* For doctor --fix: repairs the findings of check() whose fix begins with CHECK_REPAIRS. A repair that removes
	 * data saves it first. It never touches foreign data. A second call completes a killed process's repair.
	 * NULL: the store has nothing to repair. */
	int (*repair)(struct store *s, enum repair_step step, const struct repair_sink *sink);
	/* The names of all the place's queues. A queue that another process makes or removes during the call
	 * may or may not be among them. NULL: the store cannot list its queues. */
	int (*queues)(struct store *s, name_fn *fn, void *ctx);
	/* Removes the handle's queue with all its records and its log, whole or not at all; afterwards the
	 * caller may only close(). Other queues keep everything. A later open finds no queue, or an empty one. A
	 * change through another open handle fails with STORE_ABSENT, or starts an empty queue. Returns 0 if the
	 * queue is gone already. */
	int (*discard)(struct store *s);
	/* The counters of this place (counts.h); may be NULL. Returns NULL if there are no counters, or none yet.
	 * A handle of STORE_READ must not write to them. */
	struct store_counts *(*counts)(struct store *s);
	/* The SQL that makes the place, for the administrator of a database, with roles for its users. Opens nothing.
	 * NULL: the store has no such text. */
	int (*script)(const struct uri *uri, const struct store_env *env, struct buf *out);
};

/* Every store's struct begins with this. */
struct store {
	const struct store_ops *ops;
	struct store_env env;
	struct store *inner; /* the store inside a wrapper; NULL: this is not a wrapper */
	/* During modify(): entries of earlier edits that entries() does not show before the commit. */
	struct edit_entry *uncommitted;
	unsigned traits; /* STORE_LOCKS_ONLY; set by open() */
};

/* The store keeps only locks, also of ids without a task. It reads tasks from the files of another program, which
 * numbers them: 109 is t109. */
#define STORE_LOCKS_ONLY 1u
/* Every read asks a server. */
#define STORE_FAR 2u

extern const struct store_ops *const store_built_in[]; /* ends with NULL */
/* "sqlite:PATH", optionally after fault+. Loads a module for a scheme that is not built in. The
 * parameter queue=NAME applies if env names no queue. The strings of `uri` and `env` must outlive the store. */
int store_open(struct store **out, struct str uri, const struct store_env *env);
void store_close(struct store *s);
/* See store_ops.script. */
int store_script(struct str uri, const struct store_env *env, struct buf *out);
/* Sets the timeout of later changes. */
void store_patience(struct store *s, int64_t timeout_ms);
/* While it is on, modify() gives the same answers, but commits nothing and leaves the place unchanged. */
void store_trial(struct store *s, bool on);

/* --- for implementers of stores ------------------------------------------------------------------ */

int uri_parse(struct str text, struct uri *out); /* -1: not a URI */
/* The URI for display: without a password, and for http without a user name, which may be a secret key. A URI whose
 * password may not end where it seems to becomes SCHEME://... */
struct str uri_shown(struct arena *a, struct str text);
/* For a PostgreSQL URI: is it certain which part is the password? */
bool uri_is_clear(struct str text);
bool uri_on_disk(const struct uri *u);                       /* is its path on this machine? */
struct str uri_param(const struct uri *u, const char *name); /* empty: it has none */
/* Fills in env->err and returns `fault`. */
int store_fail(const struct store_env *env, int fault, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Refuses data that an older pawl wrote, and says how to move its tasks over. place: the file, folder or schema. */
int store_fail_older(const struct store_env *env, const char *place);
/* Refuses a write to a store that was opened for reading, and a change inside a scan or a change (`inside`). */
int store_may_write(const struct store_env *env, const char *place, bool inside);
/* A name as one word of a shell command, for hints: quoted if necessary. */
struct str store_word(struct arena *a, struct str name);
/* Runs one edit; on 0 the caller writes e->items and e->entries. */
int edit_run(struct edit *e, struct store *s, struct arena *a, int64_t now, struct change *c);
struct record *record_copy(struct arena *a, const struct record *r);

#endif
