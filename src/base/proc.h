/*
 * proc: is the process that holds a lock still there? Never signals anybody.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/arena.h"

enum proc_life { PROC_UNKNOWN, PROC_ALIVE, PROC_DEAD };

/* Where this process's pids mean something: this boot of this machine, this pid namespace. */
struct str proc_here(struct arena *a);
/* `host` and `place` are those noted with the pid; only on the same host and in the same place can one tell. */
enum proc_life proc_life(struct str host, struct str place, int64_t pid, int64_t start);

#endif
