/*
 * Chooses an agent's next call. Usually the call makes sense: the agent continues with a task that it
 * holds, asks for work, or moves a task that waits. Sometimes the call is wrong on purpose: it has a
 * stale token, or another agent's name. A choice depends only on the seed and on what the agent remembers.
 */
#include "proof/torture/torture_private.h"

#define FAMILY 4 /* tasks that may be linked with each other */
#define HOT 60   /* number of calls for which one task stays hot */
#define LINKS 2  /* dependencies added by one call */

struct choice {
	enum op op;
	unsigned weight;
};

static const struct choice holders[] = {
	{ OP_HEARTBEAT, 18 }, { OP_DONE, 22 },        { OP_RELEASE, 8 }, { OP_BLOCK, 6 },
	{ OP_ESCALATE, 5 },   { OP_REVIEW, 10 },      { OP_FAIL, 6 },    { OP_CANCEL, 3 },
	{ OP_UPDATE, 6 },     { OP_STATUS, 6 },       { OP_COMMENT, 3 }, { OP_DEPEND, 3 },
	{ OP_UNDEPEND, 3 },   { OP_LOCK_RELEASE, 5 }, { OP_CLAIM, 6 },   { 0 },
};
static const struct choice seekers[] = {
	{ OP_TAKE, 50 },        { OP_CLAIM, 30 },   { OP_LOCK_ACQUIRE, 8 }, { OP_STATUS, 6 },
	{ OP_LOCK_CLEANUP, 2 }, { OP_ID_CLAIM, 1 }, { OP_ARCHIVE, 1 },      { 0 },
};
static const struct choice readers[] = {
	{ OP_SHOW, 60 },
	{ OP_LOCK_STATUS, 20 },
	{ OP_NEXT, 10 },
	{ OP_LIST, 10 },
	{ OP_ID_PEEK, 1 },
	{ OP_LOG, 2 },
	{ OP_OVERVIEW, 1 },
	{ OP_LOCKS, 1 },
	{ OP_TYPED, 1 },
	{ OP_EMERGENCY, 1 },
	{ 0 },
};
static const struct choice anything[] = {
	{ OP_CREATE, 4 },       { OP_APPROVE, 3 },      { OP_REWORK, 3 },     { OP_UNBLOCK, 3 },
	{ OP_RETRY, 3 },        { OP_REOPEN, 3 },       { OP_CANCEL, 2 },     { OP_REMOVE, 2 },
	{ OP_UPDATE, 3 },       { OP_STATUS, 4 },       { OP_COMMENT, 2 },    { OP_DEPEND, 4 },
	{ OP_UNDEPEND, 4 },     { OP_CLAIM, 6 },        { OP_DONE, 3 },       { OP_RELEASE, 2 },
	{ OP_LOCK_ACQUIRE, 3 }, { OP_LOCK_RELEASE, 2 }, { OP_LOCK_BREAK, 1 }, { 0 },
};
/* For each status, the operations that move a task on. */
static const struct choice movers[STATUS_END][6] = {
	[0] = { { OP_CREATE, 1 } },
	[BACKLOG] = { { OP_UPDATE, 4 }, { OP_CLAIM, 1 }, { OP_REMOVE, 1 } },
	[READY] = { { OP_CLAIM, 6 },
		    { OP_LOCK_ACQUIRE, 2 },
		    { OP_UPDATE, 2 },
		    { OP_DEPEND, 1 },
		    { OP_REMOVE, 1 } },
	[IN_PROGRESS] = { { OP_CLAIM, 6 },
			  { OP_UPDATE, 1 },
			  { OP_LOCK_BREAK, 1 },
			  { OP_CANCEL, 1 } },
	[BLOCKED] = { { OP_UNBLOCK, 6 }, { OP_STATUS, 2 }, { OP_UPDATE, 2 } },
	[NEEDS_HELP] = { { OP_UNBLOCK, 6 },
			 { OP_STATUS, 2 },
			 { OP_UNDEPEND, 4 },
			 { OP_UPDATE, 2 } },
	[REVIEW] = { { OP_APPROVE, 4 }, { OP_REWORK, 4 }, { OP_STATUS, 1 } },
	[DONE] = { { OP_REOPEN, 5 }, { OP_REMOVE, 2 }, { OP_ARCHIVE, 2 } },
	[FAILED] = { { OP_RETRY, 5 }, { OP_CLAIM, 2 }, { OP_REMOVE, 1 }, { OP_ARCHIVE, 1 } },
	[CANCELED] = { { OP_REOPEN, 5 }, { OP_REMOVE, 2 }, { OP_ARCHIVE, 2 } },
};

