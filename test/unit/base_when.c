#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <time.h>

#include <cmocka.h>

#include "base/when.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static void set_zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static void check_time(const char *text, int64_t want)
{
	int64_t ms = -7;

	if (!when_parse(str_c(text), &ms))
		fail_msg("refused: %s", text);
	if (ms != want)
		fail_msg("%s: %lld, not %lld", text, (long long)ms, (long long)want);
}

static void parses_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "2026-02-06T10:30:00.123Z", 1770373800123 },
		{ "2026-02-06T10:30:00Z", 1770373800000 },
		{ "2026-02-06t10:30:00z", 1770373800000 },
		{ "2026-02-06 10:30:00Z", 1770373800000 },
		{ "2026-02-06T10:30Z", 1770373800000 },
		{ "2026-02-06T12:30:00+02:00", 1770373800000 },
		{ "2026-02-06T12:30:00+0200", 1770373800000 },
		{ "2026-02-06T12:30+02", 1770373800000 },
		{ "2026-02-06T05:00:00-05:30", 1770373800000 },
		{ "2026-02-06T10:30:00-00:00", 1770373800000 },
		{ "2026-02-06T10:30:00.1Z", 1770373800100 },
		{ "2026-02-06T10:30:00.999999999Z", 1770373800999 },
		{ "2026-02-06T10:30:00", 1770373800000 },
		{ "2026-02-06 10:30", 1770373800000 },
		{ "2026-02-06", 1770336000000 },
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01T00:00:00.001Z", 1 },
		{ "2024-02-29", 1709164800000 },
		{ "2000-02-29T00:00Z", 951782400000 },
		{ "9999-12-31T23:59:59.999Z", 253402300799999 },
	};

	(void)state;
	set_zone("UTC");
	for (size_t i = 0; i < COUNT(good); i++)
		check_time(good[i].text, good[i].ms);
}

static void refuses_times(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"2026",
		"2026-02",
		"2026-2-6",
		"26-02-06",
		"2026-02-30",
		"2025-02-29",
		"2100-02-29",
		"2026-00-10",
		"2026-13-01",
		"2026-01-00",
		"2026-04-31",
		"2026/02/06",
		"1969-12-31",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00+01:00",
		"0000-01-01",
		"9999-12-31T23:59:59-01:00",
		"10000-01-01",
		"2026-02-06T",
		"2026-02-06T10",
		"2026-02-06T10:",
		"2026-02-06T1:30",
		"2026-02-06T24:00:00Z",
		"2026-02-06T24:61Z",
		"2026-02-06T10:60Z",
		"2026-02-06T10:30:60Z",
		"2026-02-06T10:30:00.Z",
		"2026-02-06T10:30:00.1234567890Z",
		"2026-02-06T10:30.5Z",
		"2026-02-06T10:30:00ZZ",
		"2026-02-06T10:30:00Z ",
		" 2026-02-06",
		"2026-02-06 ",
		"2026-02-06x",
		"2026-02-06Z",
		"2026-02-06  10:30",
		"2026-02-06T10:30:00+2",
		"2026-02-06T10:30:00+02:",
		"2026-02-06T10:30:00+02:0",
		"2026-02-06T10:30:00+02:60",
		"2026-02-06T10:30:00+24:00",
		"2026-02-06T10:30:00+020",
		"2026-02-06T10:30:00+02000",
		"2026-02-06T10:30:00 UTC",
		"-026-02-06",
		"+2026-02-06",
		"2026-02-06T-1:30",
		"2026-02-06T10:30:-1",
		"now",
	};
	int64_t ms = -7;

	(void)state;
	set_zone("UTC");
	for (size_t i = 0; i < COUNT(bad); i++)
		if (when_parse(str_c(bad[i]), &ms))
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(ms, -7);
	assert_false(when_parse(str_n("2026-02-06T10:30:00\0Z", 21), &ms));
	assert_false(when_parse(str_n(NULL, 0), &ms));
}

/* The parsers do not read past the end: each prefix of a valid text ends where unreadable memory
 * begins. */
