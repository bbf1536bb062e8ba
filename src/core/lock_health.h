/*
 * health: lock-use counters, and the score that pawl computes from them. Times are in microseconds.
 * A wait lasts from the start of a call until its turn at the store, a hold from its turn until its
 * end. Only changes are counted, because reads never wait.
 */
#ifndef CORE_LOCK_HEALTH_H
#define CORE_LOCK_HEALTH_H

#include "core/request.h"

/* Waits by length: two ranges for each doubling, up to more than four minutes. */
#define HEALTH_RANGES 56

int health_range(int64_t us);
/* The longest wait in that range. */
int64_t health_range_end(int range);
/* The wait that `percent` of the waits do not exceed, rounded up to the end of its range; 0: no
 * waits. */
int64_t health_percentile(const uint32_t *ranges, int percent);

struct health_op {
	int64_t done, failed;         /* done: the call had its turn; its answer may be a refusal */
	int64_t wait_us, wait_max_us; /* sum and maximum */
	int64_t held, hold_us, hold_max_us; /* held: number of holds by the caller's own process */
	uint32_t waits[HEALTH_RANGES];
};

/* Changes to many tasks in one commit. They share an array with enum op; HEALTH_OPS is its size. */
enum health_kind {
	HEALTH_BATCH = 56,
	HEALTH_IMPORT = 57,
	HEALTH_CLEAR = 58,
	HEALTH_RESTORE = 59,
	HEALTH_END
};
#define HEALTH_OPS 64

/* "LOCK_ACQUIRE", "batch"; "": the number is not in use. */
const char *health_name(int op);

/* An acquisition that was refused because another agent held the lock. */
struct health_refusal {
	int64_t at; /* wall ms; 0: there was none */
	int64_t op;
	char task[ID_MAX + 8], holder[NAME_MAX_BYTES + 8]; /* the held task and its holder */
	char agent[NAME_MAX_BYTES + 8];                    /* the refused agent */
};

struct health {
	struct health_op op[HEALTH_OPS], all;
	int64_t refused;
	struct health_refusal last_refused;
	int64_t last_failed[16]; /* wall ms of the latest failures, unordered; 0: none */
	int64_t commits, changes, handed;
};

/* The input of the score. */
struct health_facts {
	int64_t stale;           /* stale locks that have not been cleaned up yet */
	int64_t recent_failures; /* in the last HEALTH_RECENT_MS */
	int64_t load_percent;    /* 100: one runnable process for each processor */
	int64_t done, failed;
};

#define HEALTH_RECENT_MS (10 * 60 * INT64_C(1000))
#define HEALTH_FAILURES 3      /* more recent failures lower the score */
#define HEALTH_LOAD 200        /* percent; a higher load lowers the score */
#define HEALTH_DEGRADED 60     /* below this score: clean up */
#define HEALTH_CRITICAL 30     /* below this score: consider an emergency */
#define HEALTH_FAILED_WARN 500 /* in 1/100 percent of all changes */

/* From 10 to 100; 100: healthy. */
int health_score(const struct health_facts *f);
/* The number of failures in the last HEALTH_RECENT_MS. */
int64_t health_recent(const struct health *h, int64_t now);
/* The failed changes, in 1/100 percent of all changes. */
int64_t health_failed_share(const struct health_facts *f);

#endif
