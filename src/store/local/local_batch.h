/*
 * batch: group commit in a store. combine.h has the protocol of the slots, and batch is how a store uses it. The holder of
 * the gate runs the changes of waiting processes in its own transaction, and each waiting process gets its result. The
 * store supplies the transaction (struct batch_ops).
 */
#ifndef STORE_LOCAL_LOCAL_BATCH_H
#define STORE_LOCAL_LOCAL_BATCH_H

#include "store/local/combine.h"

struct batch;

/* The parts that depend on the store. All except `open`, `lead`, `again` and `alone` run in the holder's open transaction. */
struct batch_ops {
	/* Opens b->combine: 0 or -errno. */
	int (*open)(struct batch *b);
	/* Sets the time before the holder runs these calls, and may read the records that they want. */
	int (*prepare)(struct store *s, const struct change *calls, size_t n);
	/* The time of the change. */
	int64_t (*now)(struct store *s);
	int (*apply)(struct store *s, const struct edit *e);
	/* Has the whole transaction been rolled back? */
	bool (*lost)(struct store *s);
	/* The number of the last committed batch of this queue and these slots; 0: none. */
	int (*last)(struct store *s, uint64_t *out);
	/* Makes `id` that number when the transaction is committed. */
	int (*note)(struct store *s, uint64_t id);
	/* Makes every visible commit durable, including commits of other processes. */
	int (*make_durable)(struct store *s);

	/* The caller holds the gate: runs all waiting calls and leaves the gate. */
	int (*lead)(struct store *s, int64_t deadline);
	/* Runs the waiting calls and keeps the gate. 1: we must stop, because the gate was replaced or a connection was
	 * lost. */
	int (*again)(struct store *s, int64_t left_ms);
	/* Makes a change that the holder could not make for us. */
	int (*alone)(struct store *s, struct change *c, int64_t deadline);
};

struct batch {
	const struct batch_ops *ops;
	struct store *store;
	struct gate *gate;
	struct combine *combine;
	const int64_t *queue; /* the number of the queue, which the store finds when it is opened */
	const char *place;    /* where the store is, for messages */
	bool elsewhere;       /* the data is not beside the gate: see combine_own() */

	/* calls of other processes in the current change */
	uint64_t id;
	struct combine_call calls[COMBINE_SLOTS];
	size_t n;
	bool wrote;
};

/* Does this process run other processes' calls, and let them run its own? */
bool batch_takes_part(const struct batch *b);
/* The name that processes at the gate see while we hold it. */
struct str batch_who(const struct batch *b);

/* --- in a waiting process ------------------------------------------------------------------------ */

/* Publishes the change for the holder of the gate. false: the change cannot be handed over. */
bool batch_ask(struct batch *b, const struct change *c, int64_t deadline);
/* Waits for the result of the change that was handed over. If we get the gate while we wait, we run all waiting calls. */
int batch_await(struct batch *b, struct change *c, int64_t deadline);

/* --- in the holder of the gate ------------------------------------------------------------------- */

/* Lists the calls that are waiting now, for a store that takes its time, and reads the records that they want, together
 * with its lock. From then on batch_run() runs only calls that were listed before the lock. `out` has room for
 * COMBINE_SLOTS calls. */
size_t batch_check(struct batch *b, struct combine_call *out, struct arena *a);
/* Runs the calls of waiting processes in the open transaction. */
int batch_run(struct batch *b, struct arena *a, bool *worth);
/* After the commit or its failure: answers the waiting processes. */
void batch_end(struct batch *b, int fault);
/* After our own change: serves other processes' calls while several are waiting, for a short time. */
int batch_serve_on(struct batch *b, int64_t deadline);
/* After leaving the gate: wakes a waiting process. false: no process is waiting. */
bool batch_nudge(struct batch *b);

#endif
