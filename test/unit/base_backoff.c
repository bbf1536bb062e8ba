#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/backoff.h"

#define FAR INT64_C(1000000000)
#define ROUNDS 2000

static void doubles_up_to_the_limit(void **state)
{
	static const int64_t want[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct backoff b = { .deadline = FAR };

		for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
			int64_t ms = backoff_next(&b, 0);

			assert_in_range(ms, want[i] * 3 / 4, want[i] * 5 / 4);
		}
	}
}

/* The pauses are spread over the whole range of a quarter either way. */
static void pauses_differ(void **state)
{
	int64_t least = FAR, most = 0, sum = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct backoff b = { .base_ms = 1000, .deadline = FAR };
		int64_t ms = backoff_next(&b, 0);

		least = ms < least ? ms : least;
		most = ms > most ? ms : most;
		sum += ms;
	}
	assert_in_range(least, 750, 770);
	assert_in_range(most, 1230, 1250);
	assert_in_range(sum / ROUNDS, 970, 1030);
}

static void ends_with_its_attempts(void **state)
{
	struct backoff b = { .attempts = 3, .deadline = FAR };

	(void)state;
	assert_true(backoff_next(&b, 0) > 0);
	assert_true(backoff_next(&b, 0) > 0);
	assert_int_equal(backoff_next(&b, 0), -1);
	assert_int_equal(b.made, 3);
}

/* The attempts never end before the deadline, and the last one is at the deadline. */
static void ends_at_the_deadline(void **state)
{
	struct backoff b = { .deadline = 1000 };
	int64_t now = 0, ms;

	(void)state;
	while ((ms = backoff_next(&b, now)) >= 0) {
		now += ms;
		assert_in_range(now, 1, 1000);
	}
	assert_int_equal(now, 1000);
	assert_int_equal(backoff_next(&b, 5000), -1);
}

static void odd_limits(void **state)
{
	struct backoff least = { .base_ms = 1, .max_ms = 1, .deadline = FAR },
		       most = { .base_ms = INT64_MAX, .max_ms = INT64_MAX, .deadline = INT64_MAX },
		       crossed = { .base_ms = 500, .max_ms = 100, .deadline = FAR };

	(void)state;
	assert_int_equal(backoff_next(&least, 0), 1);
	assert_in_range(backoff_next(&most, 0), 1, INT64_C(30) * 3600 * 1000);
	assert_in_range(backoff_next(&crossed, 0), 75, 125);
	for (int i = 0; i < 200; i++)
		assert_true(backoff_next(&most, 0) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles_up_to_the_limit),
		cmocka_unit_test(pauses_differ),
		cmocka_unit_test(ends_with_its_attempts),
		cmocka_unit_test(ends_at_the_deadline),
		cmocka_unit_test(odd_limits),
	};

	return cmocka_run_group_tests_name("base_backoff", tests, NULL, NULL);
}
