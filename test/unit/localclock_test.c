/* The clock of a store on one machine: the effect of a jump, a reboot and a wrong clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/local/local_clock.h"

static int64_t wall_ms, boot_ms;

static int64_t wall(void)
{
	return wall_ms;
}

static int64_t boot(void)
{
	return boot_ms;
}

static struct localclock make(const char *boot_id)
{
	struct store_env env = { .opt.wall = wall,
				 .opt.boot = boot,
				 .opt.boot_id = str_c(boot_id) };
	struct localclock c;

	localclock_init(&c, &env);
	return c;
}

static void pass(int64_t ms)
{
	wall_ms += ms;
	boot_ms += ms;
}

static void test_first_anchor(void **state)
{
	struct localclock c;
	struct anchor a = { .boot_id = "" };

	(void)state;
	wall_ms = 1000000, boot_ms = 500;
	c = make("one");
	assert_true(localclock_renew(&c, &a, 0));
	assert_true(localclock_now(&c, &a) == 1000000);
	pass(250);
	assert_true(localclock_now(&c, &a) == 1000250);
	assert_false(localclock_renew(&c, &a, 9999999));
	assert_true(localclock_now(&c, &a) == 1000250);
}

static void test_wall_jumps(void **state)
{
	struct localclock c;
	struct anchor a = { .boot_id = "" };
	const int64_t jumps[] = { 3600000, -7200000, 86400000 };

	(void)state;
	wall_ms = 50000000, boot_ms = 500;
	c = make("one");
	localclock_renew(&c, &a, 0);
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		int64_t before = localclock_now(&c, &a);

		wall_ms += jumps[i];
		assert_true(localclock_now(&c, &a) == before);
		pass(10);
		assert_true(localclock_now(&c, &a) == before + 10);
		assert_true(localclock_strays(&c, &a));
	}
}

static void test_reboot(void **state)
{
	struct localclock c;
	struct anchor a = { .boot_id = "one", .wall = 1000000, .boot = 500 }, b = a;

	(void)state;
	wall_ms = 2000000, boot_ms = 30;
	c = make("two");
	assert_true(localclock_renew(&c, &b, 0));
	assert_true(localclock_now(&c, &b) == 2000000);
	assert_string_equal(b.boot_id, "two");

	wall_ms = 10; /* no battery: never earlier than the anchor or the newest entry */
	b = a;
	assert_true(localclock_renew(&c, &b, 0));
	assert_true(localclock_now(&c, &b) == 1000000);
	b = a;
	assert_true(localclock_renew(&c, &b, 1700000));
	assert_true(localclock_now(&c, &b) == 1700000);
	pass(5);
	assert_true(localclock_now(&c, &b) == 1700005);
}

static void test_heal(void **state)
{
	struct localclock c;
	struct anchor a = { .boot_id = "" };

	(void)state;
	wall_ms = 1000, boot_ms = 0;
	c = make("one");
	localclock_renew(&c, &a, 0);
	assert_false(localclock_strays(&c, &a));
	wall_ms += LOCALCLOCK_STRAY;
	assert_false(localclock_strays(&c, &a));
	wall_ms += 1;
	assert_true(localclock_strays(&c, &a));
	assert_true(localclock_ahead(&c, &a) == -LOCALCLOCK_STRAY - 1);
	localclock_heal(&c, &a);
	assert_true(localclock_now(&c, &a) == wall_ms);
	assert_false(localclock_strays(&c, &a));
}

/* If the boot clock steps back within a boot (a container with its own clock), time at worst stands
 * still. */
static void test_boot_behind(void **state)
{
	struct localclock c;
	struct anchor a = { .boot_id = "one", .wall = 1000000, .boot = 500 };

	(void)state;
	wall_ms = 1000000, boot_ms = 100;
	c = make("one");
	assert_true(localclock_now(&c, &a) == 1000000);
}

/* A boot clock far behind means that the anchor was made under a shifted boot clock. */
static void test_anchor_of_the_future(void **state)
{
	struct localclock c;
	struct anchor a = { .boot_id = "one", .wall = 1000000, .boot = 100000500 };

	(void)state;
	wall_ms = 2000000, boot_ms = 500;
	c = make("one");
	assert_false(localclock_fits(&c, &a));
	assert_true(localclock_renew(&c, &a, 1500000));
	assert_true(localclock_fits(&c, &a));
	assert_true(localclock_now(&c, &a) == 2000000);
	pass(10);
	assert_true(localclock_now(&c, &a) == 2000010);
}

static void test_only_wall(void **state)
{
	struct store_env env = { .opt.wall = wall };
	struct anchor a = { .boot_id = "" };
	struct localclock c;

	(void)state;
	wall_ms = 7000;
	localclock_init(&c, &env);
	localclock_renew(&c, &a, 0);
	wall_ms += 60000;
	assert_true(localclock_now(&c, &a) == 67000);
}

static void test_long_boot_id(void **state)
{
	char id[200] = "";
	struct store_env env = { .opt.wall = wall,
				 .opt.boot = boot,
				 .opt.boot_id = str_n(id, sizeof(id)) };
	struct anchor a = { .boot_id = "" };
	struct localclock c;

	(void)state;
	memset(id, 'x', sizeof(id));
	localclock_init(&c, &env);
	assert_true(localclock_renew(&c, &a, 0));
	assert_false(localclock_renew(&c, &a, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_anchor), cmocka_unit_test(test_wall_jumps),
		cmocka_unit_test(test_reboot),       cmocka_unit_test(test_heal),
		cmocka_unit_test(test_boot_behind),  cmocka_unit_test(test_only_wall),
		cmocka_unit_test(test_long_boot_id), cmocka_unit_test(test_anchor_of_the_future),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
