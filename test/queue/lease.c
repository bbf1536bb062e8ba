/* Expired leases, abandoned work, and the cleanup of locks. */
#include "suite.h"

#include <unistd.h>

#include "base/os.h"

/* --- abandoned work --------------------------------------------------------------------------- */

/* The log names the agent that lost the task, with its run and its fence, and not the one that took over. */
static void check_abandoned(struct suite *s, const char *id, const char *agent, const char *run,
			    const char *finder)
{
	struct answer *ans = ok(s, "log id=%s type=abandoned", id);
	const struct event *e = ans->events;

	assert_int_equal(ans->n_events, 1);
	assert_true(str_is(e->agent, agent) && str_is(e->run, run) && e->fence == 1);
	assert_true(str_ends(e->text, str_c(finder)));
}

static void test_returns(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "take new_token=T ttl=2t agent=ann run=r1");
	ans = refused(s, NO_TASKS, "take new_token=U");
	assert_true(ans->wait_ms > tick() && ans->wait_ms <= 2 * tick());
	advance(2 * tick());
	ans = ok(s, "take new_token=U agent=bob");
	assert_true(str_is(ans->task->id, "a") && str_is(ans->task->last_holder, "bob"));
	assert_int_equal(ans->lock->fence, 2);
	assert_int_equal(ans->task->abandoned, 1);
	assert_int_equal(ans->task->attempts, 2);
	check_abandoned(s, "a", "ann", "r1", "; found by bob");
	assert_true(str_is(ans->came_back->by, "ann"));
	assert_true(str_starts(ans->came_back->reason, STR("the lease of ann expired at ")));
	refused(s, LOST_LOCK, "done id=a token=T");
	refused(s, LOST_LOCK, "heartbeat id=a token=T");
	ok(s, "done id=a token=U");
}

static void test_heartbeat_keeps(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "take new_token=T ttl=4t");
	for (int i = 0; i < 4; i++) {
		advance(2 * tick());
		assert_int_equal(ok(s, "heartbeat id=a token=T")->lock->fence, 1);
		refused(s, NO_TASKS, "take new_token=U");
	}
	advance(4 * tick());
	refused(s, LOST_LOCK, "heartbeat id=a token=T");
	ok(s, "take new_token=U");
}

static void abandon(struct suite *s, const char *id)
{
	ok(s, "claim id=%s new_token=X ttl=1t", id);
	advance(tick());
}

static void test_max_abandoned(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");
	struct answer *ans;
	struct task *t;

	s->config.policy.max_abandoned = 2;
	reopen(s);
	ok(s, "create id=a class_rank=Expedite");
	ok(s, "create id=b");
	abandon(s, "a");
	abandon(s, "a");
	/* abandoned too often: the call gets the next task and does not mention this one */
	ans = ok(s, "take new_token=T");
	assert_true(str_is(ans->task->id, "b") && !ans->message.n && !ans->repeated);
	t = expect_status(s, "a", NEEDS_HELP);
	assert_true(t->abandoned == 2 && !t->lock.holder.n && t->fence == 2);
	assert_int_equal(count_events(s, "a", "needs_help"), 1);
	ok(s, "unblock id=a");
	assert_int_equal(show(s, "a")->abandoned, 0);
	abandon(s, "a");
	ok(s, "claim id=a new_token=U");
	ok(s, "release id=a token=U");
	assert_int_equal(show(s, "a")->abandoned, 0);
}

/* If it is the only task, it still goes to Needs Help, although the call is refused. */
static void test_max_abandoned_alone(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	s->config.policy.max_abandoned = 1;
	reopen(s);
	ok(s, "create id=a");
	abandon(s, "a");
	assert_int_equal(call(s, "take new_token=T")->code, NO_TASKS);
	expect_status(s, "a", NEEDS_HELP);
	ok(s, "create id=b");
	abandon(s, "b");
	assert_int_equal(call(s, "claim id=b new_token=T")->code, MISCONFIGURED);
	expect_status(s, "b", NEEDS_HELP);
	refused(s, MISCONFIGURED, "claim id=b new_token=T");
}

static void test_max_abandoned_claim_next(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");
	struct answer *ans;

	s->config.policy.max_abandoned = 1;
	reopen(s);
	ok(s, "create id=a");
	ok(s, "create id=b class_rank=Expedite");
	ok(s, "create id=c class_rank=Intangible");
	ok(s, "claim id=a new_token=T");
	abandon(s, "b");
	ans = ok(s, "done id=a token=T claim_next=1 new_token=N");
	assert_true(str_is(ans->task->id, "a") && ans->task->status == DONE);
	assert_true(str_is(ans->next->id, "c"));
	expect_status(s, "b", NEEDS_HELP);
}