static void reads_no_further(void **state)
{
	struct str whole = STR("2026-02-06T10:30:00.123+02:00");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
	for (size_t n = 0; n <= whole.n; n++) {
		int64_t ms;

		memcpy(p + page - n, whole.p, n);
		when_parse(str_n(p + page - n, n), &ms);
		duration_parse(str_n(p + page - n, n), &ms);
	}
	munmap(p, 2 * page);
}

static void local_times(void **state)
{
	int64_t ms;

	(void)state;
	set_zone("Europe/Berlin");
	check_time("2026-02-06T10:30:00", 1770370200000);
	check_time("2026-07-06T10:30:00", 1783326600000);
	check_time("2026-02-06", 1770332400000);
	check_time("2026-02-06T10:30:00Z", 1770373800000);
	/* skipped when the clocks go forward */
	assert_false(when_parse(STR("2026-03-29T02:30:00"), &ms));
	check_time("2026-03-29T01:59:59", 1774745999000);
	check_time("2026-03-29T03:00:00", 1774746000000);
	/* occurs twice: the first counts, no matter what was parsed before */
	check_time("2026-10-25T02:30:00", 1792888200000);
	check_time("2026-12-25T02:30:00", 1798162200000);
	check_time("2026-10-25T02:30:00", 1792888200000);
	check_time("2026-07-25T02:30:00", 1784939400000);
	check_time("2026-10-25T02:30:00", 1792888200000);

	set_zone("Asia/Kolkata");
	check_time("2026-02-06T16:00:00", 1770373800000);
	set_zone("<+14>-14");
	assert_false(when_parse(STR("1970-01-01"), &ms));
	set_zone("<-12>12");
	assert_false(when_parse(STR("9999-12-31T23:00"), &ms));
	/* a midnight that does not exist on a day that does; and a day that a country skipped */
	set_zone("America/Sao_Paulo");
	check_time("2018-11-04", 1541300400000);
	assert_false(when_parse(STR("2018-11-04T00:30"), &ms));
	set_zone("Pacific/Apia");
	assert_false(when_parse(STR("2011-12-30"), &ms));
	set_zone("UTC");
}

static void writes_times(void **state)
{
	static const int64_t times[] = {
		0, 1, 999, 1000, 951782399999, 951782400000, 1770373800123, 253402300799999
	};
	struct arena a = { 0 };

	(void)state;
	set_zone("America/New_York");
	assert_string_equal(when_text(&a, 1770373800123).p, "2026-02-06T10:30:00.123Z");
	assert_string_equal(when_text(&a, 0).p, "1970-01-01T00:00:00.000Z");
	assert_string_equal(when_text(&a, -1).p, "1969-12-31T23:59:59.999Z");
	assert_string_equal(when_date(&a, 1770373800123).p, "2026-02-06 05:30");
	assert_string_equal(when_date(&a, 1770422399999).p, "2026-02-06 18:59");
	assert_string_equal(when_date(&a, 1770422400000).p, "2026-02-07"); /* the whole day */
	assert_string_equal(when_date_iso(&a, 1770373800123).p, "2026-02-06T10:30:00.123Z");
	assert_string_equal(when_date_iso(&a, 1770422400000).p, "2026-02-07");
	assert_int_equal(when_text(&a, 0).n, 24);
	assert_int_equal(when_date(&a, 0).n, 10);
	for (size_t i = 0; i < COUNT(times); i++)
		check_time(when_text(&a, times[i]).p, times[i]);
	assert_true(when_text(&a, INT64_MAX).n > 24);
	assert_true(when_text(&a, INT64_MIN).n > 24);
	arena_free(&a);
}

