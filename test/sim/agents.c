/*
 * The agents and their scheduler. An agent is little more than the lock it believes to hold; it
 * learns from the answers that reach it. Calls may be delayed while others continue, arrive twice, or
 * lose their answer. Agents repeat calls, forget them, or crash and lose all knowledge.
 *
 * In a recorded run answers may be delayed as well, so that a call takes effect at any moment
 * between sending and answer. The simulation writes the record as it goes: a call is in it from its
 * sending, and its answer from the moment when it reaches the agent.
 */
#include <stdlib.h>

#include "base/backoff.h"
#include "sim.h"

#define AGENTS_MAX 2000
#define ON_THE_WAY 12
#define OLD_TOKENS 64
#define MADE_MAX 14 /* how many ids the queue creates in a run */
#define BUSY 6

struct agent {
	struct str name, run;
	struct str task, token; /* the lock that the agent believes to hold; empty: none */
	int64_t fence;
	bool manual;
	struct str guard, pass; /* a lock of the whole queue and its token */
	const struct request *unanswered;
};

/* A request on its way to the queue, or its answer on the way back. */
struct letter {
	const struct request *rq;
	uint32_t agent;
	const char *note;
	uint64_t call; /* its number in the record */
	bool answered;
	struct answer ans;
	struct arena memory; /* of the answer */
};

struct crowd {
	struct sim sim;
	const struct sim_plan *plan;
	struct script *script;
	uint64_t random;
	struct agent *agents;
	uint32_t n_agents, n_ids;
	uint32_t busy[BUSY]; /* agents that took something recently */
	struct letter way[ON_THE_WAY];
	size_t n_way;
	struct str old[OLD_TOKENS]; /* tokens that were valid once */
	size_t n_old;
	struct str last_request;
	unsigned tokens, requests, made;
	unsigned chaos; /* percentage of calls for which something goes wrong on the way */
	unsigned loss;  /* percentage of answers that are lost */
	unsigned dying; /* percentage of calls whose agent dies */
	bool guards;    /* this run uses locks of the whole queue */
};

/* --- chance -------------------------------------------------------------------------------------- */

static uint32_t pick(struct crowd *c, uint32_t limit)
{
	return seeded_below(&c->random, limit);
}

static bool chance(struct crowd *c, uint32_t of_100)
{
	return pick(c, 100) < of_100;
}

struct weight {
	enum op op;
	uint32_t weight;
};

static enum op pick_op(struct crowd *c, const struct weight *w, size_t n)
{
	uint32_t sum = 0, at;

	for (size_t i = 0; i < n; i++)
		sum += w[i].weight;
	at = pick(c, sum);
	for (; at >= w->weight; w++)
		at -= w->weight;
	return w->op;
}

/* --- names and texts ----------------------------------------------------------------------------- */

static struct arena *memory(struct crowd *c)
{
	return &c->script->arena;
}

/* Ids in two spellings: both mean the same task. */
static struct str any_id(struct crowd *c)
{
	uint32_t i = pick(c, c->n_ids + (c->made ? 3 : 0));

	if (i >= c->n_ids)
		return arena_printf(memory(c), "t%u", 1 + pick(c, c->made));
	return arena_printf(memory(c), "%c%u", chance(c, 95) ? 'w' : 'W', i);
}

/* The id of a task in one of these statuses; any task if there is none. */
static struct str id_in(struct crowd *c, unsigned statuses)
{
	const struct model *m = c->sim.m;
	uint32_t n = model_count(c->sim.w, MODEL_TASK), from = n ? pick(c, n) : 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = 1 + (from + k) % n;

		if (model_task(m, i)->status && statuses & STATUS_BIT(model_task(m, i)->status))
			return arena_str(memory(c), model_text(c->sim.w, MODEL_TASK, i));
	}
	return any_id(c);
}

static struct str some_id(struct crowd *c)
{
	return chance(c, 70) ? id_in(c, STATUS_ALL) : any_id(c);
}

static struct str new_token(struct crowd *c)
{
	return arena_printf(memory(c), "k%u", ++c->tokens);
}

static int64_t some_ttl(struct crowd *c)
{
	static const int64_t ttls[] = { 1000, 1000, 2000, 5000, 60000, 900000 };

	return ttls[pick(c, 6)];
}

static struct str label(struct crowd *c)
{
	return chance(c, 50) ? STR("red") : STR("blue");
}

static struct strs list_of(struct crowd *c, struct str a, struct str b)
{
	struct strs list = arena_append(memory(c), (struct strs){ 0 }, a);

	return b.n ? arena_append(memory(c), list, b) : list;
}

