/*
 * runner: takes tasks and runs a program for each, as long as the lease holds.
 *
 * A lease is renewed at a third of its length, for as long as the program or anything it started runs, and
 * whatever the program does. Once it is lost the program's group is ended, and nothing more is reported
 * about the task. What the program left running is ended before the task is reported, so that nobody else
 * gets it while somebody still works on it.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "client/client.h"

/* How it ended for one task. */
struct run_end {
	struct str task, title;
	int64_t fence;
	int status; /* as waitpid() has it */
	/* SUCCESS: all as it was told to; LOST_LOCK; else why it could not be reported. */
	enum result code;
	struct str message, hint;
	int64_t became; /* enum status of the task, as last seen */
	bool settled;   /* the program itself had ended its lock: nothing was reported */
	const struct answer *answer; /* the last one about it */
};

struct run_plan {
	struct request take; /* OP_TAKE, or OP_CLAIM of one task */
	struct strs words;   /* the program and its arguments */
	enum op on_success;  /* OP_DONE, OP_REVIEW or OP_NONE */
	enum op on_failure;  /* OP_FAIL, OP_RELEASE or OP_ESCALATE */
	struct str summary;  /* empty: one is made */
	int64_t grace_ms, jobs;
	bool loop, out_to_err;
	void (*began)(void *ctx, const struct answer *claim);
	void (*ended)(void *ctx,
		      const struct run_end *e); /* what it points to is gone afterwards */
	void *ctx;
};

struct run_sum {
	int64_t ran, succeeded, failed, lost, troubled; /* troubled: could not be reported */
	int last_status;                                /* of the last program that failed */
	bool interrupted;                               /* a signal said that it is enough */
	struct str again; /* it was given back and is next again: where a loop ends */
};

/* SUCCESS if at least one task was taken; what became of each is told by ended(). Else why none was, in
 * *ans: NO_TASKS, CONFLICT, USAGE if there is no such program, ... */
enum result runner_run(struct client *c, const struct run_plan *plan, struct run_sum *sum,
		       struct answer *ans);

/* "exit code 3", "signal 9 (Killed)" */
struct str run_status_text(struct arena *a, int status);
/* As a shell has it: 128 and the signal. */
int run_exit_code(int status);

#endif
