/* Ranges, percentiles and the score. */
#include "core_kit.h"

#include "core/lock_health.h"

static void ranges(void **state)
{
	int before = -1;

	(void)state;
	assert_int_equal(health_range(-5), 0);
	assert_int_equal(health_range(0), 0);
	assert_int_equal(health_range(1), 1);
	assert_int_equal(health_range(INT64_MAX), HEALTH_RANGES - 1);
	for (int64_t us = 0; us < 70000; us++) {
		int r = health_range(us);

		assert_true(r == before || r == before + 1); /* no value is skipped */
		assert_true(us <= health_range_end(r));
		assert_true(r == 0 || us > health_range_end(r - 1));
		before = r;
	}
	for (int r = 0; r < HEALTH_RANGES - 1; r++)
		assert_int_equal(health_range(health_range_end(r)), r);
	assert_true(health_range_end(HEALTH_RANGES - 1) > INT64_C(240) * 1000000);
}

static void percentiles(void **state)
{
	uint32_t waits[HEALTH_RANGES] = { 0 };

	(void)state;
	assert_int_equal(health_percentile(waits, 95), 0);
	waits[health_range(10)] = 95;
	waits[health_range(5000)] = 5;
	assert_in_range(health_percentile(waits, 95), 10, 15);
	assert_in_range(health_percentile(waits, 96), 5000, 7500);
	assert_in_range(health_percentile(waits, 100), 5000, 7500);
}

static void score(void **state)
{
	(void)state;
	assert_int_equal(health_score(&(struct health_facts){ 0 }), 100);
	assert_int_equal(health_score(&(struct health_facts){ .stale = 1 }), 70);
	assert_int_equal(health_score(&(struct health_facts){ .stale = 99 }), 70);
	assert_int_equal(health_score(&(struct health_facts){ .recent_failures = 3 }), 100);
	assert_int_equal(health_score(&(struct health_facts){ .recent_failures = 4 }), 60);
	assert_int_equal(health_score(&(struct health_facts){ .load_percent = 200 }), 100);
	assert_int_equal(health_score(&(struct health_facts){ .load_percent = 201 }), 80);
	assert_int_equal(health_score(&(struct health_facts){
				 .stale = 1, .recent_failures = 4, .load_percent = 201 }),
			 10);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(health_name(OP_CLAIM), "CLAIM");
	assert_string_equal(health_name(OP_END), "");
	assert_string_equal(health_name(HEALTH_BATCH - 1), "");
	assert_string_equal(health_name(HEALTH_BATCH), "batch");
	assert_string_equal(health_name(HEALTH_RESTORE), "restore");
	assert_string_equal(health_name(HEALTH_END), "");
}

static void failures(void **state)
{
	const int64_t now = 1700000000000;
	struct health h = { .last_failed = { now, now - HEALTH_RECENT_MS + 1,
					     now - HEALTH_RECENT_MS } };

	(void)state;
	assert_int_equal(health_recent(&h, now), 2);
	assert_int_equal(health_failed_share(&(struct health_facts){ 0 }), 0);
	assert_int_equal(health_failed_share(&(struct health_facts){ .done = 95, .failed = 5 }),
			 500);
	assert_int_equal(health_failed_share(&(struct health_facts){ .failed = 1 }), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges), cmocka_unit_test(percentiles), cmocka_unit_test(score),
		cmocka_unit_test(names),  cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
