/*
 * act: one request inside one change. It loads each task once and changes it in memory. act_flush() writes all of
 * them, and first updates the counts in the parent and the dependents of a task whose status changed.
 *
 * Functions return 0, > 0 for a refusal (the answer has the reason), or a fault of the store.
 */
#ifndef QUEUE_QUEUE_PRIVATE_H
#define QUEUE_QUEUE_PRIVATE_H

#include "core/task.h"
#include "core/typed.h"
#include "queue/queue.h"
#include "queue/transfer.h"
#include "store/store_tools.h"

#define REFUSED 1
#define BAD \
	2 /* a record that cannot be used (validate_queue.c); act_run() turns it into a refusal */
#define COUNTER_KEY STR("meta/counter")
/* The hash of the newest event about the queue as a whole. */
#define CHAIN_KEY STR("meta/chain")
#define IDENTITY_KEY STR("meta/identity")
/* The time when an import or a restore last added older events to the log. Since then the log is
 * not in time order. */
#define RELOGGED_KEY STR("meta/relogged")
/* The log keeps events before this time only for open tasks (op_remove.c). */
#define LOG_FROM_KEY STR("meta/log_from")
#define LOG_KEPT_FOR (STATUS_ALL & ~STATUS_ENDED)

struct queue {
	struct store *store; /* NULL: the queue is behind a server */
	struct far_queue *remote;
	const struct remote_ops *far; /* of `remote` */
	struct store_error err;
	struct queue_config config;
	struct arena arena; /* owns the texts of `config` */
};

/* The locks that a cleanup saw on its first run. A change may run again after a conflict. */
struct decided {
	struct task *v;
	size_t n;
	bool done;
};

struct loaded {
	struct loaded *next;
	struct record *rec; /* NULL: not in the store yet */
	struct str key;
	struct task task, old; /* the new state; the state in `rec` */
	int64_t was; /* the status that the counts of other tasks reflect; 0: the task did not exist */
	int64_t logged; /* the status in the last event */
	bool dirty;
};

/* A request on its way through a change: act_run() is the edit of the store. */
struct act {
	struct call call; /* its arena is the caller's: it outlives the change */
	struct answer *ans;
	struct str pass
		[TYPED_END]; /* token hashes of the caller's own locks of the whole queue, fetched when needed */
	struct decided decided;
	int64_t began_ns, ended_ns; /* the store started running it; the commit ended */
	bool handed;                /* another process ran it */
	bool failed;                /* the store failed */
	bool joined;                /* not the first call of queue_call_all() */
	int kind; /* enum health_kind: its counter; 0: the counter of the operation */

	/* one run of the edit; act_begin() empties it */
	struct edit *e;
	struct loaded *tasks;
	int64_t guard, guard_was; /* see queue_guard.c: new and stored value */
	struct strs
		given_back; /* eligible tasks that were passed over: the caller's loop released them */
	struct undo_note *notes; /* changes of this request that can be undone (op_undo.c) */
	size_t writes;           /* number of puts, drops and events so far */
	bool nameless;           /* the queue has no id yet */
	bool keep;               /* commit the changes although the call was refused */
};

/* A change of any number of tasks, in many pieces: all of them or none. */
struct bulk {
	struct queue *q;
	struct str agent, run;
	struct answer *ans;
	struct arena *arena; /* of the caller */
	bool trial;          /* see store_trial() */
	/* set by bulk_run() */
	bool refused;
	struct act self;    /* for the locks of the whole queue */
	struct answer said; /* the refusal by such a lock */
};

int act_run(struct edit *e, void *act);
extern const struct relay queue_relay;
/* The records that the act is likely to read; NULL: the store asks no server. */
const struct wants *act_wants(const struct queue *q, const struct act *w);
const struct wants *act_reads(const struct act *w, struct arena *a);

