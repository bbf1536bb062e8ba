/*
 * act: one request inside one change. Tasks are loaded once, changed in memory, and put back together:
 * act_flush() also carries a status change on to the parent and to those who depend on the task.
 *
 * Functions return 0, > 0 for a refusal (the answer says which), or a store's fault.
 */
#ifndef QUEUE_ACT_H
#define QUEUE_ACT_H

#include "core/typed.h"
#include "queue/queue.h"

#define REFUSED 1
#define BAD 2 /* a record that cannot be used (bad.c); job_run() makes a refusal of it */
#define COUNTER_KEY STR("meta/counter")
#define IDENTITY_KEY STR("meta/identity")

struct queue {
	struct store *store;
	struct store_error err;
	struct queue_config config;
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
	int kind;                   /* enum health_kind: what it is counted as; 0: by rq->op */
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

struct act {
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
	bool nameless; /* the queue has no id yet */
	bool keep;     /* a refusal, but what was written on the way stays */
};

int act_load(struct act *w, struct str id, struct loaded **out); /* REFUSED: NOT_FOUND, or BAD */
struct loaded *act_new(struct act *w, struct str id);
/* Something like a task under a key of its own. */
struct loaded *act_new_key(struct act *w, struct str key, struct str id);
/* The task was edited by this request. */
void act_edited(struct act *w, struct loaded *l);
int act_flush(struct act *w);
/* Why the record that it would become could not be used; NULL: it could. */
const char *act_fault(struct act *w, const struct loaded *l);
void act_drop(struct act *w, struct loaded *l);
void act_event(struct act *w, const struct event *ev);
/* A line about the task by the request's agent. */
void act_log(struct act *w, struct loaded *l, const char *name, struct str text);
int act_refuse(struct act *w, enum result code, struct str message, struct str hint);
/* Takes over what the rules said: events, warning, refusal. */
int act_verdict(struct act *w, struct loaded *l, const struct verdict *v);
void act_answer(struct act *w, struct loaded *l);
struct grant *act_grant(struct act *w, const struct loaded *l);
/* The keys of the tasks that a query finds; *keys is empty before. */
int act_keys(struct act *w, const struct query *q, struct strs *keys);
/* 1: there is none; BAD, with *out NULL. Neither fills in the answer. */
int act_load_key(struct act *w, struct str key, struct loaded **out);
/* Records that are no tasks: a number by its key, 0 if there is none. BAD: it is damaged. */
int number_get(struct act *w, struct str key, int64_t *n);
void number_put(struct act *w, struct str key, int64_t n);
/* Where the fence of a removed task is kept. */
struct str gone_key(struct act *w, const struct loaded *l);

/* One for each kind of request. */
int do_change(struct act *w); /* what the rules do to one task */
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
/* Pieces of them. */
int take_next(struct act *w, struct loaded **out); /* *out NULL: nothing eligible */
/* The task that an earlier call with this fresh token took and still holds; *out NULL: none. */
int taken_before(struct act *w, struct loaded **out);
int set_parent(struct act *w, struct loaded *l);
/* REFUSED with `message` if `from` waits for `to`, both keys. */
int no_cycle(struct act *w, struct str from, struct str to, struct str message);
/* Above every fence that was ever given out: for a task whose last fence cannot be read. */
#define FENCE_UNKNOWN (EXACT_MAX / 2)
/* A task that was removed left its fence behind: the next one of that name goes on from there. */
int old_fence(struct act *w, struct loaded *l, int64_t *fence);
int leave_parent(struct act *w, struct loaded *l);
int add_depends(struct act *w, struct loaded *l);
/* A Ready task of that id, with what the request says of it. */
int new_task(struct act *w, struct str id, struct loaded **out);
int fresh_id(struct act *w, struct str *out);
/* What a get() of it said: is it taken? One that cannot be used is, too (a damaged file); *unusable counts. */
bool id_is_taken(int r, int *unusable);
void select_query(const struct request *rq, const struct policy *p, struct query *q);

/* May this request change anything now? In its own transaction, before it does. */
int guard_check(struct act *w);
/* A change was kept out (j->ans->barred) and has ended. true: it may be tried again, with the caller's own token for
 * that lock in j->pass, or after a wait; false: the time is over. *deadline: 0 at first. */
bool guard_wait(struct queue *q, struct job *j, int64_t *deadline);
/* After it: forgets locks of the whole queue that ran out, if something is written anyway. */
void guard_tidy(struct act *w);
/* Locks of the whole queue that nobody can need any more. */
int guard_cleanup(struct act *w);
/* Does the process that it names provably not run any more? */
bool lock_dead(const struct lock *l);
void lock_look(struct lock *l); /* fills in `life` */
/* One of them, or the emergency; without a holder: there is none. */
int guard_read(struct store *s, struct str id, struct task *out, struct arena *a);
int guard_kind(struct store *s, enum typed kind, struct task *out, struct arena *a);

/* The queue's id for a caller who brought one along: that of the queue, or else the caller's. */
int identity_find(struct act *w);
/* If it is the caller's, it is the queue's from now on. */
void identity_keep(struct act *w);

/* What is counted (core/health.h); how long since something, in ns. */
int64_t health_ns(void);
/* Those that were not kept out; asked: when they were called. */
void health_count(struct store *s, const struct job *jobs, size_t n, int64_t asked_ns);
/* Those that waited in vain. */
void health_count_failed(struct store *s, const struct job *jobs, size_t n, int64_t asked_ns);
/* A change of many tasks, counted as one call of this kind: j->began_ns, j->ans and whether the store failed. */
void health_count_bulk(struct queue *q, struct job *j, enum health_kind kind, int64_t asked_ns,
		       bool failed);
bool health_read(struct store *s, struct health *out);

/* Request ids: 0 not seen before, REFUSED answered from memory. */
int repeat_find(struct act *w);
void repeat_keep(struct act *w);

void queue_read(struct store *s, const struct policy *p, const struct request *rq,
		struct answer *ans, struct arena *a);
/* Adds an event, without a cursor, for each lease that has expired after `since` and that nobody has taken or cleared yet,
 * and sets ans->wait_ms to when the next one expires. only: the lease of this task; NULL: all of them. */
int read_expired(struct store *s, int64_t since, const struct task *only, struct answer *ans,
		 struct arena *a);
/* The last comments on a task, for whoever takes it up again. */
void read_comments(struct store *s, const struct task *t, struct answer *ans, struct arena *a);
/* A record as a task; its strings are in `a`. 0 or BAD. */
int task_of(const struct record *r, struct task *out, struct arena *a);
/* A line of the log; its strings are the entry's. 0 or BAD. */
int event_of(const struct entry *en, struct event *out);

/* Why no record of this kind can be used; NULL: it can. */
const char *record_fault(const struct record *r, struct arena *a);
/* What people call it: its id, or a handle where it has no id that could be printed. */
struct str bad_name(struct str key, struct arena *a);
/* Its key, spelt out and cut, for a message. */
struct str bad_shown(struct str key, struct arena *a);
/* Fills in the answer; REFUSED. */
int bad_refuse(struct answer *ans, const struct record *r, struct arena *a);
/* The key that a handle stands for, in the store or (`e`) as an edit sees it: 0, 1 if there is none, or a fault. */
int bad_find(struct store *s, struct edit *e, struct str handle, struct str *key, struct arena *a);
/* "3 records cannot be used and are left out: pawl doctor" */
struct str bad_warning(size_t n, struct arena *a);
int bad_check(struct store *s, check_fn *fn, void *ctx);
enum result fault_answer(const struct store_error *err, struct answer *ans, struct arena *a);
struct answer *not_found(struct answer *ans, struct str id, struct arena *a);

#endif
