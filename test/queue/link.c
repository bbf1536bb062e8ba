/* Parents, dependencies, their counts, and cycles through both. */
#include "suite.h"

static void finish(struct suite *s, const char *id)
{
	ok(s, "claim id=%s new_token=F", id);
	ok(s, "done id=%s token=F", id);
}

static void expect_deps(struct suite *s, const char *id, int64_t open, int64_t canceled)
{
	struct task *t = show(s, id);

	if (t->open_deps != open || t->canceled_deps != canceled)
		fail_msg("%s has %d open and %d canceled dependencies, not %d and %d", id,
			 (int)t->open_deps, (int)t->canceled_deps, (int)open, (int)canceled);
}

static void expect_subs(struct suite *s, const char *id, int64_t open)
{
	struct task *t = show(s, id);

	if (t->open_subs != open)
		fail_msg("%s has %d open sub-tasks, not %d", id, (int)t->open_subs, (int)open);
}

/* --- cycles ----------------------------------------------------------------------------------- */

static void test_self(void **state)
{
	struct suite *s = *state;

	refused(s, MISCONFIGURED, "create id=a depends=A");
	refused(s, MISCONFIGURED, "create id=a parent=a");
	ok(s, "create id=a");
	refused(s, MISCONFIGURED, "depend id=a depends=A");
	refused(s, MISCONFIGURED, "update id=a parent=A");
	refused(s, MISCONFIGURED, "update id=a parent=a title=new priority=9");
	/* the id that is about to be created */
	refused(s, MISCONFIGURED, "create depends=t1");
	refused(s, MISCONFIGURED, "create parent=t1");
	assert_true(str_is(ok(s, "create")->task->id, "t1"));
}

static void test_depend_cycles(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "create id=c depends=b");
	ok(s, "create id=d depends=c,a");
	refused(s, MISCONFIGURED, "depend id=a depends=b");
	refused(s, MISCONFIGURED, "depend id=a depends=c");
	refused(s, MISCONFIGURED, "depend id=a depends=d");
	refused(s, MISCONFIGURED, "depend id=b depends=d");
	/* the valid links among the bad ones are not made either */
	ok(s, "create id=e");
	refused(s, MISCONFIGURED, "depend id=a depends=e,d");
	refused(s, NOT_FOUND, "depend id=a depends=e,nobody");
	expect_deps(s, "a", 0, 0);
	ok(s, "depend id=a depends=e");
	ok(s, "undepend id=d depends=c,a");
	ok(s, "depend id=a depends=d");
	refused(s, MISCONFIGURED, "depend id=d depends=a");
}

static void test_parent_cycles(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b parent=a");
	ok(s, "create id=c parent=b");
	refused(s, MISCONFIGURED, "update id=a parent=b");
	refused(s, MISCONFIGURED, "update id=a parent=c");
	refused(s, MISCONFIGURED, "update id=b parent=c status=Backlog");
	ok(s, "update id=c parent=a");
	ok(s, "update id=b parent=c");
	ok(s, "update id=b parent=");
	ok(s, "update id=a parent=b");
	refused(s, MISCONFIGURED, "update id=b parent=a");
}

/* A parent waits for its sub-tasks, so none of them may wait for it, even indirectly. */
static void test_mixed_cycles(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=p");
	ok(s, "create id=q");
	refused(s, MISCONFIGURED, "create id=x parent=p depends=p");
	ok(s, "create id=c parent=p");
	refused(s, MISCONFIGURED, "depend id=c depends=p");
	ok(s, "depend id=q depends=p");
	refused(s, MISCONFIGURED, "depend id=c depends=q");
	refused(s, MISCONFIGURED, "create id=x parent=p depends=q");
	refused(s, MISCONFIGURED, "create id=x parent=c depends=q");
	refused(s, MISCONFIGURED, "update id=q parent=p");
	refused(s, MISCONFIGURED, "update id=q parent=c");
	/* p waits for its sub-task anyway: depending on it as well is not a cycle */
	ok(s, "depend id=p depends=c");
	expect_deps(s, "p", 1, 0);
	/* q waits for p; as p's parent it waits a second time */
	ok(s, "update id=p parent=q");
	refused(s, MISCONFIGURED, "depend id=p depends=q");
	refused(s, MISCONFIGURED, "update id=q parent=c");
}

/* Depends and sub-tasks of one task, in all numbers. */
static void test_cycle_among_many(void **state)
{
	struct suite *s = *state;

	for (int n = 0; n < 9; n++) {
		ok(s, "create id=top%d", n);
		for (int i = 0; i < n; i++) {
			ok(s, "create id=dep%d.%d", n, i);
			ok(s, "depend id=top%d depends=dep%d.%d", n, n, i);
		}
		for (int i = 0; i < 3; i++) {
			ok(s, "create id=sub%d.%d parent=top%d", n, i, n);
			refused(s, MISCONFIGURED, "depend id=sub%d.%d depends=top%d", n, i, n);
		}
		for (int i = 0; i < n; i++)
			refused(s, MISCONFIGURED, "depend id=dep%d.%d depends=top%d", n, i, n);
	}
}