/* Starts a new run of the edit: forgets everything from the previous run. */
void act_begin(struct act *w, struct edit *e);
int act_load(struct act *w, struct str id, struct loaded **out); /* REFUSED: NOT_FOUND, or BAD */
struct loaded *act_new(struct act *w, struct str id);
/* Adds a record that has the form of a task, but this key instead of a task's key. */
struct loaded *act_new_key(struct act *w, struct str key, struct str id);
/* Marks the task as edited by this request. */
void act_edited(struct act *w, struct loaded *l);
int act_flush(struct act *w);
/* The fault that the new record would have; NULL: none. */
const char *act_fault(struct act *w, const struct loaded *l);
void act_drop(struct act *w, struct loaded *l);
/* Adds an event about the task to the log and to the task's chain, so the task's record is written, too. */
void act_event(struct act *w, struct loaded *l, const struct event *ev);
/* Does what act_event() does, with a time in the past, for imports. */
void act_event_at(struct act *w, struct loaded *l, int64_t at, const struct event *ev);
/* Adds an event about the queue as a whole. 0 or a fault. */
int act_queue_event(struct act *w, const struct event *ev);
/* Adds an event about the task, with the request's agent. */
void act_log(struct act *w, struct loaded *l, const char *name, struct str text);
/* The role that the call needs for this task. */
enum role act_role_needed(struct act *w, const struct loaded *l);
/* Refuses a call on this task that needs a higher role than the caller has. */
int act_role(struct act *w, const struct loaded *l);
int act_refuse(struct act *w, enum result code, struct str message, struct str hint);
/* Carries out the decision in w->call: adds its events and its warning, and turns a refusal into the answer. */
int act_decided(struct act *w, struct loaded *l);
void act_answer(struct act *w, struct loaded *l);
struct grant *act_grant(struct act *w, const struct loaded *l);
/* Lists the keys of the tasks that match the query. *keys must be empty. */
int act_keys(struct act *w, const struct query *q, struct strs *keys);
/* 1: the record does not exist; BAD: it cannot be used, and *out is NULL. Neither sets the answer. */
int act_load_key(struct act *w, struct str key, struct loaded **out);
/* Reads a record that holds a number; *n is 0 if there is no record. BAD: the number is damaged. */
int number_get(struct act *w, struct str key, int64_t *n);
void number_put(struct act *w, struct str key, int64_t n);
/* Keeps the fence and the chain of a removed task. */
void gone_put(struct act *w, const struct loaded *l, int64_t fence);
/* The key under which the fence and the chain are kept. */
struct str gone_key(struct act *w, const struct loaded *l);

#define UNDO_SPACE STR("undo/")
struct str undo_key(struct str task_key, struct arena *a);
/* Call it before the change: undo_keep() then keeps the task as it is now, if an undo can take the change back. */
void undo_begin(struct act *w, const struct loaded *l);
/* Call it for each task that the change puts: an undo restores other tasks, too. */
void undo_touched(struct act *w, const struct loaded *l);
/* Writes the records of the changes that can be undone. All tasks must be in the write-set. */
int undo_keep(struct act *w);

/* One function for each kind of request. */
int do_change(struct act *w); /* the operations of core/rules.h */
int do_create(struct act *w);
int do_take(struct act *w);
int do_depend(struct act *w);
int do_remove(struct act *w);
int do_cleanup(struct act *w);
int do_archive(struct act *w);
int do_id(struct act *w);
int do_id_init(struct act *w);
int do_typed(struct act *w);
int do_emergency(struct act *w);
int do_pause(struct act *w);
int do_undo(struct act *w);
/* Parts of these functions. */
int take_next(struct act *w, struct loaded **out); /* *out NULL: no task is eligible */
/* The task that an earlier call with this fresh token took and still holds; *out NULL: none. */
int taken_before(struct act *w, struct loaded **out);
/* Makes the task a sub-task of `id`; empty: of none. */
int set_parent(struct act *w, struct loaded *l, struct str id);
int add_depend(struct act *w, struct loaded *l, struct str id);
/* A Ready task with a canceled dependency would wait for ever, so it goes to Needs Help. */
void settle_canceled(struct act *w, struct loaded *l);
/* Refuses the call with `message` if the task `from` waits for the task `to`. Both are keys. */
int no_cycle(struct act *w, struct str from, struct str to, struct str message);
/* For a task whose last fence cannot be read: a number above every fence that pawl has granted. */
#define FENCE_UNKNOWN (EXACT_MAX / 2)
/* The last fence of a removed task with this id; 0: there was none. A new task continues from it, and its log
 * continues the chain of the removed task. */
