/* The declarations that the files of pawl-remote.so share. */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include "http/http_client.h"
#include "queue/remote_queue.h"

#define PARK_MAX_MS 60000 /* the longest wait that a server allows */

/* The stream of changes (remote.c). */
struct watch {
	struct http_client *http; /* NULL: it was never opened */
	int set, timer;           /* -1: none */
	bool open, fresh;         /* fresh: the caller has not read since it was opened */
	bool heard;               /* the server has sent a line */
	int64_t again_at, pause_ms;
	int64_t asked_at; /* when a caller last waited for it */
};

struct far_queue {
	struct http_client *http;
	struct watch watch;
	const struct queue_config *config; /* of the queue, which outlives this */
	struct arena arena;
	const char *url;
	const char *queue; /* "queue=NAME", encoded, or "" */
	struct str bearer; /* the caller's token */
	bool insecure;     /* send it although the server has not proved itself */
	struct str proof;  /* for http_client_prove() */
	bool asked;        /* the token was looked up */
	bool resent;       /* the last question may have arrived more than once */
	int64_t timeout_ms, park_ms;
	long long attempts; /* number of attempts, over all questions */
};

/* One question to the server. */
struct question {
	const char *path;  /* "/v1/call" */
	const char *query; /* without '?'; may be NULL */
	struct str body;
	bool changes;     /* the request may change the queue */
	bool again;       /* the server recognises a repeat, so the client may send it again */
	int64_t wait_ms;  /* the server may wait up to this long before it answers */
	int64_t again_ms; /* the request may be repeated for up to this long; 0: until the timeout */
};

/* Asks until there is an answer or the timeout has passed. SUCCESS: *body has the frames. Otherwise
 * *ans has the reason, and says whether a change was made. */
enum result remote_ask(struct far_queue *r, const struct question *k, struct str *body,
		       struct answer *ans, struct arena *a);
/* Reports an answer that no pawl server sends. why: its fault; NULL: it cannot be read. */
enum result remote_garbled(struct far_queue *r, bool changes, const char *why, struct answer *ans,
			   struct arena *a);
/* Quotes a text from the server, if a coding agent reads the answers. */
struct str remote_words(const struct far_queue *r, struct str text, struct arena *a);
/* Quotes all texts from the server in an answer. */
void remote_quote(const struct far_queue *r, struct answer *ans, struct arena *a);
void remote_sleep(int64_t ms);
/* Looks up the caller's token, once. */
enum result remote_bearer(struct far_queue *r, struct answer *ans);
/* A client for another connection. 0, or -1 and `why`. */
int remote_client(struct far_queue *r, struct http_client **out, char *why, size_t room);

int remote_wake_fd(struct far_queue *r);
void remote_woken(struct far_queue *r);
/* Sleeps up to `ms`, or until the stream, if there is one, has a change. */
void remote_watch_sleep(struct far_queue *r, int64_t ms);
void remote_watch_rest(struct far_queue *r);
void remote_watch_end(struct watch *w);

void remote_call(struct far_queue *r, const struct request *rqs, struct answer *answers, size_t n,
		 struct arena *a);
size_t remote_call_all(struct far_queue *r, const struct request *rqs, const size_t *under,
		       struct answer *answers, size_t n, struct arena *a);
enum result remote_make(struct far_queue *r, struct answer *ans, struct arena *a);
enum result remote_discard(struct far_queue *r, struct answer *ans, struct arena *a);
enum result remote_facts(struct far_queue *r, struct frame_facts *out, struct answer *ans,
			 struct arena *a);
enum result remote_forecast(struct far_queue *r, const struct request *rq, bool people,
			    struct forecast *out, struct answer *ans, struct arena *a);
bool remote_health(struct far_queue *r, struct health *out);
enum result remote_names(struct far_queue *r, name_fn *fn, void *ctx, struct answer *ans,
			 struct arena *a);
enum result remote_check(struct far_queue *r, check_fn *fn, void *ctx, struct answer *ans,
			 struct arena *a);
enum result remote_export(struct far_queue *r, unsigned statuses, parcel_fn *fn, void *ctx,
			  int *stopped, struct answer *ans, struct arena *a);
enum result remote_import(struct far_queue *r, struct import *im, struct answer *ans,
			  struct arena *a);
enum result remote_dump(struct far_queue *r, item_fn *fn, void *ctx, int *stopped,
			struct answer *ans, struct arena *a);
enum result remote_put(struct far_queue *r, struct load *l, bool verify, struct answer *ans,
		       struct arena *a);
enum result remote_clear(struct far_queue *r, bool force, struct str agent, struct str run,
			 int64_t *n, struct answer *ans, struct arena *a);

#endif