#define ANY UINT32_MAX /* not restricted to an existing task */
#define OPEN (STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(CANCELED)))

/* A task that `of` depends on, or might depend on. */
static struct str some_dependency(struct crowd *c, struct str of)
{
	uint32_t task = model_find(c->sim.w, MODEL_TASK, of);
	uint32_t on = task ? model_task(c->sim.m, task)->depends[pick(c, 2)] : 0;

	return on ? arena_str(memory(c), model_text(c->sim.w, MODEL_TASK, on)) : some_id(c);
}

/* --- requests ------------------------------------------------------------------------------------ */

static struct str some_agent(struct crowd *c)
{
	return c->agents[pick(c, c->n_agents < 3 ? c->n_agents : 3)].name;
}

static void give_fields(struct crowd *c, struct request *rq)
{
	if (chance(c, 20))
		GIVE(rq, class_rank, 1 + pick(c, 4));
	if (chance(c, 30))
		GIVE(rq, priority, pick(c, 4));
	if (chance(c, 12))
		GIVE(rq, delay, chance(c, 30) ? 0 : some_ttl(c));
	if (chance(c, 15))
		GIVE(rq, due, pick(c, 3) * INT64_C(86400000));
	if (chance(c, 5))
		GIVE(rq, not_before, c->sim.now + some_ttl(c));
	if (chance(c, 10))
		GIVE(rq, type, STR("bug"));
	if (chance(c, 15))
		GIVE(rq, assignee, chance(c, 80) ? some_agent(c) : STR(""));
	if (chance(c, 15))
		GIVE(rq, labels, list_of(c, label(c), chance(c, 30) ? STR("green") : STR("")));
	if (chance(c, 25) && !c->script->alone)
		GIVE(rq, parent, chance(c, 80) ? id_in(c, OPEN) : some_id(c));
}

static void give_update(struct crowd *c, struct request *rq)
{
	give_fields(c, rq);
	if (chance(c, 40))
		GIVE(rq, status, chance(c, 60) ? READY : BACKLOG);
	if (chance(c, 10))
		GIVE(rq, add_labels, list_of(c, label(c), STR("")));
	if (chance(c, 10))
		GIVE(rq, remove_labels, list_of(c, label(c), STR("")));
	if (chance(c, 5) && !HAS(rq, parent))
		GIVE(rq, parent, STR(""));
	if (!(rq->has &
	      ~(UINT64_C(1) << ARG_agent | UINT64_C(1) << ARG_run | UINT64_C(1) << ARG_id |
		UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_explicit)))
		GIVE(rq, priority, pick(c, 4));
}

static void give_create(struct crowd *c, struct request *rq)
{
	GIVE(rq, title, STR("a task"));
	if (c->plan->plain || c->made >= MADE_MAX || chance(c, 85))
		GIVE(rq, id, any_id(c));
	else
		c->made++;
	if (chance(c, 10))
		GIVE(rq, if_absent, 1);
	if (chance(c, 15))
		GIVE(rq, status, chance(c, 90) ? BACKLOG : DONE);
	if (chance(c, 20) && !c->script->alone)
		GIVE(rq, depends, list_of(c, some_id(c), chance(c, 30) ? some_id(c) : STR("")));
	give_fields(c, rq);
}

static void give_filter(struct crowd *c, struct request *rq)
{
	if (chance(c, 6))
		GIVE(rq, class_rank, 1 + pick(c, 4));
	if (chance(c, 4))
		GIVE(rq, type, STR("bug"));
	if (chance(c, 6))
		GIVE(rq, label, label(c));
	if (chance(c, 6) && rq->op != OP_LIST)
		GIVE(rq, except, list_of(c, some_id(c), chance(c, 50) ? some_id(c) : STR("")));
	if (rq->op != OP_LIST && chance(c, 12))
		GIVE(rq, assignee, some_agent(c));
}

/* An operator overrides the holder. A token of the caller's own does not go with that. */
static void give_force(struct crowd *c, struct request *rq)
{
	if (rq->explicit || !chance(c, 40))
		return;
	GIVE(rq, force, 1);
	if (rq->op != OP_REMOVE || chance(c, 80))
		GIVE(rq, reason, STR("by order"));
}

/* The version of the task, or another one. */
static void give_version(struct crowd *c, struct request *rq)
{
	uint32_t task = model_find(c->sim.w, MODEL_TASK, rq->id);
	int64_t version = task ? model_task(c->sim.m, task)->version : 1;
	bool one = op_flags(rq->op) & OP_TASK || rq->op == OP_ARCHIVE || rq->op == OP_UNDO;

	if (!one || !HAS(rq, id) || op_flags(rq->op) & OP_READS || model_is_guard(rq->id) ||
	    !chance(c, 8))
		return;
	if (chance(c, 30))
		version += chance(c, 50) ? 1 : -1;
	GIVE(rq, if_version, version > 0 ? version : 1);
}

