/* People in charge: overrides, done --take, tasks that a lock left behind, plans, versions, the pause. */
#include "suite.h"

/* The newest line of that name about the task. */
static const struct event *last_line(struct suite *s, const char *id, const char *name)
{
	struct answer *ans = ok(s, "log id=%s", id);
	const struct event *found = NULL;

	for (size_t i = 0; i < ans->n_events; i++)
		if (str_is(ans->events[i].name, name))
			found = &ans->events[i];
	return found;
}

static void expect_override(struct suite *s, const char *id, const char *text)
{
	const struct event *e = last_line(s, id, "overridden");

	assert_non_null(e);
	assert_true(str_is(e->agent, "pat"));
	assert_true(str_is(e->text, text));
}

static const char *const protected[] = {
	"update id=a title=x",        "update id=a assignee=x", "depend id=a depends=other",
	"undepend id=a depends=base", "cancel id=a reason=r",   "remove id=a",
};

static void held_task(struct suite *s)
{
	ok(s, "create id=other");
	ok(s, "create id=base");
	ok(s, "create id=a depends=base");
	ok(s, "claim id=a new_token=T agent=al");
}

static void test_protected(void **state)
{
	struct suite *s = *state;

	held_task(s);
	for (size_t i = 0; i < sizeof(protected) / sizeof(*protected); i++) {
		struct answer *ans = refused(s, CONFLICT, "%s agent=pat", protected[i]);

		assert_true(str_has_nocase(ans->message, STR("a is held by al")));
		assert_true(str_has_nocase(ans->hint, STR("--force --reason TEXT")));
		refused(s, LOST_LOCK, "%s agent=pat token=U explicit=1", protected[i]);
		refused(s, USAGE, "%s agent=pat token=T explicit=1 force=1", protected[i]);
	}
	refused(s, USAGE, "update id=a title=x force=1");
	refused(s, USAGE, "depend id=a depends=other force=1");
	refused(s, USAGE, "remove id=a force=1");
	assert_int_equal(count_events(s, "a", "overridden"), 0);
}

static void expect_changed(struct answer *ans, const char *by, const char *fields)
{
	char got[200] = "";

	assert_non_null(ans->changed);
	assert_true(str_is(ans->changed->by, by) && str_is(ans->changed->reason, "urgent"));
	for (size_t i = 0; i < ans->changed->fields.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%.*s", i ? "," : "",
			 STRF(ans->changed->fields.v[i]));
	assert_string_equal(got, fields);
}

/* The change is made, the lock stays, the log has it, and the holder is told until its lock ends. */
static void test_override(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	held_task(s);
	assert_null(ok(s, "heartbeat id=a token=T agent=al")->changed);
	ans = ok(s, "update id=a priority=9 agent=pat force=1 reason=urgent");
	assert_null(ans->changed); /* the operator knows */
	assert_true(str_is(ans->task->lock.holder, "al") && ans->task->priority == 9);
	expect_override(s, "a", "the lock of al: urgent");
	ok(s, "undepend id=a depends=base agent=pat force=1 reason=urgent");
	ok(s, "depend id=a depends=other agent=pat force=1 reason=urgent");
	assert_int_equal(count_events(s, "a", "overridden"), 3);
	expect_changed(ok(s, "heartbeat id=a token=T agent=al"), "pat", "priority,depends");
	expect_changed(ok(s, "comment id=a token=T text=x agent=al"), "pat", "priority,depends");
	expect_changed(ok(s, "release id=a token=T agent=al"), "pat", "priority,depends");
	ans = ok(s, "release id=a token=T agent=al"); /* a repeat */
	assert_true(ans->repeated);
	expect_changed(ans, "pat", "priority,depends");
	ans = ok(s, "claim id=a new_token=U agent=al");
	assert_null(ans->changed);
	assert_null(ok(s, "heartbeat id=a token=U agent=al")->changed);
}

