/* remove: the reasons to refuse it, and its traces. */
#include "suite.h"

static void test_plain(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a title=gone");
	ans = ok(s, "remove id=a reason=r");
	assert_true(str_is(ans->task->title, "gone"));
	refused(s, NOT_FOUND, "show id=a");
	refused(s, NOT_FOUND, "remove id=a");
	assert_int_equal(ok(s, "list")->total, 0);
	assert_int_equal(ok(s, "overview")->total, 0);
	/* its log still exists */
	assert_int_equal(count_events(s, "a", "removed"), 1);
	assert_int_equal(count_events(s, "a", "created"), 1);
}

static void test_in_the_way(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=held");
	ok(s, "claim id=held new_token=T");
	refused(s, CONFLICT, "remove id=held");
	refused(s, LOST_LOCK, "remove id=held token=old explicit=1");
	ok(s, "create id=needed");
	ok(s, "create id=dep depends=needed");
	refused(s, MISCONFIGURED, "remove id=needed");
	ok(s, "create id=parent");
	ok(s, "create id=sub parent=parent");
	refused(s, MISCONFIGURED, "remove id=parent");
	/* even if those tasks have ended */
	ok(s, "cancel id=sub reason=r");
	refused(s, MISCONFIGURED, "remove id=parent");
	ok(s, "release id=held token=T");
	ok(s, "remove id=held");
	ok(s, "remove id=dep");
	ok(s, "remove id=needed");
	ok(s, "remove id=sub");
	ok(s, "remove id=parent");
	assert_int_equal(ok(s, "list")->n_tasks, 0);
}

static void test_expired_lock_is_not_in_the_way(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T ttl=1t");
	advance(tick());
	ok(s, "remove id=a");
}

static void test_force(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "create id=ready depends=a");
	ok(s, "create id=back depends=a status=Backlog");
	ok(s, "create id=busy depends=a");
	ok(s, "claim id=busy new_token=B");
	ok(s, "create id=sub parent=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "remove id=a force=1 reason=r");
	t = expect_status(s, "ready", NEEDS_HELP);
	assert_true(t->depends.n == 0 && t->open_deps == 0);
	assert_true(str_has_nocase(t->blocker_reason, STR("its dependency a was removed")));
	expect_status(s, "back", NEEDS_HELP);
	t = expect_status(s, "busy", IN_PROGRESS);
	assert_true(t->depends.n == 0 && t->open_deps == 0);
	assert_int_equal(show(s, "sub")->parent.n, 0);
	assert_int_equal(show(s, "p")->open_subs, 0);
	/* the holder's next call reports it */
	refused(s, NOT_FOUND, "done id=a token=T");
	ok(s, "done id=busy token=B");
}

static void test_force_after_done(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "done id=a token=T");
	ok(s, "remove id=a force=1 reason=r");
	assert_int_equal(expect_status(s, "b", READY)->depends.n, 0);
	assert_true(str_is(ok(s, "take new_token=U")->task->id, "b"));
}

static void test_force_on_canceled(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "cancel id=a reason=r");
	ok(s, "remove id=a force=1 reason=r");
	t = expect_status(s, "b", NEEDS_HELP);
	assert_true(t->canceled_deps == 0 && t->open_deps == 0);
	ok(s, "update id=b status=Ready");
	expect_status(s, "b", READY);
}

/* A task that is both parent and dependent of the removed one. */
static void test_force_double_link(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "depend id=p depends=a");
	ok(s, "remove id=a force=1 reason=r");
	t = expect_status(s, "p", NEEDS_HELP);
	assert_true(t->open_subs == 0 && t->open_deps == 0 && t->depends.n == 0);
}

static void test_tombstone(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	for (int i = 0; i < 3; i++) {
		ok(s, "claim id=a new_token=T");
		ok(s, "release id=a token=T");
	}
	ok(s, "remove id=a");
	assert_int_equal(ok(s, "create id=A")->task->fence, 3);
	assert_int_equal(ok(s, "claim id=a new_token=T")->lock->fence, 4);
	ok(s, "remove id=a force=1 reason=r");
	ok(s, "create id=a");
	/* and again without a claim in between */
	ok(s, "remove id=a");
	ok(s, "create id=a");
	refused(s, LOST_LOCK, "done id=a token=T");
	assert_int_equal(ok(s, "claim id=a new_token=U")->lock->fence, 5);
}

static void test_tombstone_survives_a_refusal(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "release id=a token=T");
	ok(s, "remove id=a");
	refused(s, NOT_FOUND, "create id=a parent=nobody");
	refused(s, NOT_FOUND, "create id=a depends=nobody");
	assert_int_equal(ok(s, "create id=a")->task->fence, 1);
}

int remove_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_plain),
		QUEUE_TEST(test_in_the_way),
		QUEUE_TEST(test_expired_lock_is_not_in_the_way),
		QUEUE_TEST(test_force),
		QUEUE_TEST(test_force_after_done),
		QUEUE_TEST(test_force_on_canceled),
		QUEUE_TEST(test_force_double_link),
		QUEUE_TEST(test_tombstone),
		QUEUE_TEST(test_tombstone_survives_a_refusal),
	};

	return cmocka_run_group_tests_name("remove", tests, NULL, NULL);
}
