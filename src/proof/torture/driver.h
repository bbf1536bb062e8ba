/*
 * driver: runs the agents' processes and disturbs them.
 */
#ifndef PROOF_TORTURE_DRIVER_H
#define PROOF_TORTURE_DRIVER_H

#include <sys/types.h>

#include "proof/torture/board.h"

struct body {
	pid_t pid;            /* 0: the process has ended */
	int life;             /* number of earlier processes of this agent */
	const char *part;     /* its part of the history */
	int64_t continues_at; /* 0: not stopped */
};

struct driver {
	struct torture_plan own; /* the caller's plan, and the policy of a server */
	const struct torture_plan *plan;
	struct board *board;
	struct str queue;
	struct str clock_token; /* token of the lock that holds the store's clock */
	int64_t renew_at;
	bool made; /* the queue exists and must be removed */
	struct history *history;
	const char *folder; /* the folder of the parts */
	struct strs parts;
	struct body *bodies;
	uint64_t random;
	int64_t began;
	struct torture_figures figures;
	struct str trouble; /* why the run could not go on; empty: it could */
	bool store_failed;  /* the trouble is that the store failed */
	bool interrupted;
	struct arena *arena;
};

/* Runs the agents to their end. */
void driver_run(struct driver *d);
/* The path of a new part. */
const char *driver_part(struct driver *d, const char *name);

#endif
