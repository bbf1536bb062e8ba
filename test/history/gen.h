/*
 * gen: random histories of a correct store. They come from the real queue on mem: with a simulated
 * clock, and agents whose calls overlap. Each call takes effect at some moment between sending and
 * answer. Agents die before or after their call took effect. The log looks as if it had been read
 * from a file: tokens are replaced by their 16 digits.
 */
#ifndef TEST_HISTORY_GEN_H
#define TEST_HISTORY_GEN_H

#include "proof/history/history.h"

struct gen {
	uint64_t seed;
	size_t agents, tasks, calls;
	unsigned kills;     /* per 1000 calls */
	unsigned faults;    /* per 1000 calls: answered with API_ERROR, applied or not */
	unsigned links;     /* per 100 tasks: depend on another task, or are its sub-task */
	bool removes, next; /* tasks are removed and created again; done --claim-next */
	bool makes;         /* tasks whose ids the queue creates */
	bool guards;        /* locks of the whole queue and emergencies */
	int64_t slow_ns;    /* longest duration of a call */
	int64_t max_abandoned;
};

extern const struct gen gen_default;

void gen_run(const struct gen *g, struct history_log *out);

#endif
