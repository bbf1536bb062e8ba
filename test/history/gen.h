/*
 * gen: random histories of a right store. The real queue on mem:, with a clock of its own, and agents whose
 * calls overlap: each call is done at some moment between sending and answer. Agents die, with their call
 * done or not. The log is as if it had been read back: tokens are their 16 digits.
 */
#ifndef TEST_HISTORY_GEN_H
#define TEST_HISTORY_GEN_H

#include "proof/history/history.h"

struct gen {
	uint64_t seed;
	size_t agents, tasks, calls;
	unsigned kills;     /* of 1000 calls */
	unsigned faults;    /* of 1000 calls: answered with API_ERROR, done or not */
	unsigned links;     /* of 100 tasks: depend on another, or are its sub-task */
	bool removes, next; /* tasks are removed and made again; done --claim-next */
	bool makes;         /* tasks whose ids the queue makes */
	bool guards;        /* locks of the whole queue, and emergencies */
	int64_t slow_ns;    /* how long a call takes at most */
	int64_t max_abandoned;
};

extern const struct gen gen_default;

void gen_run(const struct gen *g, struct history_log *out);

#endif
