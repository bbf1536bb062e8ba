/*
 * remote: a queue behind a server, the second kind of queue. Its store is a URI http://HOST:PORT, https://HOST:PORT or
 * unix:PATH. The module pawl-remote.so makes the calls, so that programs without such a URI do not load it.
 *
 * A change carries its token or a request id from the first attempt on. After a lost answer the module sends the same
 * bytes again, and the server recognises them. So no call is made twice, whatever the network does.
 */
#ifndef QUEUE_REMOTE_QUEUE_H
#define QUEUE_REMOTE_QUEUE_H

#include "queue/frame.h"

struct far_queue;

struct remote_ops {
	/* Does not contact the server. SUCCESS, or the error in *ans. */
	enum result (*open)(struct far_queue **out, const struct queue_config *config,
			    struct answer *ans, struct arena *a);
	void (*close)(struct far_queue *r);
	void (*patience)(struct far_queue *r, int64_t timeout_ms);
	/* The next `next` or `take` waits up to `ms` at the server. false: it is too short for that. */
	bool (*park)(struct far_queue *r, int64_t ms);
	/* As queue_wake_fd() and queue_woken(). The descriptor may also become readable without a change. */
	int (*wake_fd)(struct far_queue *r);
	void (*woken)(struct far_queue *r);
	void (*call)(struct far_queue *r, const struct request *rqs, struct answer *answers,
		     size_t n, struct arena *a);
	size_t (*call_all)(struct far_queue *r, const struct request *rqs, const size_t *under,
			   struct answer *answers, size_t n, struct arena *a);
	/* Creates or removes a queue whose name begins with QUEUE_SCRATCH. */
	enum result (*make)(struct far_queue *r, struct answer *ans, struct arena *a);
	enum result (*discard)(struct far_queue *r, struct answer *ans, struct arena *a);
	enum result (*facts)(struct far_queue *r, struct frame_facts *out, struct answer *ans,
			     struct arena *a);
	enum result (*forecast)(struct far_queue *r, const struct request *rq, bool people,
				struct forecast *out, struct answer *ans, struct arena *a);
	/* false: the server's store has no counters */
	bool (*health)(struct far_queue *r, struct health *out);
	enum result (*names)(struct far_queue *r, name_fn *fn, void *ctx, struct answer *ans,
			     struct arena *a);
	enum result (*check)(struct far_queue *r, check_fn *fn, void *ctx, struct answer *ans,
			     struct arena *a);
	enum result (*export)(struct far_queue *r, unsigned statuses, parcel_fn *fn, void *ctx,
			      int *stopped, struct answer *ans, struct arena *a);
	enum result (*import)(struct far_queue *r, struct import *im, struct answer *ans,
			      struct arena *a);
	enum result (*dump)(struct far_queue *r, item_fn *fn, void *ctx, int *stopped,
			    struct answer *ans, struct arena *a);
	enum result (*load)(struct far_queue *r, struct load *l, bool verify, struct answer *ans,
			    struct arena *a);
	enum result (*clear)(struct far_queue *r, bool force, struct str agent, struct str run,
			     int64_t *n, struct answer *ans, struct arena *a);
	/* The server as saved tokens name it: "https://host:443". Empty: the URI is not valid, *why. */
	struct str (*origin)(struct str uri, char *why, size_t room, struct arena *a);
};

/* Does the URI name a server? */
bool remote_is(struct str uri);
/* The module; NULL: it cannot be loaded, and *ans has the reason. */
const struct remote_ops *remote_load(struct answer *ans, struct arena *a);
/* The refusal of a function that only works beside the store. */
enum result remote_refuse(const char *what, struct answer *ans, struct arena *a);
/* The server's facts about the caller of this queue. MISCONFIGURED: it is not a remote queue. */
enum result queue_facts(struct queue *q, struct frame_facts *out, struct answer *ans,
			struct arena *a);

#endif
