/*
 * The parts of a runner: taking a task and starting its program (runner_take.c), the lease (runner_lease.c) and
 * whether others ended it (runner_look.c), what goes on until the program ends (runner_watch.c), and what is
 * reported then (runner_end.c).
 */
#ifndef RUN_PART_H
#define RUN_PART_H

#include "run/group.h"
#include "run/reaper.h"
#include "run/run.h"

#define RETRY_MS 500 /* between two attempts to reach the store */
#define LOOK_MAX_MS 60000
#define NEVER INT64_MAX

struct job {
	struct arena arena; /* of this task */
	struct str task, title, token, holder;
	int64_t fence, ttl;
	int64_t renew_at, deadline; /* deadline: by our own clock the lease is over */
	pid_t group;                /* 0: this place is free */
	bool exited, lost, settled, killed;
	bool unclear; /* a look cannot tell whether the lock is ours: only renewals do */
	int status;
	int64_t kill_at, give_up_at;
	int64_t report_at; /* 0: nothing to report yet */
};

struct runner {
	struct client *client;
	const struct run_plan *plan;
	struct run_sum *sum;
	struct answer *ans; /* why no more are taken */
	struct keeper keeper;
	struct program program;
	struct job *jobs;
	size_t running;
	bool no_more, looked;
	struct strs given_back;
	int signals;
	int64_t look_at, looked_at; /* at the locks; NEVER: when the store wakes us */
};

/* One call, in memory of its own: a loop shall not grow. */
void runner_call(struct runner *r, const struct request *rq, struct answer *ans, struct arena *a);
/* A call of the job's holder. */
struct request job_request(const struct job *j, enum op op);
void job_give_back(struct runner *r, struct job *j, struct str why, struct answer *ans,
		   struct arena *a);

/* Fills the free places with tasks, as far as there are any. */
void runner_take(struct runner *r);

/* What an answer that grants or renews the lease says about it; sent: when the call was. */
void job_lease(struct job *j, int64_t sent, const struct answer *ans);
void job_renew(struct runner *r, struct job *j);
/* Readable when something may have changed, for runner_woken(); -1: there is a time to look, or nothing to look at. */
int runner_wake_fd(struct runner *r);
void runner_woken(struct runner *r);
/* Renews at once what others seem to have ended, and so finds out. */
void runner_look(struct runner *r);
/* Was it the program itself that ended the lock, with the token it was given? */
bool job_settled(const struct job *j, const struct task *t, struct arena *a);

/* Until all have ended and no more are to be had. */
void runner_watch(struct runner *r);

/* The program is gone: says what became of its task, and frees its place; or tries again later. */
void job_report(struct runner *r, struct job *j);
void job_lost(struct runner *r, struct job *j);

#endif
