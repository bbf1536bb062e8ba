/* In a history of a correct store, one field of one answer is changed: the checker always finds
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "proof/check/checker.h"
#include "recorded.h"

#define SEEDS 2
#define CALLS 300

struct spot {
	struct history_log *log;
	struct history_call *call;
};

#define TASK_FIELD(name, member, needs_lock)                 \
	static bool spoil_##name(struct spot *at)            \
	{                                                    \
		struct task *t = at->call->ans->task;        \
                                                             \
		if (!t || (needs_lock && !t->lock.holder.n)) \
			return false;                        \
		t->member += 1000;                           \
		return true;                                 \
	}
TASK_FIELD(fence, fence, false)
TASK_FIELD(version, version, false)
TASK_FIELD(attempts, attempts, false)
TASK_FIELD(abandoned, abandoned, false)
TASK_FIELD(class, class_rank, false)
TASK_FIELD(priority, priority, false)
TASK_FIELD(not_before, not_before, false)
TASK_FIELD(created_at, created_at, false)
TASK_FIELD(updated_at, updated_at, false)
TASK_FIELD(done_at, done_at, false)
TASK_FIELD(archived_at, archived_at, false)
TASK_FIELD(open_deps, open_deps, false)
TASK_FIELD(canceled_deps, canceled_deps, false)
TASK_FIELD(open_subs, open_subs, false)
TASK_FIELD(due, due, false)
TASK_FIELD(acquired_at, lock.acquired_at, true)
TASK_FIELD(expires_at, lock.expires_at, true)
TASK_FIELD(ttl, lock.ttl, true)
TASK_FIELD(manual, lock.manual, true)

#define GRANT_FIELD(name)                               \
	static bool spoil_grant_##name(struct spot *at) \
	{                                               \
		struct grant *g = at->call->ans->lock;  \
                                                        \
		if (!g)                                 \
			return false;                   \
		g->name += 1000;                        \
		return true;                            \
	}
GRANT_FIELD(fence)
GRANT_FIELD(expires_at)
GRANT_FIELD(ttl)

static bool spoil_str(struct str *s)
{
	*s = STR("ffffffffffffffff");
	return true;
}

static bool spoil_list(struct spot *at, struct strs *list)
{
	*list = arena_append(&at->log->arena, *list, STR("more"));
	return true;
}

static bool spoil_status(struct spot *at)
{
	struct task *t = at->call->ans->task;

	if (t)
		t->status = t->status == REVIEW ? FAILED : REVIEW;
	return t;
}

static bool spoil_id(struct spot *at)
{
	struct task *t = at->call->ans->task;

	if (t)
		t->id = arena_printf(&at->log->arena, "tASK%.*s", (int)t->id.n - 4, t->id.p + 4);
	return t;
}

static bool spoil_last_holder(struct spot *at)
{
	return at->call->ans->task && spoil_str(&at->call->ans->task->last_holder);
}

static bool spoil_assignee(struct spot *at)
{
	return at->call->ans->task && spoil_str(&at->call->ans->task->assignee);
}

static bool spoil_type(struct spot *at)
{
	return at->call->ans->task && spoil_str(&at->call->ans->task->type);
}

static bool spoil_parent(struct spot *at)
{
	return at->call->ans->task && spoil_str(&at->call->ans->task->parent);
}

static bool spoil_depends(struct spot *at)
{
	return at->call->ans->task && spoil_list(at, &at->call->ans->task->depends);
}

static bool spoil_labels(struct spot *at)
{
	return at->call->ans->task && spoil_list(at, &at->call->ans->task->labels);
}

static bool spoil_holder(struct spot *at)
{
	return at->call->ans->task && spoil_str(&at->call->ans->task->lock.holder);
}

static bool spoil_token(struct spot *at)
{
	struct task *t = at->call->ans->task;

	return t && t->lock.holder.n && spoil_str(&t->lock.token);
}

static bool spoil_grant_token(struct spot *at)
{
	return at->call->ans->lock && spoil_str(&at->call->ans->lock->token);
}

static bool spoil_grant(struct spot *at)
{
	struct answer *ans = at->call->ans;

	if (!ans->task || at->call->rq->op == OP_TAKE)
		return false;
	ans->lock = ans->lock ? NULL : arena_new(&at->log->arena, struct grant);
	return true;
}

static bool spoil_code(struct spot *at)
{
	struct answer *ans = at->call->ans;

	if (!ans->task)
		return false;
	ans->code = ans->code == CONFLICT ? LOST_LOCK : CONFLICT;
	return true;
}

static bool succeeded(const struct spot *at)
{
	return at->call->ans->task && at->call->ans->code == SUCCESS;
}

static bool spoil_flag(int64_t *flag)
{
	*flag = !*flag;
	return true;
}

static bool spoil_repeated(struct spot *at)
{
	return succeeded(at) && spoil_flag(&at->call->ans->repeated);
}

static bool spoil_existed(struct spot *at)
{
	return succeeded(at) && spoil_flag(&at->call->ans->existed);
}

static bool spoil_has_next(struct spot *at)
{
	return succeeded(at) && at->call->rq->op == OP_DONE && !at->call->ans->next &&
	       spoil_flag(&at->call->ans->has_next);
}

static bool spoil_task(struct spot *at)
{
	struct answer *ans = at->call->ans;

	if (!succeeded(at) || !at->call->rq->id.n)
		return false;
	ans->task = NULL;
	return true;
}

static const struct {
	const char *name;
	bool (*spoil)(struct spot *at);
} spoils[] = {
#define SPOIL(name)                 \
	{                           \
#name, spoil_##name \
	}
	SPOIL(fence),         SPOIL(version),     SPOIL(attempts),
	SPOIL(abandoned),     SPOIL(class),       SPOIL(priority),
	SPOIL(not_before),    SPOIL(created_at),  SPOIL(updated_at),
	SPOIL(done_at),       SPOIL(archived_at), SPOIL(open_deps),
	SPOIL(canceled_deps), SPOIL(open_subs),   SPOIL(due),
	SPOIL(acquired_at),   SPOIL(expires_at),  SPOIL(ttl),
	SPOIL(manual),        SPOIL(grant_fence), SPOIL(grant_expires_at),
	SPOIL(grant_ttl),     SPOIL(grant_token), SPOIL(grant),
	SPOIL(status),        SPOIL(id),          SPOIL(assignee),
	SPOIL(last_holder),   SPOIL(type),        SPOIL(parent),
	SPOIL(depends),       SPOIL(labels),      SPOIL(holder),
	SPOIL(token),         SPOIL(code),        SPOIL(repeated),
	SPOIL(existed),       SPOIL(task),        SPOIL(has_next),
#undef SPOIL
};

/* The call got an answer, and the answer has content. */
static bool can_be_spoiled(const struct history_call *c)
{
	return c->ans && c->ans->code != API_ERROR && c->ans->code != USAGE &&
	       c->rq->op != OP_TAKE && c->rq->op != OP_NEXT;
}

