#include "core/role.h"

#include "core/lease.h"
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

/* An operation that is not listed needs ROLE_ADMIN, so a new one is closed until somebody decides. */
static const enum role roles[OP_END] = {
	[OP_SHOW] = ROLE_READER,        [OP_LIST] = ROLE_READER,
	[OP_LOG] = ROLE_READER,         [OP_NEXT] = ROLE_READER,
	[OP_OVERVIEW] = ROLE_READER,    [OP_LOCKS] = ROLE_READER,
	[OP_LOCK_STATUS] = ROLE_READER, [OP_ID_PEEK] = ROLE_READER,
	[OP_TYPED] = ROLE_READER,       [OP_EMERGENCY] = ROLE_READER,
	[OP_ID_CLAIM] = ROLE_AGENT,     [OP_CREATE] = ROLE_AGENT,
	[OP_TAKE] = ROLE_AGENT,         [OP_CLAIM] = ROLE_AGENT,
	[OP_HEARTBEAT] = ROLE_AGENT,    [OP_RELEASE] = ROLE_AGENT,
	[OP_BLOCK] = ROLE_AGENT,        [OP_ESCALATE] = ROLE_AGENT,
	[OP_REVIEW] = ROLE_AGENT,       [OP_DONE] = ROLE_AGENT,
	[OP_FAIL] = ROLE_AGENT,         [OP_COMMENT] = ROLE_AGENT,
	[OP_UPDATE] = ROLE_AGENT,       [OP_DEPEND] = ROLE_AGENT,
	[OP_UNDEPEND] = ROLE_AGENT,     [OP_STATUS] = ROLE_AGENT,
	[OP_LOCK_ACQUIRE] = ROLE_AGENT, [OP_LOCK_RELEASE] = ROLE_AGENT,
	[OP_UNBLOCK] = ROLE_REVIEWER,   [OP_APPROVE] = ROLE_REVIEWER,
	[OP_REWORK] = ROLE_REVIEWER,    [OP_RETRY] = ROLE_REVIEWER,
	[OP_REOPEN] = ROLE_REVIEWER,    [OP_CANCEL] = ROLE_REVIEWER,
	[OP_ARCHIVE] = ROLE_REVIEWER,
};

/* The statuses in which an agent may take a manual lock: it could claim the task as well. */
#define AGENTS_LOCK (STATUS_BIT(READY) | STATUS_BIT(IN_PROGRESS))

static enum role higher(enum role a, enum role b)
{
	return a > b ? a : b;
}

enum role role_for_op(enum op op)
{
	return roles[op] ? roles[op] : ROLE_ADMIN;
}

enum role role_for(const struct request *rq)
{
	bool reads = op_flags(rq->op) & OP_READS;

	/* --force overrides a holder, and a lock of the whole queue stops everybody */
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
		need = higher(need, role_for_op(op));
	}
	if (first)
		need = higher(need, role_for_op(first));
	if (!own && (op == OP_UPDATE || op == OP_DEPEND || op == OP_UNDEPEND))
		need = higher(need, ROLE_REVIEWER);
	/* The holder may edit the task, and others may not. In these statuses the task is for reviewers to decide. */
	if (!own && op == OP_LOCK_ACQUIRE && !(AGENTS_LOCK & STATUS_BIT(t->status)))
		need = higher(need, ROLE_REVIEWER);
	return need;
}

enum role role_for_parent(const struct task *t, struct str agent, int64_t now)
{
	bool held = lease_live(&t->lock, now) && !(t->status == BLOCKED && !t->lock.manual);

	return held && !str_eq(t->lock.holder, agent) ? ROLE_REVIEWER : ROLE_AGENT;
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
