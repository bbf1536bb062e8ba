/*
 * client: who am I, where is the queue, what do I hold. Every face calls the queue through it.
 *
 * client_call() completes a request (agent, run, host, token), sends it, and keeps the keyring in
 * step with the answer.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/keyring.h"
#include "client/place.h"
#include "client/settings.h"
#include "client/trust.h"
#include "queue/queue.h"

/* Who waits for the answer. */
enum client_face { CLIENT_PROGRAM, CLIENT_COMMAND, CLIENT_PROMPT };

/* What was said on the command line; empty: not said. */
struct client_options {
	enum client_face face;
	struct str store, queue, agent, run, timeout;
	struct str dir; /* as if started there */
};

struct client {
	struct arena *arena; /* of the call */
	struct client_options said;
	struct place place;
	struct settings settings;
	struct str agent, run, host;
	struct trust trust;
	struct keyring keyring;
	/* What the queue is opened with. client_init() fills in the place, the rest comes from the settings when it is
	 * opened; until then others may set it.
	 *   uri             empty: there is no queue here, or trust.state is TRUST_MISSING; trust.uri has it even then
	 *   opt.dir         what relative paths are seen from
	 *   opt.timeout_ms  of every change; -1: by its kind */
	struct queue_config config;
	struct queue *queue; /* opened by the first call that needs it */
	struct str held
		[TYPED_END]; /* tokens of the locks of the whole queue that this process holds */
	enum store_mode mode;
};

/* Settings, place and identity; opens nothing. SUCCESS, or what is wrong in *ans. */
enum result client_init(struct client *c, const struct client_options *said, struct answer *ans,
			struct arena *a);
/* The verdict on the queue's own config, whatever store the command line or the environment names. */
void client_judge(const struct client *c, struct trust *t);
/* MISCONFIGURED with the hint `pawl init` where there is no queue, and where the config needs trust; STORE_CREATE makes .pawl in
 * place.init_dir then. Opens again if it was open for less. */
enum result client_open(struct client *c, enum store_mode mode, struct answer *ans);
/* The same for STORE_CREATE, but where no queue is named none is made. */
enum result client_make(struct client *c, struct answer *ans);
/* How long a change of that kind (OP_QUICK, OP_BATCH, OP_HEAVY, or 0) waits for other writers, in ms. */
int64_t client_timeout(const struct client *c, unsigned kind);
/* rq is left as it is: a repeat of it is completed anew. */
void client_call(struct client *c, const struct request *rq, struct answer *ans);
/* Several changes in one commit, all of them or none; none of them takes a lock. n, or which one kept them
 * from being made: its answer says why. */
size_t client_call_all(struct client *c, const struct request *rqs, struct answer *answers,
		       size_t n);
/* The token that a holder's call about the task would go with: `said`, or PAWL_TOKEN for the task in
 * PAWL_TASK, or the saved one. Empty: there is none. Else what is wrong, in *ans. */
enum result client_token(struct client *c, struct str task, struct str said, struct str *token,
			 struct answer *ans);
void client_close(struct client *c);

/* Is it a files: queue? Its locks lie beside the tasks, and outlive what else it knows. */
bool client_in_files(const struct client *c);
/* Before the keyring is used: which queue it is about. */
void client_know_queue(struct client *c);
/* The id that an acquisition found, or gave to the queue. */
void client_learn_queue(struct client *c, struct str id);
/* A token was not found: is that because we did not know the queue's id? true: look again. */
bool client_ask_queue(struct client *c);

/*
 * A lock of the whole queue around an operation of many steps. Its calls, and those of programs that it
 * starts, are not kept out by it. Where the caller's agent has that lock already (taken by hand, or by a command
 * around this one), that one does, and stays. SUCCESS, CONFLICT or API_ERROR in *ans.
 */
struct queue_lock {
	enum typed kind;
	bool ours; /* to be given back */
};
enum result client_lock_queue(struct client *c, enum typed kind, const char *operation,
			      struct queue_lock *l, struct answer *ans);
void client_unlock_queue(struct client *c, const struct queue_lock *l);
#define QUEUE_LOCK_MS 60000

#endif
