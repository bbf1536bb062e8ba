/*
 * health: how the locks are doing, as numbers: what was counted, and what to make of it. Times are in
 * microseconds. A wait is from a call to its turn at the store, a hold from there to its end; both are of changes,
 * reading waits for nobody.
 */
#ifndef CORE_HEALTH_H
#define CORE_HEALTH_H

#include "core/request.h"

/* Waits by length: two ranges for each doubling, up to more than four minutes. */
#define HEALTH_RANGES 56

int health_range(int64_t us);
/* The longest wait of that range. */
int64_t health_range_end(int range);
/* The length that `percent` of them do not exceed, as well as the ranges can tell; 0: there are none. */
int64_t health_percentile(const uint32_t *ranges, int percent);

struct health_op {
	int64_t done, failed;               /* done: it had its turn, whatever the answer was */
	int64_t wait_us, wait_max_us;       /* sum, and the longest */
	int64_t held, hold_us, hold_max_us; /* held: how often by its own process */
	uint32_t waits[HEALTH_RANGES];
};

/* Changes of many tasks in one commit, counted beside the operations of one: HEALTH_OPS is the number of both. */
enum health_kind {
	HEALTH_BATCH = 56,
	HEALTH_IMPORT = 57,
	HEALTH_CLEAR = 58,
	HEALTH_RESTORE = 59,
	HEALTH_END
};
#define HEALTH_OPS 64

/* "LOCK_ACQUIRE", "batch"; "": nothing has this number. */
const char *health_name(int op);

/* An acquisition that somebody else's lock kept from succeeding. */
struct health_refusal {
	int64_t at; /* wall ms; 0: there was none */
	int64_t op;
	char task[ID_MAX + 8], holder[NAME_MAX_BYTES + 8]; /* the lock in the way */
	char agent[NAME_MAX_BYTES + 8];                    /* who was refused */
};

struct health {
	struct health_op op[HEALTH_OPS], all;
	int64_t refused;
	struct health_refusal last_refused;
	int64_t last_failed[16]; /* wall ms of the latest failures, in no order; 0: none */
	int64_t commits, changes, handed;
};

/* What the score is made of. */
struct health_facts {
	int64_t stale; /* locks that nobody can need any more, and that were not cleaned up */
	int64_t recent_failures; /* in the last HEALTH_RECENT_MS */
	int64_t load_percent;    /* of one processor's worth of work, for each processor */
	int64_t done, failed;
};

#define HEALTH_RECENT_MS (10 * 60 * INT64_C(1000))
#define HEALTH_FAILURES 3      /* more than these count */
#define HEALTH_LOAD 200        /* percent: more than this counts */
#define HEALTH_DEGRADED 60     /* below: clean up */
#define HEALTH_CRITICAL 30     /* below: think of an emergency */
#define HEALTH_FAILED_WARN 500 /* 1/100 percent of all changes */

/* Out of 100. */
int health_score(const struct health_facts *f);
/* How many of those are not older than HEALTH_RECENT_MS. */
int64_t health_recent(const struct health *h, int64_t now);
/* In 1/100 percent. */
int64_t health_failed_share(const struct health_facts *f);

#endif
