/*
 * reaper: ends the process groups that this process started, if this process dies before them.
 *
 * The reaper is a separate process at the other end of a pipe. Each group registers itself before it runs another
 * program, so the reaper misses none. When the pipe breaks, the groups that are still registered get SIGTERM and,
 * after the grace time, SIGKILL. The reaper holds no other file open.
 */
#ifndef RUN_REAPER_H
#define RUN_REAPER_H

#include <stdint.h>
#include <sys/types.h>

struct reaper {
	int fd; /* to register with */
	pid_t pid;
};

/* Call it before you open anything that a child must not share. 0 or -errno. */
int reaper_start(struct reaper *p, int64_t grace_ms);
/* Safe in a child between fork and exec. */
void reaper_add(int fd, pid_t group);
void reaper_drop(int fd, pid_t group);
void reaper_stop(struct reaper *p);

#endif
