#include "transfer/foreign_when.h"

#include <stdio.h>

#include "base/str.h"

/* 20261116T103000Z */
static bool is_compact(struct str s)
{
	if (s.n != strlen("20261116T103000Z") || s.p[8] != 'T' || s.p[15] != 'Z')
		return false;
	for (size_t i = 0; i < 15; i++)
		if (i != 8 && !is_digit(s.p[i]))
			return false;
	return true;
}

static struct str foreign_when_spread(struct str s, struct arena *a)
{
	return arena_printf(a, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", s.p, s.p + 4, s.p + 6, s.p + 9,
			    s.p + 11, s.p + 13);
}

/* 16/Nov/26 10:30 AM, in local time. Empty: not of this form. */
static struct str from_jira(struct str s, struct arena *a)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char month[4] = "", half[3] = "";
	const char *at;
	int day, year, hour, minute, end = 0;

	if (sscanf(arena_cstr(a, s), "%2d/%3[A-Za-z]/%2d %2d:%2d %2[APM]%n", &day, month, &year,
		   &hour, &minute, half, &end) != 6 ||
	    (size_t)end != s.n || strlen(month) != 3 || hour < 1 || hour > 12)
		return STR("");
	at = strstr(months, month);
	if (!at || (at - months) % 3)
		return STR("");
	hour = hour % 12 + (half[0] == 'P' ? 12 : 0);
	return arena_printf(a, "20%02d-%02d-%02dT%02d:%02d", year, (int)(at - months) / 3 + 1, day,
			    hour, minute);
}

/* Does the time of day end with Z or an offset? */
static bool has_zone(struct str s)
{
	for (size_t i = strlen("2026-11-16T"); i < s.n; i++)
		if (memchr("Z+-", s.p[i], 3))
			return true;
	return false;
}

struct str foreign_when(struct str text, bool utc, struct arena *a)
{
	struct str s = str_trim(text), jira;

	if (is_compact(s))
		return foreign_when_spread(s, a);
	jira = from_jira(s, a);
	if (jira.n)
		return jira;
	if (utc && s.n > strlen("2026-11-16") && !has_zone(s))
		return arena_printf(a, "%.*sZ", STRF(s));
	return s;
}
