/*
 * transfer: moves any number of tasks out of a queue or into it.
 *
 * An export reads one snapshot. An import is one commit, or changes nothing. It reads its input in pieces, so memory
 * does not grow with the input. It may read the input again from the start, because a store may repeat a change.
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

/* 0: continue; any other value stops queue_export(), which puts it into *stopped. */
typedef int parcel_fn(void *ctx, const struct parcel *p);

/* Calls `fn` for every task, by created_at, then id. statuses: a set of STATUS_BIT; 0: any. */
enum result queue_export(struct queue *q, unsigned statuses, parcel_fn *fn, void *ctx, int *stopped,
			 struct answer *ans, struct arena *a);

/* The treatment of a task that exists already. CLASH_MERGE: it gets the fields that changed in the program from which
 * both came (format/origin.h); a task of another origin is refused. */
enum clash { CLASH_REFUSE, CLASH_SKIP, CLASH_UPDATE, CLASH_MERGE };

struct import {
	size_t n; /* number of parcels */
	/* Reads the next parcel into `a`: 0, 1 at the end, or -errno. */
	int (*next)(void *ctx, struct parcel *out, struct arena *a);
	void (*rewind)(void *ctx);
	void *ctx;
	void (*progress)(void *ctx, size_t done); /* may be NULL */
	void *progress_ctx;
	enum clash clash;
	/* run all checks but change nothing. A refusal does not end it: ans->warnings has all refusals after the first. */
	bool check;
	struct str agent, run;
	/* out: imported items; with `check`, items that would be imported */
	int64_t created, updated, skipped, comments;
};

/* Checks a parcel without the queue. Returns NULL or the fault. */
const char *parcel_fault(const struct parcel *p, struct arena *a);
enum result queue_import(struct queue *q, struct import *im, struct answer *ans, struct arena *a);

/* --- all of a queue: every record and the log -------------------------------------------------------- */

struct item {
	bool line;         /* an entry of the log, else a record */
	struct record rec; /* key, hot, body; if it is not a task, also lane and eligible_at */
	struct entry entry;
};

typedef int item_fn(void *ctx, const struct item *it);
/* Calls `fn` for all records, then for the whole log. */
enum result queue_dump(struct queue *q, item_fn *fn, void *ctx, int *stopped, struct answer *ans,
		       struct arena *a);

struct load {
	size_t records, lines; /* numbers of items */
	int64_t made_at;       /* the time of the dump */
	int (*next)(void *ctx, struct item *out, struct arena *a);
	void (*rewind)(void *ctx);
	void *ctx;
	void (*progress)(void *ctx, size_t done);
	void *progress_ctx;
	/* true: the load replaces the current state. Locks end, fences never go back, and the log continues.
	 * false: the load is copied unchanged into an empty queue. */
	bool restore;
	bool force; /* even if tasks are held */
	struct str agent, run;
	/* out: number of items that cannot be used and were omitted; only with `restore` */
	size_t left_out;
	size_t tasks; /* out: number of loaded tasks */
};

enum result queue_load(struct queue *q, struct load *l, struct answer *ans, struct arena *a);
/* SUCCESS if the queue has exactly the items of the load; else MISCONFIGURED with the first difference. */
enum result queue_verify(struct queue *q, struct load *l, struct answer *ans, struct arena *a);
/* Counts the tasks, the other records and the entries of the log. */
enum result queue_extent(struct queue *q, int64_t *tasks, int64_t *others, int64_t *lines,
			 struct answer *ans, struct arena *a);
/* Removes all tasks; their fences and the log stay. */
enum result queue_clear(struct queue *q, bool force, struct str agent, struct str run, int64_t *n,
			struct answer *ans, struct arena *a);

#endif
