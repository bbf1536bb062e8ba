/*
 * update: sets the fields of a task from a request, for create and update. It skips `parent` and `depends`: they
 * concern other tasks, so src/queue changes them.
 */
#ifndef CORE_UPDATE_H
#define CORE_UPDATE_H

#include "core/rules.h"

/* Does the request name any field to change? */
bool update_any(const struct request *r);
void update_fields(struct task *t, const struct request *r, int64_t now, struct arena *a);
/* The operation `update`. */
void update_apply(struct task *t, struct call *c);

#endif
