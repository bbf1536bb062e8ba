#include "core/can.h"

#include "core/lease.h"
#include "core/role.h"

#define FORCE 1u
#define TAKE 2u

static const struct way {
	const char *name;
	enum op op;
	unsigned flags;
	enum status to;
} ways[WAY_END] = {
#define WAY(number, name, op, flags, to) [number] = { (name), OP_##op, (flags), (to) },
#include "core/action.def"
#undef WAY
};

static bool can_known(int way)
{
	return way > 0 && way < WAY_END;
}

const char *way_name(int way)
{
	return can_known(way) ? ways[way].name : NULL;
}

enum op way_op(int way)
{
	return ways[way].op;
}

bool way_forces(int way)
{
	return ways[way].flags & FORCE;
}

enum status way_to(int way)
{
	return ways[way].to ? ways[way].to : rules_to(ways[way].op);
}

int way_plain(int way)
{
	return way - (ways[way].flags ? 1 : 0);
}

int way_find(enum op op, enum status to)
{
	int way = 1;

	while (way < WAY_END && (ways[way].op != op || ways[way].to != to))
		way++;
	return way;
}

static struct request request_of(const struct way *w, const struct task *t,
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

/* Would the call, which is the way's request, succeed and do something? */
static bool is_open(const struct way *w, const struct task *t, struct call *c)
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
	for (int i = 1; i < WAY_END; i++) {
		/* an option that nothing needs is not offered */
		if (can & WAY_BIT(way_plain(i)))
			continue;
		rq = request_of(&ways[i], t, caller);
		if (is_open(&ways[i], t, &try))
			can |= WAY_BIT(i);
	}
	arena_free(&scratch);
	return can;
}