static void test_no_limit(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	s->config.policy.max_abandoned = 0;
	reopen(s);
	ok(s, "create id=a");
	for (int i = 0; i < 7; i++)
		abandon(s, "a");
	assert_int_equal(ok(s, "take new_token=T")->task->abandoned, 7);
}

static void test_keep(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");
	struct answer *ans;

	s->config.policy.keep_abandoned = true;
	reopen(s);
	ok(s, "create id=a");
	abandon(s, "a");
	ans = refused(s, NO_TASKS, "take new_token=T");
	assert_int_equal(ans->wait_ms, 0);
	ans = refused(s, NO_TASKS, "next");
	assert_int_equal(ans->wait_ms, 0);
	ans = ok(s, "next explain=1");
	assert_true(ans->n_candidates == 1 && !ans->candidates[0].eligible);
	ok(s, "claim id=a new_token=T");
}

static void test_keep_waits_for_nothing(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	s->config.policy.keep_abandoned = true;
	reopen(s);
	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T ttl=5t");
	assert_int_equal(refused(s, NO_TASKS, "take new_token=U")->wait_ms, 0);
	ok(s, "create id=b delay=2t");
	assert_int_not_equal(refused(s, NO_TASKS, "take new_token=U")->wait_ms, 0);
}

static void test_resume(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	abandon(s, "a");
	refused(s, LOST_LOCK, "claim id=a new_token=T fence=1 agent=bob");
	refused(s, LOST_LOCK, "claim id=a new_token=T fence=2");
	ans = ok(s, "claim id=a new_token=T fence=1 ttl=1t");
	assert_true(ans->lock->fence == 2 && ans->task->abandoned == 0);
	refused(s, LOST_LOCK, "claim id=a new_token=U fence=1");
	advance(tick());
	ok(s, "take new_token=B agent=bob");
	refused(s, LOST_LOCK, "claim id=a new_token=T fence=2");
	ok(s, "done id=a token=B");
	refused(s, LOST_LOCK, "claim id=a new_token=T fence=2");
}

/* --- In Progress without a lock --------------------------------------------------------------- */

static void set_free(struct suite *s, const char *id, const char *by)
{
	ok(s, "create id=%s", id);
	ok(s, "claim id=%s new_token=T ttl=4t", id);
	if (str_is(str_c(by), "unblock")) {
		ok(s, "block id=%s token=T reason=r unblock_action=u", id);
		ok(s, "unblock id=%s agent=bob", id);
	} else if (str_is(str_c(by), "help")) {
		ok(s, "escalate id=%s token=T reason=r", id);
		ok(s, "unblock id=%s agent=bob", id);
	} else if (str_is(str_c(by), "rework")) {
		ok(s, "review id=%s token=T summary=s", id);
		ok(s, "rework id=%s reason=r agent=bob", id);
	} else if (str_is(str_c(by), "release")) {
		ok(s, "lock_release id=%s token=T", id);
	} else {
		ok(s, "lock_break id=%s reason=r agent=bob", id);
	}
}

/* Another agent takes it, with all that was done before. */
static void taken_over(struct suite *s, const char *id)
{
	struct answer *ans = ok(s, "take new_token=N agent=bob");

	assert_true(str_is(ans->task->id, id) && ans->lock->fence == 2);
	assert_int_equal(ans->task->abandoned, 0);
	ok(s, "done id=%s token=N agent=bob", id);
}

static void left_free(struct suite *s, const char *way)
{
	struct task *t;

	set_free(s, way, way);
	t = expect_status(s, way, IN_PROGRESS);
	assert_true(!t->lock.holder.n && !t->run.n);
}

/* Of the ways to leave a task without a lock, only `lock release` keeps it for a while. */
static void test_free_after_ttl(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	left_free(s, "release");
	ans = refused(s, NO_TASKS, "take new_token=N agent=bob");
	assert_true(ans->wait_ms > 2 * tick() && ans->wait_ms <= 4 * tick());
	advance(4 * tick());
	taken_over(s, "release");
}