static size_t violations(const struct history_log *log)
{
	struct check_report r;
	struct arena a = { 0 };

	history_check(log, &r, &a);
	arena_free(&a);
	return r.counts[CHECK_LINEAR];
}

/* Changes field k in the first suitable answer from `from` on. NULL: no answer has the field. */
static const struct history_call *spoil(size_t k, struct history_log *log, size_t from)
{
	for (size_t i = from; i < log->n_calls; i++)
		if (can_be_spoiled(&log->calls[i]) &&
		    spoils[k].spoil(&(struct spot){ log, &log->calls[i] }))
			return &log->calls[i];
	return NULL;
}

static void spoiled(size_t k, struct sim_plan plan)
{
	struct history_log log;
	const struct history_call *c;

	record(plan, &log);
	c = spoil(k, &log, CALLS / 4 + k);
	if (!c) /* rare ones */
		c = spoil(k, &log, 0);
	if (!c)
		fail_msg("%s: seed %llu: no answer has it", spoils[k].name,
			 (unsigned long long)plan.seed);
	if (!violations(&log))
		fail_msg("%s: seed %llu, call %llu: not found", spoils[k].name,
			 (unsigned long long)plan.seed, (unsigned long long)c->number);
	history_free(&log);
}

/* If every call got an answer, no changed field goes unnoticed. */
static void every_field(void **state)
{
	struct sim_plan plan = { .ops = CALLS, .plain = true };

	(void)state;
	for (size_t k = 0; k < sizeof(spoils) / sizeof(*spoils); k++)
		for (plan.seed = 1; plan.seed <= SEEDS; plan.seed++)
			spoiled(k, plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field),
	};

	return cmocka_run_group_tests_name("spoiled", tests, NULL, NULL);
}
