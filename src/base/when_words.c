/* Times as people say them: "tomorrow", "friday 17:00", "in 3 days". A day and a clock time become
 * text for when_parse(), so that the rules about zones and clock changes are in one place. */
#include "base/when.h"

#include <time.h>

#define MINUTE (60 * INT64_C(1000))
#define DAY (24 * 60 * MINUTE)
#define COUNT_MAX 100000

/* A day, and the time of day if the text has one. */
struct said {
	struct tm day;
	int hour, minute; /* hour -1: no time of day */
};

/* Cuts the next word from *s, and the blanks around it. */
static struct str take_word(struct str *s)
{
	struct str word;

	*s = str_trim(*s);
	word = str_cut(s, ' ');
	*s = str_trim(*s);
	return word;
}

static bool word_is(struct str word, const char *name)
{
	return str_eq_nocase(word, str_c(name));
}

/* Moves by days or months. In a month without a 31st, the 31st becomes the last day. */
static void when_words_move(struct tm *day, int days, int months)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int months_in = day->tm_year * 12 + day->tm_mon + months, year, last;
	time_t t;

	if (months_in < 0) /* before 1900: when_parse() refuses it */
		months_in = 0;
	day->tm_year = months_in / 12;
	day->tm_mon = months_in % 12;
	year = day->tm_year + 1900;
	last = lengths[day->tm_mon] +
	       (day->tm_mon == 1 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0));
	if (day->tm_mday > last)
		day->tm_mday = last;
	day->tm_mday += days;
	day->tm_hour = 12, day->tm_min = day->tm_sec = 0;
	t = timegm(day);
	gmtime_r(&t, day);
}

/* "fri" and "friday" mean the next Friday after today. */
static bool take_weekday(struct str word, struct tm *day)
{
	static const char *const names[] = { "sunday",   "monday", "tuesday", "wednesday",
					     "thursday", "friday", "saturday" };

	for (int i = 0; i < 7; i++)
		if (word_is(word, names[i]) ||
		    (word.n == 3 && str_eq_nocase(word, str_n(names[i], 3)))) {
			when_words_move(day, (i - day->tm_wday + 6) % 7 + 1, 0);
			return true;
		}
	return false;
}