static void parses_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "90", 90000 },
		{ "90s", 90000 },
		{ "0.5s", 500 },
		{ "0.5", 500 },
		{ "1.5", 1500 },
		{ "200ms", 200 },
		{ "15m", 900000 },
		{ "2h", 7200000 },
		{ "1d", 86400000 },
		{ "1w", 604800000 },
		{ "1h30m", 5400000 },
		{ "1w2d3h4m5s6ms", 788645006 },
		{ "1.5h", 5400000 },
		{ "0.25d", 21600000 },
		{ "1m0.5s", 60500 },
		{ "14m 3s", 843000 },
		{ "007s", 7000 },
		/* never rounded to 0, which means "none" */
		{ "0.0001s", 1 },
		{ "0.5ms", 1 },
		{ "0.000000001", 1 },
		{ "1.0001s", 1001 },
		{ "0.999999999w", 604800000 },
		{ "36525d", INT64_C(3155760000000) },
	};
	static const char *const bad[] = {
		"",
		" ",
		"s",
		"-1s",
		"-5",
		"+5",
		"1x",
		"1.s",
		".5s",
		"1..5s",
		"1.5.5s",
		"1 h",
		" 1h",
		"1h ",
		"1h30",
		"30 1",
		"1h  30m",
		"1s1s",
		"30m1h",
		"1ms1s",
		"1M",
		"1H",
		"1min",
		"1e3",
		"0x10",
		"inf",
		"nan",
		"1,5s",
		"36526d",
		"36525d1ms",
		"101w99999999d",
		"9223372036854775807",
		"9223372036854775808",
		"99999999999999999999999999h",
		"9223372036854775w",
		"0.1234567890s",
		"1h-30m",
	};
	int64_t ms = -7;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		if (!duration_parse(str_c(good[i].text), &ms))
			fail_msg("refused: %s", good[i].text);
		if (ms != good[i].ms)
			fail_msg("%s: %lld", good[i].text, (long long)ms);
	}
	ms = -7;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (duration_parse(str_c(bad[i]), &ms))
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(ms, -7);
	assert_false(duration_parse(str_n(NULL, 0), &ms));
}

