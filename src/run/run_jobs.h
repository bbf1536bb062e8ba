/*
 * runner: claims tasks and runs a program for each, while it holds the lease.
 *
 * The runner renews a lease after each third of its length, while the program or a process that it
 * started is running. If the lease is lost, the runner ends the program's group and reports nothing
 * about the task. When the program ends, the runner first ends the processes that the program left
 * running, and then reports the task. So no other agent gets the task while one of these processes
 * is still working on it.
 */
#ifndef RUN_RUN_JOBS_H
#define RUN_RUN_JOBS_H

#include <stdbool.h>

#include "client/client.h"
#include "run/run_private.h"

/* The default grace period of a program that is stopped, in seconds (run_stop.c). */
#define RUN_GRACE_S 10

/* The result of one task. */
struct run_end {
	struct str task, title;
	int64_t fence;
	int status; /* as waitpid() returns it */
	/* SUCCESS: the result was reported. LOST_LOCK: the lock was lost. Else the reason why the
	 * report failed. */
	enum result code;
	struct str message, hint;
	int64_t became;   /* the task's status, as last seen (enum status) */
	bool interrupted; /* a signal stopped the program before it was done */
	bool settled;     /* the program itself ended its lock: the runner reported nothing */
	const struct answer *answer; /* the last answer about the task */
};

#define RUN_FOREVER INT64_MAX

struct run_plan {
	struct request take; /* OP_TAKE, or OP_CLAIM of one task */
	struct strs words;   /* the program and its arguments */
	struct str replace;  /* text in the arguments that becomes the task's id; empty: none */
	enum op on_success;  /* OP_DONE, OP_REVIEW or OP_NONE */
	enum op on_failure, on_interrupt; /* OP_FAIL, OP_RELEASE, OP_BLOCK or OP_ESCALATE */
	struct str summary;               /* empty: the runner makes one */
	int64_t grace_ms;                 /* between SIGTERM and SIGKILL */
	int64_t jobs;
	bool loop, out_to_err;
	/* Shows a line for each job, and the programs' output above them. NULL: the programs write
	 * to standard output and error themselves. */
	struct screen *screen;
	int64_t wait_ms; /* the longest wait without work; 0: the loop ends; RUN_FOREVER: no limit */
	/* words: the program and its arguments for this task */
	void (*began)(void *ctx, const struct answer *claim, struct strs words);
	void (*ended)(void *ctx, const struct run_end *e); /* *e is valid during the call only */
	/* The loop begins to wait. coming: the number of open tasks that can become eligible; 0:
	 * unknown. */
	void (*waits)(void *ctx, const struct answer *none, int64_t coming);
	void *ctx;
};

struct run_sum {
	int64_t ran, succeeded, failed, lost, troubled; /* troubled: could not be reported */
	int last_status;                                /* status of the last program that failed */
	int64_t interrupted;                            /* programs that a signal to end stopped */
	int signal;          /* the signal that asked the runner to end; 0: none */
	int64_t stuck;       /* open tasks that need a person, when a waiting loop ended */
	struct str stuck_id; /* one of them */
	bool tired;          /* the loop waited for wait_ms without success */
	struct str again,
		passed_over; /* if only tasks are left that the loop released: one of them, and the reason */
};

/* SUCCESS if at least one task was claimed; ended() gets the result of each. Otherwise *ans has the
 * reason, for example NO_TASKS, CONFLICT, or USAGE if the program does not exist. */
enum result runner_run(struct client *c, const struct run_plan *plan, struct run_sum *sum,
		       struct answer *ans);

/* The command for a message: on one line and shortened. */
struct str run_command_text(struct arena *a, struct strs words);
/* "exit code 3", "signal 9 (Killed)" */
struct str run_status_text(struct arena *a, int status);
/* As a shell computes it: 128 plus the signal. */
int run_exit_code(int status);

/* --- editor ----------------------------------------------------------------------------------- */

/* editor: lets a person change a text in the editor of their choice. */

/* $VISUAL, $EDITOR, or vi on a terminal; NULL: there is none. */
const char *editor_name(void);
/* Are standard input and output a terminal? */
bool editor_terminal(void);
/* Runs the editor on the file. A shell starts it, because the setting may contain options. 0 once
 * it has ended, with *status as waitpid() returns it, or -errno. out_to_err: the editor's standard
 * output goes to our standard error. */
int editor_run(const char *editor, const char *path, bool out_to_err, int *status);

#endif