static void test_override_ends(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	held_task(s);
	ans = ok(s, "cancel id=a agent=pat force=1 reason=urgent");
	assert_true(ans->task->status == CANCELED && !ans->task->lock.holder.n);
	expect_override(s, "a", "the lock of al: urgent");
	ans = refused(s, LOST_LOCK, "done id=a token=T agent=al");
	assert_true(str_has_nocase(ans->message, STR("pat overrode it: urgent")));
	expect_changed(ans, "pat", "status");
	ok(s, "create id=b");
	ok(s, "claim id=b new_token=V agent=al");
	ok(s, "remove id=b agent=pat force=1 reason=urgent");
	expect_override(s, "b", "the lock of al: urgent");
	assert_int_equal(call(s, "done id=b token=V agent=al")->code, NOT_FOUND);
}

/* Nothing is overridden where nobody else holds the task. */
static void test_no_override(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "update id=a title=x force=1 reason=r");
	ok(s, "claim id=a new_token=T");
	ok(s, "update id=a title=y force=1 reason=r token=T");
	assert_null(ok(s, "heartbeat id=a token=T")->changed);
	ok(s, "block id=a token=T reason=r unblock_action=u");
	ok(s, "update id=a title=z agent=bob");
	assert_int_equal(count_events(s, "a", "overridden"), 0);
	ok(s, "create id=b");
	ok(s, "claim id=b new_token=U");
	ok(s, "remove id=b token=U"); /* by its holder */
	assert_int_equal(count_events(s, "b", "overridden"), 0);
}

static void test_take(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ans = refused(s, LOST_LOCK, "done id=a");
	assert_true(str_has_nocase(ans->hint, STR("pawl done a --take")));
	ans = ok(s, "done id=a take=1 new_token=T summary=s");
	assert_true(ans->task->status == DONE && ans->task->fence == 1 && ans->task->version == 2);
	assert_true(ans->task->attempts == 1 && str_is(ans->task->last_holder, "ann"));
	assert_true(!ans->lock && !ans->task->lock.holder.n);
	assert_int_equal(count_events(s, "a", "claimed"), 1);
	assert_int_equal(count_events(s, "a", "done"), 1);
	ans = ok(s, "done id=a take=1 new_token=T summary=s");
	assert_true(ans->repeated && ans->task->fence == 1);
	refused(s, LOST_LOCK, "done id=a take=1 new_token=U");
	ok(s, "create id=b");
	ok(s, "lock_acquire id=b new_token=V agent=bob");
	refused(s, CONFLICT, "done id=b take=1 new_token=U");
	ok(s, "create id=c");
	ok(s, "create id=d parent=c");
	refused(s, INCOMPLETE_SUBTASKS, "done id=c take=1 new_token=U");
	refused(s, LOST_LOCK, "done id=d take=1 new_token=U token=W explicit=1");
	refused(s, USAGE, "done id=d take=1");
}

static void test_take_and_next(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ans = ok(s, "done id=a take=1 claim_next=1 new_token=T");
	assert_true(ans->next && str_is(ans->next->id, "b") && ans->next_lock->fence == 1);
	ans = ok(s, "done id=a take=1 claim_next=1 new_token=T");
	assert_true(ans->repeated && ans->next && str_is(ans->next->id, "b"));
}

static void left_behind(struct suite *s, const char *id)
{
	ok(s, "create id=%s", id);
	ok(s, "claim id=%s new_token=T agent=al", id);
	ok(s, "lock_break id=%s reason=r", id);
}

static void test_after_break(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	left_behind(s, "a");
	ans = ok(s, "update id=a status=ready");
	assert_true(ans->task->status == READY);
	ok(s, "take new_token=U agent=bob"); /* at once */
	left_behind(s, "b");
	ans = refused(s, LOST_LOCK, "release id=b");
	assert_true(str_has_nocase(ans->hint, STR("pawl release b --force")));
	ans = ok(s, "release id=b force=1");
	assert_true(ans->task->status == READY);
	refused(s, MISCONFIGURED, "release id=b force=1");
	ok(s, "claim id=b new_token=V agent=bob");
	ans = refused(s, CONFLICT, "release id=b force=1");
	assert_true(str_has_nocase(ans->hint, STR("pawl lock break b")));
	refused(s, USAGE, "release id=b force=1 token=V explicit=1");
	refused(s, CONFLICT, "update id=b status=ready");
	refused(s, CONFLICT, "update id=b status=ready force=1 reason=r");
	refused(s, MISCONFIGURED, "update id=b status=ready token=V agent=bob");
	advance(11 * tick()); /* an expired lease is not in the way */
	ok(s, "release id=b force=1");
}

