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

/* Who calls. client_init() finds it; a server sets it for each caller. */
struct identity {
	struct str agent, run, host;
	struct str agent_why, run_why; /* where the names come from */
	bool run_made;                 /* pawl made the run from the caller's session or process */
	bool for_agent; /* a coding agent reads the answers, as far as pawl recognises it */
	bool apart; /* set by a server: it uses no saved token whose lock belongs to another live process */
	/* For callers over the network: tokens come with the calls only, neither from the keyring nor from the
	 * environment of this process. */
	bool bare;
	enum role role;        /* of such a caller; it goes with every request */
	struct str only_queue; /* the only queue that such a caller may know; empty: all */
	/* Set by a server: the caller is on another machine, and its keyring is here. The environment of this process is not
	 * the caller's. The answer of a call may get lost on its way: a new token stays pending until client_delivered(), so
	 * that a repeated call gets the same lock. */
	bool afar;
};

/* Where the queue is, and how it is reached. */
struct connection {
	struct place place;
	struct settings settings;
	struct trust trust;
	/* The configuration of the queue. client_init() sets the members below; the others come from the settings
	 * when the queue is opened, and callers may set them before.
	 *   uri             empty: there is no queue here, or trust.state is TRUST_MISSING; trust.uri is set even then
	 *   opt.dir         the base of relative paths
	 *   opt.timeout_ms  the timeout of every change; -1: it depends on the kind of change */
	struct queue_config config;
	struct queue *queue; /* opened by the first call that needs it */
	enum store_mode mode;
	bool shared; /* copies of this struct use the queue, too, so it is never opened again in another mode */
	struct str held
		[TYPED_END]; /* tokens of the locks of the whole queue that this process holds */
	bool watching;       /* client_watch() is looking at the health */
	bool degraded;       /* its last result */
};

struct client {
	struct client_options said;
	struct identity self;
	struct connection conn;
	struct keyring keyring;
	struct given_back given_back; /* .on: set by the face after client_init() */
	/* of the calls */
	struct arena *arena;
	size_t made;             /* calls to the queue so far */
	bool changed;            /* one of them has changed it */
	struct granted *granted; /* by the last call; the face takes it */
};

struct client_health {
	struct health health;
	struct health_facts facts;
	bool counted; /* the store has counters */
};

/* Finds settings, place and agent; opens nothing. SUCCESS, or the error in *ans. */
enum result client_init(struct client *c, const struct client_options *said, struct answer *ans,
			struct arena *a);
/* Judges the queue's own config, even if the command line or the environment names another store. */
void client_check_trust(const struct client *c, struct trust *t);
/* Opens the queue, or opens it again if it was open in a lesser mode. MISCONFIGURED if the config needs trust, or if
 * there is no queue. With STORE_CREATE it makes .pawl in place.init_dir instead. */
enum result client_open(struct client *c, enum store_mode mode, struct answer *ans);
/* The same with STORE_CREATE, but only for a store that is named or found: it never makes .pawl. */
enum result client_make(struct client *c, struct answer *ans);
/* Reads --timeout and the setting; for client_init(). */
enum result client_find_timeout(struct client *c, struct answer *ans);
/* The timeout of a change of that kind (OP_QUICK, OP_BATCH, OP_HEAVY, or 0), in ms. */
int64_t client_timeout(const struct client *c, unsigned kind);
/* The figures of `lock health`. On failure, *ans has the error. */
enum result client_health(struct client *c, struct client_health *out, struct answer *ans);
bool client_health_auto(const struct client *c);
/* A lock is stale if its lease expired longer ago than this, in ms. */
int64_t client_stale_after(const struct client *c);
/* With health.auto, before a change: cleans up stale locks of a degraded queue. */
void client_watch(struct client *c);
/* The timeout while the queue is degraded. */
int64_t client_hurried(const struct client *c, int64_t timeout_ms);
/* The keyring's part in one call. */
struct keys {
	bool takes;     /* the call may acquire a lock */
	bool in_flight; /* sent with the token of `pending` */
	bool saved;     /* the proof is a saved token */
	struct pending pending;
};

/*
 * One call. client_begin() completes the request: agent, run, token. The queue makes it, in one commit with the calls of
 * others if the caller has several, and sets `ans`. client_end() updates the keyring. A call that was begun must be
 * ended, because its token may be on its way.
 */
struct call_state {
	struct request rq;
	struct answer ans;
	struct keys keys;
	int64_t held_ms; /* see given_back_except() */
};

/* SUCCESS, or a refusal in call->ans: then the queue is not asked, and the call is over. Does not change *rq, so that the
 * caller can repeat it. */
enum result client_begin(struct client *c, const struct request *rq, struct call_state *call);
void client_end(struct client *c, struct call_state *call);
/* Begins the call, makes it and ends it. */
void client_call(struct client *c, const struct request *rq, struct answer *ans);
/* The same with an answer that lives in `a`: a program that runs for days must not keep every answer. */
enum result client_call_in(struct client *c, const struct request *rq, struct answer *ans,
			   struct arena *a);
/* Several changes in one commit, all or none; none of them may take a lock. under: see queue_call_all(). Returns n, or the index of the refused
 * call, whose answer has the reason. */
size_t client_call_all(struct client *c, const struct request *rqs, const size_t *under,
		       struct answer *answers, size_t n);
/* The token that a holder's call would send: `said`, or PAWL_TOKEN for the task in PAWL_TASK, or the saved one.
 * Empty: there is none. On failure, *ans has the error. */
enum result client_token(struct client *c, struct str task, struct str said, struct str *token,
			 struct answer *ans);
/* A lock whose answer is on its way to a caller afar. */
struct granted;
/* The answer has arrived, or it has not: then the next claim of the same agent and run that asks for the same finds this
 * lock. Frees g. */
void client_delivered(struct granted *g, bool arrived);
/* Replaces a number by the id that it stands for: 2 by t2, if there is a t2 and no task 2. The queue must be open. */
void client_know_ids(struct client *c, struct request *rq);
void client_close(struct client *c);

/* The run of the calls from now on: --run or PAWL_RUN, else the session that the client named, else that of the
 * environment. Empty: there is none. */
void client_session(struct client *c, struct str session);
struct caller_run client_run(const struct client *c);
void client_set_run(struct client *c, const struct caller_run *run);

/* The name of the queue: `default` if nothing names another one. */
struct str client_queue_name(const struct client *c);
/* Is it a files: queue? Its locks are files beside the tasks, and survive the loss of .pawl. */
bool client_in_files(const struct client *c);
/* Tells the keyring the id of the queue. Call it before you use the keyring. */
void client_know_queue(struct client *c);
/* Stores the id that an acquisition found or gave to the queue. */
void client_learn_queue(struct client *c, struct str id);
/* The queue of `from` was copied to `to`: the tokens that are saved here for its holders count there, too. 0 or -errno. */
int client_copy_tokens(struct client *from, struct client *to);
/* Call it if a token was not found. Asks the store for the queue's id. true: the id was unknown; look again. */
bool client_ask_queue(struct client *c);

/*
 * A lock of the whole queue around an operation of many steps. It does not refuse calls of the operation itself or of
 * programs that it starts. If the agent holds that lock already, the operation uses it and does not release it.
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