/* Sets the arguments that the operation requires or may have. */
static void give_words(struct crowd *c, struct request *rq)
{
	switch (rq->op) {
	case OP_BLOCK:
		GIVE(rq, unblock_action, STR("wait"));
		GIVE(rq, reason, STR("no key"));
		break;
	case OP_CANCEL:
		GIVE(rq, reason, STR("because"));
		give_force(c, rq);
		break;
	case OP_ESCALATE:
	case OP_FAIL:
	case OP_REWORK:
	case OP_REOPEN:
	case OP_LOCK_BREAK:
		GIVE(rq, reason, STR("because"));
		break;
	case OP_REVIEW:
		GIVE(rq, summary, STR("looks good"));
		break;
	case OP_APPROVE:
	case OP_DONE:
		if (chance(c, 50))
			GIVE(rq, summary, STR("it works"));
		break;
	case OP_COMMENT:
		GIVE(rq, text, STR("a word"));
		break;
	case OP_UPDATE:
		give_update(c, rq);
		give_force(c, rq);
		break;
	case OP_UNDO:
		give_force(c, rq);
		break;
	case OP_DEPEND:
		GIVE(rq, depends, list_of(c, some_id(c), chance(c, 20) ? some_id(c) : STR("")));
		give_force(c, rq);
		break;
	case OP_UNDEPEND:
		GIVE(rq, depends, list_of(c, some_dependency(c, rq->id), STR("")));
		give_force(c, rq);
		break;
	case OP_LOCK_CLEANUP:
	case OP_ARCHIVE:
		if (chance(c, 50))
			GIVE(rq, older_than, some_ttl(c));
		break;
	case OP_REMOVE:
	case OP_RELEASE:
		give_force(c, rq);
		break;
	case OP_HEARTBEAT:
		if (chance(c, 40))
			GIVE(rq, ttl, some_ttl(c));
		break;
	default:
		break;
	}
}

static void give_status(struct crowd *c, struct request *rq)
{
	GIVE(rq, status, 1 + pick(c, STATUS_END - 1));
	if (rq->status != IN_PROGRESS || chance(c, 70))
		GIVE(rq, reason, STR("because"));
	GIVE(rq, unblock_action, STR("wait"));
	GIVE(rq, summary, STR("by status"));
}

static bool acquires(const struct request *rq)
{
	return rq->op == OP_TAKE || rq->op == OP_CLAIM || rq->op == OP_LOCK_ACQUIRE ||
	       (rq->op == OP_STATUS && rq->status == IN_PROGRESS) ||
	       (rq->op == OP_DONE && (rq->claim_next || rq->take));
}

static void give_acquisition(struct crowd *c, struct request *rq, const struct agent *a)
{
	bool own = a->manual && rq->op == OP_CLAIM && chance(c, 80);

	GIVE(rq, new_token, own ? a->token : new_token(c));
	if (own)
		GIVE(rq, id, a->task);
	if (chance(c, 60))
		GIVE(rq, ttl, some_ttl(c));
	if (rq->op == OP_TAKE || rq->op == OP_DONE)
		give_filter(c, rq);
}

static struct str stale_token(struct crowd *c)
{
	return c->n_old ? c->old[pick(c, (uint32_t)c->n_old)] : STR("k0");
}

/* A request id, usually a new one. */
static void give_request_id(struct crowd *c, struct request *rq)
{
	if (op_flags(rq->op) & OP_READS || !chance(c, 15) || (acquires(rq) && rq->op != OP_DONE))
		return;
	if (!c->last_request.n || c->script->alone || !chance(c, 6))
		c->last_request = arena_printf(memory(c), "q%u", ++c->requests);
	GIVE(rq, request_id, c->last_request);
}

