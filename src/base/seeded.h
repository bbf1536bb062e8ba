/*
 * seeded: pseudo-random numbers, the same for the same seed (splitmix64). Not for secrets.
 */
#ifndef BASE_SEEDED_H
#define BASE_SEEDED_H

#include <stdint.h>

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