static void test_handed_back_at_once(void **state)
{
	struct suite *s = *state;
	static const char *const ways[] = { "unblock", "help", "rework", "break" };

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		left_free(s, ways[i]);
		taken_over(s, ways[i]);
	}
}

/* handback = 4t */
static void test_handed_back_reserved(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");
	static const char *const ways[] = { "unblock", "help", "rework", "break" };

	s->config.policy.handback = 4 * tick();
	reopen(s);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct answer *ans;

		left_free(s, ways[i]);
		ans = refused(s, NO_TASKS, "take new_token=N agent=bob");
		assert_true(ans->wait_ms > 2 * tick() && ans->wait_ms <= 4 * tick());
		advance(4 * tick());
		taken_over(s, ways[i]);
	}
}

/* The version tells that something happened; the place in the order stays. */
static void test_handed_back_keeps_its_place(void **state)
{
	struct suite *s = *state;
	struct task before, *t;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	before = *ok(s, "review id=a token=T summary=s")->task;
	advance(tick());
	t = ok(s, "rework id=a reason=r")->task;
	assert_int_equal(t->updated_at, before.updated_at);
	assert_int_equal(t->version, before.version + 1);
	before = *ok(s, "claim id=a new_token=U")->task;
	advance(tick());
	t = ok(s, "lock_break id=a reason=r")->task;
	assert_int_equal(t->updated_at, before.updated_at);
	assert_int_equal(t->version, before.version + 1);
}

static void test_free_for_those_who_know(void **state)
{
	struct suite *s = *state;
	static const char *const ways[] = { "unblock", "help", "rework", "release", "break" };

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		set_free(s, ways[i], ways[i]);
		assert_int_equal(ok(s, "claim id=%s new_token=N", ways[i])->lock->fence, 2);
		ok(s, "done id=%s token=N", ways[i]);
	}
}

/* --- block keeps the lock, but others may claim ----------------------------------------------- */

static void test_blocked(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T ttl=4t");
	ok(s, "block id=a token=T reason=r unblock_action=u");
	refused(s, MISCONFIGURED, "heartbeat id=a token=T");
	refused(s, NO_TASKS, "take new_token=U");
	advance(4 * tick());
	/* its lease expired; the task still waits for a person */
	assert_int_equal(refused(s, NO_TASKS, "take new_token=U")->wait_ms, 0);
	ok(s, "update id=a status=Ready agent=bob");
	ok(s, "take new_token=U");
}

/* --- manual locks ----------------------------------------------------------------------------- */

static void test_manual(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ans = ok(s, "lock_acquire id=a new_token=M");
	assert_true(ans->lock->fence == 1 && ans->lock->ttl == 5 * tick());
	assert_true(str_is(ans->lock->token, "M"));
	refused(s, NO_TASKS, "take new_token=T agent=bob");
	refused(s, CONFLICT, "claim id=a new_token=T agent=bob");
	refused(s, CONFLICT, "lock_acquire id=a new_token=T agent=bob");
	ans = ok(s, "claim id=a new_token=M");
	assert_true(ans->lock->fence == 1 && ans->task->status == IN_PROGRESS);
	ok(s, "release id=a token=M");
	ok(s, "lock_acquire id=a new_token=M ttl=1t");
	advance(tick());
	/* a Ready task whose lock expired is simply Ready */
	assert_int_equal(ok(s, "take new_token=T")->task->abandoned, 0);
}

static void test_lock_release(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "lock_acquire id=a new_token=M");
	refused(s, LOST_LOCK, "lock_release id=a token=other");
	ok(s, "lock_release id=a token=M");
	assert_true(ok(s, "lock_release id=a token=M")->repeated);
	expect_status(s, "a", READY);
	ok(s, "take new_token=T");
}

/* --- cleanup ---------------------------------------------------------------------------------- */

