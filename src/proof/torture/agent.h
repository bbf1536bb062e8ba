/*
 * agent: one process of a run. It opens the queue itself, keeps what it knows in its mind on the board, and
 * writes every call and answer to its part of the history.
 */
#ifndef TORTURE_AGENT_H
#define TORTURE_AGENT_H

#include "base/seeded.h"
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
	struct arena arena; /* of the call */
};

/* The whole life of an agent's process: its exit code. `part` is a new file. */
int agent_live(const struct torture_plan *plan, struct board *board, struct str queue, int me,
	       int life, const char *part);

static inline uint32_t agent_roll(struct agent *ag, uint32_t limit)
{
	return seeded_below(&ag->mind->random, limit);
}

/* Sends it, records it, and learns from the answer. */
void agent_send(struct agent *ag, const struct request *rq, struct answer *ans);
/* The same, again and again while nobody can tell whether it was done. */
void agent_insist(struct agent *ag, const struct request *rq, struct answer *ans);
/* A request by this agent about a task; task < 0: about none. */
struct request agent_request(struct agent *ag, enum op op, int task);
/* The latest call that changes something: false if there was none. */
bool agent_recall(struct agent *ag, struct request *rq);
/* The lock that it took last; NULL: it believes in none. */
struct hold *agent_hold(struct agent *ag);

/* --- mix.c: the next call of the mix -------------------------------------------------------------- */

void mix_choose(struct agent *ag, struct request *rq);

/* --- race.c: the other ways ----------------------------------------------------------------------- */

void race_drain(struct agent *ag);
void race_claims(struct agent *ag);

#endif
