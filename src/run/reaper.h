/*
 * keeper: ends the process groups that this process started, if it dies before them.
 *
 * A process of its own at the other end of a pipe. Each group registers itself before it runs another
 * program, so there is no moment at which one could be overlooked; when the pipe breaks, those that are
 * still registered get SIGTERM and, after the grace, SIGKILL. It holds nothing else open.
 */
#ifndef RUN_REAPER_H
#define RUN_REAPER_H

#include <stdint.h>
#include <sys/types.h>

struct keeper {
	int fd; /* to register with */
	pid_t pid;
};

/* Before anything is opened that may not be shared with a child. 0 or -errno. */
int keeper_start(struct keeper *k, int64_t grace_ms);
/* Safe in a child between fork and exec. */
void keeper_add(int fd, pid_t group);
void keeper_drop(int fd, pid_t group);
void keeper_stop(struct keeper *k);

#endif
