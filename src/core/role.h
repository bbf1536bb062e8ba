/*
 * role: the rights of a caller over the network. Each role includes the rights of all lower roles.
 * A local caller has no role, because file permissions decide what it may do.
 */
#ifndef CORE_ROLE_H
#define CORE_ROLE_H

#include "core/rules.h"

const char *role_name(enum role role); /* "reviewer"; "" for ROLE_NONE */
enum role role_parse(struct str text); /* ROLE_NONE: not a role */
/* The least role for the operation, if nothing is special about the call. */
enum role role_for_op(enum op op);
/* The least role for the call, as far as the call alone shows it. */
enum role role_for(const struct request *rq);
/* The same for a call on this task: `status t1 done` on a task in review is an approval. own: the caller proved that
 * it holds the task. */
enum role role_for_task(const struct request *rq, const struct task *t, bool own);
/* The least role to give the task a sub-task. While another agent holds the task, that agent could not complete it.
 * Over the network the name of the agent is a proof. */
enum role role_for_parent(const struct task *t, struct str agent, int64_t now);
bool role_allows(enum role have, enum role need);
/* "this call needs the role admin; your token has the role agent" */
struct str role_refusal(enum role have, enum role need, struct arena *a);

#define ACTION_END 35
#define ACTION_BIT(action) (UINT64_C(1) << (action))

struct can_caller {
	enum role role;
	struct str agent;
	bool holder; /* it has the token of the task's lock */
};

/* The ways that are open: a set of WAY_BIT. c: time, policy and pause count; the request and the tokens do not. */
uint64_t can_do(const struct task *t, const struct can_caller *caller, const struct call *c);
/* "cancel --force"; NULL: this version of pawl does not know the action. */
const char *action_name(int action);
enum op action_op(int action);
bool action_forces(int action);
/* The status that the action leads to; 0: it changes no status. */
enum status action_to(int action);
/* The way of this operation without an option; to: of `update --status`, else 0. */
int action_find(enum op op, enum status to);
/* The same action without its option. */
int action_plain(int action);

#endif