static enum op torture_mix_choose(struct agent *ag, const struct choice *from)
{
	uint32_t sum = 0, at;

	for (const struct choice *c = from; c->weight; c++)
		sum += c->weight;
	at = agent_roll(ag, sum);
	while (at >= from->weight)
		at -= from++->weight;
	return from->op;
}

static bool torture_mix_chance(struct agent *ag, uint32_t percent)
{
	return agent_roll(ag, 100) < percent;
}

/* --- arguments ------------------------------------------------------------------------------------ */

/* A task of the same family; if there are few tasks, it may be the task itself. */
static struct str torture_mix_relative(struct agent *ag, int task)
{
	int other = task / FAMILY * FAMILY + (int)agent_roll(ag, FAMILY);

	return board_id(ag->board, &ag->arena, other < board_tasks(ag->board) ? other : task);
}

static struct strs torture_mix_relatives(struct agent *ag, int task)
{
	struct strs out = { 0 };

	for (uint32_t n = 1 + agent_roll(ag, LINKS); n; n--)
		out = arena_append(&ag->arena, out, torture_mix_relative(ag, task));
	return out;
}

static void give_rank(struct agent *ag, struct request *rq)
{
	if (torture_mix_chance(ag, 50))
		GIVE(rq, priority, agent_roll(ag, 5));
	if (torture_mix_chance(ag, 30))
		GIVE(rq, class_rank, EXPEDITE + agent_roll(ag, 4));
	if (torture_mix_chance(ag, 10))
		GIVE(rq, delay, 50 + agent_roll(ag, 600));
}

static void give_create(struct agent *ag, struct request *rq, int task)
{
	GIVE(rq, title, rq->id.n ? rq->id : STR("made"));
	give_rank(ag, rq);
	if (torture_mix_chance(ag, 25))
		GIVE(rq, parent, torture_mix_relative(ag, task));
	if (torture_mix_chance(ag, 25))
		GIVE(rq, depends, torture_mix_relatives(ag, task));
	if (torture_mix_chance(ag, 10))
		GIVE(rq, status, BACKLOG);
	if (torture_mix_chance(ag, 30))
		GIVE(rq, if_absent, 1);
}

static void give_update(struct agent *ag, struct request *rq, int task)
{
	GIVE(rq, priority, agent_roll(ag, 5));
	if (torture_mix_chance(ag, 50))
		GIVE(rq, status, torture_mix_chance(ag, 70) ? READY : BACKLOG);
	if (torture_mix_chance(ag, 15))
		GIVE(rq, parent,
		     torture_mix_chance(ag, 50) ? STR("") : torture_mix_relative(ag, task));
	if (torture_mix_chance(ag, 15))
		give_rank(ag, rq);
}

static void give_status(struct agent *ag, struct request *rq)
{
	GIVE(rq, status,
	     torture_mix_chance(ag, 40) ? IN_PROGRESS
					: BACKLOG + agent_roll(ag, STATUS_END - BACKLOG));
	GIVE(rq, reason, STR("so"));
	GIVE(rq, unblock_action, STR("wait"));
}

