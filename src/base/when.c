/* Times and durations as text. A time that does not exist, because the clocks skip it, is refused.
 * For a local time that occurs twice, the first is used, so the same text always means the same
 * time. */
#include "base/when.h"

#include <time.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define WEEK (7 * DAY)

#define DURATION_MAX (36525 * DAY) /* a century: a larger value is a typing error */

static bool take_char(struct str *s, char c)
{
	if (!s->n || s->p[0] != c)
		return false;
	s->p++, s->n--;
	return true;
}

static bool starts_with_digit(struct str s)
{
	return s.n && s.p[0] >= '0' && s.p[0] <= '9';
}

/* Exactly `digits` digits. */
static bool take_number(struct str *s, int digits, int *out)
{
	int v = 0;

	for (; digits; digits--) {
		if (!starts_with_digit(*s))
			return false;
		v = v * 10 + (*s->p++ - '0');
		s->n--;
	}
	*out = v;
	return true;
}

/* The digits after a decimal point, as billionths. */
static bool take_fraction(struct str *s, int64_t *nano)
{
	int64_t unit = 1000000000;

	*nano = 0;
	if (!starts_with_digit(*s))
		return false;
	while (starts_with_digit(*s)) {
		unit /= 10;
		if (!unit)
			return false;
		*nano += (*s->p++ - '0') * unit;
		s->n--;
	}
	return true;
}

static bool take_date(struct str *s, struct tm *tm)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, m, d;
	bool leap;

	if (!take_number(s, 4, &y) || !take_char(s, '-') || !take_number(s, 2, &m) ||
	    !take_char(s, '-') || !take_number(s, 2, &d))
		return false;
	if (y < 1970 || m < 1 || m > 12 || d < 1)
		return false;
	leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	if (d > days[m - 1] + (m == 2 && leap))
		return false;
	tm->tm_year = y - 1900;
	tm->tm_mon = m - 1;
	tm->tm_mday = d;
	return true;
}

