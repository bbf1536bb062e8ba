/*
 * queue: request in, answer out. The only place where policy (core) and store meet.
 *
 * queue_call() never prints, never exits and always fills in the answer, whatever happens below it. No
 * request has an effect before its commit, and each recognises its own earlier effect by its token or
 * request id, so a caller may repeat any call whose answer it did not get.
 */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include "core/answer.h"
#include "core/health.h"
#include "core/request.h"
#include "core/typed.h"
#include "store/store.h"

struct queue;

struct queue_config {
	struct str uri;
	struct store_options opt; /* handed to the store as they are */
	struct policy policy;
	bool alone; /* no other process makes our changes, nor we theirs */
	/* The caller's own token of a lock of the whole queue, asked for when a change meets that lock; empty:
	 * it has none. NULL: it never has one. */
	struct str (*pass)(void *ctx, enum typed kind, struct arena *a);
	void *pass_ctx;
	struct backoff look; /* where nobody wakes who waits: the pauses between two looks */
	bool impatient; /* another's lock of the whole queue is told at once: the caller comes again */
};

/* SUCCESS and *out, or what is wrong, in *ans. */
enum result queue_open(struct queue **out, const struct queue_config *config, enum store_mode mode,
		       struct answer *ans, struct arena *a);
void queue_close(struct queue *q);
/* How long the changes from now on wait for others. */
void queue_patience(struct queue *q, int64_t timeout_ms);

/* Does its store keep locks only (STORE_LOCKS_ONLY)? */
bool queue_locks_only(const struct queue *q);
/* How long a claim and a manual lock hold from now on, unless the call says it. */
void queue_leases(struct queue *q, int64_t lease, int64_t lock_ttl);

/* ans and all it points to live in `a`. */
void queue_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a);
/* Several in a row, in one commit where the store can; what only reads sees the state before them. */
void queue_call_many(struct queue *q, const struct request *rqs, struct answer *answers, size_t n,
		     struct arena *a);
/* Several changes in one commit, all of them or none. n, or which one was refused: its answer says why. */
size_t queue_call_all(struct queue *q, const struct request *rqs, struct answer *answers, size_t n,
		      struct arena *a);
/* Returns when something may have changed, or after `ms` at the latest. false: nothing has changed, for certain. */
bool queue_wait(struct queue *q, int64_t ms);
/* For those who also wait for other things: readable when something may have changed, until queue_woken();
 * -1: there is no such thing, look again every QUEUE_LOOK_MS. */
int queue_wake_fd(struct queue *q);
void queue_woken(struct queue *q);
/* Without one: how many ms until the next look, at most `ms`. Each pause is longer than the one before. */
int64_t queue_pause(struct queue *q, int64_t ms);
#define QUEUE_LOOK_MS 250
#define QUEUE_LOOK_MAX_MS 5000
enum result queue_check(struct queue *q, check_fn *fn, void *ctx, struct answer *ans,
			struct arena *a);
int64_t queue_now(struct queue *q);
/* What the queue is, wherever it is: a UUID. false: it has none yet, or can keep none. */
bool queue_identity(struct queue *q, struct str *id, struct arena *a);
/* Does every read ask a server? */
bool queue_is_far(const struct queue *q);
/* A store far away may be open without having been asked. */
bool queue_is_there(struct queue *q);
/* What is read was known then, by the wall clock; 0: it is as it is. */
int64_t queue_as_of(const struct queue *q);
/* What was counted at the queue's place by all processes. false: nothing is, or can be. */
bool queue_health(struct queue *q, struct health *out);
/* The names of all queues of its store, as far as that can tell. */
enum result queue_names(struct queue *q, name_fn *fn, void *ctx, struct answer *ans,
			struct arena *a);
/* Removes the queue with all that is in it; afterwards only queue_close() makes sense. */
enum result queue_discard(struct queue *q, struct answer *ans, struct arena *a);

/* What stores ask of policy; queue_open() hands it to them. */
extern const struct store_rules queue_rules;

#endif
