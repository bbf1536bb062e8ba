/*
 * period: the events of a time, for the commands that sum them up. The store selects by time, so the cost depends on
 * the length of the period.
 */
#ifndef CMD_PERIOD_H
#define CMD_PERIOD_H

#include "cmd/command.h"

/* The kinds that period_worker() looks at. */
#define PERIOD_WORK "claimed,review,"

/* Reads the events of these kinds (with commas between them) in the period, and their tasks, which are sorted by id.
 * *since: the default if the caller gave no --since. */
enum result period_read(struct session *s, const struct request *rq, const char *kinds,
			int64_t *since, struct answer *out);
/* Reads the tasks that have one of these statuses. */
enum result period_tasks(struct session *s, unsigned statuses, struct answer *out);
/* NULL: the task was removed. */
const struct task *period_task(const struct answer *ans, struct str id);
/* The agent that did the work that an event ends. A reviewer makes some of these events. Empty: the log of the period
 * does not say it. */
struct str period_worker(const struct answer *ans, const struct event *e);
/* The local day of `now`, moved by `days`, at this hour. */
int64_t period_day(int64_t now, int days, int hour);

#endif