static const struct weight of_holder[] = {
	{ OP_HEARTBEAT, 22 }, { OP_DONE, 18 },        { OP_RELEASE, 7 },    { OP_BLOCK, 9 },
	{ OP_ESCALATE, 5 },   { OP_REVIEW, 9 },       { OP_FAIL, 6 },       { OP_COMMENT, 2 },
	{ OP_UPDATE, 6 },     { OP_CANCEL, 4 },       { OP_STATUS, 9 },     { OP_LOCK_RELEASE, 5 },
	{ OP_DEPEND, 3 },     { OP_UNDEPEND, 1 },     { OP_REMOVE, 2 },     { OP_UNBLOCK, 3 },
	{ OP_CLAIM, 5 },      { OP_LOCK_ACQUIRE, 1 }, { OP_APPROVE, 1 },    { OP_REWORK, 1 },
	{ OP_RETRY, 1 },      { OP_REOPEN, 1 },       { OP_LOCK_BREAK, 1 }, { OP_UNDO, 2 },
};
static const struct weight of_anybody[] = {
	{ OP_TAKE, 22 },       { OP_CLAIM, 16 },       { OP_LOCK_ACQUIRE, 8 }, { OP_CREATE, 16 },
	{ OP_UNBLOCK, 5 },     { OP_APPROVE, 4 },      { OP_REWORK, 3 },       { OP_RETRY, 3 },
	{ OP_REOPEN, 4 },      { OP_CANCEL, 3 },       { OP_UPDATE, 7 },       { OP_COMMENT, 1 },
	{ OP_REMOVE, 2 },      { OP_DEPEND, 6 },       { OP_UNDEPEND, 3 },     { OP_STATUS, 7 },
	{ OP_LOCK_BREAK, 2 },  { OP_LOCK_CLEANUP, 2 }, { OP_ID_CLAIM, 1 },     { OP_SHOW, 2 },
	{ OP_LIST, 2 },        { OP_NEXT, 3 },         { OP_OVERVIEW, 1 },     { OP_LOCKS, 1 },
	{ OP_LOCK_STATUS, 1 }, { OP_ID_PEEK, 1 },      { OP_LOG, 1 },          { OP_DONE, 4 },
	{ OP_HEARTBEAT, 1 },   { OP_REVIEW, 1 },       { OP_RELEASE, 1 },      { OP_ARCHIVE, 3 },
};

static unsigned good_statuses(const struct request *rq)
{
	switch (rq->op) {
	case OP_CLAIM:
	case OP_LOCK_ACQUIRE:
		return STATUS_BIT(READY) | STATUS_BIT(IN_PROGRESS) | STATUS_BIT(FAILED);
	case OP_UNBLOCK:
		return STATUS_BIT(BLOCKED) | STATUS_BIT(NEEDS_HELP);
	case OP_APPROVE:
	case OP_REWORK:
		return STATUS_BIT(REVIEW);
	case OP_RETRY:
		return STATUS_BIT(FAILED);
	case OP_REOPEN:
		return STATUS_BIT(DONE) | STATUS_BIT(CANCELED);
	case OP_DEPEND:
	case OP_UNDEPEND:
		return OPEN;
	case OP_ARCHIVE:
		return STATUS_BIT(DONE) | STATUS_BIT(FAILED) | STATUS_BIT(CANCELED);
	case OP_CREATE:
	case OP_TAKE:
		return ANY;
	default:
		return STATUS_ALL;
	}
}

static void give_list(struct crowd *c, struct request *rq)
{
	give_filter(c, rq);
	if (chance(c, 30))
		GIVE(rq, statuses, 1 + pick(c, STATUS_ALL));
	if (chance(c, 10))
		GIVE(rq, holder, c->agents[pick(c, c->n_agents)].name);
	if (chance(c, 10))
		GIVE(rq, parent, some_id(c));
	if (chance(c, 15))
		GIVE(rq, limit, 1 + pick(c, 5));
}

/* An agent whose claim was lost tries to continue it. */
static void give_resume(struct crowd *c, struct request *rq, const struct agent *a)
{
	GIVE(rq, id, a->task);
	GIVE(rq, fence, a->fence + (chance(c, 10) ? 1 : 0));
	if (chance(c, 50))
		GIVE(rq, token, chance(c, 80) ? a->token : stale_token(c));
}

/* A plain run looks at a task instead, and often. */
static bool only_looks(struct crowd *c, enum op op)
{
	return c->plan->plain &&
	       (op == OP_REMOVE || op == OP_ID_CLAIM || op == OP_LIST || chance(c, 8) ||
		(c->script->alone && (op == OP_DEPEND || op == OP_UNDEPEND)));
}

static struct request *by_holder(struct crowd *c, const struct agent *a)
{
	struct request *rq = arena_new(memory(c), struct request);

	rq->op = pick_op(c, of_holder, sizeof(of_holder) / sizeof(*of_holder));
	GIVE(rq, id, a->task);
	if (only_looks(c, rq->op)) {
		rq->op = OP_SHOW;
		return rq;
	}
	if (rq->op == OP_CLAIM && !a->manual && chance(c, 80)) {
		give_resume(c, rq, a);
		return rq;
	}
	GIVE(rq, token, chance(c, 94) ? a->token : stale_token(c));
	if (chance(c, 30))
		GIVE(rq, explicit, 1);
	if (rq->op == OP_DONE && chance(c, 40) && !c->script->alone)
		GIVE(rq, claim_next, 1);
	return rq;
}

