/*
 * sim: deterministic simulation. Agents that crash, repeat, come late and lose answers share one queue,
 * whose clocks stand still until they are told to go; everything follows from a seed. After each call the
 * answer is compared with the model of the contract (proof/model/model.h), and a few promises are watched
 * without it.
 *
 * A run writes down what it does as a script of plain entries, so that one that failed can be run again
 * with entries left out.
 */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include <stdio.h>

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
	const char *note; /* what became of the call: "answer lost"; may be NULL */
};

struct script {
	struct policy policy;
	bool alone; /* no task is linked to another: one is followed on its own as well */
	struct sim_entry *v;
	size_t n;
	struct arena arena; /* of the requests */
};

void script_add(struct script *s, struct sim_entry e);

/* --- a run --------------------------------------------------------------------------------------- */

#define SIM_TASKS 54 /* ids that a run may use, and those of the whole queue */

/* What is known of a task from the answers alone. */
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
	struct model_world *alone_w; /* of the task ALONE only; NULL: not in this run */
	struct model *alone;
	struct arena arena, call; /* call: of the last answer */
	struct str pass;          /* of the call */
	/* store's time minus boot time; old: what it may go back to; -1: nothing */
	int64_t epoch, old_epoch;
	bool over; /* nobody can tell how it goes on */
	bool claim_creates;
	int64_t begun, now;
	struct watched tasks[SIM_TASKS];
	struct buf why;
	FILE *tell; /* each step, as it happens; may be NULL */
	size_t n_calls;
};

/* The store to use; each run needs an empty one. */
extern const char *sim_store;

#define ALONE STR("w0")

void sim_open(struct sim *s, const struct script *script, size_t requests);
/* false: s->why says what is wrong. */
bool sim_do(struct sim *s, const struct sim_entry *e, struct answer *ans);
/* Everything there is to see, at the end. */
bool sim_end(struct sim *s);
void sim_close(struct sim *s);
/* From the start; the number of entries done without a failure: n and the end if all went well. */
bool sim_run(const struct script *script, FILE *tell, struct buf *why, size_t *done);

/* --- pieces -------------------------------------------------------------------------------------- */

bool sim_wrong(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* watch.c: what holds whatever the model says. */
bool watch_call(struct sim *s, const struct model_call *c, const struct answer *ans);
bool watch_end(struct sim *s);

/* agents.c: one seed. agents 0: as many as follow from it. true: nothing was wrong. The script has all that was
 * done. */
bool agents_run(uint64_t seed, size_t ops, uint32_t agents, FILE *tell, struct script *out,
		struct buf *why, size_t *calls);

/* shrink.c: leaves out of a script that fails what it does not need to fail. */
void script_shrink(struct script *script);
void entry_print(FILE *f, const struct sim_entry *e);
void script_free(struct script *script);

#endif
