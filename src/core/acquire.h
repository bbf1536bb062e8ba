/*
 * acquire: the ways to get a lock (claim, claim --resume, lock acquire), and the cleanup of abandoned locks.
 */
#ifndef CORE_ACQUIRE_H
#define CORE_ACQUIRE_H

#include "core/rules.h"

#define CLAIM_FROM (STATUS_BIT(READY) | STATUS_BIT(IN_PROGRESS) | STATUS_BIT(FAILED))

void acquire_claim(struct task *t, struct call *c);
void acquire_manual(struct task *t, struct call *c);

#endif
