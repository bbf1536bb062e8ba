/*
 * The parts of a runner: claim a task and start its program (take.c), wait for a task (wait.c), renew the lease (lease.c), notice when another
 * agent ends it (look.c), wait for the program (watch.c), report the result (end.c), and show the jobs on a terminal
 * (live.c).
 */
#ifndef RUN_RUN_PRIVATE_H
#define RUN_RUN_PRIVATE_H

#include <poll.h>

#include "queue/queue.h"
#include "run/group.h"
#include "run/reaper.h"
#include "run/lines.h"
#include "run/run_jobs.h"

#define RETRY_MS 500 /* between two attempts to reach the store */
#define NEVER INT64_MAX

struct job {
	struct arena arena; /* of this task */
	struct str task, title, token, holder;
	int64_t fence, ttl;
	int64_t renew_at, deadline; /* deadline: the lease expires, by our own clock */
	pid_t group;                /* 0: this place is free */
	struct strs words;          /* the program and its arguments */
	bool exited, lost, settled, killed;
	bool interrupted; /* a signal asked its program to end */
	bool unclear;     /* the lock's status cannot prove that we hold it: only renewals can */
	int status;
	int64_t kill_at, give_up_at;
	int64_t report_at; /* 0: nothing to report yet */
	/* Of a job that is shown on a terminal: */
	int64_t began_at;
	bool piped; /* its output comes through the pipe `from` */
	int from;
	struct lines lines;
	bool counted; /* its group is gone, and `rest` bytes of its output are left */
	size_t rest;
};

struct runner {
	struct client *client;
	const struct run_plan *plan;
	struct run_sum *sum;
	struct answer *ans; /* why the runner claims no more tasks */
	struct reaper reaper;
	struct program program;
	struct job *jobs;
	size_t running;
	bool no_more, checked;
	int signals;
	struct pollfd *polls;          /* for the signals, the store, the terminal and each job */
	int64_t check_one, checked_at; /* next and last check; NEVER: when the store wakes us */
	/* Of a loop that waits: */
	bool hopeful, told; /* a task can become eligible; the user knows that the loop waits */
	struct attempts
		wait; /* since the last program ended, or the loop began; next: NEVER while it does not wait */
	int64_t alone_since; /* only tasks are left that the loop released; 0: others are left, too */
	int64_t fault_since; /* the store refuses to answer; 0: it answers */
};

/* Makes one call with memory from `a`, so that a loop does not grow. */
void runner_call(struct runner *r, const struct request *rq, struct answer *ans, struct arena *a);
/* Copies a text that must outlive a call. A loop does not grow while the text stays the same. */
void runner_keep(struct runner *r, struct str *to, struct str text);
/* A request with the id and the token of the job. */
struct request job_request(const struct job *j, enum op op);
void job_give_back(struct runner *r, struct job *j, struct str why, struct answer *ans,
		   struct arena *a);

/* The loop has nothing to do from now on: its wait begins anew. */
void runner_idle(struct runner *r);
/* After an attempt to claim that got no task: may the loop wait for one? Sets the next attempt and `hopeful`. */
bool runner_may_wait(struct runner *r, const struct answer *ans);
/* Does the loop wait, without a program that runs? */
bool runner_waits(struct runner *r);
/* Tries to claim again, if it is time. */
void runner_wait_over(struct runner *r);

/* Claims tasks for the free places, while there are eligible tasks. */
void runner_take(struct runner *r);

/* Takes the times of the lease from an answer that grants or renews it; sent: the time before the call. */
void job_lease(struct job *j, int64_t sent, const struct answer *ans);
void job_renew(struct runner *r, struct job *j);
/* A descriptor that is readable when something may have changed; then call runner_woken(). -1: r->look_at has a time,
 * or no job needs a check. */
int runner_wake_fd(struct runner *r);
void runner_woken(struct runner *r);
/* Checks the locks. If another agent seems to have ended one, renews it at once: the answer proves it. */
void runner_check(struct runner *r);
/* Did the program itself end the lock, with the token that it got? */
bool job_settled(const struct job *j, const struct task *t, struct arena *a);

/* Runs until all programs have ended and no task is left to claim. */
void runner_watch(struct runner *r);

/* After the program has ended: reports the result of its task and frees its place, or retries later. */
void job_report(struct runner *r, struct job *j);
void job_lost(struct runner *r, struct job *j);

/* The functions below do nothing without plan->screen. job_pipe() makes a pipe for the output of a program that is about
 * to start; then call job_piped() after the attempt. 0 or -errno. */
int job_pipe(struct runner *r, struct job *j);
void job_piped(struct runner *r, struct job *j, bool started);
/* After the group is gone: is all of its output shown? */
bool job_relayed(struct runner *r, struct job *j);
void job_relay_end(struct runner *r, struct job *j);
/* Fills r->polls from `n`, and returns the number of all. */
size_t live_polls(struct runner *r, size_t n);
void live_polled(struct runner *r, size_t n);
/* Shows the jobs if it is time. */
void live_show(struct runner *r);
/* The next time to show them, or NEVER. */
int64_t live_next(const struct runner *r);

#endif