static bool has_any(struct crowd *c, unsigned statuses)
{
	if (statuses == ANY)
		return true;
	for (uint32_t i = 1; i <= model_count(c->sim.w, MODEL_TASK); i++)
		if (model_task(c->sim.m, i)->status &&
		    statuses & STATUS_BIT(model_task(c->sim.m, i)->status))
			return true;
	return false;
}

static struct request *by_anybody(struct crowd *c)
{
	struct request *rq = arena_new(memory(c), struct request);

	do
		rq->op = pick_op(c, of_anybody, sizeof(of_anybody) / sizeof(*of_anybody));
	while (!has_any(c, good_statuses(rq)) && chance(c, 80));
	if (only_looks(c, rq->op))
		rq->op = OP_SHOW;
	if (rq->op == OP_CREATE)
		give_create(c, rq);
	else if (rq->op == OP_ID_CLAIM && c->made >= MADE_MAX)
		rq->op = OP_ID_PEEK;
	else if (rq->op == OP_ID_CLAIM)
		c->made++;
	else if (rq->op == OP_LIST)
		give_list(c, rq);
	else if (rq->op == OP_NEXT)
		give_filter(c, rq);
	else if (op_flags(rq->op) & OP_TASK || rq->op == OP_UNDO ||
		 (rq->op == OP_ARCHIVE && chance(c, 60)))
		GIVE(rq, id, chance(c, 75) ? id_in(c, good_statuses(rq)) : some_id(c));
	if (rq->op == OP_NEXT && chance(c, 50))
		GIVE(rq, explain, 1);
	if (op_flags(rq->op) & OP_HELD && chance(c, 12)) {
		GIVE(rq, token, stale_token(c));
		if (chance(c, 40))
			GIVE(rq, explicit, 1);
	}
	if (rq->op == OP_DONE && chance(c, 80))
		GIVE(rq, take, 1);
	return rq;
}

/* --- locks of the whole queue ----- */

static const struct weight of_guard[] = {
	{ OP_LOCK_ACQUIRE, 24 }, { OP_LOCK_RELEASE, 4 }, { OP_LOCK_BREAK, 3 },
	{ OP_HEARTBEAT, 2 },     { OP_LOCK_STATUS, 2 },  { OP_TYPED, 2 },
	{ OP_EMERGENCY, 2 },     { OP_EMERGENCY_ON, 3 }, { OP_EMERGENCY_OFF, 2 },
	{ OP_PAUSE, 6 },         { OP_RESUME, 2 },
};
static const struct weight of_guardian[] = {
	{ OP_HEARTBEAT, 3 },
	{ OP_LOCK_RELEASE, 5 },
	{ OP_LOCK_ACQUIRE, 1 },
	{ OP_LOCK_BREAK, 1 },
};

/* Does an agent keep others out? */
static bool closed(struct crowd *c)
{
	for (uint32_t i = 1; i < MODEL_GUARDS; i++)
		if (model_task(c->sim.m, i)->lock.holder)
			return true;
	return false;
}

static struct request *about_guard(struct crowd *c, const struct agent *a)
{
	struct request *rq = arena_new(memory(c), struct request);
	struct str any = model_guard(1 + (int)pick(c, MODEL_EMERGENCY - 1));

	rq->op = a->guard.n ? pick_op(c, of_guardian, sizeof(of_guardian) / sizeof(*of_guardian))
			    : pick_op(c, of_guard, sizeof(of_guard) / sizeof(*of_guard));
	if (op_flags(rq->op) & OP_TASK)
		GIVE(rq, id, a->guard.n && chance(c, 90) ? a->guard : any);
	if (op_flags(rq->op) & OP_HELD)
		GIVE(rq, token, a->pass.n && chance(c, 90) ? a->pass : stale_token(c));
	if (rq->op == OP_EMERGENCY_ON || (rq->op == OP_PAUSE && chance(c, 50)))
		GIVE(rq, reason, STR("fire"));
	return rq;
}

/* Some calls ignore the closed queue and are refused; in the end it is opened again. */
static struct request *open_again(struct crowd *c)
{
	struct request *rq = arena_new(memory(c), struct request);