int old_fence(struct act *w, struct loaded *l, int64_t *fence);
int leave_parent(struct act *w, struct loaded *l);
int add_depends(struct act *w, struct loaded *l);
/* Makes a Ready task with the fields of the request. */
int new_task(struct act *w, struct str id, struct loaded **out);
int fresh_id(struct act *w, struct str *out);
/* Is an id in use? r: the result of reading its task. A foreign file also uses its id; *unusable counts these. */
bool id_is_taken(int r, int *unusable);
void select_query(const struct request *rq, const struct policy *p, struct query *q);
/* Did the caller ask the queue to pass over this task? */
bool select_excepts(const struct request *rq, struct str id);
/* Warns that these eligible tasks were passed over, and why. */
void select_passed_over(struct answer *ans, struct strs ids, struct arena *a);

/* Every bit of the number in meta/guard: the emergency, each kind of lock, the pause. A damaged number counts as
 * this one, so that the change reads all of them. */
#define GUARD_PAUSE (INT64_C(1) << 5)
#define GUARD_ALL ((INT64_C(1) << 7) - 1)

/* Refuses the request during an emergency, or while another agent holds a conflicting lock of the whole queue. It
 * runs in the transaction of the change. */
int guard_check(struct act *w);
/* Adds the keys that guard_check() and the calls about such locks read. */
void guard_keys(const struct request *rq, struct wants *out, struct arena *a);
/* Call it after a lock of the whole queue refused a change (w->ans->barred). true: retry the change. Either w->pass now has the
 * caller's own token of that lock, or the lock has ended. false: the timeout has passed. *deadline: 0 at the first call. */
bool guard_wait(struct queue *q, struct act *w, int64_t *deadline);
/* Runs the pieces in one commit, and waits for locks of the whole queue. kind: enum health_kind; 0: do not count it. */
enum result bulk_run(struct bulk *b, struct change *pieces, size_t n, int kind);
/* The request of a piece, with the agent and the run of the change. */
struct act bulk_act(struct bulk *b, struct edit *e, struct request *rq, struct answer *said);
/* At the start of the first piece: guard_check(). The store may run the pieces again from the first. */
int bulk_begin(struct bulk *b, struct act *w);
/* Refuses the whole change. */
int bulk_refuse(struct bulk *b, enum result code, struct str text, struct str hint);
/* Clears the guard bits of expired locks, if the change writes something anyway. */
void guard_tidy(struct act *w);
/* The queue is paused: fills in `paused` of the answer. */
void pause_tell(const struct task *pause, struct answer *ans, struct arena *a);
/* Clears stale locks of the whole queue. */
int guard_cleanup(struct act *w);
/* Is the holder's process provably dead? */
bool lock_dead(const struct lock *l);
/* Is the holder's process provably dead, and did it run on this boot of this machine, in this pid namespace? Then pawl
 * may clear the lock without a person. Any process that runs the change may ask, because it compares its own place. */
bool lock_died_here(const struct lock *l);
/* Runs rules_apply() for the call's operation. If a dead process's lock refuses the call, applies the rules over that lock. */
void act_apply(struct act *w, struct loaded *l);
void lock_check(struct lock *l); /* sets `life` */
/* Reads a lock of the whole queue, or the emergency. Without a holder there is no lock. */
int guard_read(struct store *s, struct str id, struct task *out, struct arena *a);
int guard_kind(struct store *s, enum typed kind, struct task *out, struct arena *a);

/* If the request proposes a queue id, sets the answer's: the stored id, or the proposed id if
 * none is stored. */
int identity_find(struct act *w);
/* Stores the id of the request if the queue had none. */
void identity_keep(struct act *w);

/* Counters (core/lock_health.h), with times from os_monotonic_ns(). Counts the acts that no lock
 * of the whole queue refused. asked_ns: the time of the call. */
void health_count(struct store *s, const struct act *acts, size_t n, int64_t asked_ns);
/* Counts acts that reached their timeout. */
void health_count_failed(struct store *s, const struct act *acts, size_t n, int64_t asked_ns);
/* Counts a change of many tasks as one call of this kind. It reads w->began_ns and w->ans. */
void health_count_bulk(struct queue *q, struct act *w, enum health_kind kind, int64_t asked_ns,
		       bool failed);
bool health_read(struct store *s, struct health *out);

/* Checks the request id. 0: the id is new. REFUSED: the answer is the stored answer, or a refusal. */
int repeat_find(struct act *w);
/* The key of the kept answer. */
struct str repeat_key(const struct request *rq, struct arena *a);
void repeat_keep(struct act *w);

