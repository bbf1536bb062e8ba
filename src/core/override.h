/*
 * override: what an operator may do to a task that somebody else holds (--force), and the version that a call is for
 * (--if-version).
 */
#ifndef CORE_OVERRIDE_H
#define CORE_OVERRIDE_H

#include "core/rules.h"

/* Does another's live lock protect the task from the call? The lock that `block` leaves behind protects nothing. */
bool override_needed(const struct task *t, const struct call *c);
/* Does the call change the task over another's live lock? Ask before the change. */
bool override_is(const struct task *t, const struct call *c);
/* Logs who overrides whom, and why. */
void override_log(const struct task *t, struct call *c);
/* The same, and keeps for the holder which fields change. */
void override_note(struct task *t, struct call *c, struct strs fields);
/* false: the call is for another version of the task, and refused. */
bool override_version(const struct task *t, struct call *c);

#endif
