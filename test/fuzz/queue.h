/*
 * A new queue in memory, for fuzzers of what a queue takes in.
 */
#ifndef FUZZ_QUEUE_H
#define FUZZ_QUEUE_H

#include "kit.h"
#include "queue/queue.h"
#include "store/mem/mem.h"

static inline struct queue *fuzz_queue(struct arena *a)
{
	struct queue_config config = { .uri = STR("mem:fuzz"),
				       .policy = policy_default,
				       .opt.timeout_ms = 1000,
				       .impatient = true,
				       .opt.who = STR("fuzz") };
	struct answer ans = { 0 };
	struct queue *q = NULL;

	mem_reset();
	CHECK(queue_open(&q, &config, STORE_CREATE, &ans, a) == SUCCESS);
	return q;
}

#endif