static void test_assignee(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a assignee=bob");
	ok(s, "create id=b");
	assert_true(str_is(ok(s, "next")->task->id, "a")); /* a plan, not a lock */
	assert_true(str_is(ok(s, "next assignee=bob")->task->id, "a"));
	assert_int_equal(call(s, "next assignee=ann")->code, NO_TASKS);
	refused(s, NO_TASKS, "take new_token=T assignee=ann");
	ans = ok(s, "take new_token=T assignee=bob agent=bob");
	assert_true(str_is(ans->task->id, "a") && str_is(ans->task->assignee, "bob"));
	ok(s, "release id=a token=T agent=bob");
	ans = ok(s, "claim id=a new_token=U agent=al"); /* the claim leaves the plan alone */
	assert_true(str_is(ans->task->assignee, "bob") && str_is(ans->task->lock.holder, "al"));
	ans = ok(s, "release id=a token=U agent=al");
	assert_true(str_is(ans->task->assignee, "bob") && str_is(ans->task->last_holder, "al"));
	ok(s, "claim id=b new_token=V agent=al");
	ok(s, "release id=b token=V agent=al");
	assert_false(show(s, "b")->assignee.n > 0); /* not its last holder */
	ok(s, "update id=b assignee=al");
	assert_true(str_is(ok(s, "next assignee=al")->task->id, "b"));
	ok(s, "update id=b assignee=");
	assert_int_equal(call(s, "next assignee=al")->code, NO_TASKS);
	reopen(s);
	assert_true(str_is(show(s, "a")->assignee, "bob"));
}

/* The same filter also finds the tasks that come due later. */
static void test_assignee_later(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a assignee=bob delay=2t");
	ok(s, "create id=b delay=1t");
	ans = refused(s, NO_TASKS, "take new_token=T assignee=bob");
	assert_true(ans->wait_ms > tick());
	assert_true(call(s, "next assignee=bob")->wait_ms > tick());
	assert_true(call(s, "next")->wait_ms <= tick());
	ans = ok(s, "next explain=1 assignee=bob");
	assert_int_equal(ans->n_candidates, 2);
	ok(s, "update id=b delay=0");
	ans = ok(s, "next explain=1 assignee=bob");
	for (size_t i = 0; i < ans->n_candidates; i++) {
		assert_false(ans->candidates[i].eligible);
		if (str_is(ans->candidates[i].id, "b"))
			assert_true(str_is(ans->candidates[i].why, "assigned to nobody"));
	}
}

static void test_version(void **state)
{
	static const char *const changes[] = {
		"claim id=a new_token=N",
		"claim id=a new_token=N fence=1",
		"heartbeat id=a token=T",
		"release id=a token=T",
		"block id=a token=T reason=r unblock_action=u",
		"escalate id=a token=T reason=r",
		"review id=a token=T summary=s",
		"done id=a token=T",
		"fail id=a token=T reason=r",
		"cancel id=a token=T reason=r",
		"update id=a token=T title=x",
		"update id=a force=1 reason=r title=x agent=pat",
		"status id=a token=T status=done",
		"comment id=a token=T text=x",
		"depend id=a token=T depends=b",
		"undepend id=a token=T depends=c",
		"remove id=a token=T",
		"lock_acquire id=a new_token=N",
		"lock_release id=a token=T",
		"lock_break id=a reason=r",
		"unblock id=a",
		"approve id=a",
		"rework id=a reason=r",
		"retry id=a",
		"reopen id=a reason=r",
		"archive id=a",
	};
	struct suite *s = *state;

	ok(s, "create id=b");
	ok(s, "create id=c");
	ok(s, "create id=a depends=c");
	ok(s, "claim id=a new_token=T");
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct answer *ans = refused(s, CONFLICT, "%s if_version=1", changes[i]);

		assert_true(str_has_nocase(ans->message, STR("a has version 2, not 1")));
	}
	refused(s, NOT_FOUND, "update id=none title=x if_version=1");
	refused(s, USAGE, "create id=d if_version=1");
	refused(s, USAGE, "take new_token=N if_version=1");
	ok(s, "update id=a token=T title=x if_version=2");
	ok(s, "done id=a token=T if_version=3");
	assert_true(ok(s, "done id=a token=T if_version=3")->repeated);
	ok(s, "update id=b title=x request_id=r if_version=1");
	assert_true(ok(s, "update id=b title=x request_id=r if_version=1")->repeated);
}

