/*
 * board: memory that the driver and all agents share. An agent keeps its knowledge here, so that
 * the process that replaces a killed one continues with it, including the call that got no answer.
 */
#ifndef PROOF_TORTURE_BOARD_H
#define PROOF_TORTURE_BOARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/secret.h"
#include "proof/torture/torture.h"

#define HOLDS 8       /* locks that an agent remembers, including stale ones */
#define CALL_MAX 1024 /* bytes of a packed call */
#define GRANTS 64     /* latest grants of a task that are remembered */
#define MADE 64       /* how many tasks with ids created by the queue are tracked */
#define GUARD_LEN 16
/* A store has failed for good if it failed FAILS changes over the plan's outage_ms and granted no lock
 * meanwhile. */
#define FAILS 20

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
	/* a lock of the whole queue that the agent holds; "": none */
	char closed[GUARD_LEN], closed_token[TOKEN_LEN + 1];
	/* its last call was refused because others closed the queue */
	bool kept_out;
	/* when its last live lease expires (boot time); 0: it holds nothing */
	_Atomic int64_t until;
	_Atomic bool pending; /* the latest call has no answer yet */
	uint32_t call_size;
	char call[CALL_MAX]; /* the latest call that changes something */
	_Atomic int64_t skew;
	_Atomic int stops;
	struct counts counts;
	char trouble[300]; /* why the agent's process gave up */
	char failure[300]; /* message of the store's latest failure */
};

/* A task as the agent that looked last saw it. */
struct spot {
	_Atomic int status; /* 0: the task does not exist */
	/* the fence of a grant in the upper half, a hash of its token in the lower half */
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
	_Atomic int made; /* the highest id created by the queue that an agent saw, up to MADE */
	_Atomic bool stop;
	_Atomic int64_t calls, seen;
	_Atomic int failed;            /* failed changes since the last grant or completion */
	_Atomic int64_t failing_since; /* boot time */
	int64_t outage_ms;             /* longest failure of the store that the run bears */
	struct meeting start, end;     /* the meetings before and after a round */
	struct mind *minds;
	struct spot *spots;
	_Atomic int *winners; /* by round: number of winners */
};

/* NULL: no memory. */
struct board *board_make(const struct torture_plan *plan);
void board_free(struct board *b);
/* Waits until all agents are there. */
void board_meet(struct board *b, struct meeting *m);
/* Records a grant, and notices two grants with the same fence. */
void board_granted(struct board *b, int task, int64_t fence, struct str token);
/* Adds up the agents' counts. */
void board_count(const struct board *b, struct torture_figures *f);

/* Records that an agent saw this task. */
void board_saw(struct board *b, struct str id);
/* The number of tasks that may exist; those with ids created by the queue come last. */
int board_tasks(const struct board *b);
/* k0, k1, ..., followed by t1, t2, ...; -1: not a task of this run. */
int board_task(const struct board *b, struct str id);
struct str board_id(const struct board *b, struct arena *a, int task);

#endif
