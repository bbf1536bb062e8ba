/*
 * signals: catches the signals that `pawl run` passes on to its programs, and returns them as numbers. Applies to the
 * whole process. A signal that the caller of pawl ignores stays ignored.
 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <stdbool.h>

/* A descriptor that becomes readable when a signal arrives, also SIGCHLD; or -errno. */
int signals_open(void);
/* The next signal; 0: none. */
int signals_next(int fd);
/* Does the signal ask the runner to end? */
bool signals_ends(int sig);
void signals_close(void);

#endif
