/*
 * store: atomicity, and nothing else.
 *
 * A store keeps records and a log. It never learns what a task, a lease or a status is: policy reads
 * records, decides, and hands back a write-set; the store makes that write-set happen whole or not at
 * all. What always holds, on every store:
 *
 *  1. A write-set is applied whole or not at all, and what modify() reported as done is durable.
 *  2. Two changes that read a common key are serialised: the later one sees what the earlier one wrote.
 *  3. get() and scan() outside of a change see only committed states and never wait for a writer.
 *  4. An edit that refuses (returns > 0) or fails leaves no trace.
 *  5. A record's `rev` grows with every put of it. A record that was never put, or was dropped, is absent.
 *  6. Log entries commit with their write-set, in commit order; a cursor stays valid for ever.
 *  7. An eligible record is one in LANE_READY, or in LANE_LATER with eligible_at <= now. Order among them
 *     is index_cmp(), the same on every store.
 *  8. A record in LANE_GOING is absent for every reader from its eligible_at on, and may be swept then.
 *  9. A change waits for others at most env.opt.timeout_ms, then fails with STORE_BUSY and names who is in
 *     the way; nothing was applied.
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
	STORE_BUSY = -1,         /* another holds the gate past the timeout */
	STORE_FULL = -2,         /* no room on the device */
	STORE_READONLY = -3,     /* may not write here */
	STORE_IO = -4,           /* the device or the server failed */
	STORE_UNREACHABLE = -5,  /* the folder or the server is not there */
	STORE_ABSENT = -6,       /* the place is there, but no queue in it */
	STORE_FOREIGN = -7,      /* something else's data */
	STORE_NEWER = -8,        /* a newer pawl's data */
	STORE_CORRUPT = -9,      /* damaged data */
	STORE_UNSUPPORTED = -10, /* a URI, a file system or a module that this build cannot serve */
	STORE_MOVED = -11        /* replaced while it was read: to be read from the start */
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

enum pick {
	PICK_ALL,      /* every task, by created_at, then id */
	PICK_ELIGIBLE, /* invariant 7, by index_cmp() */
	PICK_LATER,    /* LANE_LATER whose eligible_at is yet to come, by that, then id */
	PICK_OTHERS    /* every record that is no task, in any order; `after` does not count */
};

struct query {
	enum pick pick;
	bool waiting; /* LANE_WAITING counts like LANE_LATER, too: its eligible_at has come, or is
			    * yet to come (PICK_LATER) */
	unsigned statuses; /* set of 1 << status; 0: any */
	int class_rank;    /* 0: any */
	bool held;         /* only records with a holder */
	struct str holder, token, type, label, parent,
		depends_on; /* empty: any; parent, depends_on: keys */
	struct str
		text; /* a store may leave out records whose body cannot hold it; the caller looks again */
	struct str
		after; /* PICK_ALL: only what comes after the task with this key; no such task: nothing */
	int64_t at;   /* the time that counts, not before the last change; 0: now */
	bool body;    /* load bodies as well */
	size_t limit; /* 0: all */
};

/* Does the record belong to the answer (order, `after`, `text` and limit aside)? */
bool query_matches(const struct query *q, const struct index *ix, int64_t now);
/* The order of the answer. */
int query_cmp(const struct query *q, const struct index *a, const struct index *b);

/* 0: go on; > 0: enough, the scan returns 0; < 0: the scan returns it. What `r` points to lives until
 * the return. */
typedef int record_fn(const struct record *r, void *ctx);

/* --- the log ------------------------------------------------------------------------------------ */

struct entry {
	struct str cursor; /* opaque; the store's to give */
	int64_t at;
	struct str key; /* the record it is about; may be empty */
	struct str data;
};

struct entry_query {
	struct str key;   /* empty: of all records */
	struct str after; /* a cursor; empty: from the first */
	size_t last;      /* only this many, the newest, still oldest first; 0: all */
};

typedef int entry_fn(const struct entry *e, void *ctx);

/* --- changes ------------------------------------------------------------------------------------ */

struct edit_item {
	struct edit_item *next;
	struct record rec;
	bool dropped;
	struct edit_item *chain; /* of the same hash */
	size_t serial;           /* 0 for the change's first, then 1, 2, … */
};

struct edit_entry {
	struct edit_entry *next;
	struct entry entry; /* no cursor yet */
};

/* A write-set in the making, and the state it is made on. */
struct edit {
	struct store *store;
	struct arena *arena; /* lives until the change is over */
	int64_t now;
	struct edit_item *items;            /* one for each key, in no order */
	struct edit_entry *entries, **last; /* in order */
	struct edit_item **table;           /* items by the hash of their key */
	size_t n_items, n_slots;
};