void queue_read(struct store *s, const struct policy *p, const struct request *rq,
		struct answer *ans, struct arena *a);
/* Adds an event without a cursor for each lease that expired after `since` and is still in its record. Sets ans->wait_ms to the
 * time until the next lease expires. only: read only this task; NULL: all tasks. */
int read_expired(struct store *s, int64_t since, const struct task *only, struct answer *ans,
		 struct arena *a);
/* A list for people (rq->view). Adds to *bad the records that were left out. */
int read_browse(struct store *s, const struct policy *p, const struct request *rq,
		struct answer *ans, struct arena *a, size_t *bad);
/* Count the Ready tasks that are not eligible, and the archived ended tasks, up to a limit that
 * keeps the read fast. */
int read_waiting(struct store *s, const struct policy *p, struct answer *ans);
int read_archived(struct store *s, struct answer *ans);
/* Is the task hidden because it is archived? below: the reader asked for one parent's tasks.
 * That list hides only Done and Canceled tasks, because a Failed task still holds back its
 * parent. */
bool read_hides(const struct request *rq, const struct task *t, bool below);
/* Some of the open tasks that `t` waits for. */
int read_awaited(struct store *s, const struct task *t, struct standing *out, struct arena *a);
/* Reads the tasks linked to ans->task. Its attempts come from read_attempt(). */
int read_related(struct store *s, struct answer *ans, struct arena *a);
/* One event of the task, in the order of the log. */
void read_attempt(struct related *r, const struct event *ev, struct arena *a);
/* Sets ans->came_back, if the task was handed back. */
void read_came_back(struct store *s, const struct task *t, struct answer *ans, struct arena *a);
/* As read_came_back(), and adds the last comments, for the agent that continues the task. */
void read_past(struct store *s, const struct task *t, struct answer *ans, struct arena *a);
/* For VIEW_BRIEF: adds the brief that a new holder reads besides the task. e: the edit that
 * grants the lock; NULL: a read. */
int read_brief(struct store *s, struct edit *e, const struct request *rq, struct answer *ans,
	       struct arena *a);
struct query brief_held_query(const struct request *rq);
/* Adds the brief's part from the log: the last comments, why the task came back, and what happened to it before. */
void brief_past(struct store *s, struct edit *e, const struct task *t, struct answer *ans,
		struct arena *a);
/* The tasks below rq->id, or all open ones, each once. */
int read_tree(struct store *s, const struct request *rq, struct answer *ans, struct arena *a,
	      size_t *bad);
/* Does one of the task's texts contain this text, ignoring case? */
bool task_has_text(const struct task *t, struct str text);
/* A page ends when its texts exceed this size. */
#define PAGE_BYTES ((size_t)512 << 10)
/* Adds the events that the request selects, and with LOG_WITH_TASKS their tasks. *bad: counts entries that cannot be
 * used. */
int log_read(struct store *s, const struct request *rq, struct answer *ans, struct arena *a,
	     size_t *bad);
/* Decodes a record; the strings of the task are in `a`. 0 or BAD. */
int task_of(const struct record *r, struct task *out, struct arena *a);
/* Decodes an entry of the log; the strings point into the entry. 0 or BAD. */
int event_of(const struct entry *en, struct event *out);
/* As event_of(), but copies the strings into `a`, so the event outlives the callback. */
int event_keep(const struct entry *en, struct event *out, struct arena *a);

/* The fault of a record of any kind; NULL: it can be used. */
const char *record_fault(const struct record *r, struct arena *a);
/* The name of a record for people: its id, or a handle if it has no printable id. */
struct str bad_name(struct str key, struct arena *a);
/* The key for a message: made printable and shortened. */
struct str bad_shown(struct str key, struct arena *a);
/* Sets the answer to a refusal and returns REFUSED. */
int bad_refuse(struct answer *ans, const struct record *r, struct arena *a);
/* Finds the key of a handle, in the store or, with `e`, in an edit. 0, 1 if there is none, or a fault. */
int bad_find(struct store *s, struct edit *e, struct str handle, struct str *key, struct arena *a);
/* Removes a record that cannot be used, with the links to it. */
int bad_remove(struct act *w, struct str key);
/* Recovers the reliable parts of a bad task: the id in its key, and the status in its index. */
struct loaded *bad_salvage(struct act *w, const struct record *rec);
/* "3 records cannot be used and are left out: pawl doctor" */
struct str bad_warning(size_t n, struct arena *a);
enum result fault_answer(const struct store_error *err, struct answer *ans, struct arena *a);
/* As fault_answer(), for a read that failed with `r`. No named fault: a record is damaged. */
enum result read_fault_answer(struct store *s, int r, struct answer *ans, struct arena *a);
struct answer *not_found(struct answer *ans, struct str id, struct arena *a);

