/*
 * agent: one process of a run. It opens the queue itself, keeps its knowledge in its mind on the
 * board, and writes every call and answer to its part of the history.
 */
#ifndef PROOF_TORTURE_AGENT_H
#define PROOF_TORTURE_AGENT_H

#include "base/backoff.h"
#include "queue/queue.h"
#include "proof/torture/board.h"

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

/* --- mix.c: chooses the next call of the mix ------------------------------------------------------ */

void mix_choose(struct agent *ag, struct request *rq);

/* --- race.c: the other kinds of run --------------------------------------------------------------- */

void race_drain(struct agent *ag);
void race_claims(struct agent *ag);

#endif