/* Pure but for the calls below: it may run again, on fresher records. 0: commit the write-set; > 0: a
 * refusal, nothing is written; < 0: a fault, passed up. */
typedef int edit_fn(struct edit *e, void *ctx);

/* Reads see the edit's own write-set. The record and all it points to live in e->arena; change it
 * freely, nothing happens before edit_put(). 0, 1 if there is none, or a fault. */
int edit_get(struct edit *e, struct str key, struct record **out);
/* Sees the state at its start: what `fn` puts or drops does not change this scan any more. */
int edit_scan(struct edit *e, const struct query *q, record_fn *fn, void *ctx);
/* The first of q's answer: 0, 1 if there is none, or a fault. */
int edit_first(struct edit *e, const struct query *q, struct record **out);
/* Takes over r as it is now; what it points to is borrowed until the end of the change. */
void edit_put(struct edit *e, struct record *r);
void edit_drop(struct edit *e, struct str key);
void edit_log(struct edit *e, struct str key, struct str data);
/* A line of an earlier time, brought in from elsewhere. */
void edit_log_at(struct edit *e, int64_t at, struct str key, struct str data);

struct change {
	edit_fn *fn;
	void *ctx;
	int rc; /* out: what fn returned */
};

/*
 * For stores in which one process may run the changes of others: a change as bytes. Secrets stay out of
 * them. A store that has no use for it runs fn, and so does every store where this is missing.
 */
struct relay {
	void (*pack)(const struct change *c, struct buf *out);
	/* Another's change as one of ours: 0, or -EBADMSG. What it needs is in `a`. */
	int (*adopt)(struct str bytes, struct change *out, struct arena *a);
	/* After its fn agreed or refused: what its owner has to learn of that. */
	void (*report)(const struct change *c, struct buf *out);
	/* The owner's side: as if fn had been run here; rc is set. 0, or -EBADMSG. */
	int (*accept)(struct change *c, struct str report);
};

/* --- the interface ------------------------------------------------------------------------------ */

enum store_mode { STORE_READ, STORE_WRITE, STORE_CREATE };

struct store_counts;

struct task;

/* Policy for a store whose files other programs write: the queue's rules for the tasks that it finds there. */
struct store_rules {
	/* The index of a task. Strings are those of the task; lists of keys are in `a`. */
	void (*index)(const struct task *t, struct index *out, struct arena *a);
	/* A sub-task of `parent`, or a task that `t` depends on, went from one status to another; 0: not there. */
	bool (*sub_moved)(struct task *parent, int64_t from, int64_t to);
	bool (*dep_moved)(struct task *t, int64_t from, int64_t to);
	/* Its lock is gone. */
	void (*lock_gone)(struct task *t, int64_t now);
};

/* The wishes of the caller. The client fills them in, the queue passes them on, the store keeps them. */
struct store_options {
	struct str queue; /* name of the queue in the store; empty: default */
	const char *
		dir; /* where we are, for a store that looks around there; NULL: the current folder */
	int64_t timeout_ms; /* for each change, until store_patience() says otherwise */
	int64_t net_ms;     /* the longest silence of a server; 0: as the store thinks fit */
	struct backoff
		backoff;   /* for a store that has to try again; deadline and made are its own */
	bool counting;     /* adds to counts() */
	bool cached;       /* what this machine knows already is good enough for reading */
	bool write_status; /* a store that keeps only locks also sets the status in the task's file */
	bool relaxed;      /* durability = normal: survives kill -9, not loss of power */
	struct str who;    /* shown to others that wait for us */
	void (*notice)(const char *text); /* tells a person that the store is busy for long */
	int64_t (*wall)(
		void); /* the machine's clocks, so that tests can set them; NULL: the real ones */
	int64_t (*boot)(void);
	struct str boot_id;
};

struct store_env {
	struct store_options opt;
	enum store_mode mode;
	bool trial; /* modify() makes every check of a change, then takes all of it back; see store_trial() */
	const struct store_rules *rules; /* NULL: for stores that only pawl writes to */
	const struct relay *relay;       /* NULL: changes are run by those who make them */
	int64_t as_of; /* out: when it was known, by the wall clock; 0: it is read where it is */
	struct store_error *err; /* never NULL */
};

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_BAD };
/* One finding of check(): what was looked at, how it is, what to do about it. */
typedef void check_fn(void *ctx, enum check_level level, const char *what, struct str text,
		      struct str fix);

typedef void name_fn(void *ctx, struct str name);

struct uri {
	struct str text, scheme, path; /* "sqlite", "/a/q.db" */
	struct str fragment, params;   /* after '#', after '?' */
};

