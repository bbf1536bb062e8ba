/*
 * proc: is the process that holds a lock still alive? Never sends a signal.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/arena.h"

enum proc_life { PROC_UNKNOWN, PROC_ALIVE, PROC_DEAD };

/* Identifies where this process's pids are valid: this boot of this machine, this pid namespace. */
struct str proc_here(struct arena *a);
/* `host` and `place` were recorded with the pid. The result is known only on the same host and in
 * the same place. */
enum proc_life proc_life(struct str host, struct str place, int64_t pid, int64_t start);

#endif