/* --- imports ------------------------------------------------------------------------------------- */

struct parcel;
/* Drops the comments that the task's log already has. */
int parcel_drop_known(struct act *w, struct str key, struct parcel *p);

/* --- read ------------------------------------------------------------------------------------- */

/* The parts of a read that queue/queue_read.c and queue/read_next.c share. */

/* A read sees only committed states and never waits. */
struct reading {
	struct store *store;
	const struct policy *policy;
	const struct request *rq;
	struct answer *ans;
	struct arena *arena;
	int64_t now;
	size_t limit;
	size_t bad;             /* number of bad records, which are omitted */
	struct strs given_back; /* eligible tasks that the caller excepted */
	size_t bytes;           /* bytes of the records in the page */
	int lane;               /* the lane of the task that is shown */
};

/* Fills in `paused` of the answer, if the queue is paused. */
int read_pause(struct reading *x, struct task *pause);
int read_next(struct reading *x);
/* Says why `next` would or would not offer the task. key: the task's key; lane: its record's lane. */
int read_why(struct reading *x, const struct task *t, struct str key, int lane, struct str *why,
	     bool *eligible, struct arena *a);
/* related.c: adds the operations that the caller may do on each task of the answer. */
int read_allowed(struct reading *x);

/* --- counts ----------------------------------------------------------------------------------- */

/*
 * Compares the counts that tasks store with a recount of the whole queue, and finds links to tasks
 * that do not exist.
 */

#define RECORD_COUNTS 3

/* Reads all tasks of the store, or of the edit. Returns 0 or a fault. The caller frees *c after both. */
int record_counts_take(struct recount *c, struct store *s, struct edit *e);

struct record_counts_fault {
	struct strs depends; /* ids of dependencies that do not exist */
	bool parent;         /* the parent does not exist */
	bool stuck;          /* it waits for a dependency that does not exist */
	bool counts;         /* a count is wrong */
	int64_t right[RECORD_COUNTS];
	struct str text; /* "open_depends is 3 and should be 1" */
};

/* Compares a task with the recount. false: there is no fault. */
bool record_counts_compare(const struct recount *c, const struct record *r,
			   struct record_counts_fault *out, struct arena *a);
/* Writes the right counts into the task. */
void record_counts_correct(struct task *t, const struct record_counts_fault *f);

/* --- dump ------------------------------------------------------------------------------------- */

/*
 * dump: declarations that the dump of a whole queue (dump.c) and its load (bulk_load.c) share.
 */

/* The log of the queue against the entries of a load, from the first on. */
struct dump_log {
	struct load *load;
	struct arena arena;
	size_t same;
	bool differs;
};

/* Compares the logs up to the first difference. Returns 0, or a fault of the store. */
int dump_compare(struct queue *q, struct dump_log *x);

static inline bool is_task(struct str key)
{
	return str_starts(key, STR("task/"));
}

/* --- repair ----------------------------------------------------------------------------------- */

/*
 * Decides which repair a record needs. doctor lists the repairs and `doctor --fix` makes them, so
 * both ask here.
 */

enum repair {
	REPAIR_NONE,
	REPAIR_LEAVE,  /* another program's data: a person must decide */
	REPAIR_INDEX,  /* the task is right, its index is not */
	REPAIR_TASK,   /* store `task`, under its own id; an empty id: under a new one */
	REPAIR_NUMBER, /* store `number` */
	REPAIR_COUNTER,
	REPAIR_AWAY /* nothing can use it: save it in a file, then remove it */
};

struct judgment {
	enum repair repair;
	const char *fault; /* NULL: the record can be used and its index is right */
	const char *does;  /* the repair, in words for people */
	struct task task;
	int64_t number;
};

/* locks_only: the store keeps only locks (STORE_LOCKS_ONLY). The strings of *out are in `a`. */
void repair_decide(const struct record *r, bool locks_only, struct judgment *out, struct arena *a);

#endif
