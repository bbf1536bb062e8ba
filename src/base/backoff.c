/* The pauses between attempts. They double up to a limit and vary at random, so that callers that
 * collided once do not collide again. No pause goes past the deadline. */
#include "base/backoff.h"

#include "base/secret.h"

#define LONGEST_MS (INT64_C(24) * 3600 * 1000)

static int64_t or_else(int64_t n, int64_t otherwise)
{
	return n > 0 ? n : otherwise;
}

static int64_t pause_after(const struct backoff *b)
{
	int64_t ms = or_else(b->base_ms, BACKOFF_BASE_MS), max = or_else(b->max_ms, BACKOFF_MAX_MS);

	if (max > LONGEST_MS)
		max = LONGEST_MS;
	for (int64_t i = 1; i < b->made && ms < max; i++)
		ms *= 2;
	return ms < max ? ms : max;
}

/* Between 75 % and 125 % of `ms`. */
static int64_t backoff_jittered(int64_t ms)
{
	return ms - ms / 4 + random_below((uint32_t)(ms / 4 * 2) + 1);
}

int64_t backoff_next(struct backoff *b, int64_t now)
{
	int64_t left = b->deadline - now, ms;

	b->made++;
	if (left <= 0 || (b->attempts > 0 && b->made >= b->attempts))
		return -1;
	ms = backoff_jittered(pause_after(b));
	return ms < left ? ms : left;
}
