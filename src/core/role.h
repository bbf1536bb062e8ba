/*
 * role: the rights of a caller over the network. Each role includes the rights of all lower roles.
 * A local caller has no role, because file permissions decide what it may do.
 */
#ifndef CORE_ROLE_H
#define CORE_ROLE_H

#include "core/answer.h"
#include "core/rules.h"

const char *role_name(enum role role); /* "reviewer"; "" for ROLE_NONE */
enum role role_parse(struct str text); /* ROLE_NONE: the text is not a role */
/* The lowest role that may call the operation. Some calls need a higher one: see role_for(). */
enum role role_for_op(enum op op);
/* The lowest role for the call, judged without the task. --force and queue locks need
 * ROLE_ADMIN. */
enum role role_for(const struct request *rq);
/* The lowest role for the call on this task. For example, `status t1 done` on a task in review
 * is an approval. own: the caller has proved that it holds the task. */
enum role role_for_task(const struct request *rq, const struct task *t, bool own);
/* The lowest role that may add a sub-task to the task. If another agent holds the task, an open
 * sub-task would keep that holder from completing it. Over the network, the agent name proves
 * who the caller is. */
enum role role_for_parent(const struct task *t, struct str agent, int64_t now);
bool role_allows(enum role have, enum role need);
/* "this call needs the role admin; your token has the role agent" */
struct str role_refusal(enum role have, enum role need, struct arena *a);
/* Fills in the refusal of a call whose caller has a lesser role than it needs (fault "forbidden"). SUCCESS: the role is
 * enough. */
enum result role_refuse(enum role have, enum role need, struct answer *ans, struct arena *a);

/* --- actions ---------------------------------------------------------------------------------- */

/*
 * can: the actions on a task that are open to a caller now. can_do() tries each action on a copy of
 * the task, with the rules and roles that decide real calls. So its result cannot differ from them,
 * and no user interface needs its own rules.
 *
 * It sees the task, not the rest of the queue. The call may still be refused because of a queue
 * lock, a dependency cycle or a task that depends on this task.
 */

#define ACTION_END 35
#define ACTION_BIT(action) (UINT64_C(1) << (action))

struct can_caller {
	enum role role;
	struct str agent;
	bool holder; /* the caller has the token of the task's lock */
};

/* The open actions: a set of ACTION_BIT. It uses the time, policy and pause in `c`, and ignores
 * its request and tokens. */
uint64_t can_do(const struct task *t, const struct can_caller *caller, const struct call *c);
/* "cancel --force"; NULL: the action is unknown to this version of pawl. */
const char *action_name(int action);
enum op action_op(int action);
bool action_forces(int action);
/* The status that the action leads to; 0: it changes no status. */
enum status action_to(int action);
/* The operation's action without an option. to: the target of `update --status`, else 0. */
int action_find(enum op op, enum status to);
/* Returns the action without its option. */
int action_plain(int action);

#endif
