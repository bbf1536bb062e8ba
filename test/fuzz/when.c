/* Times and durations: printed text parses back to the same value. */
#include <inttypes.h>
#include <time.h>

#include "kit.h"
#include "base/when.h"

#define SECOND INT64_C(1000)
#define DAY (24 * 3600 * SECOND)
#define TIME_MAX INT64_C(253402300799999)
#define DURATION_MAX (36525 * DAY)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	/* hours that do not exist and hours that occur twice */
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	return 0;
}

static void check_time(struct arena *a, int64_t ms)
{
	struct str text = when_text(a, ms), date = when_date_iso(a, ms);
	int64_t again = -1;

	CHECK(text.n == strlen("2026-02-06T10:30:00.123Z"));
	CHECK(when_parse(text, &again) && again == ms);
	CHECK((date.n == 10 || date.n == text.n) && str_starts(text, date));
	CHECK(when_parse_date(date, 0, &again, a) && again == ms);
	CHECK(when_date(a, ms).n >= 10);
}

/* Without a zone it is local time: the system's calendar must agree. */
static void check_local(struct str text, int64_t ms)
{
	struct tm tm;
	time_t t = ms / SECOND;
	char want[32];

	for (size_t i = 10; i < text.n; i++)
		if (strchr("zZ+-", text.p[i]))
			return;
	CHECK(localtime_r(&t, &tm));
	strftime(want, sizeof(want), "%Y-%m-%d %H:%M:%S", &tm);
	if (text.n > 10)
		want[10] = text.p[10];
	CHECK(str_starts(text, str_n(want, text.n < 16 ? text.n : text.n < 19 ? 16 : 19)));
}

static void check_duration(struct arena *a, int64_t ms)
{
	int64_t again = -1;

	CHECK(ms >= 0 && ms <= DURATION_MAX);
	CHECK(duration_parse(arena_printf(a, "%" PRId64 "ms", ms), &again) && again == ms);
	CHECK(duration_parse(arena_printf(a, "%" PRId64 ".%03ds", ms / SECOND, (int)(ms % SECOND)),
			     &again));
	CHECK(again == ms);
	/* for people: only the small units are left out */
	CHECK(duration_parse(duration_text(a, ms), &again));
	CHECK(again <= ms && ms - again < 3600 * SECOND && (again > 0) == (ms > 0));
	CHECK(str_eq(duration_text(a, again), duration_text(a, ms)));
}

/* A damaged file can contain any number, and it must be shown. */
static void check_any(struct arena *a, const uint8_t *data, size_t size)
{
	uint64_t raw = 0;
	int64_t ms;

	for (size_t i = 0; i < size && i < 8; i++)
		raw = raw << 8 | data[i];
	ms = (int64_t)raw;
	CHECK(when_text(a, ms).n && when_date(a, ms).n && duration_text(a, ms).n);
	check_time(a, (int64_t)(raw % (TIME_MAX + 1)));
	check_duration(a, (int64_t)(raw % (DURATION_MAX + 1)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size);
	int64_t ms = -1;

	if (when_parse(text, &ms)) {
		CHECK(ms >= 0 && ms <= TIME_MAX);
		check_time(&a, ms);
		check_local(text, ms);
	}
	if (when_parse_words(text, TIME_MAX / 4, &ms, &a))
		CHECK(ms >= 0 && ms <= TIME_MAX);
	if (when_parse_date(text, TIME_MAX / 4, &ms, &a))
		CHECK(ms >= 0 && ms <= TIME_MAX && when_date(&a, ms).n);
	if (duration_parse(text, &ms))
		check_duration(&a, ms);
	check_any(&a, data, size);
	arena_free(&a);
	return 0;
}
