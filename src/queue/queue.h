/*
 * queue: turns a request into an answer. Only here do policy (core) and store meet.
 *
 * queue_call() never prints, never exits and always sets the answer. A request has no effect before its commit. A
 * repeated request recognises its earlier effect by its token or request id, so a caller may repeat any call whose
 * answer was lost.
 */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/answer.h"
#include "core/lock_health.h"
#include "core/request.h"
#include "core/typed.h"
#include "store/store.h"

struct queue;

/* The name of a queue that `pawl torture` creates and removes again begins with this. */
#define QUEUE_SCRATCH "torture-"

struct queue_config {
	struct str uri;
	struct store_options opt; /* passed to the store unchanged */
	struct policy policy;
	bool alone; /* no group commit with other processes */
	/* Returns the caller's own token of a lock of the whole queue; empty: none. Called when that lock refuses a
	 * change. NULL: the caller never has one. */
	struct str (*pass)(void *ctx, enum typed kind, struct arena *a);
	void *pass_ctx;
	/* For a queue behind a server: finds the token for this origin (empty: there is none), and the certificate to
	 * trust. insecure: send the token although nothing proves the server. */
	enum result (*bearer)(void *ctx, struct str origin, struct str *token, bool *insecure,
			      struct answer *ans, struct arena *a);
	void *bearer_ctx;
	const char *ca_file;       /* NULL: the system's certificates */
	const char *state_dir;     /* the user's state folder, for TLS sessions; NULL: keep none */
	struct backoff poll_pause; /* pauses between reads, if the store cannot wake us */
	/* Of a queue behind a server: if the network repeated a change, the server calls it repeated, whether this call has
	 * made it or an earlier one. Sets `repeated` to REPEATED_MAYBE then; else it is 0. */
	bool tells_resent;
	bool impatient; /* do not wait for locks of the whole queue: the caller repeats the call */
	/* A coding agent reads the answers. A server's messages, hints and warnings become SERVER_SAYS and a text in double
	 * quotes, so that the agent can tell them from pawl's own. */
	bool for_agent;
};
#define SERVER_SAYS "the server says: "

/* Sets *out, or the error in *ans. */
enum result queue_open(struct queue **out, const struct queue_config *config, enum store_mode mode,
		       struct answer *ans, struct arena *a);
void queue_close(struct queue *q);
/* Sets the timeout of later changes. */
void queue_patience(struct queue *q, int64_t timeout_ms);
/* For a queue that changes its owner: later calls of config.pass get this ctx. */
void queue_pass_ctx(struct queue *q, void *ctx);

/* Does the store keep only locks (STORE_LOCKS_ONLY)? */
bool queue_locks_only(const struct queue *q);
/* Is the queue behind a server (http:, https:, unix:)? */
bool queue_is_remote(const struct queue *q);
struct policy queue_policy(const struct queue *q);
/* Sets the default leases of claims and manual locks. */
void queue_leases(struct queue *q, int64_t lease, int64_t lock_ttl);

/* `a` owns everything that *ans points to. */
void queue_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a);
/* Several calls, in one commit if the store can. Reads see the state before the changes. */
void queue_call_many(struct queue *q, const struct request *rqs, struct answer *answers, size_t n,
		     struct arena *a);
/* Several changes in one commit, all or none. Returns n, or the index of the refused call, whose answer has the
 * reason. under: for each call 1 + the index of an earlier one that creates its parent, or 0; NULL: none has such a
 * parent. */
size_t queue_call_all(struct queue *q, const struct request *rqs, const size_t *under,
		      struct answer *answers, size_t n, struct arena *a);
/* Waits up to `ms` for a change; on a far store at most QUEUE_FAR_MS. false: no change was
 * noticed, so the caller need not read again. */
bool queue_wait(struct queue *q, int64_t ms);
/* For event loops: a descriptor that becomes readable when something may have changed, until queue_woken(). -1: the
 * store has none now; read again after queue_pause(). Ask for it before each wait: a server may go and come back. */
int queue_wake_fd(struct queue *q);
void queue_woken(struct queue *q);
/* Without a descriptor: the pause until the next read, at most `ms`. Each pause is longer than the last. */
int64_t queue_pause(struct queue *q, int64_t ms);
/* The longest time between two reads while a caller is waiting, because a server's notification
 * can get lost with its connection. INT64_MAX: this store loses none. */