	rq->op = OP_EMERGENCY_OFF;
	if (model_task(c->sim.m, MODEL_EMERGENCY)->lock.holder)
		return rq;
	rq->op = OP_RESUME;
	if (model_task(c->sim.m, MODEL_PAUSE)->lock.holder)
		return rq;
	rq->op = OP_LOCK_BREAK;
	for (int i = 1; i < MODEL_EMERGENCY; i++)
		if (model_task(c->sim.m, (uint32_t)i)->lock.holder)
			GIVE(rq, id, model_guard(i));
	return rq;
}

static struct request *choose(struct crowd *c, const struct agent *a)
{
	if (c->guards && closed(c) && chance(c, 8))
		return open_again(c);
	if (c->guards && chance(c, a->guard.n ? 40 : 3))
		return about_guard(c, a);
	return a->task.n && chance(c, 88) ? by_holder(c, a) : by_anybody(c);
}

static const struct request *compose(struct crowd *c, const struct agent *a)
{
	struct request *rq = choose(c, a);

	GIVE(rq, agent, a->name);
	if (a->run.n)
		GIVE(rq, run, a->run);
	if (rq->op == OP_STATUS)
		give_status(c, rq);
	else
		give_words(c, rq);
	if (acquires(rq))
		give_acquisition(c, rq, a);
	if (c->guards && chance(c, 5))
		GIVE(rq, part_of, 1 + pick(c, MODEL_EMERGENCY - 1));
	give_version(c, rq);
	give_request_id(c, rq);
	return rq;
}

/* --- answers ------------------------------------------------------------------------------------- */

static void let_go(struct crowd *c, struct agent *a)
{
	if (a->token.n && c->n_old < OLD_TOKENS)
		c->old[c->n_old++] = a->token;
	else if (a->token.n)
		c->old[pick(c, OLD_TOKENS)] = a->token;
	a->task = a->token = STR("");
	a->manual = false;
}

static void take_up(struct crowd *c, struct agent *a, const struct task *t, const struct grant *g,
		    bool manual)
{
	if (model_is_guard(t->id)) {
		a->guard = arena_str(memory(c), t->id);
		a->pass = arena_str(memory(c), g->token);
		return;
	}
	let_go(c, a);
	c->busy[pick(c, BUSY)] = (uint32_t)(a - c->agents);
	a->task = arena_str(memory(c), t->id);
	a->token = arena_str(memory(c), g->token);
	a->fence = g->fence;
	a->manual = manual;
}

static void learn(struct crowd *c, struct agent *a, const struct request *rq,
		  const struct answer *ans)
{
	bool ends = op_flags(rq->op) & OP_ENDS || rq->op == OP_STATUS;

	if (a->unanswered == rq)
		a->unanswered = NULL;
	if (model_is_guard(rq->id) && chance(c, 90) &&
	    (ans->code == LOST_LOCK || rq->op == OP_LOCK_RELEASE))
		a->guard = a->pass = STR("");
	if (ans->code == LOST_LOCK && chance(c, 60))
		let_go(c, a);
	if (ans->code != SUCCESS)
		return;
	if (ends && rq->token.n && str_eq(rq->token, a->token) && chance(c, 85))
		let_go(c, a);
	if (ans->lock && ans->lock->token.n)
		take_up(c, a, ans->task, ans->lock, rq->op == OP_LOCK_ACQUIRE);
	else if (ans->next_lock && ans->next_lock->token.n)
		take_up(c, a, ans->next, ans->next_lock, false);
}

static void crash(struct crowd *c, struct agent *a)
{
	if (c->sim.history)
		history_event(c->sim.history, "kill", a->name, 0, 0);
	/* the crashed agent's token may still be found and used */
	let_go(c, a);
	a->guard = a->pass = STR("");
	a->unanswered = NULL;
	a->run = chance(c, 50) ? STR("r1") : STR("");
}

/* --- delivery ------------------------------------------------------------------------------------ */

/* The model has a limited number of depends, and none if every task is alone. */
static bool no_room(struct crowd *c, const struct request *rq)
{
	uint32_t task = model_find(c->sim.w, MODEL_TASK, rq->id);

	if (c->script->alone)
		return rq->op == OP_DEPEND || rq->op == OP_UNDEPEND;
	return rq->op == OP_DEPEND && task && model_task(c->sim.m, task)->depends[5];
}

static struct letter letter_of(struct crowd *c, uint32_t agent, const struct request *rq,
			       const char *note)
{
	struct letter l = { .rq = rq, .agent = agent, .note = note };

	if (c->sim.history)
		l.call = history_call(c->sim.history, c->agents[agent].name, rq);
	return l;
}

