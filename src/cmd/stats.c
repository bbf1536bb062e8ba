/*
 * pawl stats: throughput, cycle time and the age of open work. All figures come from one read of
 * the log and one of the open tasks.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/when.h"
#include "cmd/cmd.h"

static const struct param params[] = {
	PARAM(since, "since", P_TIME, .def = "14 days", .help = "first day of the figures"),
	PARAM(holder, "by", P_NAME, .value = "AGENT", .help = "count only the work of this agent"),
	{ 0 }
};

static enum result stats_run(struct session *s, struct args *a, struct reply *out);
static void stats_show(const struct reply *r, struct view *v);

const struct command cmd_stats = {
	.name = "stats",
	.group = "look",
	.summary = "show throughput, cycle time and the age of open work",
	.detail =
		"The bars show the tasks that were completed on each day; a period of more than 31 days is shown by weeks. "
		"The cycle time of a task is the time from its first claim to its end. Its age is the time since it was "
		"created. Days are local.",
	.example = "pawl stats\n"
		   "pawl stats --since 2026-10-01 --by claude",
	.see = "report, log, status",
	.model = "How long tasks took and how many were done, for people. Changes nothing.",
	.gives = "stats",
	.params = params,
	.flags = C_IDEMPOTENT,
	.op = OP_LOG,
	.run = stats_run,
	.show = stats_show,
};

#define DAY_MS (24 * 60 * 60 * INT64_C(1000))
#define DAYS 14     /* the default period, with today */
#define ROWS_MAX 31 /* a longer period is shown by weeks */
#define DAYS_MAX 3660
#define OPEN (STATUS_ALL & ~(STATUS_BIT(DONE) | STATUS_BIT(FAILED) | STATUS_BIT(CANCELED)))

/* --- figures ------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts the durations in place. */
static json_t *spread_json(int64_t *v, size_t n)
{
	json_t *o = json_object();

	json_object_set_new(o, "count", json_integer((json_int_t)n));
	if (!n)
		return o;
	qsort(v, n, sizeof(*v), by_number);
	json_object_set_new(o, "median_ms", json_integer(v[(n - 1) / 2]));
	json_object_set_new(o, "p90_ms", json_integer(v[(n * 9 + 9) / 10 - 1]));
	json_object_set_new(o, "longest_ms", json_integer(v[n - 1]));
	return o;
}

static bool is_done(const struct event *e)
{
	return str_is(e->name, "done") || str_is(e->name, "approved");
}

/* The time from the first claim to the end, for tasks that were claimed. */
static json_t *cycle_json(const struct answer *log, struct arena *a)
{
	int64_t *times = arena_array(a, int64_t, log->n_events);
	size_t n = 0;

	for (size_t i = 0; i < log->n_events; i++) {
		const struct event *e = &log->events[i];
		const struct task *t = is_done(e) ? period_task(log, e->task) : NULL;

		if (t && t->first_started_at && t->first_started_at <= e->at)
			times[n++] = e->at - t->first_started_at;
	}
	return spread_json(times, n);
}

/* One object for each day; for each seven days if the period is long. */
static json_t *days_json(const struct answer *log, int64_t since, int64_t now, struct arena *a)
{
	int step = now - since > ROWS_MAX * DAY_MS ? 7 : 1;
	json_t *list = json_array();
	size_t i = 0;

	for (int d = 0; d < DAYS_MAX; d += step) {
		int64_t from = period_day(since, d, 0), to = period_day(since, d + step, 0);
		int done = 0, failed = 0;
		struct str date = when_local(a, from);

		if (from > now)
			break;
		for (; i < log->n_events && log->events[i].at < to; i++) {
			done += is_done(&log->events[i]);
			failed += str_is(log->events[i].name, "failed");
		}
		json_array_append_new(list, json_pack("{s:o, s:i, s:i}", "date",
						      json_str(str_n(date.p, 10)), "done", done,
						      "failed", failed));
	}
	return list;
}

static json_t *open_json(const struct answer *open, struct arena *a)
{
	int64_t *ages = arena_array(a, int64_t, open->n_tasks), counts[STATUS_END] = { 0 };
	const struct task *oldest = NULL;
	json_t *o = json_object(), *statuses = json_object();

	for (size_t i = 0; i < open->n_tasks; i++) {
		const struct task *t = &open->tasks[i];

		ages[i] = open->now - t->created_at;
		counts[t->status]++;
		if (!oldest || t->created_at < oldest->created_at)
			oldest = t;
	}
	for (int s = BACKLOG; s < STATUS_END; s++)
		if (counts[s])
			json_object_set_new(statuses, status_name(s), json_integer(counts[s]));
	json_object_set_new(o, "statuses", statuses);
	json_object_set_new(o, "age", spread_json(ages, open->n_tasks));
	if (oldest)
		json_object_set_new(o, "oldest",
				    json_pack("{s:o, s:o}", "task", json_str(oldest->id), "title",
					      json_str(oldest->title)));
	return o;
}

/* Keeps only the events that end work, and of these only those of this agent (empty: of all
 * agents). */
static void keep_by(struct answer *log, struct str by)
{
	struct event *kept = log->events;
	size_t n = 0;

	/* begin with the newest, because period_worker() needs the older events */
	for (size_t i = log->n_events; i--;) {
		const struct event *e = &kept[i];

		if (!is_done(e) && !str_is(e->name, "failed"))
			continue;
		if (!by.n || str_eq(by, period_worker(log, e)))
			kept[log->n_events - ++n] = *e;
	}
	log->events = n ? kept + (log->n_events - n) : kept;
	log->n_events = n;
}

