/*
 * work: one request inside one change. Tasks are loaded once, changed in memory, and put back together:
 * work_flush() also carries a status change on to the parent and to those who depend on the task.
 *
 * Functions return 0, > 0 for a refusal (the answer says which), or a store's fault.
 */
#ifndef QUEUE_WORK_H
#define QUEUE_WORK_H

#include "core/typed.h"
#include "queue/queue.h"

#define REFUSED 1
#define COUNTER_KEY STR("meta/counter")

struct queue {
	struct store *store;
	struct store_error err;
	struct policy policy;
	struct str (*pass)(void *ctx, enum typed kind, struct arena *a);
	void *pass_ctx;
	bool impatient;
	struct backoff look;
	struct arena arena; /* what the store was told */
};

/* What a cleanup found when it ran first. */
struct judged {
	struct task *v;
	size_t n;
	bool done;
};

/* A request on its way: job_run() is its edit. */
struct job {
	const struct policy *policy;
	const struct request *rq;
	struct str proof, fresh; /* hashes of rq->token, rq->new_token, or empty */
	struct str pass
		[TYPED_END]; /* of the locks of the whole queue that the caller holds, as far as needed */
	struct answer *ans;
	struct arena *arena;
	struct judged judged;
	int64_t began_ns, ended_ns; /* it was its turn, it was over */
	bool handed;                /* another process has run it */
	bool failed;                /* nothing came of it */
};

int job_run(struct edit *e, void *job);
extern const struct relay queue_relay;

struct loaded {
	struct loaded *next;
	struct record *rec; /* NULL: not in the store yet */
	struct str key;
	struct task task, old; /* as it shall be, as it is in `rec` */
	int64_t was;           /* the status that others have been told of; 0: not there */
	int64_t logged;        /* the one that the log knows */
	bool dirty;
};

struct work {
	const struct policy *policy;
	struct edit *e;
	struct call call;
	const struct request *rq;
	struct answer *ans;
	struct arena *arena; /* the caller's: it outlives the change */
	const struct str *pass;
	struct judged *judged;
	int64_t guard, guard_was; /* see guard.c: as it shall be, as it is */
	struct loaded *tasks;
	size_t writes; /* puts, drops and log lines so far */
	bool keep;     /* a refusal, but what was written on the way stays */
};

int work_load(struct work *w, struct str id, struct loaded **out); /* REFUSED: NOT_FOUND */
struct loaded *work_new(struct work *w, struct str id);
/* Something like a task under a key of its own. */
struct loaded *work_new_key(struct work *w, struct str key, struct str id);
/* The task was edited by this request. */
void work_edited(struct work *w, struct loaded *l);
int work_flush(struct work *w);
void work_drop(struct work *w, struct loaded *l);
void work_event(struct work *w, const struct event *ev);
/* A line about the task by the request's agent. */
void work_log(struct work *w, struct loaded *l, const char *name, struct str text);
int work_refuse(struct work *w, enum result code, struct str message, struct str hint);
/* Takes over what the rules said: events, warning, refusal. */
int work_verdict(struct work *w, struct loaded *l, const struct verdict *v);
void work_answer(struct work *w, struct loaded *l);
struct grant *work_grant(struct work *w, const struct loaded *l);
/* The keys of the tasks that a query finds; *keys is empty before. */
int work_keys(struct work *w, const struct query *q, struct strs *keys);
int work_load_key(struct work *w, struct str key, struct loaded **out);
/* Records that are no tasks: a number by its key, 0 if there is none. */
int number_get(struct work *w, struct str key, int64_t *n);
void number_put(struct work *w, struct str key, int64_t n);
/* Where the fence of a removed task is kept. */
struct str gone_key(struct work *w, const struct loaded *l);

/* One for each kind of request. */
int do_change(struct work *w); /* what the rules do to one task */
int do_create(struct work *w);
int do_take(struct work *w);
int do_depend(struct work *w);
int do_remove(struct work *w);
int do_cleanup(struct work *w);
int do_archive(struct work *w);
int do_id(struct work *w);
int do_id_init(struct work *w);
int do_typed(struct work *w);
int do_emergency(struct work *w);
/* Pieces of them. */
int take_next(struct work *w, struct loaded **out); /* *out NULL: nothing eligible */
/* The task that an earlier call with this fresh token took and still holds; *out NULL: none. */
int taken_before(struct work *w, struct loaded **out);
int set_parent(struct work *w, struct loaded *l);
/* REFUSED with `message` if `from` waits for `to`, both keys. */
int no_cycle(struct work *w, struct str from, struct str to, struct str message);
/* A task that was removed left its fence behind: the next one of that name goes on from there. */
int old_fence(struct work *w, struct loaded *l, int64_t *fence);
int leave_parent(struct work *w, struct loaded *l);
int add_depends(struct work *w, struct loaded *l);
/* A Ready task of that id, with what the request says of it. */
int new_task(struct work *w, struct str id, struct loaded **out);
int fresh_id(struct work *w, struct str *out);
/* What a get() of it said: is it taken? One that cannot be used is, too (a damaged file); *unusable counts. */
bool id_is_taken(int r, int *unusable);
void select_query(const struct request *rq, const struct policy *p, struct query *q);

/* May this request change anything now? In its own transaction, before it does. */
int guard_check(struct work *w);
/* A change was kept out (j->ans->barred) and has ended. true: it may be tried again, with the caller's own token for
 * that lock in j->pass, or after a wait; false: the time is over. *deadline: 0 at first. */
bool guard_wait(struct queue *q, struct job *j, int64_t *deadline);
/* After it: forgets locks of the whole queue that ran out, if something is written anyway. */
void guard_tidy(struct work *w);
/* Locks of the whole queue that nobody can need any more. */
int guard_cleanup(struct work *w);
/* Does the process that it names provably not run any more? */
bool lock_dead(const struct lock *l);
void lock_look(struct lock *l); /* fills in `life` */
/* One of them, or the emergency; without a holder: there is none. */
int guard_read(struct store *s, struct str id, struct task *out, struct arena *a);
int guard_kind(struct store *s, enum typed kind, struct task *out, struct arena *a);

/* What is counted (core/health.h); how long since something, in ns. */
int64_t health_ns(void);
/* Those that were not kept out; asked: when they were called. */
void health_count(struct store *s, const struct job *jobs, size_t n, int64_t asked_ns);
/* Those that waited in vain. */
void health_count_failed(struct store *s, const struct job *jobs, size_t n, int64_t asked_ns);
bool health_read(struct store *s, struct health *out);

/* Request ids: 0 not seen before, REFUSED answered from memory. */
int repeat_find(struct work *w);
void repeat_keep(struct work *w);

void queue_read(struct store *s, const struct policy *p, const struct request *rq,
		struct answer *ans, struct arena *a);
/* The last comments on a task, for whoever takes it up again. */
void read_comments(struct store *s, const struct task *t, struct answer *ans, struct arena *a);
/* A record as a task; its strings are in `a`. */
int task_of(const struct record *r, struct task *out, struct arena *a);
enum result fault_answer(const struct store_error *err, struct answer *ans, struct arena *a);
struct answer *not_found(struct answer *ans, struct str id, struct arena *a);

#endif
