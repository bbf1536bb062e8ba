/*
 * group: runs another program in its own process group, so that one signal reaches the program and all processes
 * that it starts, and no others.
 */
#ifndef RUN_GROUP_H
#define RUN_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct program {
	const char *path; /* the executable file */
	char *const *argv, *const *envp;
	const char *dir; /* its working folder */
	bool terminal;   /* the program gets the terminal of standard input */
	bool no_input;   /* its standard input is empty */
	bool out_to_err; /* its standard output goes to its standard error */
	int output;      /* descriptor that becomes its standard error; -1: it uses ours */
	int reaper;      /* descriptor by which the group registers, see reaper.h */
};

/* 0 once the program runs, else -errno, also for an error that occurred in the new process. */
int group_start(const struct program *p, pid_t *group);
void group_signal(pid_t group, int sig);
/* Sends SIGTERM, and SIGCONT so that a stopped group receives it. */
void group_end(pid_t group);
/* Does the group still have a process? */
bool group_there(pid_t group);

/* Is standard input a terminal, and are we its foreground group? */
bool terminal_ours(void);
/* Makes `group` the foreground group of the terminal. */
void terminal_give(pid_t group);
/* Makes us the foreground group again if `group` still is. */
void terminal_take(pid_t group);

#endif
