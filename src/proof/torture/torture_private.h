/*
 * board: memory that the driver and all agents share. An agent keeps its knowledge here, so that
 * the process that replaces a killed one continues with it, including the call that got no answer.
 */
#ifndef PROOF_TORTURE_TORTURE_PRIVATE_H
#define PROOF_TORTURE_TORTURE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/backoff.h"
#include "base/secret.h"
#include "proof/history/history.h"
#include "proof/torture/torture.h"
#include "queue/queue.h"

#define HOLDS 8       /* locks that an agent remembers, including stale ones */
#define CALL_MAX 1024 /* bytes of a packed call */
#define GRANTS 64     /* latest grants of a task that are remembered */
#define MADE 64       /* how many tasks with ids created by the queue are tracked */
#define GUARD_LEN 16
/* A store has failed permanently if FAILS changes in a row failed, over at least the plan's outage_ms, and it granted no lock
 * in that time. */
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
	/* the queue refused the agent's last call because others closed the queue */
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

/* A task as the last agent to read it saw it. */
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
	int64_t outage_ms;             /* the run gives up if the store fails for longer */
	struct meeting start, end;     /* the meetings before and after a round */
	struct mind *minds;
	struct spot *spots;
	_Atomic int *winners; /* by round: number of winners */
};

/* Makes the board. NULL: there is no memory. */
struct board *board_make(const struct torture_plan *plan);
void board_free(struct board *b);
/* Waits until all agents have arrived. */
void board_meet(struct board *b, struct meeting *m);
/* Records a grant, and notices two grants with the same fence. */
void board_granted(struct board *b, int task, int64_t fence, struct str token);
/* Adds up the agents' counts in *f. */
void board_count(const struct board *b, struct torture_figures *f);

/* Records that an agent saw this task. */
void board_saw(struct board *b, struct str id);
/* The number of tasks that may exist; those with ids created by the queue come last. */
int board_tasks(const struct board *b);
/* k0, k1, ..., followed by t1, t2, ...; -1: not a task of this run. */
int board_task(const struct board *b, struct str id);
struct str board_id(const struct board *b, struct arena *a, int task);

/* --- scratch ---------------------------------------------------------------------------------- */

/*
 * scratch: a torture's queue. It is created before the agents start and removed after they
 * end. The driver has no handle of it open while it forks.
 */

#define SCRATCH_LEASE_MIN 200
#define SCRATCH_KEEPER_TTL 60000 /* a run renews this lock; if it has expired, no run is active */

struct policy scratch_policy(const struct torture_plan *plan);
struct queue_config scratch_config(const struct torture_plan *plan, struct str queue);
/* Creates the queue with its tasks, and records all calls in `h`. Sets plan->served. clock_token: the token of the lock
 * that holds the store's clock. made: there is a queue to remove, even if the result is not
 * SUCCESS. */
enum result scratch_make(struct torture_plan *plan, struct str queue, struct str clock_token,
			 struct history *h, bool *made, struct answer *ans, struct arena *a);
/* May a call without a request id take effect twice if its answer is lost on the way from a server? The history has one
 * call then, so the checker could not explain both. */
bool scratch_may_double(const struct torture_plan *plan, enum op op);
/* Writes the answer of a call to the history. */
void scratch_record(struct history *h, uint64_t call, struct answer *ans);
/* Renews the lock that holds the store's clock for SCRATCH_KEEPER_TTL; false: it could not be done quickly. */
bool scratch_renew(const struct torture_plan *plan, struct str queue, struct str clock_token,
		   struct history *h);
/* Has the run that made the queue ended? */
bool scratch_idle(const struct torture_plan *plan, struct str queue, struct arena *a);
/* Reads every task at the end, the event log's counts, and the store's own check. */
enum result scratch_read(const struct torture_plan *plan, const struct board *b,
			 struct torture_report *report, struct history *h, struct answer *ans,
			 struct arena *a);
enum result scratch_remove(const struct torture_plan *plan, struct str queue, struct answer *ans,
			   struct arena *a);

/* --- agent ------------------------------------------------------------------------------------ */

/*
 * agent: one process of a run. It opens the queue itself, keeps its knowledge in `mind` on the
 * board, and writes every call and answer to its part of the history.
 */

struct agent {
	const struct torture_plan *plan;
	struct board *board;
	struct mind *mind;
	int me;
	struct str name;
	struct queue *queue;
	struct history *history;
	struct arena arena; /* for one call */
};

/* Runs an agent's process from start to end; returns its exit code. `part` is a new file. */
int agent_live(const struct torture_plan *plan, struct board *board, struct str queue, int me,
	       int life, const char *part);

static inline uint32_t agent_roll(struct agent *ag, uint32_t limit)
{
	return seeded_below(&ag->mind->random, limit);
}

/* Sends the request until the outcome is known, records each attempt, and learns from the answer. */
void agent_insist(struct agent *ag, const struct request *rq, struct answer *ans);
/* A request of this agent about a task; task < 0: about no task. */
struct request agent_request(struct agent *ag, enum op op, int task);
/* The latest call that changes something; false: there was none. */
bool agent_recall(struct agent *ag, struct request *rq);
/* The lock that the agent took last; NULL: it knows of no live lock. */
struct hold *agent_hold(struct agent *ag);

/* --- torture_mix.c: chooses the next call of the mix ------------------------------------------------------ */

void mix_choose(struct agent *ag, struct request *rq);

/* --- torture_run.c: the other kinds of run --------------------------------------------------------------- */

void race_drain(struct agent *ag);
void race_claims(struct agent *ag);

/* --- crew ------------------------------------------------------------------------------------- */

/*
 * crew: the processes of a torture or a load test. The driver starts them and waits for them. Only
 * the driver receives the terminal's signals, so it can let the others finish.
 */

#define CREW_PROGRESS_MS 200 /* between two reports */

/* Starts a process that runs `live` and exits with its result; it dies with the driver. Returns its
 * pid, or -errno. */
pid_t crew_start(int (*live)(void *ctx, int who), void *ctx, int who);
/* Has it ended by itself? Then sets *pid to 0. */
bool crew_ended(pid_t *pid, int *status);
/* Until crew_release(), a signal that would end the driver only sets crew_interrupted(). */
void crew_catch(void);
void crew_release(void);
bool crew_interrupted(void);
/* Sleeps until the driver's next check. */
void crew_pause(void);

/* --- driver ----------------------------------------------------------------------------------- */

/*
 * driver: runs the agents' processes and disturbs them.
 */

struct body {
	pid_t pid;            /* 0: the process has ended */
	int life;             /* number of earlier processes of this agent */
	const char *part;     /* its part of the history */
	int64_t continues_at; /* 0: not stopped */
};

struct driver {
	struct torture_plan own; /* the caller's plan, and the policy of a server */
	const struct torture_plan *plan;
	struct board *board;
	struct str queue;
	struct str clock_token; /* token of the lock that holds the store's clock */
	int64_t renew_at;
	bool made; /* the queue exists and must be removed */
	struct history *history;
	const char *folder; /* the folder of the parts */
	struct strs parts;
	struct body *bodies;
	uint64_t random;
	int64_t began;
	struct torture_figures figures;
	struct str trouble; /* why the run had to stop; empty: it did not */
	bool store_failed;  /* the trouble is that the store failed */
	bool interrupted;
	struct arena *arena;
};

/* Runs the agents to their end. */
void driver_run(struct driver *d);
/* The path of a new part. */
const char *driver_part(struct driver *d, const char *name);

#endif