/* The answer reaches its agent. */
static void arrive(struct crowd *c, struct letter *l)
{
	if (c->sim.history)
		history_answer(c->sim.history, l->call, &l->ans);
	learn(c, &c->agents[l->agent], l->rq, &l->ans);
	arena_free(&l->memory);
}

static bool call(struct crowd *c, struct letter *l)
{
	struct sim_entry e = { .kind = ENTRY_CALL, .rq = l->rq, .note = l->note };

	if (!c->sim.history) /* a record does not show the lock of the whole queue that a caller holds */
		e.pass = c->agents[l->agent].pass;
	script_add(c->script, e);
	return sim_do(&c->sim, &e, &l->ans);
}

/* The agent is told of an error; the call may have been made or not. */
static bool fail(struct crowd *c, struct letter *l)
{
	bool missed = chance(c, 50);

	l->note = "answered with an error";
	if (!missed && !call(c, l))
		return false;
	l->ans = (struct answer){ .code = API_ERROR,
				  .applied = missed && chance(c, 50) ? 'n' : '?' };
	arrive(c, l);
	c->agents[l->agent].unanswered = l->rq;
	return true;
}

static bool deliver(struct crowd *c, struct letter l);

static bool deliver_late(struct crowd *c)
{
	size_t i = pick(c, (uint32_t)c->n_way);
	struct letter l = c->way[i];

	c->way[i] = c->way[--c->n_way];
	if (!l.answered)
		return deliver(c, l);
	arrive(c, &l);
	return true;
}

static bool post(struct crowd *c, struct letter l)
{
	while (c->n_way == ON_THE_WAY)
		if (!deliver_late(c))
			return false;
	c->way[c->n_way++] = l;
	return true;
}

static bool post_answer(struct crowd *c, struct letter *l)
{
	c->agents[l->agent].unanswered = l->rq;
	l->answered = true;
	l->memory = c->sim.call; /* the next call would free it */
	c->sim.call = (struct arena){ 0 };
	return post(c, *l);
}

static bool deliver(struct crowd *c, struct letter l)
{
	struct agent *a = &c->agents[l.agent];
	bool lost = chance(c, c->loss), dies = chance(c, c->dying);

	if (no_room(c, l.rq))
		return true;
	if (c->sim.history && chance(c, c->loss))
		return fail(c, &l);
	if (dies || lost)
		l.note = dies ? "its agent crashed" : "its answer was lost";
	if (!call(c, &l))
		return false;
	if (dies)
		crash(c, a);
	else if (lost)
		a->unanswered = l.rq;
	else if (c->sim.history && chance(c, c->chaos))
		return post_answer(c, &l);
	else
		arrive(c, &l);
	return true;
}

static bool send(struct crowd *c, uint32_t agent, const struct request *rq)
{
	bool later = chance(c, c->chaos), twice = chance(c, c->chaos / 4);

	if ((later || twice) && !post(c, letter_of(c, agent, rq, twice ? "again" : "late")))
		return false;
	if (later && !twice)
		c->agents[agent].unanswered = rq;
	return (later && !twice) || deliver(c, letter_of(c, agent, rq, NULL));
}

/* --- time ---------------------------------------------------------------------------------------- */

#define DAY (24 * 3600 * INT64_C(1000))

/* Moves the clock to a moment at which something changes by itself, or just before or after it. */
static int64_t to_a_moment(struct crowd *c)
{
	int64_t at[24], now = c->sim.now;
	size_t n = now ? model_times(c->sim.m, now + 1, now + 2 * DAY, at, 24) : 0;
	/* the earliest are the most likely, and the first is `now + 1` */
	size_t i = n > 1 ? 1 + pick(c, 1 + pick(c, (uint32_t)n - 1)) : 0;

	return n > 1 ? at[i] - now - 1 + pick(c, 3) : 0;
}

static int64_t some_time(struct crowd *c)
{
	switch (pick(c, 20)) {
	case 0:
	case 1:
		return 1 + pick(c, 10);
	case 2:
		return 1 + pick(c, 3000);
	case 3:
		return some_ttl(c);
	case 4:
	case 5:
	case 6:
		return to_a_moment(c);
	case 7:
		return chance(c, 4) ? DAY : 0;
	default:
		return 0;
	}
}

static int64_t some_jump(struct crowd *c)
{
	static const int64_t jumps[] = { 1000, 1001, 60000, 3600000, DAY };
	int64_t ms = jumps[pick(c, 5)];

	return chance(c, 50) ? ms : -ms;
}

