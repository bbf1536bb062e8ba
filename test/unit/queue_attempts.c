#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "queue/queue.h"

#define HOUR INT64_C(3600000)
#define SLOW 9000 /* a machine may stop this process for 9 s */

static void an_answer_names_the_time(void **state)
{
	struct attempts t;

	(void)state;
	attempts_begin(&t, HOUR);
	attempts_after(&t, 20000);
	assert_in_range(attempts_left(&t), 20000 - SLOW, 20000);
	assert_false(attempts_over(&t));
}

/* A store may not notice a change from another machine. */
static void an_attempt_is_due_in_any_case(void **state)
{
	struct attempts t;

	(void)state;
	attempts_begin(&t, INT64_MAX);
	attempts_after(&t, 0);
	assert_in_range(attempts_left(&t), ATTEMPTS_MAX_MS - SLOW, ATTEMPTS_MAX_MS);
	attempts_after(&t, HOUR);
	assert_in_range(attempts_left(&t), ATTEMPTS_MAX_MS - SLOW, ATTEMPTS_MAX_MS);
	assert_false(attempts_over(&t));
}

static void the_last_attempt_is_at_the_end(void **state)
{
	struct attempts t;

	(void)state;
	attempts_begin(&t, 15000);
	attempts_after(&t, 25000);
	assert_in_range(attempts_left(&t), 15000 - SLOW, 15000);
	attempts_begin(&t, 0);
	attempts_after(&t, 25000);
	assert_int_equal(attempts_left(&t), 0);
	assert_true(attempts_over(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_names_the_time),
		cmocka_unit_test(an_attempt_is_due_in_any_case),
		cmocka_unit_test(the_last_attempt_is_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
