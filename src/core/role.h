/*
 * role: what a caller over the network may do. Each role includes the ones before it. A local caller has no role: the
 * file system decides what it may do.
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

#endif