static void test_cleanup_ran_out(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=old");
	ok(s, "create id=manual");
	ok(s, "create id=fresh");
	ok(s, "claim id=old new_token=O ttl=1t agent=ann run=r2");
	ok(s, "lock_acquire id=manual new_token=M ttl=1t");
	ok(s, "claim id=fresh new_token=F ttl=9t");
	assert_int_equal(ok(s, "lock_cleanup")->n_tasks, 0);
	advance(2 * tick());
	assert_int_equal(ok(s, "lock_cleanup older_than=3t")->n_tasks, 0);
	ans = ok(s, "lock_cleanup older_than=1t agent=boss");
	assert_true(ans->n_tasks == 2 && ans->total == 2);
	check_abandoned(s, "old", "ann", "r2", "; found by boss");
	assert_int_equal(show(s, "old")->abandoned, 1);
	assert_int_equal(show(s, "manual")->abandoned, 0);
	assert_false(show(s, "old")->lock.holder.n || show(s, "manual")->lock.holder.n);
	assert_int_equal(count_events(s, "old", "cleaned_up"), 1);
	assert_string_equal(ids(s, ok(s, "locks")), "fresh");
	/* eligible at once, and counted once */
	ans = ok(s, "take new_token=T");
	assert_true(str_is(ans->task->id, "manual") || str_is(ans->task->id, "old"));
	ok(s, "take new_token=U");
	assert_int_equal(show(s, "old")->abandoned, 1);
	assert_int_equal(show(s, "old")->fence, 2);
	refused(s, LOST_LOCK, "done id=old token=O");
}

/* Warns about old locks that it does not remove. */
static void test_cleanup_warns(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	s->config.policy.warn_after = 2 * tick();
	reopen(s);
	ok(s, "create id=old");
	ok(s, "create id=young");
	ok(s, "claim id=old new_token=O ttl=9t agent=bob");
	advance(2 * tick());
	ok(s, "claim id=young new_token=Y ttl=9t");
	assert_int_equal(ok(s, "lock_cleanup")->warnings.n, 1);
	assert_true(str_starts(ok(s, "lock_cleanup")->warnings.v[0],
			       STR("old has been locked by bob for ")));
	s->config.policy.warn_after = 0;
	reopen(s);
	assert_int_equal(ok(s, "lock_cleanup")->warnings.n, 0);
}

static void claim_with_pid(struct suite *s, const char *id, int64_t pid, int64_t start)
{
	struct str host = os_hostname(&s->a), here = proc_here(&s->a);

	ok(s, "claim id=%s new_token=%s host=%.*s boot_id=%.*s pid=%lld pid_start=%lld", id, id,
	   STRF(host), STRF(here), (long long)pid, (long long)start);
}

static void test_cleanup_dead(void **state)
{
	struct suite *s = *state;
	int64_t start = os_process_start(getpid());

	ok(s, "create id=alive");
	ok(s, "create id=dead");
	ok(s, "create id=elsewhere");
	claim_with_pid(s, "alive", getpid(), start);
	claim_with_pid(s, "dead", getpid(), start + 2);
	ok(s, "claim id=elsewhere new_token=E host=other.example pid=1 pid_start=1");
	assert_string_equal(ids(s, ok(s, "lock_cleanup")), "dead");
	ok(s, "heartbeat id=alive token=alive");
	ok(s, "heartbeat id=elsewhere token=E");
	refused(s, LOST_LOCK, "heartbeat id=dead token=dead");
	assert_true(str_is(ok(s, "take new_token=T")->task->id, "dead"));
}

/* A call that only the lock of a dead process is in the way of goes on, in the same commit. */
static void test_dead_holder(void **state)
{
	static const char *const calls[] = { "claim id=a new_token=N agent=bob",
					     "lock_acquire id=a new_token=N agent=bob",
					     "status id=a status=in_progress new_token=N agent=bob",
					     "take new_token=N agent=bob",
					     "update id=a title=y agent=bob",
					     "update id=a status=ready agent=bob",
					     "cancel id=a reason=r agent=bob",
					     "depend id=a depends=d agent=bob",
					     "release id=a force=1 agent=bob",
					     "remove id=a agent=bob" };
	struct suite *s = *state;
	int64_t start = os_process_start(getpid()), version;
	struct answer *ans;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		bool removes = i + 1 == sizeof(calls) / sizeof(*calls);

		ok(s, "create id=a");
		ok(s, "create id=d status=backlog if_absent=1");
		claim_with_pid(s, "a", getpid(), start);
		if (str_starts(str_c(calls[i]), STR("take")))
			refused(s, NO_TASKS, "%s", calls[i]);
		else
			refused(s, CONFLICT, "%s", calls[i]);
		ok(s, "release id=a token=a");
		claim_with_pid(s, "a", getpid(), start + 2);
		version = show(s, "a")->version;
		ans = ok(s, "%s", calls[i]);
		if (!removes && !str_starts(str_c(calls[i]), STR("take")))
			assert_int_equal(show(s, "a")->version, version + 1);
		if (!removes)
			assert_true(count_events(s, "a", "abandoned") > 0);
		assert_true(removes || !str_is(ans->task->lock.holder, "ann"));
		if (i < 4)
			assert_true(ans->lock && ans->lock->fence == ans->task->fence &&
				    str_is(ans->task->lock.holder, "bob"));
		refused(s, removes ? NOT_FOUND : LOST_LOCK, "heartbeat id=a token=a");
		if (!removes)
			ok(s, "remove id=a force=1 reason=x");
	}
}