/* Sets the arguments that only this operation has. */
static void give_words(struct agent *ag, struct request *rq, int task)
{
	switch (rq->op) {
	case OP_BLOCK:
		GIVE(rq, unblock_action, STR("wait"));
		/* fall through */
	case OP_ESCALATE:
	case OP_FAIL:
	case OP_CANCEL:
	case OP_REWORK:
	case OP_REOPEN:
	case OP_LOCK_BREAK:
		GIVE(rq, reason, STR("so"));
		break;
	case OP_REVIEW:
		GIVE(rq, summary, STR("made"));
		break;
	case OP_COMMENT:
		GIVE(rq, text, STR("well"));
		break;
	case OP_CREATE:
		give_create(ag, rq, task);
		break;
	case OP_UPDATE:
		give_update(ag, rq, task);
		break;
	case OP_STATUS:
		give_status(ag, rq);
		break;
	case OP_DEPEND:
	case OP_UNDEPEND:
		GIVE(rq, depends, torture_mix_relatives(ag, task));
		break;
	case OP_DONE:
		if (torture_mix_chance(ag, 40))
			GIVE(rq, claim_next, 1);
		break;
	case OP_REMOVE:
		GIVE(rq, reason, STR("removed by torture"));
		if (!rq->explicit && torture_mix_chance(ag, 40))
			GIVE(rq, force, 1);
		break;
	case OP_ARCHIVE:
		if (torture_mix_chance(ag, 30))
			GIVE(rq, older_than, agent_roll(ag, 500));
		break;
	case OP_LIST:
		GIVE(rq, parent, torture_mix_relative(ag, task));
		break;
	case OP_LOG:
		GIVE(rq, limit, 5);
		break;
	default:
		break;
	}
}

/* --- identity and token ---------------------------------------------------------------------------- */

static bool torture_mix_acquires(const struct request *rq)
{
	if (rq->op == OP_DONE)
		return rq->claim_next;
	if (rq->op == OP_STATUS)
		return rq->status == IN_PROGRESS;
	return op_flags(rq->op) & OP_TAKES;
}

static void give_lease(struct agent *ag, struct request *rq)
{
	int64_t least = scratch_policy(ag->plan).lease_min;

	if (torture_mix_acquires(rq)) {
		GIVE(rq, new_token, token_make(&ag->arena));
		GIVE(rq, ttl, least + agent_roll(ag, torture_mix_chance(ag, 80) ? 400 : 1800));
	} else if (rq->op == OP_HEARTBEAT && torture_mix_chance(ag, 80)) {
		GIVE(rq, ttl, least + agent_roll(ag, 800));
	}
}

/* Any lock that the agent has had, on any task. */
static const struct hold *old_hold(struct agent *ag)
{
	struct mind *m = ag->mind;

	return m->n_holds ? &m->holds[agent_roll(ag, m->n_holds < HOLDS ? m->n_holds : HOLDS)]
			  : NULL;
}

static void give_token(struct agent *ag, struct request *rq, const struct hold *h)
{
	if (!h && torture_mix_chance(ag, 10))
		h = old_hold(ag);
	if (!h || !(op_flags(rq->op) & (OP_HELD | OP_TAKES)) || rq->op == OP_TAKE)
		return;
	GIVE(rq, token, arena_str(&ag->arena, str_c(h->token)));
	if (!rq->force && torture_mix_chance(ag, 50))
		GIVE(rq, explicit, 1);
}

static void give_identity(struct agent *ag, struct request *rq)
{
	uint32_t other = agent_roll(ag, (uint32_t)ag->board->agents);

	if (torture_mix_chance(ag, 3))
		GIVE(rq, agent, arena_printf(&ag->arena, "a%u", other));
	if (!(op_flags(rq->op) & OP_READS) && !(torture_mix_acquires(rq) && rq->op != OP_DONE) &&
	    (torture_mix_chance(ag, 25) || scratch_may_double(ag->plan, rq->op)))
		GIVE(rq, request_id, token_make(&ag->arena));
}

/* --- choosing -------------------------------------------------------------------------------------- */

