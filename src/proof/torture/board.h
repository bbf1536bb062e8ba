/*
 * board: memory that the driver and all agents share. What an agent knows lies here, so that the process
 * that takes the place of a killed one goes on with it, the call without an answer included.
 */
#ifndef TORTURE_BOARD_H
#define TORTURE_BOARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/secret.h"
#include "proof/torture/torture.h"

#define HOLDS 8       /* locks that an agent remembers, the stale ones among them */
#define CALL_MAX 1024 /* bytes of a packed call */
#define GRANTS 64     /* of a task, the latest ones */
#define MADE 64       /* tasks whose ids the queue makes, as far as anybody cares for them */
#define GUARD_LEN 16
/* A store that failed so many changes, over so long, and gave no lock meanwhile, fails for good. */
#define FAILS 20
#define FAILS_MS 3000

struct hold {
	int task;
	bool over; /* as far as the agent knows */
	char token[TOKEN_LEN + 1];
	int64_t fence, until; /* boot time */
};

struct counts {
	_Atomic int64_t calls, accepted, claims, lost, repeats, longest_us;
	_Atomic int64_t codes[TORTURE_CODES];
};

struct mind {
	uint64_t random;
	struct hold holds[HOLDS]; /* a ring; the next one goes to n_holds % HOLDS */
	unsigned n_holds;
	char closed[GUARD_LEN],
		closed_token[TOKEN_LEN + 1]; /* a lock of the whole queue; "": none */
	bool kept_out;                       /* its last call was, by others */
	_Atomic int64_t until; /* its last live lease ends then; 0: it holds nothing */
	_Atomic bool pending;  /* the latest call has no answer yet */
	uint32_t call_size;
	char call[CALL_MAX]; /* the latest one that changes something */
	_Atomic int64_t skew;
	_Atomic int stops;
	struct counts counts;
	char trouble[300]; /* why its process gave up */
	char failure[300]; /* what the store said when it failed last */
};

/* What is known of a task, by whoever looked last. */
struct spot {
	_Atomic int status; /* 0: not there */
	/* The fence of a grant in the upper half, of its token in the lower one. */
	_Atomic uint64_t grants[GRANTS];
};

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t all;
	int here, turn;
};

struct board {
	size_t size;
	int agents, tasks;
	_Atomic int made; /* the highest id that the queue made, as far as seen, up to MADE */
	_Atomic bool stop;
	_Atomic int64_t calls, seen;
	_Atomic int failed;            /* changes, since a lock was given or a task done */
	_Atomic int64_t failing_since; /* boot time */
	struct meeting start, end;     /* of a round */
	struct mind *minds;
	struct spot *spots;
	_Atomic int *winners; /* by round */
};

/* NULL: no memory. */
struct board *board_make(const struct torture_plan *plan);
void board_free(struct board *b);
/* Until all agents are there. */
void board_meet(struct board *b, struct meeting *m);
/* Two grants of one fence are seen at once. */
void board_granted(struct board *b, int task, int64_t fence, struct str token);
/* Adds up what the agents have counted. */
void board_count(const struct board *b, struct torture_figures *f);

/* Somebody has seen this task. */
void board_saw(struct board *b, struct str id);
/* How many there may be, those with made ids last. */
int board_tasks(const struct board *b);
/* k0, k1, ..., and behind them t1, t2, ...: -1 if it is none of ours. */
int board_task(const struct board *b, struct str id);
struct str board_id(const struct board *b, struct arena *a, int task);

#endif
