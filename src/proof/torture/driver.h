/*
 * driver: the agents' processes, and what happens to them.
 */
#ifndef TORTURE_DRIVER_H
#define TORTURE_DRIVER_H

#include <sys/types.h>

#include "proof/torture/board.h"

struct body {
	pid_t pid;            /* 0: it has ended */
	int life;             /* how many processes came before */
	int64_t continues_at; /* 0: it is not stopped */
};

struct driver {
	const struct torture_plan *plan;
	struct board *board;
	struct str queue;
	struct str keeper; /* token of the lock that keeps the store's clock */
	int64_t renew_at;
	bool made; /* the queue is there, and has to be removed */
	struct history *history;
	const char *folder; /* of the parts */
	struct strs parts;
	struct body *bodies;
	uint64_t random;
	int64_t began;
	struct torture_figures figures;
	struct str trouble; /* why it could not go on; empty: nothing */
	bool store_failed;  /* that is why */
	bool interrupted;
	struct arena *arena;
};

/* Runs the agents to their end. */
void driver_run(struct driver *d);
/* The name of a new part. */
const char *driver_part(struct driver *d, const char *name);

#endif
