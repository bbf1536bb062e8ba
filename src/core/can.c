/*
 * Decides which actions are open to a caller now: what may this caller do with this task? can_do()
 * tries each action on a copy of the task, with the rules and roles of a real call, so a user
 * interface needs no rules of its own that could differ.
 */
#include "core/lease.h"
#include "core/role.h"

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
