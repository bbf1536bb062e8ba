/* Random histories of a correct store are clean. A history with one planted error is always
 * caught. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/backoff.h"
#include "kit/scale.h"
#include "proof/check/checker.h"
#include "recorded.h"

#define SEEDS SCALE(20, 5)

static void show(const struct check_report *r, const struct history_log *log)
{
	struct buf b = BUF_MAX(1 << 20);

	check_print(r, log, &b);
	fprintf(stderr, "%.*s", (int)b.n, b.p);
	buf_free(&b);
}

static struct check_report check(const struct history_log *log, bool tell)
{
	struct check_report r;
	struct arena a = { 0 };

	history_check(log, &r, &a);
	if (tell && check_violations(&r))
		show(&r, log);
	arena_free(&a);
	return r;
}

/* The number of histories that were not decided. */
static size_t all_clean(struct sim_plan plan, uint64_t seeds)
{
	size_t undecided = 0;

	for (plan.seed = 1; plan.seed <= seeds; plan.seed++) {
		struct history_log log;
		struct check_report r;

		record(plan, &log);
		r = check(&log, true);
		assert_int_equal(check_violations(&r), 0);
		undecided += r.undecided > 0;
		history_free(&log);
	}
	return undecided;
}

/* If every call was answered, every history is decided. */
static void clean(void **state)
{
	(void)state;
	assert_int_equal(all_clean((struct sim_plan){ .ops = 500 }, 2 * SEEDS), 0);
	assert_in_range(all_clean((struct sim_plan){ .ops = 200, .loss = 1 }, 5 * SEEDS), 0,
			SEEDS / 5);
	assert_int_equal(
		all_clean((struct sim_plan){ .ops = 500, .loss = 1, .plain = true }, 5 * SEEDS), 0);
}

/* --- planted errors ------------------------------------------------------------------------------ */

/* Only in the first half: calls that are still under way at the end could explain much. */
#define HALF(log) ((log)->n_calls / 2)

static bool accepted(const struct history_call *c)
{
	return c->ans && c->ans->code == SUCCESS && !c->ans->repeated;
}

static bool same_task(const struct history_call *a, const struct history_call *b)
{
	return a->ans && b->ans && a->ans->task && b->ans->task &&
	       str_eq(a->ans->task->id, b->ans->task->id);
}

static bool takes(const struct history_call *c)
{
	return accepted(c) && c->ans->lock && c->ans->lock->token.n &&
	       (c->rq->op == OP_TAKE || (c->rq->op == OP_CLAIM && c->ans->task->attempts > 1));
}

static bool plant_fence(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];

	for (size_t k = 0; takes(c) && k < i; k++)
		if (takes(&log->calls[k]) && same_task(&log->calls[k], c) &&
		    !str_eq(log->calls[k].rq->new_token, c->rq->new_token) &&
		    log->calls[k].ans->lock->fence + 1 == c->ans->lock->fence) {
			c->ans->lock->fence--;
			c->ans->task->fence--;
			return true;
		}
	return false;
}

/* The store grants a lock that another agent holds. */
static bool plant_second_holder(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];
	struct task *t = c->ans ? c->ans->task : NULL;

	if (!c->ans || c->ans->code != CONFLICT || c->rq->op != OP_CLAIM || !t)
		return false;
	c->ans->code = SUCCESS;
	t->fence++;
	t->version++;
	t->attempts++;
	t->lock.expires_at = c->ans->now + c->rq->ttl;
	t->lock.acquired_at = t->updated_at = c->ans->now;
	t->lock.ttl = c->rq->ttl;
	t->lock.holder = c->agent;
	t->lock.token = c->rq->new_token;
	c->ans->lock = arena_new(&log->arena, struct grant);
	*c->ans->lock = (struct grant){ c->rq->new_token, t->fence, t->lock.expires_at,
					c->rq->ttl };
	return true;
}

static bool plant_stale(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];

	if (!c->ans || c->ans->code != LOST_LOCK || !c->rq->token.n ||
	    (c->rq->op != OP_DONE && c->rq->op != OP_RELEASE && c->rq->op != OP_FAIL))
		return false;
	c->ans->code = SUCCESS;
	c->ans->message = STR("");
	return true;
}

/* A read becomes a second completion. */
static bool plant_done(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];

	if (!accepted(c) || c->rq->op != OP_SHOW || c->ans->task->status != DONE)
		return false;
	for (size_t k = 0; k < i; k++) {
		const struct history_call *d = &log->calls[k];

		if (d->rq->op != OP_DONE || !accepted(d) || !same_task(c, d) ||
		    c->ans->task->fence != d->ans->task->fence || d->ans->task->status != DONE)
			continue;
		*c->rq = *d->rq;
		c->rq->claim_next = 0;
		return true;
	}
	return false;
}

/* The last acknowledged change of a task is missing. */
static bool plant_lost(struct history_log *log, size_t i)
{
	struct history_end *e = &log->ends[i % log->n_ends];
	int64_t highest = 0;

	for (size_t k = 0; k < log->n_calls; k++) {
		const struct answer *ans = log->calls[k].ans;

		if (ans && ans->task && str_eq_nocase(ans->task->id, e->id) &&
		    ans->task->version > highest)
			highest = ans->task->version;
	}
	if (!e->task || !highest || e->task->version > highest)
		return false;
	e->task->version = highest - 1;
	return true;
}

static bool plant_gone(struct history_log *log, size_t i)
{
	struct history_end *e = &log->ends[i % log->n_ends];

	if (!e->task)
		return false;
	e->task = NULL;
	return true;
}

