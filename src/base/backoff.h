/*
 * backoff: the pauses between attempts, for callers that cannot wait in the kernel for their turn.
 * Each pause is twice as long as the one before, up to a limit. A random change of up to a quarter
 * keeps two callers that collided once from colliding again.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

#define BACKOFF_BASE_MS 100
#define BACKOFF_MAX_MS 5000

struct backoff {
	int64_t base_ms, max_ms; /* the first pause and the longest; 0: the default */
	int64_t attempts;        /* limit of attempts; 0: as many as fit before the deadline */
	int64_t deadline;        /* on the same clock as `now` */
	int64_t made;            /* attempts so far */
};

/* Call it after a failed attempt. Returns the ms to wait before the next attempt; the attempt at
 * the deadline is the last. -1: give up. */
int64_t backoff_next(struct backoff *b, int64_t now);

/* --- seeded ----------------------------------------------------------------------------------- */

/*
 * seeded: pseudo-random numbers, the same for the same seed (splitmix64). Not for secrets.
 */

static inline uint64_t seeded_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* 0 to limit - 1 */
static inline uint32_t seeded_below(uint64_t *state, uint32_t limit)
{
	return (uint32_t)((seeded_next(state) >> 32) * limit >> 32);
}

#endif
