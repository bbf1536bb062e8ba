/* drive: declarations that its files share. */
#ifndef PROOF_DRIVE_DRIVE_PRIVATE_H
#define PROOF_DRIVE_DRIVE_PRIVATE_H

#include <sys/types.h>

#include "base/backoff.h"
#include "base/secret.h"
#include "proof/drive/drive.h"
#include "proof/history/history.h"

/* --- drive_child.c: a process of the command ------------------------------------------------------ */

/* The process leads a process group, so that a signal also reaches the programs that it runs. */
struct child {
	pid_t pid; /* 0: there is none */
	int in, out;
	size_t n; /* bytes of the line that is being read */
	char line[DRIVE_LINE_MAX];
};

/* Starts the command with PAWL_DRIVER_DIR and PAWL_DRIVER_AGENT. 0 or -errno, also if there is no such program. */
int child_start(struct child *c, char *const *words, const char *folder, const char *agent);
/* Sends one line. false: the process no longer reads its input. */
bool child_send(struct child *c, struct str line);
enum child_read { CHILD_NOTHING, CHILD_LINE, CHILD_END, CHILD_LONG };
/* Reads what has arrived. CHILD_LINE: *line is one whole line, valid until the next call. CHILD_LONG: more than one line,
 * or a line beyond the limit. */
enum child_read child_read(struct child *c, struct str *line);
void child_signal(const struct child *c, int sig);
/* Kills the group and waits for the process; returns its status. It may have ended by itself before. */
int child_kill(struct child *c);
void child_close(struct child *c);
/* Waits until `end` (os_boot_ms()) for a process whose pipes were closed to end; then kills it. */
void child_end(struct child *c, int64_t end);

/* --- drive_agent.c: what an agent does next ------------------------------------------------------- */

struct drive_call {
	enum drive_verb verb;
	char id[DRIVE_ID_MAX + 1];
	char token[TOKEN_LEN + 1];
};

struct drive_hold {
	bool live; /* as far as the agent knows */
	char id[DRIVE_ID_MAX + 1];
	char token[TOKEN_LEN + 1];
	int64_t until; /* ms; 0: no limit */
};

struct worker {
	char name[16];
	struct child child;
	struct drive_hold hold, old; /* old: the previous lock, with a stale token */
	struct drive_call call;      /* the latest call */
	bool busy;                   /* the agent waits for an answer */
	bool dropped;                /* the answer will be lost */
	bool again;                  /* the latest call had no answer */
	bool resting;                /* it has paused with the lock that it holds */
	bool over;                   /* the agent has nothing left to do */
	uint64_t number;             /* the call in the history */
	int64_t sent_us, deadline;   /* deadline: ms */
	int64_t wakes_at, continues_at;
};

enum drive_step {
	DRIVE_MIXING,    /* the mix */
	DRIVE_CREATING,  /* create all tasks */
	DRIVE_DRAINING,  /* next and done until nothing is left */
	DRIVE_ROUND,     /* every agent calls next once */
	DRIVE_FINISHING, /* agents finish what they hold */
	DRIVE_LAST,      /* one agent finishes what is left */
	DRIVE_READING    /* one agent shows every task */
};

struct drive {
	const struct torture_plan *plan;
	enum drive_step step;
	struct worker *workers;
	int n;
	char *const *words; /* of the command */
	const char *folder; /* of this run; the driver's own folder is in it */
	const char *home;   /* the driver's own folder */
	struct str trouble; /* why the run had to stop; empty: it did not */
	int64_t round;
	bool interrupted;
	uint64_t random;
	struct history *history;
	struct tally ids;       /* ids of all tasks, as the answers spelled them */
	uint32_t shown;         /* tasks that were read at the end */
	int64_t asked, created; /* `create` calls sent, and answered */
	int64_t target;         /* how many tasks to create */
	struct tally ended;     /* the tasks that agents completed */
	int64_t completed;
	int64_t last_calls; /* calls of DRIVE_LAST */
	int64_t now, began; /* ms of the monotonic clock, as every time here */
	int64_t last_lease; /* the latest expiry of all leases that were granted, or may have been */
	struct torture_figures figures;
	struct arena *arena;
};

static inline uint32_t drive_roll(struct drive *d, uint32_t limit)
{
	return seeded_below(&d->random, limit);
}

/* Chooses an idle agent's next call. false: it has no call now; it has ended, or wakes_at says when to ask again. */
bool agent_choose(struct drive *d, struct worker *w);
/* Updates the agent's knowledge from the answer. */
void agent_hear(struct drive *d, struct worker *w, const struct drive_answer *ans);
/* Call it when the answer was lost, or says that the outcome is unknown. */
void agent_unanswered(struct drive *d, struct worker *w);
/* Resets the agent's knowledge: the process that replaces a killed process knows nothing. */
void agent_forget(struct worker *w);

/* --- drive_call.c: a call and its answer ---------------------------------------------------------- */

/* Stops the run for this reason. If the run has stopped already, the first reason stays. */
void drive_give_up(struct drive *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Starts the agent's process of the command. */
bool drive_spawn(struct drive *d, struct worker *w);
/* Sends the agent's chosen call. */
void drive_send(struct drive *d, struct worker *w);
/* Reads what the agent's process wrote. */
void drive_read(struct drive *d, struct worker *w);

#endif
