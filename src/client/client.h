/*
 * client: the caller's agent, queue and tokens. Every face calls the queue through it.
 *
 * client_call() adds agent, run, host and token to a request, sends it, and updates the keyring by the
 * answer.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/caller.h"
#include "client/given_back.h"
#include "client/keyring.h"
#include "client/place.h"
#include "client/settings.h"
#include "client/trust_config.h"
#include "queue/queue.h"

/* The kind of caller; it selects the timeout. */
enum client_face { CLIENT_PROGRAM, CLIENT_COMMAND, CLIENT_PROMPT };

/* Options of the command line; empty: not given. */
struct client_options {
	enum client_face face;
	struct str store, queue, agent, run, timeout;
	struct str dir;     /* act as if started in this folder */
	struct str program; /* the name that the calling program gives itself (clientInfo.name) */
	struct str session; /* its session, as it named it for this call */
};

/* The caller's identity. client_init() finds it; a server sets it for each caller. */
struct identity {
	struct str agent, run, host;
	struct str agent_why, run_why; /* where the names come from */
	bool run_made;                 /* pawl made the run from the caller's session or process */
	bool for_agent; /* a coding agent reads the answers, as far as pawl recognises it */
	bool apart; /* set by a server: use no saved token whose lock belongs to another live process */
	/* For network callers: tokens come only with the calls, neither from the keyring nor from this process's
	 * environment. */
	bool bare;
	enum role role;        /* a network caller's role; it goes with every request */
	struct str only_queue; /* the only queue that a network caller may see; empty: all */
	/* Set by a server: the caller is on another machine, but its keyring is here. This process's environment is not
	 * the caller's. An answer may get lost on its way, so a new token stays pending until client_delivered(), and
	 * a repeated call gets the same lock. */
	bool afar;
};

/* The queue's place and configuration, and the open queue. */
struct connection {
	struct place place;
	struct settings settings;
	struct trust trust;
	/* The queue's configuration. client_init() sets the members below; the others come from the settings
	 * when the queue is opened, and callers may set them before.
	 *   uri             empty: there is no queue here, or trust.state is TRUST_MISSING; trust.uri is set even then
	 *   opt.dir         the base of relative paths
	 *   opt.timeout_ms  the timeout of every change; -1: it depends on the kind of change */
	struct queue_config config;
	struct queue *queue; /* opened by the first call that needs it */
	enum store_mode mode;
	bool shared; /* copies of this struct use the queue, too, so it must not be reopened in another mode */
	struct str held
		[TYPED_END]; /* tokens of the locks of the whole queue that this process holds */
	bool watching;       /* client_watch() is running */
	bool degraded;       /* client_watch() found the queue degraded */
};

struct client {
	struct client_options said;
	struct identity self;
	struct connection conn;
	struct keyring keyring;
	struct given_back given_back; /* .on: set by the face after client_init() */
	/* the record of this client's calls */
	struct arena *arena;
	size_t made;             /* calls to the queue so far */
	bool changed;            /* a call has changed the queue */
	struct granted *granted; /* the last call's lock; the face takes it over */
};

struct client_health {
	struct health health;
	struct health_facts facts;
	bool counted; /* the store has counters */
};

/* Finds settings, place and agent; opens nothing. SUCCESS, or the error in *ans. */
enum result client_init(struct client *c, const struct client_options *said, struct answer *ans,
			struct arena *a);
/* Decides whether the queue's own config is trusted, even if the command line or the environment names another store. */
void client_check_trust(const struct client *c, struct trust *t);
/* Opens the queue, or reopens it if it was open in a lesser mode. MISCONFIGURED if the config needs trust, or if
 * there is no queue. With STORE_CREATE it makes .pawl in place.init_dir instead. */
