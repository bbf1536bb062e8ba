/*
 * sim: deterministic simulation. Agents crash, repeat calls, come late and lose answers. They share
 * one queue, whose clocks stand still until the simulation moves them. Everything follows from a
 * seed. Each answer is compared with the model of the contract (proof/model/model.h); a few
 * promises are also checked without the model.
 *
 * A run records its actions as a script of plain entries, so that a failed run can be repeated with
 * entries left out.
 */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include <stdio.h>

#include "proof/history/history.h"
#include "proof/model/model.h"
#include "queue/queue.h"

/* --- scripts ------------------------------------------------------------------------------------- */

enum entry_kind {
	ENTRY_PASS, /* time passes */
	ENTRY_JUMP, /* the wall clock is set */
	ENTRY_CALL
};

struct sim_entry {
	enum entry_kind kind;
	int64_t ms;
	const struct request *rq;
	struct str pass;  /* the token of the lock of the whole queue that the caller holds */
	const char *note; /* the fate of the call, such as "answer lost"; may be NULL */
};

struct script {
	struct policy policy;
	bool alone; /* no task is linked to another, so one task is also modelled alone */
	struct sim_entry *v;
	size_t n;
	struct arena arena; /* owns the requests */
};

void script_add(struct script *s, struct sim_entry e);

/* --- a run --------------------------------------------------------------------------------------- */

#define SIM_TASKS 54 /* ids that a run may use, including those of locks of the whole queue */

/* The state of a task according to the answers alone. */
struct watched {
	bool there;
	int64_t fence, done_fence;
	uint32_t token; /* of the lock that was granted last; 0: it was given up */
	int64_t expires_at;
};

struct sim {
	char uri[600];
	struct queue *q;
	struct model_world *w;
	struct model *m;
	struct model_world *alone_w; /* the world of the task ALONE; NULL: not in this run */
	struct model *alone;
	struct arena arena, call; /* call: of the last answer */
	struct str pass;          /* of the current call */
	/* Store time minus boot time. old: the value to which it may return; -1: none. */
	int64_t epoch, old_epoch;
	size_t overrides; /* changes over the lock of another agent */
	bool over;        /* the rest of the run cannot be predicted */
	bool claim_creates;
	int64_t begun, now;
	struct watched tasks[SIM_TASKS];
	struct buf why;
	FILE *tell;              /* where each step is printed as it happens; may be NULL */
	struct history *history; /* records the run; may be NULL */
	size_t n_calls;
};

/* The URI of the store; each run needs an empty store. */
extern const char *sim_store;
/* Does the store take its time from the wall clock of each machine? Then the wall clock is never set. */
bool sim_follows_wall(void);

#define ALONE STR("w0")

void sim_open(struct sim *s, const struct script *script, size_t requests);
/* false: s->why has the error. */
bool sim_do(struct sim *s, const struct sim_entry *e, struct answer *ans);
/* Checks the whole queue at the end. */
bool sim_end(struct sim *s);
void sim_close(struct sim *s);
/* Runs the script from the start. *done: the number of entries that were run; n if only the checks
 * at the end failed. */
bool sim_run(const struct script *script, FILE *tell, struct buf *why, size_t *done);

/* --- other files --------------------------------------------------------------------------------- */

bool sim_wrong(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* watch.c: checks that do not need the model. */
bool watch_call(struct sim *s, const struct model_call *c, const struct answer *ans);
bool watch_end(struct sim *s);

/* What a run is made of, besides its seed. */
struct sim_plan {
	uint64_t seed;
	size_t ops;
	uint32_t agents; /* 0: the seed decides the number */
	FILE *tell;      /* may be NULL */
	/* Records the calls in this new file (proof/history/history.h). Calls then overlap: other
	 * agents continue between the sending of a call, its effect and its answer. NULL: no record. */
	const char *history;
	/* Of a recorded run: percentage of answers that are lost, of agents that die during a call,
	 * and of calls that end with API_ERROR. */
	unsigned loss;
	/* Six agents on five tasks, and nothing that could explain a wrong answer in the record: no
	 * removals, no ids that the queue makes, no locks of the whole queue, no clocks that are
	 * set. */
	bool plain;
	bool alone; /* of a recorded run: no task is linked to another */
};

/* agents.c: runs one seed. true: no error. The script records all actions. */
bool agents_run(const struct sim_plan *plan, struct script *out, struct buf *why, size_t *calls);

/* shrink.c: removes from a failing script the entries that it does not need to fail. */
void script_shrink(struct script *script);
void entry_print(FILE *f, const struct sim_entry *e);
void script_free(struct script *script);

#endif