static void test_siblings(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "create id=b parent=p depends=a");
	ok(s, "create id=c parent=p depends=a,b");
	refused(s, MISCONFIGURED, "depend id=a depends=c");
	refused(s, MISCONFIGURED, "update id=c parent=b");
	refused(s, MISCONFIGURED, "update id=c parent=a");
	ok(s, "update id=a parent=b");
}

/* A cycle through ended tasks is still a cycle: they can be reopened. */
static void test_ended_cycles(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	finish(s, "a");
	finish(s, "b");
	ok(s, "reopen id=a reason=r");
	refused(s, MISCONFIGURED, "depend id=a depends=b");
	expect_deps(s, "b", 1, 0);
}

/* --- counts ----------------------------------------------------------------------------------- */

static void test_sub_counts(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "create id=b parent=p status=Backlog");
	expect_subs(s, "p", 2);
	assert_int_equal(show(s, "p")->version, 1);
	finish(s, "a");
	expect_subs(s, "p", 1);
	ok(s, "cancel id=b reason=r");
	expect_subs(s, "p", 0);
	ok(s, "reopen id=b reason=r");
	ok(s, "reopen id=a reason=r");
	expect_subs(s, "p", 2);
	ok(s, "remove id=a");
	expect_subs(s, "p", 1);
	ok(s, "create id=q");
	ok(s, "update id=b parent=q");
	expect_subs(s, "p", 0);
	expect_subs(s, "q", 1);
	ok(s, "update id=b parent=q");
	expect_subs(s, "q", 1);
	ok(s, "update id=b parent=");
	expect_subs(s, "q", 0);
	finish(s, "b");
	ok(s, "update id=b parent=q");
	expect_subs(s, "q", 0);
	ok(s, "reopen id=b reason=r");
	expect_subs(s, "q", 1);
	ok(s, "remove id=b");
	expect_subs(s, "q", 0);
}

static void test_guard(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "create id=b parent=p");
	ok(s, "claim id=p new_token=P");
	refused(s, INCOMPLETE_SUBTASKS, "done id=p token=P");
	refused(s, INCOMPLETE_SUBTASKS, "done id=p token=P claim_next=1 new_token=N");
	refused(s, INCOMPLETE_SUBTASKS, "review id=p token=P summary=s");
	refused(s, INCOMPLETE_SUBTASKS, "status id=p token=P status=Done");
	refused(s, LOST_LOCK, "done id=p token=other");
	finish(s, "a");
	refused(s, INCOMPLETE_SUBTASKS, "done id=p token=P");
	ok(s, "cancel id=b reason=r");
	ok(s, "review id=p token=P summary=s");
	ok(s, "reopen id=a reason=r");
	ok(s, "approve id=p");
	expect_status(s, "p", DONE);
	expect_subs(s, "p", 1);
	refused(s, MISCONFIGURED, "create parent=p");
	refused(s, MISCONFIGURED, "update id=b parent=p");
}

static void test_dep_counts(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "create id=x depends=a,b,A");
	expect_deps(s, "x", 2, 0);
	assert_int_equal(show(s, "x")->depends.n, 2);
	finish(s, "a");
	expect_deps(s, "x", 1, 0);
	ok(s, "reopen id=a reason=r");
	expect_deps(s, "x", 2, 0);
	ok(s, "undepend id=x depends=a");
	expect_deps(s, "x", 1, 0);
	finish(s, "b");
	expect_deps(s, "x", 0, 0);
	ok(s, "create id=y depends=b");
	expect_deps(s, "y", 0, 0);
	refused(s, NOT_FOUND, "undepend id=y depends=a");
	refused(s, NOT_FOUND, "undepend id=y depends=nobody");
	refused(s, NOT_FOUND, "undepend id=y depends=b,a");
	finish(s, "y");
	refused(s, MISCONFIGURED, "depend id=y depends=a");
	/* repeated: nothing happens */
	ok(s, "depend id=x depends=b");
	assert_int_equal(count_events(s, "x", "depends"), 0);
}

/* Counts are not edits: `updated_at` and the order stay. */
static void test_counts_leave_the_order(void **state)
{
	struct suite *s = *state;
	int64_t updated;

	ok(s, "create id=a");
	ok(s, "create id=p depends=a");
	updated = show(s, "p")->updated_at;
	advance(tick());
	ok(s, "create id=sub parent=p");
	finish(s, "a");
	finish(s, "sub");
	assert_true(show(s, "p")->updated_at == updated);
}

static void test_held_by_another(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T");
	refused(s, CONFLICT, "depend id=a depends=b agent=bob");
	refused(s, CONFLICT, "update id=a parent=b agent=bob");
	refused(s, LOST_LOCK, "depend id=a depends=b token=stale explicit=1");
	ok(s, "depend id=a depends=b token=T");
	refused(s, MISCONFIGURED, "update id=a parent=b token=T");
	ok(s, "undepend id=a depends=b token=T");
	ok(s, "update id=a parent=b token=T");
}

