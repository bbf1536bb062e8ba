/*
 * within: runs a command's work under a hard time limit, which neither a silent server nor a lock of another
 * process can exceed. A child process does the work and is killed when its time is over.
 */
#ifndef CMD_WITHIN_H
#define CMD_WITHIN_H

#include "cmd/command.h"

typedef enum result ask_fn(struct session *s, struct answer *ans);

/* false: there was no answer within `ms`. The queue is open only in the child; this process has none open. */
bool run_within(struct session *s, int64_t ms, ask_fn *fn, struct answer *ans);

#endif