static bool plant_stuck(struct history_log *log, size_t i)
{
	struct history_end *e = &log->ends[i % log->n_ends];

	if (!e->task || status_ended(e->task->status))
		return false;
	e->task->open_subs++;
	return true;
}

static bool plant_clock(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];

	if (i < 50 || !c->ans || !c->ans->now || c->ans->code == USAGE)
		return false;
	c->ans->now = 1000;
	return true;
}

/* A read shows the state from before the previous read. */
static bool plant_old_view(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];

	if (!accepted(c) || c->rq->op != OP_SHOW)
		return false;
	for (size_t k = i; k-- > 0;) {
		const struct history_call *b = &log->calls[k];

		if (!same_task(b, c) || b->answered >= c->sent ||
		    b->ans->task->version >= c->ans->task->version)
			continue;
		for (size_t m = k; m < i; m++)
			if (same_task(&log->calls[m], c) && log->calls[m].answered < c->sent &&
			    log->calls[m].ans->task->version > b->ans->task->version) {
				*c->ans->task = *b->ans->task;
				return true;
			}
	}
	return false;
}

static bool plant_expiry(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];

	if (!accepted(c) || !c->ans->task || !c->ans->task->lock.expires_at)
		return false;
	c->ans->task->lock.expires_at++;
	return true;
}

/* An acquisition that is not in the record. */
static bool plant_unseen(struct history_log *log, size_t i)
{
	struct history_call *c = &log->calls[i];
	bool later = false;

	for (size_t k = i + 1; k < log->n_calls; k++)
		later |= same_task(&log->calls[k], c);
	if (!takes(c) || !later)
		return false;
	memmove(c, c + 1, (log->n_calls - i - 1) * sizeof(*c));
	log->n_calls--;
	return true;
}

static const struct plant {
	const char *name;
	bool (*plant)(struct history_log *log, size_t i);
	enum check_kind kind;
	bool deaths; /* also in histories with unanswered calls */
} plants[] = {
	{ "fence", plant_fence, CHECK_FENCE, true },
	{ "holder", plant_second_holder, CHECK_LINEAR, false },
	{ "stale", plant_stale, CHECK_LINEAR, false },
	{ "done", plant_done, CHECK_DONE, true },
	{ "lost", plant_lost, CHECK_LOST, true },
	{ "gone", plant_gone, CHECK_LOST, true },
	{ "stuck", plant_stuck, CHECK_STUCK, true },
	{ "clock", plant_clock, CHECK_CLOCK, false },
	{ "old view", plant_old_view, CHECK_LINEAR, false },
	{ "expiry", plant_expiry, CHECK_LINEAR, false },
	{ "unseen", plant_unseen, CHECK_LINEAR, false },
};

static void plant_everywhere(const struct plant *p)
{
	struct sim_plan plan = { .ops = 500, .loss = p->deaths, .plain = true };
	int planted = 0;

	for (plan.seed = 1; plan.seed <= SEEDS; plan.seed++) {
		struct history_log log;
		size_t i;
		uint64_t random = plan.seed * 77;
		bool done = false;

		record(plan, &log);
		i = seeded_below(&random, (uint32_t)HALF(&log));
		for (size_t k = 0; !done && k < HALF(&log); k++)
			done = p->plant(&log, (i + k) % HALF(&log));
		if (done && !check(&log, false).counts[p->kind])
			fail_msg("%s: seed %llu: not found", p->name,
				 (unsigned long long)plan.seed);
		planted += done;
		history_free(&log);
	}
	print_message("%s: planted %d times\n", p->name, planted);
	assert_true(planted >= SEEDS / 3);
}

static void planted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plants) / sizeof(*plants); i++)
		plant_everywhere(&plants[i]);
}

/* A caller gets NO_TASKS although a task is eligible. */
static void planted_no_tasks(void **state)
{
	struct sim_plan plan = { .ops = 500, .loss = 1, .plain = true, .alone = true };
	int planted_at = 0;

	(void)state;
	for (plan.seed = 1; plan.seed <= SEEDS; plan.seed++) {
		struct history_log log;
		bool done = false;

		record(plan, &log);
		for (size_t i = 0; !done && i < HALF(&log); i++) {
			const struct history_call *c = &log.calls[i];
			struct history_call *free_slot = &log.calls[log.n_calls - 1];

			if (!accepted(c) || !c->ans->task || c->ans->task->status != READY ||
			    c->ans->task->lock.holder.n || c->ans->task->not_before)
				continue;
			for (size_t k = i; !done && k < HALF(&log); k++) {
				const struct history_call *d = &log.calls[k];

				if (!same_task(c, d) || d->ans->repeated ||
				    d->sent < c->answered + 10 ||
				    d->ans->task->version != c->ans->task->version)
					continue;
				*free_slot = (struct history_call){ .number = 100000,
								    .agent = STR("x"),
								    .sent = c->answered + 2,
								    .answered = d->sent - 2 };
				free_slot->rq = arena_new(&log.arena, struct request);
				free_slot->rq->op = OP_TAKE;
				free_slot->ans = arena_new(&log.arena, struct answer);
				*free_slot->ans = (struct answer){ .code = NO_TASKS,
								   .now = c->ans->now };
				done = true;
			}
		}
		if (done && !check(&log, false).counts[CHECK_SELECTED])
			fail_msg("seed %llu: not found", (unsigned long long)plan.seed);
		planted_at += done;
		history_free(&log);
	}
	print_message("no tasks: planted %d times\n", planted_at);
	assert_true(planted_at >= SEEDS / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean),
		cmocka_unit_test(planted),
		cmocka_unit_test(planted_no_tasks),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