/* --- canceled dependencies -------------------------------------------------------------------- */

static void test_canceled_dependency(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=a");
	ok(s, "create id=ready depends=a");
	ok(s, "create id=back depends=a status=Backlog");
	ok(s, "create id=busy depends=a");
	ok(s, "claim id=busy new_token=T");
	ok(s, "cancel id=a reason=r");
	t = expect_status(s, "ready", NEEDS_HELP);
	assert_true(str_has_nocase(t->blocker_reason, STR("its dependency a was canceled")));
	assert_int_equal(t->version, 2);
	assert_int_equal(count_events(s, "ready", "needs_help"), 1);
	expect_status(s, "back", BACKLOG);
	expect_status(s, "busy", IN_PROGRESS);
	expect_deps(s, "ready", 1, 1);
	expect_deps(s, "back", 1, 1);
	/* it cannot become Ready by other commands either */
	assert_int_equal(ok(s, "update id=back status=Ready")->warnings.n, 1);
	expect_status(s, "back", NEEDS_HELP);
	ok(s, "release id=busy token=T");
	expect_status(s, "busy", NEEDS_HELP);
	ok(s, "create id=late depends=a");
	expect_status(s, "late", NEEDS_HELP);
	ok(s, "create id=later");
	ok(s, "depend id=later depends=a");
	expect_status(s, "later", NEEDS_HELP);
	ok(s, "undepend id=later depends=a");
	ok(s, "update id=later status=Ready");
	expect_status(s, "later", READY);
}

static void test_canceled_and_back(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "cancel id=a reason=r");
	ok(s, "reopen id=a reason=r");
	expect_deps(s, "b", 1, 0);
	expect_status(s, "b", NEEDS_HELP);
	ok(s, "update id=b status=Ready");
	expect_status(s, "b", READY);
	finish(s, "a");
	assert_true(str_is(ok(s, "take new_token=T")->task->id, "b"));
}

/* Each log line starts from the status in which the one before it left the task. */
static void expect_log(struct suite *s, const char *id)
{
	struct answer *ans = ok(s, "log id=%s", id);
	int64_t status = 0;

	for (size_t i = 0; i < ans->n_events; i++) {
		const struct event *e = &ans->events[i];

		if (e->to && e->from != status)
			fail_msg("%s: %.*s from %d, but it was %d", id, STRF(e->name), (int)e->from,
				 (int)status);
		if (e->to)
			status = e->to;
	}
	assert_int_equal(status, show(s, id)->status);
}

static void test_log_of_canceled_dependency(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "cancel id=a reason=no");
	ok(s, "create id=c depends=a");
	ok(s, "create id=d");
	ok(s, "depend id=d depends=a");
	ok(s, "create id=e status=Backlog depends=a");
	ok(s, "update id=e status=Ready");
	expect_log(s, "b");
	expect_log(s, "c");
	expect_log(s, "d");
	expect_log(s, "e");
}

static void test_claim_over_open_dependency(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a class_rank=Expedite");
	assert_true(str_is(ok(s, "next")->task->id, "a"));
	ans = ok(s, "claim id=b new_token=T");
	assert_int_equal(ans->warnings.n, 1);
	assert_int_equal(ok(s, "claim id=b new_token=T")->warnings.n, 1);
	ok(s, "done id=b token=T");
	expect_deps(s, "b", 1, 0);
	ok(s, "cancel id=a reason=r");
	expect_status(s, "b", DONE);
	expect_deps(s, "b", 1, 1);
	ok(s, "reopen id=b reason=r");
	expect_status(s, "b", NEEDS_HELP);
}

static void test_ignored_depends(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	ok(s, "create id=a");
	ok(s, "create id=b depends=a class_rank=Expedite");
	ok(s, "create id=c depends=a delay=5t");
	s->config.policy.ignore_depends = true;
	reopen(s);
	assert_string_equal(ids(s, ok(s, "next explain=1")), "b a");
	assert_true(str_is(ok(s, "take new_token=T")->task->id, "b"));
	s->config.policy.ignore_depends = false;
	reopen(s);
	assert_string_equal(ids(s, ok(s, "next explain=1")), "a");
}

int link_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_self),
		QUEUE_TEST(test_depend_cycles),
		QUEUE_TEST(test_parent_cycles),
		QUEUE_TEST(test_mixed_cycles),
		QUEUE_TEST(test_cycle_among_many),
		QUEUE_TEST(test_siblings),
		QUEUE_TEST(test_ended_cycles),
		QUEUE_TEST(test_sub_counts),
		QUEUE_TEST(test_guard),
		QUEUE_TEST(test_dep_counts),
		QUEUE_TEST(test_counts_leave_the_order),
		QUEUE_TEST(test_held_by_another),
		QUEUE_TEST(test_canceled_dependency),
		QUEUE_TEST(test_canceled_and_back),
		QUEUE_TEST(test_log_of_canceled_dependency),
		QUEUE_TEST(test_claim_over_open_dependency),
		QUEUE_TEST(test_ignored_depends),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