enum result client_open(struct client *c, enum store_mode mode, struct answer *ans);
/* Opens the queue and creates its store if necessary, but only a store that was named or found: it never makes .pawl. */
enum result client_make(struct client *c, struct answer *ans);
/* Reads --timeout and the setting `timeout`, for client_init(). */
enum result client_find_timeout(struct client *c, struct answer *ans);
/* The timeout for a change of this kind (OP_QUICK, OP_BATCH, OP_HEAVY, or 0), in ms. */
int64_t client_timeout(const struct client *c, unsigned kind);
/* The figures of `lock health`. On failure, *ans has the error. */
enum result client_health(struct client *c, struct client_health *out, struct answer *ans);
bool client_health_auto(const struct client *c);
/* A lock is stale if its lease expired longer ago than this, in ms. */
int64_t client_stale_after(const struct client *c);
/* Before a change, if health.auto is on: cleans up a degraded queue's stale locks. */
void client_watch(struct client *c);
/* Shortens the timeout while the queue is degraded. */
int64_t client_hurried(const struct client *c, int64_t timeout_ms);
/* The keyring's data about one call. */
struct keys {
	bool takes;     /* the call may acquire a lock */
	bool in_flight; /* the request has the token in `pending` */
	bool saved;     /* the call's token is a saved token */
	struct pending pending;
};

/*
 * One call. client_begin() completes the request with agent, run and token. The caller passes it to the queue, perhaps with
 * other calls in one commit, and the queue sets `ans`. client_end() updates the keyring. Every call that was begun must be
 * ended, because its token may be on its way.
 */
struct call_state {
	struct request rq;
	struct answer ans;
	struct keys keys;
	int64_t held_ms; /* see given_back_except() */
};

/* SUCCESS, or a refusal in call->ans: then the call is over, and the queue must not be called. Does not change *rq, so that
 * the caller can repeat it. */
enum result client_begin(struct client *c, const struct request *rq, struct call_state *call);
void client_end(struct client *c, struct call_state *call);
/* Begins the call, makes it and ends it. */
void client_call(struct client *c, const struct request *rq, struct answer *ans);
/* client_call() with an answer that lives in `a`: a program that runs for days must not keep every answer. */
enum result client_call_in(struct client *c, const struct request *rq, struct answer *ans,
			   struct arena *a);
/* Makes several changes in one commit, all or none; none of them may take a lock. under: see queue_call_all(). Returns n,
 * or the index of the refused call, whose answer has the reason. */
size_t client_call_all(struct client *c, const struct request *rqs, const size_t *under,
		       struct answer *answers, size_t n);
/* The token that a holder's call would send: `said`, or PAWL_TOKEN for the task in PAWL_TASK, or the saved one.
 * Empty: there is none. On failure, *ans has the error. */
enum result client_token(struct client *c, struct str task, struct str said, struct str *token,
			 struct answer *ans);
/* A lock whose answer is on its way to a caller on another machine. */
struct granted;
/* Call it when the answer has arrived, or is lost. After a loss, the next equal claim by the same agent and run gets this
 * lock. Frees g. */
void client_delivered(struct granted *g, bool arrived);
/* Replaces a number by the id that it stands for: 2 by t2, if there is a task t2 and no task 2. The queue must be open. */
void client_know_ids(struct client *c, struct request *rq);
void client_close(struct client *c);

/* Sets the run for the following calls: --run or PAWL_RUN, else `session`, which the client named, else the session in the
 * environment. Empty: there is no run. */
void client_session(struct client *c, struct str session);
struct caller_run client_run(const struct client *c);
void client_set_run(struct client *c, const struct caller_run *run);

/* The queue's name: `default` if nothing names another one. */
struct str client_queue_name(const struct client *c);
/* Is it a files: queue? Its locks are files beside the tasks, and survive the loss of .pawl. */
bool client_in_files(const struct client *c);
/* Tells the keyring the queue's id. Call it before you use the keyring. */
void client_know_queue(struct client *c);
/* Stores the id that an acquisition found or gave to the queue. */
void client_learn_queue(struct client *c, struct str id);
/* Call it after the queue of `from` was copied to `to`: the tokens saved here for its holders then work there, too. 0 or
 * -errno. */
int client_copy_tokens(struct client *from, struct client *to);
/* Call it if a token was not found. Asks the store for the queue's id. true: the id has changed; search again. */
bool client_ask_queue(struct client *c);

/*
 * A lock of the whole queue around an operation of many steps. It does not refuse calls by the operation itself or by
 * programs that it starts. If the agent already holds that lock, the operation uses it and does not release it.
 * SUCCESS, or CONFLICT or API_ERROR in *ans.
 */
struct queue_lock {
	enum typed kind;
	bool ours; /* we must release it */
};
enum result client_lock_queue(struct client *c, enum typed kind, const char *operation,
			      struct queue_lock *l, struct answer *ans);
void client_unlock_queue(struct client *c, const struct queue_lock *l);
#define QUEUE_LOCK_MS 60000

#endif
