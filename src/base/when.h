/*
 * when: times and durations as text. A time is milliseconds since 1970 UTC, a duration is
 * milliseconds; 0 means "none". Years 1970 to 9999.
 */
#ifndef BASE_WHEN_H
#define BASE_WHEN_H

#include "base/arena.h"

#define WHEN_MAX INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

/* Accepts "2026-02-06T10:30:00.123Z", offsets, a space for the T, no seconds, a bare date. Without
 * a zone it is local time. false if the text does not parse or the time does not exist. */
bool when_parse(struct str text, int64_t *ms);
/* Accepts the forms of when_parse(), and words: "now", "tomorrow", "friday 17:00", "in 3 days", "in
 * 2h", "2 hours ago". A day without a time is its beginning. */
bool when_parse_words(struct str text, int64_t now, int64_t *ms, struct arena *a);
/* Parses a date, whose time of day may be left out. Midnight UTC stands for the whole day. */
bool when_parse_date(struct str text, int64_t now, int64_t *ms, struct arena *a);
/* UTC, ISO 8601 with milliseconds and Z. */
struct str when_text(struct arena *a, int64_t ms);
/* Local time for people: 2026-11-17 18:00:05. */
struct str when_local(struct arena *a, int64_t ms);
/* A date from when_parse_date() for people: the day, or the day and the local time of day. */
struct str when_date(struct arena *a, int64_t ms);
/* A date for programs: the day, or the text of when_text(). */
struct str when_date_iso(struct arena *a, int64_t ms);

/* "90", "90s", "0.5s", "200ms", "15m", "2h", "1d", "1h30m". false: invalid, or it overflows. */
bool duration_parse(struct str text, int64_t *ms);
/* For people, with at most two units: "14m 3s". */
struct str duration_text(struct arena *a, int64_t ms);

#endif
