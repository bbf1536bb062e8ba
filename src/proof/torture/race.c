/* Two plain races: the drain (every task is completed once) and the claims (one winner). */
#include <time.h>

#include "proof/torture/agent.h"
#include "proof/torture/scratch.h"

#define LONG_LEASE 60000
#define SHORT_LEASE 500

/* --- drain ---------------------------------------------------------------------------------------- */

/* If agents get killed, leases must be short enough for others to take over. */
static int64_t torture_race_lease(const struct torture_plan *p)
{
	int64_t least = scratch_policy(p).lease_min;

	if (!p->kills && !p->stops)
		return LONG_LEASE;
	return least > SHORT_LEASE ? least : SHORT_LEASE;
}

static void torture_race_rest(int64_t ms)
{
	struct timespec t = { 0, (ms < 20 ? ms : 20) * 1000000 };

	nanosleep(&t, NULL);
}

/* false: no task is left, and none will become eligible */
static bool torture_race_take(struct agent *ag)
{
	struct request rq = agent_request(ag, OP_TAKE, -1);
	struct answer ans;

	GIVE(&rq, new_token, token_make(&ag->arena));
	GIVE(&rq, ttl, torture_race_lease(ag->plan));
	agent_insist(ag, &rq, &ans);
	if (ans.code == NO_TASKS && ans.wait_ms)
		torture_race_rest(ans.wait_ms);
	return ans.code == SUCCESS || ans.wait_ms;
}

/* Every second agent claims its next task in the same call. */
static void torture_race_finish(struct agent *ag, struct hold *h)
{
	struct request rq = agent_request(ag, OP_DONE, h->task);
	struct answer ans;

	GIVE(&rq, token, arena_str(&ag->arena, str_c(h->token)));
	if (ag->me % 2) {
		GIVE(&rq, claim_next, 1);
		GIVE(&rq, new_token, token_make(&ag->arena));
		GIVE(&rq, ttl, torture_race_lease(ag->plan));
	}
	agent_insist(ag, &rq, &ans);
	h->over = true;
}

/* Repeats the call of the agent's killed predecessor that got no answer. */
static void take_over(struct agent *ag)
{
	struct request rq;
	struct answer ans;

	if (ag->mind->pending && agent_recall(ag, &rq))
		agent_insist(ag, &rq, &ans);
	arena_free(&ag->arena);
}

void race_drain(struct agent *ag)
{
	bool more = true;

	take_over(ag);

	while (more && !ag->board->stop) {
		struct hold *h = agent_hold(ag);

		if (h)
			torture_race_finish(ag, h);
		else
			more = torture_race_take(ag);
		arena_free(&ag->arena);
	}
}

/* --- claims --------------------------------------------------------------------------------------- */

/* Only the winner can release the lock, and it does so only after all others have lost. */
static void torture_race_play(struct agent *ag, int round)
{
	struct request rq = agent_request(ag, OP_CLAIM, 0);
	struct answer ans;
	bool won;

	GIVE(&rq, new_token, token_make(&ag->arena));
	GIVE(&rq, ttl, LONG_LEASE);
	agent_insist(ag, &rq, &ans);
	won = ans.code == SUCCESS;
	ag->board->winners[round] += won;
	board_meet(ag->board, &ag->board->end);
	if (!won)
		return;
	rq = agent_request(ag, OP_RELEASE, 0);
	GIVE(&rq, token, ans.lock->token);
	agent_insist(ag, &rq, &ans);
}

void race_claims(struct agent *ag)
{
	for (int64_t round = 0; round < ag->plan->rounds; round++) {
		board_meet(ag->board, &ag->board->start);
		torture_race_play(ag, (int)round);
		arena_free(&ag->arena);
	}
}