struct store_ops {
	const char *scheme;
	/* STORE_CREATE also makes what is missing (place, schema, queue) and is harmless where all is there;
	 * the other modes migrate an older schema or refuse, never create. Nothing is changed in a place
	 * that holds foreign, newer or damaged data. */
	int (*open)(struct store **out, const struct uri *uri, const struct store_env *env);
	void (*close)(struct store *s);
	/* The store's clock, ms since 1970. Goes on evenly whatever happens to the wall clock. */
	int64_t (*now)(struct store *s);
	/* 0, 1 if there is none. The record lives in `a`, with its body. */
	int (*get)(struct store *s, struct str key, struct record *out, struct arena *a);
	int (*scan)(struct store *s, const struct query *q, record_fn *fn, void *ctx);
	/* How many match (PICK_ALL; text and limit do not count). */
	int (*count)(struct store *s, const struct query *q, int64_t *n);
	/* How many tasks there are of each status: counts[16], without looking at each. */
	int (*tally)(struct store *s, int64_t *counts);
	/* Runs the edits one after the other in one commit; each sees what the earlier ones wrote, and one
	 * that refuses does not stop the others. Fills in every rc. 0 if the commit is durable or there was
	 * nothing to commit; a fault means that none of them is reported as done, whatever their rc. */
	int (*modify)(struct store *s, struct change *changes, size_t n);
	int (*entries)(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx);
	/* Runs `fn`: all that it reads through `s` is of one committed state. Returns what it says. Where a
	 * text is gone by then, get() fails with STORE_MOVED. `all`: it reads many records. Otherwise a store whose
	 * files other programs write may leave it at the records that it hands out, as get() does. */
	int (*snapshot)(struct store *s, bool all, int (*fn)(void *ctx), void *ctx);
	/* Readable when something may have changed; drained by wake_clear(); -1: the caller polls. */
	int (*wake_fd)(struct store *s);
	void (*wake_clear)(struct store *s);
	/* For doctor: everything that can be found out about the place without changing it. */
	int (*check)(struct store *s, check_fn *fn, void *ctx);
	/* The names of all queues of the place; whatever is made or removed meanwhile may be among them. NULL:
	 * the store cannot tell. */
	int (*queues)(struct store *s, name_fn *fn, void *ctx);
	/* Removes the handle's queue with all its records and its log, whole or not at all; afterwards only
	 * close() makes sense. Other queues keep everything. Whoever opens it then finds none, or an empty
	 * one; a change through a handle that was open fails with STORE_ABSENT, or begins an empty one. One
	 * that is gone already is no failure. */
	int (*discard)(struct store *s);
	/* What is counted at this place (counts.h); may be NULL. Returns NULL where nothing can be counted, or not
	 * yet, and for STORE_READ what may only be read. */
	struct store_counts *(*counts)(struct store *s);
};

/* Every store's struct begins with this. */
struct store {
	const struct store_ops *ops;
	struct store_env env;
	struct store *inner; /* what a wrapper is around; NULL: it is none */
	unsigned traits;     /* STORE_LOCKS_ONLY; set by open() */
};

/* What it keeps is locks, also of ids without a task; tasks are read from what others write, and numbered: 109 is
 * t109. */
#define STORE_LOCKS_ONLY 1u
/* Every read asks a server. */
#define STORE_FAR 2u

extern const struct store_ops *const store_built_in[]; /* ends with NULL */
/* "sqlite:PATH", with trace+ or fault+ in front of it if wanted. Loads a module for a scheme that is
 * not built in. The parameter queue=NAME counts if env names no queue. What `uri` and `env` point to must
 * outlive the store. */
int store_open(struct store **out, struct str uri, const struct store_env *env);
void store_close(struct store *s);
/* How long the changes from now on wait for others. */
void store_patience(struct store *s, int64_t timeout_ms);
/* While it is on, modify() answers as it would otherwise, commits nothing and leaves the place as it was. */
void store_trial(struct store *s, bool on);

/* --- for those who write stores ----------------------------------------------------------------- */

int uri_parse(struct str text, struct uri *out); /* -1: not a URI */
/* For people to see: without a password, and with http without a name, which may be a key. */
struct str uri_shown(struct arena *a, struct str text);
bool uri_on_disk(const struct uri *u);                       /* its path is one of this machine */
struct str uri_param(const struct uri *u, const char *name); /* empty: not there */
/* Fills in env->err and returns `fault`. */
int store_fail(const struct store_env *env, int fault, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A name as one word of a shell command, for hints: in quotes if it needs them. */
struct str store_word(struct arena *a, struct str name);
/* Runs one edit; on 0 the caller writes e->items and e->entries. */
int edit_run(struct edit *e, struct store *s, struct arena *a, int64_t now, struct change *c);
struct record *record_copy(struct arena *a, const struct record *r);

#endif