int64_t queue_poll_ms(struct queue *q);
#define QUEUE_FAR_MS 2000
#define QUEUE_POLL_MS 250
#define QUEUE_POLL_MAX_MS 5000
enum result queue_check(struct queue *q, check_fn *fn, void *ctx, struct answer *ans,
			struct arena *a);
/* Makes the repairs of this step: those of the store, then those of the records. REPAIR_DATA: the caller holds
 * @maintenance. *n: the number of repaired records. */
enum result queue_repair(struct queue *q, enum repair_step step, const struct repair_sink *sink,
			 struct str agent, struct str run, size_t *n, struct answer *ans,
			 struct arena *a);
int64_t queue_now(struct queue *q);
/* The id of the queue: a UUID that stays the same when the queue moves. false: the queue has none yet, or its
 * store cannot keep one. */
bool queue_identity(struct queue *q, struct str *id, struct arena *a);
/* Lets the next `next` or `take` wait up to `ms` at the server. false: this queue cannot; wait with queue_wait(). */
bool queue_park(struct queue *q, int64_t ms);
/* Does every read ask a server? */
bool queue_is_far(const struct queue *q);
/* The origin of the queue's server, such as "https://host:443". Empty: there is no server; pawl opens the store itself. */
struct str queue_origin(const struct queue *q, struct arena *a);
/* Does the queue exist? Opening a remote store may not have contacted it yet. */
bool queue_is_there(struct queue *q);
/* The wall-clock time of the cached state that reads show; 0: reads are current. */
int64_t queue_as_of(const struct queue *q);
/* Reads the counters of all processes. false: the store has none. */
bool queue_health(struct queue *q, struct health *out);
/* Lists the names of all queues in the store, if the store can list them. */
enum result queue_names(struct queue *q, name_fn *fn, void *ctx, struct answer *ans,
			struct arena *a);
/* Removes the queue with its contents. After that, call only queue_close(). */
enum result queue_discard(struct queue *q, struct answer *ans, struct arena *a);

/* The policy that stores call; queue_open() passes it to them. */
extern const struct store_rules queue_rules;

/* --- attempts --------------------------------------------------------------------------------- */

/*
 * attempts: when a call that found no task makes its next attempt. A waiting call holds nothing,
 * because each attempt is a separate call. The store wakes the caller after each change. An attempt
 * is also due when the lease or delay that the last answer named is over. It is due after
 * ATTEMPTS_MAX_MS in any case, because a store may not notice a change from another machine.
 *
 * The command line waits by sleeping (cmd/wait.c). The server, the MCP server and `pawl run` do
 * other work while a call is waiting. All of them take the times from here.
 */

#define ATTEMPTS_MAX_MS 30000

/* Both times are by os_boot_ms(). */
struct attempts {
	int64_t end;  /* the caller stops waiting; 0: it does not wait */
	int64_t next; /* never after `end` */
};

/* Waits for `ms`; INT64_MAX: forever. */
void attempts_begin(struct attempts *t, int64_t ms);
/* After an attempt that found no task. wait_ms: the answer's; 0: it named no time. */
void attempts_after(struct attempts *t, int64_t wait_ms);
bool attempts_over(const struct attempts *t);
/* The time until the next attempt. */
int64_t attempts_left(const struct attempts *t);

/* --- forecast --------------------------------------------------------------------------------- */

/* forecast: the tasks that a loop can still expect from a queue without an eligible task for it. */

struct forecast {
	int64_t coming; /* open tasks that can become eligible for the caller */
	/* open tasks for the caller that need a person first, or that the caller itself released; one of them */
	int64_t stuck;
	struct str stuck_id;
	int64_t wait_ms; /* time until the next lease or delay is over; 0: there is none */
};

/* rq: an OP_TAKE with its filters and `except`. A task can become eligible by the work of agents and by time. people: a
 * task that waits for a person counts, too. */
enum result queue_forecast(struct queue *q, const struct request *rq, bool people,
			   struct forecast *out, struct answer *ans, struct arena *a);

#endif
