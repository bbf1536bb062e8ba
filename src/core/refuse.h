/*
 * refuse: the messages of refused operations. Each says what happened, to which task, and what to do next.
 */
#ifndef CORE_REFUSE_H
#define CORE_REFUSE_H

#include "core/rules.h"

void refuse_status(struct call *c, const struct task *t, const char *what, unsigned from);
void refuse_held(struct call *c, const struct task *t);
/* Another holds it, and only an operator may do this over the lock. */
void refuse_protected(struct call *c, const struct task *t);
/* The queue is paused. */
void refuse_paused(struct call *c);
void refuse_lost(struct call *c, const struct task *t);
void refuse_subtasks(struct call *c, const struct task *t);
void refuse(struct call *c, enum result code, struct str message, struct str hint);

#endif
