#include "cmd/period.h"

#include <stdlib.h>
#include <time.h>

enum result period_read(struct session *s, const struct request *rq, const char *kinds,
			int64_t *since, struct answer *out)
{
	struct request log = { .op = OP_LOG };

	if (HAS(rq, since))
		*since = rq->since;
	GIVE(&log, since, *since);
	if (HAS(rq, until))
		GIVE(&log, until, rq->until);
	GIVE(&log, type, str_c(kinds));
	GIVE(&log, log_view, LOG_OF_TASKS | LOG_WITH_TASKS);
	client_call(&s->client, &log, out);
	return out->code;
}

enum result period_tasks(struct session *s, unsigned statuses, struct answer *out)
{
	struct request list = { .op = OP_LIST };

	GIVE(&list, statuses, statuses);
	client_call(&s->client, &list, out);
	return out->code;
}

static int by_id(const void *id, const void *task)
{
	return str_cmp(*(const struct str *)id, ((const struct task *)task)->id);
}

const struct task *period_task(const struct answer *ans, struct str id)
{
	return ans->n_tasks ? bsearch(&id, ans->tasks, ans->n_tasks, sizeof(*ans->tasks), by_id)
			    : NULL;
}

static bool is_by_others(const struct event *e)
{
	return str_is(e->name, "rework") || str_is(e->name, "approved");
}

struct str period_worker(const struct answer *ans, const struct event *e)
{
	if (!is_by_others(e))
		return e->agent;
	for (const struct event *c = e; c-- > ans->events;)
		if (c->fence == e->fence && str_eq(c->task, e->task) &&
		    (str_is(c->name, "claimed") || str_is(c->name, "review")))
			return c->agent;
	return STR("");
}

int64_t period_day(int64_t now, int days, int hour)
{
	time_t t = now / 1000;
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	tm.tm_mday += days;
	tm.tm_hour = hour;
	tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}
