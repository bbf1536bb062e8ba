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
	const char *dir; /* what relative paths are seen from */
	struct place place;
	struct settings settings;
	struct str agent, run, host, uri, queue_name; /* uri empty: there is no queue here */
	int64_t timeout_ms;                           /* of every change; -1: by its kind */
	struct keyring keyring;
	bool impatient;      /* see struct queue_config */
	bool cached;         /* the same */
	bool write_status;   /* the same; before the queue is opened */
	struct queue *queue; /* opened by the first call that needs it */
	struct str held
		[TYPED_END]; /* tokens of the locks of the whole queue that this process holds */
	enum store_mode mode;
};

/* Settings, place and identity; opens nothing. SUCCESS, or what is wrong in *ans. */
enum result client_init(struct client *c, const struct client_options *said, struct answer *ans,
			struct arena *a);
/* MISCONFIGURED with the hint `pawl init` where there is no queue; STORE_CREATE makes .pawl in
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
/* At the latest QUEUE_LOCK_MS after it was taken or renewed. LOST_LOCK: somebody has broken it. */
enum result client_renew_queue(struct client *c, const struct queue_lock *l, struct answer *ans);
void client_unlock_queue(struct client *c, const struct queue_lock *l);
#define QUEUE_LOCK_MS 60000

#endif