static bool take_clock(struct str *s, struct tm *tm, int64_t *nano)
{
	if (!take_number(s, 2, &tm->tm_hour) || !take_char(s, ':') ||
	    !take_number(s, 2, &tm->tm_min))
		return false;
	if (take_char(s, ':')) {
		if (!take_number(s, 2, &tm->tm_sec))
			return false;
		if (take_char(s, '.') && !take_fraction(s, nano))
			return false;
	}
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* The offset after the clock time: Z, +02:00, +0200, +02. */
static bool take_offset(struct str *s, int64_t *seconds)
{
	int sign, h, m = 0;

	if (take_char(s, 'Z') || take_char(s, 'z')) {
		*seconds = 0;
		return true;
	}
	if (take_char(s, '+'))
		sign = 1;
	else if (take_char(s, '-'))
		sign = -1;
	else
		return false;
	if (!take_number(s, 2, &h))
		return false;
	if ((take_char(s, ':') || s->n) && !take_number(s, 2, &m))
		return false;
	*seconds = sign * (h * 3600 + m * 60);
	return h < 24 && m < 60;
}

static bool same_clock(const struct tm *a, const struct tm *b)
{
	return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
	       a->tm_hour == b->tm_hour && a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

static bool local_seconds(const struct tm *want, int64_t *out)
{
	static const int back[] = { 7200, 3600, 1800 };
	struct tm tm = *want;
	time_t t;

	tm.tm_isdst = -1;
	t = mktime(&tm);
	/* mktime() moves a time that a clock change skips; that time does not exist */
	if (!same_clock(&tm, want))
		return false;
	/* For a time that occurs twice, mktime returns either, depending on earlier calls. Take the
	 * first. */
	for (size_t i = 0; i < sizeof(back) / sizeof(back[0]); i++) {
		time_t before = t - back[i];

		if (localtime_r(&before, &tm) && same_clock(&tm, want)) {
			t = before;
			break;
		}
	}
	*out = t;
	return true;
}

/* A day begins after midnight if the clocks change at midnight. */
static bool local_day(struct tm *tm, int64_t *out)
{
	static const int starts[] = { 0, 30, 60 };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		tm->tm_hour = starts[i] / 60;
		tm->tm_min = starts[i] % 60;
		if (local_seconds(tm, out))
			return true;
	}
	return false;
}

bool when_parse(struct str text, int64_t *ms)
{
	struct tm tm = { 0 };
	int64_t nano = 0, offset, seconds;

	if (!take_date(&text, &tm))
		return false;
	if (!text.n) {
		if (!local_day(&tm, &seconds))
			return false;
	} else {
		if (!take_char(&text, 'T') && !take_char(&text, 't') && !take_char(&text, ' '))
			return false;
		if (!take_clock(&text, &tm, &nano))
			return false;
		if (!text.n) {
			if (!local_seconds(&tm, &seconds))
				return false;
		} else {
			if (!take_offset(&text, &offset) || text.n)
				return false;
			seconds = timegm(&tm) - offset;
		}
	}
	seconds = seconds * SECOND + nano / 1000000;
	if (seconds < 0 || seconds > WHEN_MAX)
		return false;
	*ms = seconds;
	return true;
}

static int break_down(int64_t ms, struct tm *tm)
{
	int64_t rest = ms % SECOND;
	time_t t = ms / SECOND;

	if (rest < 0) {
		rest += SECOND;
		t--;
	}
	gmtime_r(&t, tm);
	return (int)rest;
}

/* Writes `width` digits that end before `end`. */
static void put_digits(char *end, int width, int value)
{
	for (; width; width--, value /= 10)
		*--end = (char)('0' + value % 10);
}

/* Writes the digits by hand, because every answer contains many times. With printf() they would
 * take a tenth of a call's cost outside the store. */
struct str when_text(struct arena *a, int64_t ms)
{
	struct tm tm;
	int rest = break_down(ms, &tm), year = tm.tm_year + 1900;
	struct str text;
	char *p;

	if (year < 0 || year > 9999)
		return arena_printf(a, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, tm.tm_mon + 1,
				    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, rest);
	p = arena_cstr(a, STR("0000-00-00T00:00:00.000Z"));
	text = str_c(p);
	put_digits(p + 4, 4, year);
	put_digits(p + 7, 2, tm.tm_mon + 1);
	put_digits(p + 10, 2, tm.tm_mday);
	put_digits(p + 13, 2, tm.tm_hour);
	put_digits(p + 16, 2, tm.tm_min);
	put_digits(p + 19, 2, tm.tm_sec);
	put_digits(p + 23, 3, rest);
	return text;
}

struct str when_local(struct arena *a, int64_t ms)
{
	time_t t = ms / SECOND;
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	return arena_printf(a, "%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
			    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static struct str day_text(struct arena *a, const struct tm *tm)
{
	return arena_printf(a, "%04d-%02d-%02d", tm->tm_year + 1900, tm->tm_mon + 1, tm->tm_mday);
}

struct str when_date_iso(struct arena *a, int64_t ms)
{
	struct tm tm;

	if (ms % DAY)
		return when_text(a, ms);
	break_down(ms, &tm);
	return day_text(a, &tm);
}

struct str when_date(struct arena *a, int64_t ms)
{
	time_t t = ms / SECOND;
	struct tm tm;

	if (ms % DAY == 0 || !localtime_r(&t, &tm))
		return when_date_iso(a, ms);
	return arena_printf(a, "%s %02d:%02d", arena_cstr(a, day_text(a, &tm)), tm.tm_hour,
			    tm.tm_min);
}

static bool take_unit(struct str *s, int64_t *unit)
{
	/* "ms" is before "m": the longer name must be tried first. */
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {
		{ "ms", 1 },   { "s", SECOND }, { "m", MINUTE },
		{ "h", HOUR }, { "d", DAY },    { "w", WEEK },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		struct str name = str_c(units[i].name);

		if (!str_starts(*s, name))
			continue;
		s->p += name.n;
		s->n -= name.n;
		*unit = units[i].ms;
		return true;
	}
	return false;
}

/* 1.5 → 1 and 500000000. */
static bool take_decimal(struct str *s, int64_t *whole, int64_t *nano)
{
	*whole = *nano = 0;
	if (!starts_with_digit(*s))
		return false;
	while (starts_with_digit(*s)) {
		*whole = *whole * 10 + (*s->p++ - '0');
		s->n--;
		if (*whole > DURATION_MAX)
			return false;
	}
	return !take_char(s, '.') || take_fraction(s, nano);
}

/* Rounds up, so that a short time never becomes 0, which means "none". */
static bool when_scale(int64_t whole, int64_t nano, int64_t unit, int64_t *ms)
{
	const int64_t billion = 1000000000;
	int64_t part = (nano * unit + billion - 1) / billion;

	return !__builtin_mul_overflow(whole, unit, ms) && !__builtin_add_overflow(*ms, part, ms) &&
	       *ms <= DURATION_MAX;
}

bool duration_parse(struct str text, int64_t *ms)
{
	int64_t sum = 0, last = INT64_MAX;

	do {
		int64_t whole, nano, unit, part;

		if (!take_decimal(&text, &whole, &nano))
			return false;
		if (!take_unit(&text, &unit)) {
			/* only a number that stands alone may omit its unit */
			if (text.n || last != INT64_MAX)
				return false;
			unit = SECOND;
		}
		/* units must descend: "30m1m" is more likely a mistake */
		if (unit >= last || !when_scale(whole, nano, unit, &part))
			return false;
		sum += part;
		if (sum > DURATION_MAX)
			return false;
		last = unit;
		if (text.n && take_char(&text, ' ') && !text.n)
			return false;
	} while (text.n);
	*ms = sum;
	return true;
}

struct str duration_text(struct arena *a, int64_t ms)
{
	static const struct {
		const char *name, *next;
		uint64_t ms, next_ms;
	} units[] = {
		{ "d", "h", DAY, HOUR },
		{ "h", "m", HOUR, MINUTE },
		{ "m", "s", MINUTE, SECOND },
	};
	const char *sign = ms < 0 ? "-" : "";
	uint64_t v = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		unsigned long long high = v / units[i].ms, low = v % units[i].ms / units[i].next_ms;

		if (high && low)
			return arena_printf(a, "%s%llu%s %llu%s", sign, high, units[i].name, low,
					    units[i].next);
		if (high)
			return arena_printf(a, "%s%llu%s", sign, high, units[i].name);
	}
	if (v && v < 1000)
		return arena_printf(a, "%s%llums", sign, (unsigned long long)v);
	return arena_printf(a, "%s%llus", sign, (unsigned long long)v / 1000);
}
