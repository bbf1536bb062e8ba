/*
 * Decides which role a call over the network needs. A call is judged by its effect on the task, so a
 * caller cannot get around its role by another name for the same change.
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

enum result role_refuse(enum role have, enum role need, struct answer *ans, struct arena *a)
{
	if (role_allows(have, need))
		return SUCCESS;
	ans->applied = 'n';
	ans->fault = STR("forbidden");
	return answer_fail(
		ans, MISCONFIGURED, role_refusal(have, need, a),
		arena_printf(a, "ask for a token that was made with --role %s", role_name(need)));
}
