/*
 * backoff: the pauses between attempts, for those who cannot wait in the kernel for their turn. Each is
 * twice as long as the one before, up to a limit, and up to a quarter longer or shorter at random: who met
 * once should not meet again.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

#define BACKOFF_BASE_MS 100
#define BACKOFF_MAX_MS 5000

struct backoff {
	int64_t base_ms, max_ms; /* the first pause, the longest; 0: as above */
	int64_t attempts;        /* in all; 0: as many as there is time for */
	int64_t deadline;        /* on the clock that `now` is from */
	int64_t made;            /* attempts so far */
};

/* After an attempt in vain: how many ms to wait before the next one, which at the deadline is the last; -1: there
 * is none. */
int64_t backoff_next(struct backoff *b, int64_t now);

#endif