/* Only a process that this machine can see to be gone is dead. */
static void test_unknown_holder(void **state)
{
	struct suite *s = *state;
	struct str host = os_hostname(&s->a), here = proc_here(&s->a), boot = here;
	struct str first = str_cut(&boot, '/');
	struct str other = arena_printf(&s->a, "%.*s/pid:[1]", STRF(first));
	const struct {
		struct str host, place;
		int64_t start;
	} holders[] = {
		{ host, here, os_process_start(getpid()) },
		{ host, here, 0 },
		{ STR("other.example"), here, 1 },
		{ host, STR("another-boot/pid:[1]"), 1 },
		{ host, other, 1 },
	};

	ok(s, "create id=a");
	for (size_t i = 0; i < sizeof(holders) / sizeof(*holders); i++) {
		ok(s, "claim id=a new_token=T host=%.*s boot_id=%.*s pid=%lld pid_start=%lld",
		   STRF(holders[i].host), STRF(holders[i].place), (long long)getpid(),
		   (long long)holders[i].start);
		refused(s, CONFLICT, "claim id=a new_token=N agent=bob");
		refused(s, NO_TASKS, "take new_token=N agent=bob");
		ok(s, "heartbeat id=a token=T");
		ok(s, "release id=a token=T");
	}
	ok(s, "claim id=a new_token=T");
	refused(s, CONFLICT, "claim id=a new_token=N agent=bob");
}

/* A death counts as an abandonment of a claim, and a refusal for another reason releases nothing. */
static void test_dead_holder_refused(void **state)
{
	struct suite *s = *state;
	int64_t start = os_process_start(getpid());
	struct answer *ans;

	ok(s, "create id=a");
	claim_with_pid(s, "a", getpid(), start + 2);
	ok(s, "pause");
	refused(s, CONFLICT, "claim id=a new_token=N agent=bob");
	refused(s, CONFLICT, "update id=a title=y agent=bob if_version=9");
	ok(s, "resume");
	s->config.policy.max_abandoned = 1;
	reopen(s);
	ans = call(s, "claim id=a new_token=N agent=bob");
	assert_int_equal(ans->code, MISCONFIGURED);
	expect_status(s, "a", NEEDS_HELP);
	assert_int_equal(count_events(s, "a", "abandoned"), 1);
}

static void test_cleanup_max_abandoned(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	s->config.policy.max_abandoned = 1;
	reopen(s);
	ok(s, "create id=a");
	abandon(s, "a");
	assert_int_equal(ok(s, "lock_cleanup")->n_tasks, 1);
	expect_status(s, "a", NEEDS_HELP);
	refused(s, NO_TASKS, "take new_token=T");
}

int lease_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_returns),
		QUEUE_TEST(test_heartbeat_keeps),
		QUEUE_TEST(test_max_abandoned),
		QUEUE_TEST(test_max_abandoned_alone),
		QUEUE_TEST(test_max_abandoned_claim_next),
		QUEUE_TEST(test_no_limit),
		QUEUE_TEST(test_keep),
		QUEUE_TEST(test_keep_waits_for_nothing),
		QUEUE_TEST(test_resume),
		QUEUE_TEST(test_free_after_ttl),
		QUEUE_TEST(test_handed_back_at_once),
		QUEUE_TEST(test_handed_back_reserved),
		QUEUE_TEST(test_handed_back_keeps_its_place),
		QUEUE_TEST(test_free_for_those_who_know),
		QUEUE_TEST(test_blocked),
		QUEUE_TEST(test_manual),
		QUEUE_TEST(test_lock_release),
		QUEUE_TEST(test_cleanup_ran_out),
		QUEUE_TEST(test_cleanup_warns),
		QUEUE_TEST(test_cleanup_dead),
		QUEUE_TEST(test_dead_holder),
		QUEUE_TEST(test_unknown_holder),
		QUEUE_TEST(test_dead_holder_refused),
		QUEUE_TEST(test_cleanup_max_abandoned),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