static void writes_durations(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} table[] = {
		{ 0, "0s" },
		{ 1, "1ms" },
		{ 350, "350ms" },
		{ 999, "999ms" },
		{ 1000, "1s" },
		{ 1999, "1s" },
		{ 12000, "12s" },
		{ 59999, "59s" },
		{ 60000, "1m" },
		{ 843000, "14m 3s" },
		{ 3599999, "59m 59s" },
		{ 3600000, "1h" },
		{ 3605000, "1h" },
		{ 7500000, "2h 5m" },
		{ 86400000, "1d" },
		{ 273600000, "3d 4h" },
		{ 1209600000, "14d" },
		{ -350, "-350ms" },
		{ -843000, "-14m 3s" },
		{ INT64_MAX, "106751991167d 7h" },
		{ INT64_MIN, "-106751991167d 7h" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_string_equal(duration_text(&a, table[i].ms).p, table[i].text);
	arena_free(&a);
}

static void words(void **state)
{
	/* Tuesday, 2026-11-17 13:00 in Berlin */
	const int64_t now = INT64_C(1794916800000);
	static const struct {
		const char *text, *time, *date;
	} table[] = {
		{ "now", "2026-11-17T12:00:00.000Z", "2026-11-17 13:00" },
		{ "today", "2026-11-16T23:00:00.000Z", "2026-11-17" },
		{ "Tomorrow", "2026-11-17T23:00:00.000Z", "2026-11-18" },
		{ " yesterday  18:00 ", "2026-11-16T17:00:00.000Z", "2026-11-16 18:00" },
		{ "tomorrow at 9:05", "2026-11-18T08:05:00.000Z", "2026-11-18 09:05" },
		{ "friday", "2026-11-19T23:00:00.000Z", "2026-11-20" },
		{ "fri 17:00", "2026-11-20T16:00:00.000Z", "2026-11-20 17:00" },
		{ "tuesday", "2026-11-23T23:00:00.000Z", "2026-11-24" }, /* not today */
		{ "MON", "2026-11-22T23:00:00.000Z", "2026-11-23" },
		{ "in 3 days", "2026-11-19T23:00:00.000Z", "2026-11-20" },
		{ "in a week", "2026-11-23T23:00:00.000Z", "2026-11-24" },
		{ "in 2 weeks", "2026-11-30T23:00:00.000Z", "2026-12-01" },
		{ "in 3 months", "2027-02-16T23:00:00.000Z", "2027-02-17" },
		{ "in 2 hours", "2026-11-17T14:00:00.000Z", "2026-11-17 15:00" },
		{ "in 1h30m", "2026-11-17T13:30:00.000Z", "2026-11-17 14:30" },
		{ "in an hour", "2026-11-17T13:00:00.000Z", "2026-11-17 14:00" },
		{ "in 0 minutes", "2026-11-17T12:00:00.000Z", "2026-11-17 13:00" },
		{ "90 minutes ago", "2026-11-17T10:30:00.000Z", "2026-11-17 11:30" },
		{ "2 days ago", "2026-11-14T23:00:00.000Z", "2026-11-15" },
		{ "2h ago", "2026-11-17T10:00:00.000Z", "2026-11-17 11:00" },
		{ "2026-11-20", "2026-11-19T23:00:00.000Z", "2026-11-20" },
		{ "2026-11-20 17:00", "2026-11-20T16:00:00.000Z", "2026-11-20 17:00" },
		{ "2026-11-20T00:00:00Z", "2026-11-20T00:00:00.000Z", "2026-11-20" },
	};
	static const char *const bad[] = {
		"",
		"soon",
		"tomorrow 24:00",
		"tomorrow 17",
		"friday 1:5",
		"in",
		"in days",
		"in -1 days",
		"in 3",
		"in 3 apples",
		"next friday",
		"ago",
		" ago",
		"3 ago",
		"tomorrow 1:00 x",
		"in 1000000 days",
		"now 17:00",
		"fr",
		"in 9000 years",
		"100000 months ago",
		"in 100000 months",
		"99999 weeks ago",
		"1000000 hours ago ago",
	};
	struct arena a = { 0 };
	int64_t ms;

	(void)state;
	set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
	for (size_t i = 0; i < COUNT(table); i++) {
		if (!when_parse_words(str_c(table[i].text), now, &ms, &a))
			fail_msg("refused: %s", table[i].text);
		assert_string_equal(when_text(&a, ms).p, table[i].time);
		if (!when_parse_date(str_c(table[i].text), now, &ms, &a))
			fail_msg("refused as a date: %s", table[i].text);
		assert_string_equal(when_date(&a, ms).p, table[i].date);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		if (when_parse_words(str_c(bad[i]), now, &ms, &a) ||
		    when_parse_date(str_c(bad[i]), now, &ms, &a))
			fail_msg("accepted: %s", bad[i]);
	set_zone("UTC");
	arena_free(&a);
}

static void ends_of_months(void **state)
{
	struct arena a = { 0 };
	int64_t now, ms;

	(void)state;
	set_zone("UTC");
	assert_true(when_parse(STR("2027-12-31T08:00Z"), &now));
	assert_true(when_parse_date(STR("in 2 months"), now, &ms, &a));
	assert_string_equal(when_date(&a, ms).p, "2028-02-29"); /* a leap year */
	assert_true(when_parse_date(STR("in 14 months"), now, &ms, &a));
	assert_string_equal(when_date(&a, ms).p, "2029-02-28");
	assert_true(when_parse_date(STR("1 month ago"), now, &ms, &a));
	assert_string_equal(when_date(&a, ms).p, "2027-11-30");
	assert_true(when_parse_date(STR("tomorrow"), now, &ms, &a));
	assert_string_equal(when_date(&a, ms).p, "2028-01-01");
	arena_free(&a);
}

/* Midnight in UTC stands for the whole day: a time at that moment is still a time. */
static void keeps_times_at_midnight(void **state)
{
	struct arena a = { 0 };
	int64_t ms;

	(void)state;
	set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
	assert_true(when_parse_date(STR("2026-11-20 01:00"), 0, &ms, &a));
	assert_string_equal(when_date(&a, ms).p, "2026-11-20 01:00");
	assert_string_equal(when_date_iso(&a, ms).p, "2026-11-20T00:00:00.001Z");
	assert_true(when_parse_date(STR("2026-11-20"), 0, &ms, &a));
	assert_string_equal(when_date_iso(&a, ms).p, "2026-11-20");
	set_zone("UTC");
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_times),     cmocka_unit_test(refuses_times),
		cmocka_unit_test(reads_no_further), cmocka_unit_test(local_times),
		cmocka_unit_test(writes_times),     cmocka_unit_test(parses_durations),
		cmocka_unit_test(writes_durations), cmocka_unit_test(words),
		cmocka_unit_test(ends_of_months),   cmocka_unit_test(keeps_times_at_midnight),
	};

	return cmocka_run_group_tests_name("base/when", tests, NULL, NULL);
}