/* A claim that is repeated has the lock already, whatever the version is now. */
static void test_version_again(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T if_version=1");
	assert_true(ok(s, "claim id=a new_token=T if_version=1")->repeated);
	ok(s, "create id=b");
	ok(s, "lock_acquire id=b new_token=U if_version=1");
	assert_true(ok(s, "lock_acquire id=b new_token=U if_version=1")->repeated);
	refused(s, CONFLICT, "claim id=b new_token=U if_version=1"); /* puts the lock to work */
	ok(s, "claim id=b new_token=U if_version=2");
}

static void expect_paused(struct answer *ans)
{
	assert_non_null(ans->paused);
	assert_true(str_is(ans->paused->by, "pat") && str_is(ans->paused->reason, "lunch"));
	assert_true(ans->paused->at > 0);
}

static void test_pause(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T");
	assert_null(ok(s, "overview")->paused);
	expect_paused(ok(s, "pause agent=pat reason=lunch"));
	ans = ok(s, "pause agent=bob reason=again");
	assert_true(ans->repeated);
	expect_paused(ans);
	reopen(s); /* it is kept in the queue */
	expect_paused(ok(s, "overview"));
	ans = call(s, "next");
	assert_int_equal(ans->code, NO_TASKS);
	expect_paused(ans);
	assert_true(str_has_nocase(ans->message, STR("pat paused it")));
	expect_paused(refused(s, NO_TASKS, "take new_token=N"));
	ans = refused(s, CONFLICT, "claim id=b new_token=N");
	expect_paused(ans);
	assert_true(str_has_nocase(ans->hint, STR("pawl resume")));
	refused(s, CONFLICT, "status id=b status=in-progress new_token=N");
	refused(s, CONFLICT, "lock_acquire id=b new_token=N");
	refused(s, CONFLICT, "done id=b take=1 new_token=N");
	ok(s, "lock_acquire id=@config new_token=C");
	assert_true(ok(s, "claim id=a new_token=T")->repeated);
	ok(s, "heartbeat id=a token=T");
	ok(s, "create id=c");
	ok(s, "update id=c title=x");
	ans = ok(s, "done id=a token=T claim_next=1 new_token=N");
	assert_true(ans->has_next && !ans->next);
	expect_paused(ans);
	ok(s, "resume agent=bob");
	assert_true(ok(s, "resume")->repeated);
	assert_null(ok(s, "overview")->paused);
	ok(s, "take new_token=N");
	assert_int_equal(count_events(s, "", "queue_paused"), 1);
	assert_int_equal(count_events(s, "", "queue_resumed"), 1);
}

/* A refused claim changes nothing on the way, and a holder may take its own work up again. */
static void test_pause_edges(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "block id=a token=T reason=r unblock_action=u");
	ok(s, "create id=b");
	ok(s, "claim id=b new_token=U ttl=1t");
	ok(s, "pause agent=pat reason=lunch");
	refused(s, CONFLICT, "status id=a status=in-progress new_token=N");
	advance(2 * tick());
	refused(s, CONFLICT, "claim id=b new_token=N agent=bob");
	ok(s, "claim id=b new_token=N fence=1 token=U");
	refused(s, NOT_FOUND, "claim id=none new_token=N");
}

int operator_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_protected),      QUEUE_TEST(test_override),
		QUEUE_TEST(test_override_ends),  QUEUE_TEST(test_no_override),
		QUEUE_TEST(test_take),           QUEUE_TEST(test_take_and_next),
		QUEUE_TEST(test_after_break),    QUEUE_TEST(test_assignee),
		QUEUE_TEST(test_assignee_later), QUEUE_TEST(test_version),
		QUEUE_TEST(test_version_again),  QUEUE_TEST(test_pause),
		QUEUE_TEST(test_pause_edges),
	};

	return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