static bool take_day(struct str word, struct tm *day)
{
	static const struct {
		const char *name;
		int days;
	} names[] = { { "yesterday", -1 }, { "today", 0 }, { "tomorrow", 1 } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (word_is(word, names[i].name)) {
			when_words_move(day, names[i].days, 0);
			return true;
		}
	return take_weekday(word, day);
}

/* "17:00" or "9:30", perhaps after "at". */
static bool take_clock(struct str text, struct said *out)
{
	struct str rest = text, word = take_word(&rest), hour;
	int64_t h, m;

	if (word_is(word, "at"))
		word = take_word(&rest);
	hour = str_cut(&word, ':');
	if (rest.n || word.n != 2 || !hour.n || hour.n > 2 || !str_to_i64(hour, &h) ||
	    !str_to_i64(word, &m) || h < 0 || h > 23 || m < 0 || m > 59)
		return false;
	out->hour = (int)h;
	out->minute = (int)m;
	return true;
}

/* --- a number of units ---------------------------------------------------------------------- */

/* MOMENT: a number of ms from now. WHOLE_DAY: a day, with the time of day if the text has one. */
enum found { NOTHING, MOMENT, WHOLE_DAY };

struct unit {
	const char *name;
	int days, months;
	int64_t ms;
};

static const struct unit *find_unit(struct str word)
{
	static const struct unit units[] = {
		{ "minute", 0, 0, MINUTE }, { "min", 0, 0, MINUTE }, { "hour", 0, 0, 60 * MINUTE },
		{ "day", 1, 0, 0 },         { "week", 7, 0, 0 },     { "month", 0, 1, 0 },
	};

	if (word.n > 3 && (word.p[word.n - 1] == 's' || word.p[word.n - 1] == 'S'))
		word.n--;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (word_is(word, units[i].name))
			return &units[i];
	return NULL;
}

/* "3 days", "a week", or a duration such as 1h30m; sign: -1 for "ago". */
static enum found take_span(struct str text, int sign, struct said *out, int64_t *ms)
{
	struct str rest = text, word = take_word(&rest);
	const struct unit *unit;
	int64_t n = 1;

	if (duration_parse(text, ms) && word.n &&
	    (word.p[word.n - 1] < '0' || word.p[word.n - 1] > '9')) {
		*ms *= sign;
		return MOMENT;
	}
	if (!word_is(word, "a") && !word_is(word, "an") && !str_to_i64(word, &n))
		return NOTHING;
	unit = find_unit(rest);
	if (!unit || n < 0 || n > COUNT_MAX)
		return NOTHING;
	*ms = sign * n * unit->ms;
	if (unit->ms)
		return MOMENT;
	when_words_move(&out->day, sign * (int)n * unit->days, sign * (int)n * unit->months);
	return WHOLE_DAY;
}

/* --- the whole ------------------------------------------------------------------------------ */

static enum found read_words(struct str text, struct said *out, int64_t *ms)
{
	struct str rest = str_trim(text), word;
	bool ago = rest.n > 4 && str_eq_nocase(str_n(rest.p + rest.n - 4, 4), STR(" ago"));

	*ms = 0;
	word = take_word(&rest);
	if (word_is(word, "now"))
		return rest.n ? NOTHING : MOMENT;
	if (ago || word_is(word, "in")) {
		if (ago)
			rest = str_n(text.p, (size_t)(rest.p + rest.n - 4 - text.p));
		return take_span(str_trim(rest), ago ? -1 : 1, out, ms);
	}
	if (!take_day(word, &out->day) || (rest.n && !take_clock(rest, out)))
		return NOTHING;
	return WHOLE_DAY;
}

static struct str day_text(const struct said *s, struct arena *a)
{
	return arena_printf(a, "%04d-%02d-%02d", s->day.tm_year + 1900, s->day.tm_mon + 1,
			    s->day.tm_mday);
}

static enum found read_said(struct str text, int64_t now, struct said *out, int64_t *ms)
{
	time_t t = now / 1000;
	enum found found;

	*out = (struct said){ .hour = -1 };
	if (!localtime_r(&t, &out->day))
		return NOTHING;
	found = read_words(text, out, ms);
	*ms += now;
	if (found == MOMENT && (*ms <= 0 || *ms > WHEN_MAX))
		return NOTHING;
	return found;
}

static bool at_clock(const struct said *s, int64_t *ms, struct arena *a)
{
	return when_parse(
		arena_printf(a, "%sT%02d:%02d", arena_cstr(a, day_text(s, a)), s->hour, s->minute),
		ms);
}

bool when_parse_words(struct str text, int64_t now, int64_t *ms, struct arena *a)
{
	struct said s;

	switch (read_said(text, now, &s, ms)) {
	case MOMENT:
		return true;
	case WHOLE_DAY:
		return s.hour < 0 ? when_parse(day_text(&s, a), ms) : at_clock(&s, ms, a);
	default:
		return when_parse(str_trim(text), ms);
	}
}

/* A date without a time means the same day in every zone, so it is stored as midnight UTC. A local
 * time that falls on midnight UTC is moved by a millisecond. Otherwise it would be read back as the
 * whole day. */
bool when_parse_date(struct str text, int64_t now, int64_t *ms, struct arena *a)
{
	struct said s;
	enum found found = read_said(text, now, &s, ms);

	text = str_trim(text);
	if (found == NOTHING && text.n != strlen("2026-02-06")) {
		if (!when_parse(text, ms))
			return false;
		if (str_ends(text, STR("Z")))
			return true;
	} else if (found != MOMENT && s.hour < 0) {
		text = found == NOTHING ? text : day_text(&s, a);
		return when_parse(arena_printf(a, "%.*sT00:00Z", STRF(text)), ms);
	} else if (found == WHOLE_DAY && !at_clock(&s, ms, a)) {
		return false;
	}
	*ms += *ms % DAY == 0;
	return true;
}
