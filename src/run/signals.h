/*
 * signals: those that a program which runs others passes on, as numbers to be read. For the whole process;
 * what its caller had it ignore stays ignored.
 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <stdbool.h>

/* A descriptor that becomes readable when one has come, SIGCHLD among them; or -errno. */
int signals_open(void);
/* The next one; 0: none. */
int signals_next(int fd);
/* Does it say that it is enough? */
bool signals_ends(int sig);
void signals_close(void);

#endif
