/*
 * group: runs another program in its own process group, so that one signal reaches the program and
 * all processes that it starts, and no others.
 */
#ifndef RUN_RUN_PRIVATE_H
#define RUN_RUN_PRIVATE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "queue/queue.h"
#include "run/run_jobs.h"

struct program {
	const char *path; /* the executable file */
	char *const *argv, *const *envp;
	const char *dir; /* its working folder */
	bool terminal;   /* the program becomes the terminal's foreground group */
	bool no_input;   /* its standard input is empty */
	bool out_to_err; /* its standard output goes to its standard error */
	int output;      /* descriptor that becomes its standard error; -1: it uses ours */
	int reaper;      /* descriptor for registering the group, see run_private.h */
};

/* 0 once the program is running, else -errno, also for an error in the new process. */
int group_start(const struct program *p, pid_t *group);
void group_signal(pid_t group, int sig);
/* Does the group still have a process? */
bool group_there(pid_t group);

/* Is standard input a terminal, and are we its foreground group? */
bool terminal_ours(void);
/* Makes `group` the foreground group of the terminal. */
void terminal_give(pid_t group);
/* Makes us the foreground group again, if `group` still is. */
void terminal_take(pid_t group);

/* --- lines ------------------------------------------------------------------------------------ */

/*
 * lines: turns a program's output into lines that are safe on a terminal beside other programs'
 * lines.
 *
 * Colours pass. All other control characters become visible, so they cannot move the cursor. A
 * carriage return ends a line. A line of more than LINES_MAX bytes is broken.
 */

#define LINES_MAX 8192u

struct lines {
	struct buf line; /* the last line, not complete yet */
	bool cr;         /* the last byte was a carriage return, and ended a line */
};

/* Adds each complete line to `out`, as "NAME | LINE\n". */
void lines_add(struct lines *l, struct str name, struct str bytes, struct buf *out);
/* After the program has ended: adds the last line, if it has no newline. */
void lines_end(struct lines *l, struct str name, struct buf *out);

/* --- reaper ----------------------------------------------------------------------------------- */

/*
 * reaper: ends the process groups that this process started, if this process dies before them.
 *
 * The reaper is a separate process at the other end of a pipe. Each group registers itself before
 * it runs another program, so the reaper misses none. When the pipe breaks, the groups that are
 * still registered get SIGTERM and, after the grace period, SIGKILL. The reaper holds no other file
 * open.
 */

struct reaper {
	int fd; /* the descriptor to register with */
	pid_t pid;
};

/* Starts the reaper. Call it before you open a file that a child must not share. 0 or -errno. */
int reaper_start(struct reaper *p, int64_t grace_ms);
/* Safe in a child between fork and exec. */
void reaper_add(int fd, pid_t group);
void reaper_drop(int fd, pid_t group);
void reaper_stop(struct reaper *p);

#define GROUPS_MAX 1024

struct groups {
	pid_t v[GROUPS_MAX];
	size_t n;
};

/* Ends all groups: SIGTERM, and SIGKILL after the grace period. Returns when they are gone, or after SIGKILL. */
void groups_stop(struct groups *g, int64_t grace_ms);

/* --- screen ----------------------------------------------------------------------------------- */

/*
 * screen: a block of lines at the bottom of the terminal, and the lines that scroll above it.
 *
 * It uses no raw mode and no alternate screen. Between two calls the cursor is at the start of the
 * line below the block, so the terminal is usable even if this process is killed. A terminal that
 * takes no output (^S) does not block the caller: the text waits here, and screen_full() tells the
 * caller to add no more.
 */

struct screen;

/* NULL if standard error is not a terminal that can move its cursor. */
struct screen *screen_open(void);
/* Removes the block and writes the rest of the text. hurry: gives up if the terminal does not take
 * the text soon. */
void screen_close(struct screen *s, bool hurry);

/* The text that appears above the block at the next screen_show(). Add only whole lines, without
 * control sequences that move the cursor. */
struct buf *screen_text(struct screen *s);
/* Adds a message of pawl above the block. */
void screen_say(struct screen *s, struct str text);
bool screen_full(const struct screen *s);

/* The size of the terminal now. */
void screen_size(const struct screen *s, size_t *columns, size_t *rows);
/* Is it time for screen_show()? */
bool screen_due(const struct screen *s, int64_t now);
/* Writes the new text and the block if one of them changed. Each line of the block is narrower than the terminal. */
void screen_show(struct screen *s, struct strs block, int64_t now);
/* The next time for screen_show(); 0: when there is new text. ticking: the block changes with time. */
int64_t screen_next(const struct screen *s, bool ticking);
/* Wait until this descriptor takes output, then call screen_show(). -1: no output is waiting. */
int screen_waits_for(const struct screen *s);

/* Removes the block, because another process is about to use the terminal. */
void screen_hide(struct screen *s);
/* Another process has used the terminal, so the old block is not erased. */
void screen_forget(struct screen *s);
/* The terminal has a new size: the next screen_show() draws the block again. */
void screen_resized(struct screen *s);

/* --- signals ---------------------------------------------------------------------------------- */

/*
 * signals: catches the signals that `pawl run` passes on to its programs, and returns them as
 * numbers. Applies to the whole process. A signal that pawl's caller ignored stays ignored.
 */

/* A descriptor that becomes readable when a signal arrives, including SIGCHLD; or -errno. */
int signals_open(void);
/* The next signal; 0: none. */
int signals_next(int fd);
/* Does the signal ask the runner to end? */
bool signals_ends(int sig);
void signals_close(void);