static enum result stats_run(struct session *s, struct args *a, struct reply *out)
{
	int64_t now = os_wall_ms(), since = period_day(now, 1 - DAYS, 0);
	struct answer log = { 0 }, open = { 0 };
	json_t *stats;

	if (HAS(&a->rq, since) && (a->rq.since > now || now - a->rq.since > DAYS_MAX * DAY_MS))
		return run_fail(USAGE, STR("--since must be a time of the last ten years"),
				STR("e.g. pawl stats --since 2026-11-01"), out);
	if (period_read(s, &a->rq, PERIOD_WORK "done,approved,failed", &since, &log) != SUCCESS)
		return run_answer(&log, out);
	keep_by(&log, a->rq.holder);
	if (period_tasks(s, OPEN, &open) != SUCCESS)
		return run_answer(&open, out);
	stats = json_object();
	json_object_set_new(stats, "since", json_str(when_text(s->arena, since)));
	json_object_set_new(stats, "days", days_json(&log, since, now, s->arena));
	json_object_set_new(stats, "cycle", cycle_json(&log, s->arena));
	json_object_set_new(stats, "open", open_json(&open, s->arena));
	json_object_set_new(reply_more(out), "stats", stats);
	out->ans.warnings = log.warnings;
	return SUCCESS;
}

/* --- for people ---------------------------------------------------------------------------------- */

#define BAR_LEFT 8   /* columns before a bar: the date */
#define BAR_RIGHT 24 /* and behind it: the numbers */
#define BAR_MAX 60

static int64_t most_in(const json_t *days)
{
	int64_t most = 1;
	size_t i;
	json_t *o;

	json_array_foreach(days, i, o) {
		int64_t n = view_int(o, "done") + view_int(o, "failed");

		most = n > most ? n : most;
	}
	return most;
}

static void put_bar(struct view *v, enum paint p, const char *mark, int64_t n, int64_t most)
{
	size_t room = v->width > BAR_LEFT + BAR_RIGHT ? v->width - BAR_LEFT - BAR_RIGHT : 40;
	int64_t wide, scale = room < BAR_MAX ? (int64_t)room : BAR_MAX;

	if (!n)
		return;
	wide = most <= scale ? n : (n * scale + most - 1) / most;
	for (; wide > 0; wide--)
		view_text(v, p, "%s", mark);
}

static void show_days(struct view *v, const json_t *days)
{
	int64_t most = most_in(days);
	size_t i;
	json_t *o;

	json_array_foreach(days, i, o) {
		long long done = view_int(o, "done"), failed = view_int(o, "failed");

		view_text(v, DIM, "%.5s  ", json_string_value(json_object_get(o, "date")) + 5);
		put_bar(v, GREEN, "█", done, most);
		put_bar(v, RED, "▒", failed, most);
		view_text(v, done || failed ? PLAIN : DIM, "%s%lld", done || failed ? " " : "",
			  done);
		if (failed)
			view_text(v, RED, " (%lld failed)", failed);
		view_text(v, PLAIN, "\n");
	}
}

static void show_spread(struct view *v, const char *what, const json_t *spread)
{
	view_text(v, PLAIN, "%smedian %s, 90 %% within %s, longest %s\n", what,
		  arena_cstr(v->arena, duration_text(v->arena, view_int(spread, "median_ms"))),
		  arena_cstr(v->arena, duration_text(v->arena, view_int(spread, "p90_ms"))),
		  arena_cstr(v->arena, duration_text(v->arena, view_int(spread, "longest_ms"))));
}

static void show_open(struct view *v, const json_t *open)
{
	json_t *statuses = json_object_get(open, "statuses"), *age = json_object_get(open, "age"),
	       *oldest = json_object_get(open, "oldest");
	const char *sep = ": ";

	view_text(v, PLAIN, "open work   ");
	view_count(v, PLAIN, view_int(age, "count"), "task");
	for (void *at = json_object_iter(statuses); at; at = json_object_iter_next(statuses, at)) {
		view_text(v, PLAIN, "%s%lld %s", sep,
			  (long long)json_integer_value(json_object_iter_value(at)),
			  json_object_iter_key(at));
		sep = " · ";
	}
	view_text(v, PLAIN, "\n");
	if (!oldest)
		return;
	show_spread(v, "age         ", age);
	view_text(v, PLAIN, "oldest      ");
	view_data(v, BOLD, json_get(oldest, "task"));
	view_text(v, PLAIN, "  ");
	view_data(v, PLAIN, json_get(oldest, "title"));
	view_text(v, PLAIN, "\n");
}

static void stats_show(const struct reply *r, struct view *v)
{
	const json_t *stats = json_object_get(r->more, "stats"),
		     *days = json_object_get(stats, "days"),
		     *cycle = json_object_get(stats, "cycle");
	int64_t done = 0;
	size_t i;
	json_t *o;

	json_array_foreach(days, i, o)
		done += view_int(o, "done");
	view_text(v, BOLD, "Done\n");
	show_days(v, days);
	view_text(v, PLAIN, "\n");
	view_text(v, PLAIN, "done        ");
	view_count(v, PLAIN, done, "task");
	view_text(v, PLAIN, "\n");
	if (view_int(cycle, "count"))
		show_spread(v, "cycle time  ", cycle);
	show_open(v, json_object_get(stats, "open"));
}
