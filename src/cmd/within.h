/*
 * within: a command's work under a time limit that nothing can exceed: neither a server that is silent nor a lock
 * that another process holds. A child of this process does it, and is killed when its time is over.
 */
#ifndef CMD_WITHIN_H
#define CMD_WITHIN_H

#include "cmd/command.h"

typedef enum result ask_fn(struct session *s, struct answer *ans);

/* false: there was no answer within `ms`. The child's queue is the child's: this process has none open. */
bool run_within(struct session *s, int64_t ms, ask_fn *fn, struct answer *ans);

#endif
