/*
 * group: another program in a process group of its own, so that it and all it starts can be reached at
 * once, and nothing else can.
 */
#ifndef RUN_GROUP_H
#define RUN_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct program {
	const char *path; /* to run */
	char *const *argv, *const *envp;
	const char *dir; /* to run it in */
	bool terminal;   /* it gets the terminal that standard input is */
	bool no_input;   /* its standard input is empty */
	bool out_to_err; /* its standard output goes where standard error goes */
	int keeper;      /* where it registers, see keeper.h */
};

/* 0 once the program runs, else -errno: also of what only the new process found out. */
int group_start(const struct program *p, pid_t *group);
void group_signal(pid_t group, int sig);
/* SIGTERM, which a group that is stopped gets to see, too. */
void group_end(pid_t group);
/* Is any process of it left? */
bool group_there(pid_t group);

/* Is standard input a terminal that is ours to give away? */
bool terminal_ours(void);
/* Makes the group the one that the terminal listens to. */
void terminal_give(pid_t group);
/* Back to us, unless somebody else has it by now. */
void terminal_take(pid_t group);

#endif