/* --- part ------------------------------------------------------------------------------------- */

/*
 * The parts of a runner: claim a task and start its program (run_take.c), wait for a task (run_take.c),
 * renew the lease (run_lease.c), notice when another agent ends it (run_take.c), wait for the program
 * (run_watch.c), end it (run_stop.c), report the result (run_end.c), and show the jobs on a terminal
 * (run_screen.c).
 */

#define RETRY_MS 500 /* between two attempts to reach the store */
#define NEVER INT64_MAX

struct job {
	struct arena arena; /* memory for this task */
	struct str task, title, token, holder;
	int64_t fence, ttl;
	int64_t renew_at, deadline; /* deadline: the expiry of the lease, by our own clock */
	pid_t group;                /* 0: this place is free */
	struct strs words;          /* the program and its arguments */
	bool exited, lost, settled, killed;
	bool interrupted; /* a signal asked the program to end */
	bool unclear;     /* the lock's status cannot prove that we hold it: only renewals can */
	int status;
	int64_t kill_at, give_up_at;
	int64_t report_at; /* 0: nothing to report yet */
	/* For a job that is shown on a terminal: */
	int64_t began_at;
	bool piped; /* its output comes through the pipe `from` */
	int from;
	struct lines lines;
	bool counted; /* the process group is gone; `rest` bytes of its output are unread */
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
	int64_t check_one, checked_at; /* next and last check; NEVER: the store will wake us */
	/* Members for a waiting loop: */
	bool hopeful, told; /* a task can become eligible; the user was told that the loop waits */
	struct attempts
		wait; /* begins when the last program ended, or with the loop; next: NEVER while the loop is not waiting */
	int64_t alone_since; /* since when only tasks are left that the loop released; 0: there are others */
	int64_t fault_since; /* since when the store has not answered; 0: it answers */
};

/* Makes one call with memory from `a`, so that a loop's memory does not grow. */
void runner_call(struct runner *r, const struct request *rq, struct answer *ans, struct arena *a);
/* Copies a text that must outlive a call, but only if it changed, so that a loop's memory does not
 * grow. */
void runner_keep(struct runner *r, struct str *to, struct str text);
/* A request with the job's id and token. */
struct request job_request(const struct job *j, enum op op);
void job_give_back(struct runner *r, struct job *j, struct str why, struct answer *ans,
		   struct arena *a);

/* Call it when the loop becomes idle: it restarts the loop's wait for a task. */
void runner_idle(struct runner *r);
/* After an attempt to claim that got no task: may the loop wait for one? Sets the time of the next
 * attempt and `hopeful`. */
bool runner_may_wait(struct runner *r, const struct answer *ans);
/* Is the loop waiting for a task? */
bool runner_waits(struct runner *r);
/* Lets runner_take() try again, if it is time. */
void runner_wait_over(struct runner *r);

/* Claims tasks for the free places, while there are eligible tasks. */
void runner_take(struct runner *r);

/* Sets the lease's times from an answer that grants or renews it. sent: the time before the
 * call. */
void job_lease(struct job *j, int64_t sent, const struct answer *ans);
void job_renew(struct runner *r, struct job *j);
/* A descriptor that becomes readable when the queue may have changed; then call runner_woken(). -1:
 * r->check_one has the time of the next check, or no job needs one. */
int runner_wake_fd(struct runner *r);
void runner_woken(struct runner *r);
/* Checks the jobs' locks. If another agent seems to have ended one, renews it at once, because only
 * the answer proves it. */
void runner_check(struct runner *r);
/* Did the program itself end the lock, with the token that it got? */
bool job_settled(const struct job *j, const struct task *t, struct arena *a);

/* --- stop ------------------------------------------------------------------------------------- */

/* Sends SIGTERM, once, and sets the time of SIGKILL. */
void job_stop(struct job *j, int64_t now, int64_t grace_ms);
/* The group's first process has ended: stops the others. While one of them remains, the kernel does
 * not reuse the group's number, so signals reach only them. */
void job_exited(struct job *j, int64_t now, int64_t grace_ms);
/* Sends SIGKILL if the grace period is over. */
void job_kill_due(struct job *j, int64_t now);
/* Is the group gone, or is what is left of it beyond SIGKILL? */
bool job_gone(const struct job *j, int64_t now);

/* --- watch ------------------------------------------------------------------------------------ */

/* Runs until all programs have ended and no task is left to claim. */
void runner_watch(struct runner *r);

/* After the program has ended: reports the result of its task and frees its place, or retries later. */
void job_report(struct runner *r, struct job *j);
void job_lost(struct runner *r, struct job *j);

/* The functions below do nothing without plan->screen. job_pipe() makes a pipe for the output of a
 * program that is about to start: 0 or -errno. Call job_piped() after the attempt. */
int job_pipe(struct runner *r, struct job *j);
void job_piped(struct runner *r, struct job *j, bool started);
/* After the group is gone: has all of its output been shown? */
bool job_relayed(struct runner *r, struct job *j);
void job_relay_end(struct runner *r, struct job *j);
/* Fills r->polls from index `n`, and returns the new number of entries. */
size_t live_polls(struct runner *r, size_t n);
void live_polled(struct runner *r, size_t n);
/* Shows the jobs if it is time. */
void live_show(struct runner *r);
/* The next time to show them, or NEVER. */
int64_t live_next(const struct runner *r);

#endif
