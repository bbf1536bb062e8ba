/*
 * transfer: many tasks out of a queue and into it, whole, whatever their number.
 *
 * What goes out is of one state. What comes in comes in one commit or not at all; it is read piece by piece,
 * so that memory does not grow with it, and may be read again from its start (a store may repeat a change).
 */
#ifndef QUEUE_TRANSFER_H
#define QUEUE_TRANSFER_H

#include "queue/queue.h"

struct parcel {
	struct task task;
	struct event *comments;
	size_t n_comments;
	struct str where; /* for messages: "tasks.json:17" */
};

/* 0: go on; else queue_export() ends with it, which is no fault of the store's. */
typedef int parcel_fn(void *ctx, const struct parcel *p);

/* Every task by created_at, then id; statuses: a set of STATUS_BIT, 0 for any. *stopped: what `fn` said. */
enum result queue_export(struct queue *q, unsigned statuses, parcel_fn *fn, void *ctx, int *stopped,
			 struct answer *ans, struct arena *a);

/* What to do with a task that is there already. */
enum clash { CLASH_REFUSE, CLASH_SKIP, CLASH_UPDATE };

struct import {
	size_t n; /* parcels that will come */
	/* The next one, in `a`: 0, 1 if there are no more, or -errno. */
	int (*next)(void *ctx, struct parcel *out, struct arena *a);
	void (*rewind)(void *ctx);
	void *ctx;
	void (*progress)(void *ctx, size_t done); /* may be NULL */
	void *progress_ctx;
	enum clash clash;
	bool check; /* make every check and change nothing */
	struct str agent, run;
	/* out: of what came in, or would */
	int64_t created, updated, skipped, comments;
};

/* What can be said of a parcel without the queue: NULL, or what is wrong with it. */
const char *parcel_fault(const struct parcel *p, struct arena *a);
enum result queue_import(struct queue *q, struct import *im, struct answer *ans, struct arena *a);

/* --- all of a queue: every record and the log -------------------------------------------------------- */

struct item {
	bool line;         /* of the log, else a record */
	struct record rec; /* key, hot, body; of one that is no task also lane and eligible_at */
	struct entry entry;
};

typedef int item_fn(void *ctx, const struct item *it);
/* Records first, then the log from its first line. */
enum result queue_dump(struct queue *q, item_fn *fn, void *ctx, int *stopped, struct answer *ans,
		       struct arena *a);

struct load {
	size_t records, lines; /* that will come */
	int64_t made_at;       /* when they were dumped */
	int (*next)(void *ctx, struct item *out, struct arena *a);
	void (*rewind)(void *ctx);
	void *ctx;
	void (*progress)(void *ctx, size_t done);
	void *progress_ctx;
	/* An older state in the place of what is there: locks end, no fence goes back, the log goes on. Else all
	 * comes in as it was, into an empty queue. */
	bool restore;
	bool force; /* even if somebody holds a lock */
	struct str agent, run;
	/* out: records and lines that cannot be used, and did not come in; only where an older state comes back */
	size_t left_out;
	size_t tasks; /* that came in */
};

enum result queue_load(struct queue *q, struct load *l, struct answer *ans, struct arena *a);
/* SUCCESS if the queue has all that, and nothing else; MISCONFIGURED with the first difference. */
enum result queue_verify(struct queue *q, struct load *l, struct answer *ans, struct arena *a);
/* How many tasks, other records and lines there are. */
enum result queue_extent(struct queue *q, int64_t *tasks, int64_t *others, int64_t *lines,
			 struct answer *ans, struct arena *a);
/* Removes all tasks; their fences and the log stay. */
enum result queue_clear(struct queue *q, bool force, struct str agent, struct str run, int64_t *n,
			struct answer *ans, struct arena *a);

#endif