static void go_on(struct crowd *c)
{
	struct sim_entry e = { .kind = ENTRY_PASS, .ms = some_time(c) };
	struct answer none = { 0 };

	if (e.ms) {
		script_add(c->script, e);
		(void)sim_do(&c->sim, &e, &none);
	}
	if (!c->plan->plain && chance(c, 3) && !sim_follows_wall()) {
		e = (struct sim_entry){ .kind = ENTRY_JUMP, .ms = some_jump(c) };
		if (c->sim.history)
			history_event(c->sim.history, "skew", STR(""), 0, e.ms);
		script_add(c->script, e);
		(void)sim_do(&c->sim, &e, &none);
	}
}

/* --- a run --------------------------------------------------------------------------------------- */

static bool turn(struct crowd *c)
{
	uint32_t i = chance(c, 55) ? c->busy[pick(c, BUSY)] : pick(c, c->n_agents);
	struct agent *a = &c->agents[i];

	go_on(c);
	if (c->n_way && chance(c, c->sim.history ? 60 : 20))
		return deliver_late(c);
	if (chance(c, 1))
		crash(c, a);
	if (a->unanswered && chance(c, 60))
		return deliver(c, letter_of(c, i, a->unanswered, "repeated"));
	if (chance(c, 1)) /* the agent crashes before it sends */
		return true;
	return send(c, i, compose(c, a));
}

static void set_policy(struct crowd *c, struct policy *p)
{
	static const int64_t abandoned[] = { 0, 1, 2, 2, 3, 5 };

	*p = policy_default;
	p->lease = some_ttl(c);
	p->lock_ttl = some_ttl(c);
	p->max_abandoned = abandoned[pick(c, 6)];
	p->keep_abandoned = chance(c, 6);
	p->ignore_depends = chance(c, 6);
	p->offer_parents = chance(c, 12);
	p->handback = chance(c, 12) ? some_ttl(c) : 0;
	p->claim_creates = chance(c, 6);
	p->untyped = chance(c, 6);
}

static void gather(struct crowd *c)
{
	static const uint32_t crowds[] = { 1, 2, 3, 5, 8, 40, AGENTS_MAX };

	c->n_agents = crowds[pick(c, 7)];
	if (c->plan->agents)
		c->n_agents = c->plan->agents;
	c->n_ids = 1 + pick(c, chance(c, 50) ? 3 : 14);
	if (c->plan->plain) {
		c->n_agents = 6;
		c->n_ids = 5;
	}
	c->chaos = chance(c, 25) ? 0 : 4 + pick(c, 20);
	c->loss = c->chaos;
	c->dying = 3;
	if (c->plan->history) {
		c->chaos = 30;
		c->loss = c->dying = c->plan->loss;
	}
	c->agents = arena_array(memory(c), struct agent, c->n_agents);
	for (uint32_t i = 0; i < c->n_agents; i++)
		c->agents[i].name = arena_printf(memory(c), "a%u", i);
}

static void need(const struct crowd *c, int r)
{
	if (!r)
		return;
	fprintf(stderr, "sim: cannot write %s: %s\n", c->plan->history, strerror(-r));
	exit(2);
}

static void open_history(struct crowd *c)
{
	struct str uri = str_c(c->sim.uri);
	struct history_head head = { .pawl = STR("sim"),
				     .store = str_cut(&uri, ':'),
				     .seed = c->plan->seed,
				     .agents = c->n_agents,
				     .tasks = c->n_ids,
				     .policy = c->script->policy };

	if (c->plan->history)
		need(c, history_open(&c->sim.history, c->plan->history, &head));
}

/* The last calls of a recorded run are answered, too. */
static bool finish(struct crowd *c)
{
	while (c->sim.history && c->n_way)
		if (!deliver_late(c))
			return false;
	return sim_end(&c->sim);
}

bool agents_run(const struct sim_plan *plan, struct script *out, struct buf *why, size_t *calls)
{
	struct crowd c = { .plan = plan,
			   .script = out,
			   .random = plan->seed * UINT64_C(0x2545f4914f6cdd1d) };
	bool right = true;

	*out = (struct script){ 0 };
	set_policy(&c, &out->policy);
	out->alone = chance(&c, 15);
	if (plan->history)
		out->alone = plan->alone;
	c.guards = chance(&c, 40) && !plan->plain;
	gather(&c);
	sim_open(&c.sim, out, plan->ops + ON_THE_WAY);
	c.sim.tell = plan->tell;
	open_history(&c);
	while (right && !c.sim.over && c.sim.n_calls < plan->ops)
		right = turn(&c);
	*calls = c.sim.n_calls;
	if (right && !c.sim.over)
		right = finish(&c);
	buf_adds(why, buf_str(&c.sim.why));
	need(&c, history_close(c.sim.history));
	sim_close(&c.sim);
	return right;
}
