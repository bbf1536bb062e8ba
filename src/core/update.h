/*
 * update: the fields of a task that a request carries, for create and update alike. Parent and depends are
 * not among them: they concern other tasks, and the queue sees to them.
 */
#ifndef CORE_UPDATE_H
#define CORE_UPDATE_H

#include "core/rules.h"

/* Does the request name any field to change? */
bool update_any(const struct request *r);
void update_fields(struct task *t, const struct request *r, int64_t now, struct arena *a);
/* The operation `update`. */
void update_apply(struct task *t, const struct call *c, struct verdict *v);

#endif
