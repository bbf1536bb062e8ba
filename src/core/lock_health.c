/*
 * Turns the counters of lock use into percentiles, a failure rate and a score. Waits are counted in
 * HEALTH_RANGES ranges of growing length, so a percentile needs no list of single waits.
 */
#include "core/lock_health.h"

int health_range(int64_t us)
{
	int bits, range;

	if (us <= 1)
		return us == 1;
	bits = 63 - __builtin_clzll((unsigned long long)us);
	range = 2 * bits + (int)(us >> (bits - 1) & 1);
	return range < HEALTH_RANGES ? range : HEALTH_RANGES - 1;
}

int64_t health_range_end(int range)
{
	int bits = range / 2;

	if (range < 2)
		return range;
	return range & 1 ? (INT64_C(2) << bits) - 1 : (INT64_C(3) << bits) / 2 - 1;
}

int64_t health_percentile(const uint32_t *ranges, int percent)
{
	uint64_t total = 0, seen = 0;
	int range = 0;

	for (int i = 0; i < HEALTH_RANGES; i++)
		total += ranges[i];
	if (!total)
		return 0;
	while ((seen += ranges[range]) * 100 < total * (uint64_t)percent)
		range++;
	return health_range_end(range);
}

int health_score(const struct health_facts *f)
{
	int score = 100;

	if (f->stale)
		score -= 30;
	if (f->recent_failures > HEALTH_FAILURES)
		score -= 40;
	if (f->load_percent > HEALTH_LOAD)
		score -= 20;
	return score;
}

const char *health_name(int op)
{
	static const char *const kinds[] = { "batch", "import", "clear", "restore" };

	if (op < OP_END)
		return op_name((enum op)op);
	return op >= HEALTH_BATCH && op < HEALTH_END ? kinds[op - HEALTH_BATCH] : "";
}

int64_t health_recent(const struct health *h, int64_t now)
{
	int64_t n = 0;

	for (size_t i = 0; i < sizeof(h->last_failed) / sizeof(*h->last_failed); i++)
		n += h->last_failed[i] > now - HEALTH_RECENT_MS;
	return n;
}

int64_t health_failed_share(const struct health_facts *f)
{
	int64_t all = f->done + f->failed;

	return all ? (int64_t)((double)f->failed * 10000 / (double)all) : 0;
}
