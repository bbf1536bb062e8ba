/*
 * can: the ways to change a task that are open to a caller now. can_do() tries each way on a copy of the task, with the
 * rules and the roles that decide the calls themselves. So it cannot differ from them, and no face needs rules of its own.
 *
 * It sees the task, not the rest of the queue: a lock of the whole queue, a cycle of dependencies or a task that depends on
 * this one may still refuse the call.
 */
#ifndef CORE_CAN_H
#define CORE_CAN_H

#include "core/rules.h"

#define ACTION_END 35
#define ACTION_BIT(way) (UINT64_C(1) << (way))

struct can_caller {
	enum role role;
	struct str agent;
	bool holder; /* it has the token of the task's lock */
};

/* The ways that are open: a set of WAY_BIT. c: time, policy and pause count; the request and the tokens do not. */
uint64_t can_do(const struct task *t, const struct can_caller *caller, const struct call *c);
/* "cancel --force"; NULL: this pawl does not know the way. */
const char *action_name(int way);
enum op action_op(int way);
bool action_forces(int way);
/* The status that the way leads to; 0: it changes no status. */
enum status action_to(int way);
/* The way of this operation without an option; to: of `update --status`, else 0. */
int action_find(enum op op, enum status to);
/* The way without its option. */
int action_plain(int way);

#endif
