/*
 * Decides which role a call over the network needs, and which actions are open to a caller now.
 * can_do() tries each action on a copy of the task, with the rules and roles of a real call, so a
 * user interface needs no rules of its own that could differ.
 */
#include "core/lease.h"
#include "core/role.h"
#include "core/typed.h"

static const char *const names[] = {
	[ROLE_NONE] = "",       [ROLE_READER] = "reader",
	[ROLE_AGENT] = "agent", [ROLE_REVIEWER] = "reviewer",
	[ROLE_ADMIN] = "admin",
};

const char *role_name(enum role role)
{
	return names[role];
}

enum role role_parse(struct str text)
{
	for (int r = ROLE_READER; r <= ROLE_ADMIN; r++)
		if (str_is(text, names[r]))
			return (enum role)r;
	return ROLE_NONE;
}

static const enum role roles[OP_END] = {
	[OP_NONE] = ROLE_ADMIN,
#define OP(number, name, flags, role, timeout) [OP_##name] = ROLE_##role,
#include "core/op.def"
};

/* An agent may take a manual lock in these statuses, because it could also claim the task. */
#define AGENTS_LOCK (STATUS_BIT(READY) | STATUS_BIT(IN_PROGRESS))

static enum role role_higher(enum role a, enum role b)
{
	return a > b ? a : b;
}

enum role role_for_op(enum op op)
{
	return roles[op];
}

enum role role_for(const struct request *rq)
{
	bool reads = op_flags(rq->op) & OP_READS;

	/* --force overrides a holder, and a queue lock can stop every other caller */
	if (!reads && (rq->force || typed_is(rq)))
		return ROLE_ADMIN;
	return role_for_op(rq->op);
}

enum role role_for_task(const struct request *rq, const struct task *t, bool own)
{
	enum op op = rq->op, first = OP_NONE;
	enum role need = role_for(rq);

	if (op == OP_STATUS) {
		op = rules_for_status(t->status, rq->status);
		first = op == OP_CLAIM ? rules_first_step(t->status) : OP_NONE;
		need = role_higher(need, role_for_op(op));
	}
	if (first)
		need = role_higher(need, role_for_op(first));
	if (!own && (op == OP_UPDATE || op == OP_DEPEND || op == OP_UNDEPEND))
		need = role_higher(need, ROLE_REVIEWER);
	/* A lock would let the agent edit the task. In other statuses a reviewer decides that. */
	if (!own && op == OP_LOCK_ACQUIRE && !(AGENTS_LOCK & STATUS_BIT(t->status)))
		need = role_higher(need, ROLE_REVIEWER);
	return need;
}

enum role role_for_parent(const struct task *t, struct str agent, int64_t now)
{
	return lease_held(t, now) && !str_eq(t->lock.holder, agent) ? ROLE_REVIEWER : ROLE_AGENT;
}

bool role_allows(enum role have, enum role need)
{
	return have == ROLE_NONE || have >= need;
}

struct str role_refusal(enum role have, enum role need, struct arena *a)
{
	return arena_printf(a, "this call needs the role %s; your token has the role %s",
			    role_name(need), role_name(have));
}

/* --- actions ---------------------------------------------------------------------------------- */

#define FORCE 1u
#define TAKE 2u

static const struct action {
	const char *name;
	enum op op;
	unsigned flags;
	enum status to;
} actions[ACTION_END] = {
#define ACTION(number, name, op, flags, to) [number] = { (name), OP_##op, (flags), (to) },
#include "core/action.def"
#undef ACTION
};

static bool can_known(int action)
{
	return action > 0 && action < ACTION_END;
}

const char *action_name(int action)
{
	return can_known(action) ? actions[action].name : NULL;
}

enum op action_op(int action)
{
	return actions[action].op;
}

bool action_forces(int action)
{
	return actions[action].flags & FORCE;
}

enum status action_to(int action)
{
	return actions[action].to ? actions[action].to : rules_to(actions[action].op);
}

int action_plain(int action)
{
	return action - (actions[action].flags ? 1 : 0);
}

int action_find(enum op op, enum status to)
{
	int action = 1;

	while (action < ACTION_END && (actions[action].op != op || actions[action].to != to))
		action++;
	return action;
}

static struct request request_of(const struct action *w, const struct task *t,
				 const struct can_caller *by)
{
	struct request rq = { .op = w->op, .role = by->role };

	GIVE(&rq, id, t->id);
	GIVE(&rq, agent, by->agent);
	if (w->flags & FORCE)
		GIVE(&rq, force, 1);
	if (w->flags & TAKE)
		GIVE(&rq, take, 1);
	if (w->to)
		GIVE(&rq, status, w->to);
	return rq;
}

/* Would the action's request succeed and change something? */
static bool is_open(const struct action *w, const struct task *t, struct call *c)
{
	struct task copy = *t;
	bool own = lease_owned(&t->lock, c->proof, c->now);

	if (!role_allows(c->rq->role, role_for_task(c->rq, t, own)))
		return false;
	if (w->to == t->status)
		return false;
	if (w->op == OP_UNDEPEND && !t->depends.n)
		return false;
	rules_apply(w->op, &copy, c);
	return c->code == SUCCESS && !c->repeated;
}

uint64_t can_do(const struct task *t, const struct can_caller *caller, const struct call *c)
{
	struct arena scratch = { 0 };
	struct call try = *c;
	struct request rq;
	uint64_t can = 0;

	try.rq = &rq;
	try.arena = &scratch;
	try.proof = caller->holder ? t->lock.token : STR("");
	try.fresh = STR("another token");
	for (int i = 1; i < ACTION_END; i++) {
		/* skip `cancel --force` if `cancel` works without the option */
		if (can & ACTION_BIT(action_plain(i)))
			continue;
		rq = request_of(&actions[i], t, caller);
		if (is_open(&actions[i], t, &try))
			can |= ACTION_BIT(i);
	}
	arena_free(&scratch);
	return can;
}