static struct request torture_mix_compose(struct agent *ag, enum op op, int task,
					  const struct hold *h)
{
	bool makes = op == OP_CREATE && ag->board->made < MADE / 2 && torture_mix_chance(ag, 20);
	bool about_task = op_flags(op) & OP_TASK || (op == OP_CREATE && !makes) || op == OP_LOG ||
			  (op == OP_ARCHIVE && torture_mix_chance(ag, 75));
	struct request rq = agent_request(ag, op, about_task ? task : -1);

	give_words(ag, &rq, task);
	give_lease(ag, &rq);
	give_token(ag, &rq, h);
	if (op == OP_CLAIM && h)
		GIVE(&rq, fence, h->fence);
	give_identity(ag, &rq);
	return rq;
}

/* Half of the time, returns the hot task, on which all agents work; it changes every HOT calls. */
static int some_task(struct agent *ag)
{
	uint64_t turn = (uint64_t)ag->board->calls / HOT + ag->plan->seed;
	uint32_t tasks = (uint32_t)board_tasks(ag->board);

	return (int)(torture_mix_chance(ag, 50) ? seeded_below(&turn, tasks)
						: agent_roll(ag, tasks));
}

/* --- locks of the whole queue ---------------------------------------------------------------------- */

static const struct choice closers[] = {
	{ OP_LOCK_ACQUIRE, 5 },
	{ OP_EMERGENCY_ON, 1 },
	{ 0 },
};
static const struct choice guardians[] = {
	{ OP_LOCK_RELEASE, 8 },
	{ OP_HEARTBEAT, 2 },
	{ OP_LOCK_BREAK, 1 },
	{ 0 },
};
static const struct choice openers[] = {
	{ OP_EMERGENCY_OFF, 4 },
	{ OP_LOCK_BREAK, 1 },
	{ 0 },
};

static struct str some_guard(struct agent *ag)
{
	static const char *const all[] = { "@write", "@batch", "@config", "@maintenance" };

	if (ag->mind->closed[0])
		return arena_str(&ag->arena, str_c(ag->mind->closed));
	return str_c(all[agent_roll(ag, 4)]);
}

/* Closes the queue rarely and briefly, because nothing else happens while it is closed. */
static bool choose_whole(struct agent *ag, struct request *rq)
{
	bool closed = ag->mind->closed[0];
	const struct choice *from = closed ? guardians : ag->mind->kept_out ? openers : closers;

	if (agent_roll(ag, 1000) >= (closed ? 700u : ag->mind->kept_out ? 200u : 6u))
		return false;
	*rq = agent_request(ag, torture_mix_choose(ag, from), -1);
	if (op_flags(rq->op) & OP_TASK)
		GIVE(rq, id, some_guard(ag));
	if (op_flags(rq->op) & OP_HELD)
		GIVE(rq, token, arena_str(&ag->arena, str_c(ag->mind->closed_token)));
	if (rq->op == OP_LOCK_BREAK || rq->op == OP_EMERGENCY_ON)
		GIVE(rq, reason, STR("so"));
	if (rq->op == OP_LOCK_ACQUIRE) {
		GIVE(rq, new_token, token_make(&ag->arena));
		GIVE(rq, ttl, scratch_policy(ag->plan).lease_min + agent_roll(ag, 200));
	}
	give_identity(ag, rq);
	return true;
}

void mix_choose(struct agent *ag, struct request *rq)
{
	int task = some_task(ag);
	const struct hold *h = torture_mix_chance(ag, 85) ? agent_hold(ag) : old_hold(ag);
	uint32_t roll = agent_roll(ag, 100);

	if (choose_whole(ag, rq))
		return;
	if (h && roll < 50)
		*rq = torture_mix_compose(ag, torture_mix_choose(ag, holders), h->task, h);
	else if (roll < 66)
		*rq = torture_mix_compose(ag, torture_mix_choose(ag, seekers), task, NULL);
	else if (roll < 90)
		*rq = torture_mix_compose(
			ag, torture_mix_choose(ag, movers[ag->board->spots[task].status]), task,
			NULL);
	else if (roll < 95)
		*rq = torture_mix_compose(ag, torture_mix_choose(ag, anything), task, NULL);
	else
		*rq = torture_mix_compose(ag, torture_mix_choose(ag, readers), task, NULL);
}
