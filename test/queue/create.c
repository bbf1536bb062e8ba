/* create and ids. */
#include "suite.h"

static void test_counter(void **state)
{
	struct suite *s = *state;

	assert_true(str_is(ok(s, "id_peek")->text, "t1"));
	assert_true(str_is(ok(s, "create")->task->id, "t1"));
	assert_true(str_is(ok(s, "create")->task->id, "t2"));
	assert_true(str_is(ok(s, "id_peek")->text, "t3"));
	assert_true(str_is(ok(s, "id_peek")->text, "t3"));
	assert_true(str_is(ok(s, "id_claim")->text, "t3"));
	assert_true(str_is(ok(s, "create")->task->id, "t4"));
	/* an id that was handed out is free for the caller that got it */
	assert_true(str_is(ok(s, "create id=t3")->task->id, "t3"));
}

static void test_counter_skips_given_ids(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=T1");
	ok(s, "create id=t2");
	assert_true(str_is(ok(s, "id_peek")->text, "t3"));
	assert_true(str_is(ok(s, "create")->task->id, "t3"));
	ok(s, "create id=t5");
	assert_true(str_is(ok(s, "id_claim")->text, "t4"));
	assert_true(str_is(ok(s, "create")->task->id, "t6"));
}

/* The counter never goes back, and never below an id that exists. */
static void test_counter_begins(void **state)
{
	struct suite *s = *state;

	assert_true(str_is(ok(s, "id_init")->text, "t1"));
	assert_true(str_is(ok(s, "id_peek")->text, "t1"));
	ok(s, "create id=t7");
	ok(s, "create id=t9_2");
	ok(s, "create id=other");
	assert_true(str_is(ok(s, "id_init")->text, "t10"));
	assert_true(str_is(ok(s, "id_claim")->text, "t10"));
	assert_true(str_is(ok(s, "id_init from=5")->text, "t11"));
	assert_true(str_is(ok(s, "id_init from=20")->text, "t20"));
	assert_true(str_is(ok(s, "id_init")->text, "t20"));
	assert_true(str_is(ok(s, "create")->task->id, "t20"));
	refused(s, USAGE, "id_init from=-1");
}

/* The id of a removed task is not created again: others may still refer to it. */
static void test_counter_after_remove(void **state)
{
	struct suite *s = *state;

	ok(s, "create");
	ok(s, "remove id=t1");
	assert_true(str_is(ok(s, "create")->task->id, "t2"));
}

static void test_defaults(void **state)
{
	struct suite *s = *state;
	struct task *t = ok(s, "create title=x")->task;

	assert_int_equal(t->status, READY);
	assert_int_equal(t->class_rank, STANDARD);
	assert_int_equal(t->priority, 2);
	assert_int_equal(t->fence, 0);
	assert_int_equal(t->attempts, 0);
	assert_int_equal(t->version, 1);
	assert_true(t->created_at && t->created_at == t->updated_at);
	assert_false(t->lock.holder.n || t->started_at || t->done_at);
	assert_int_equal(count_events(s, "t1", "created"), 1);
}

static void test_fields(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=p");
	ok(s, "create id=d");
	ok(s,
	   "create id=a title=T description=D acceptance=A type=bug effort=S labels=x,y due=+9t "
	   "not_before=+1t parent=p depends=d extra={\"k\":1} status=Backlog class_rank=Expedite "
	   "priority=1000");
	t = show(s, "a");
	assert_true(str_is(t->title, "T") && str_is(t->description, "D") &&
		    str_is(t->acceptance, "A"));
	assert_true(str_is(t->type, "bug") && str_is(t->effort, "S") && str_is(t->parent, "p"));
	assert_true(t->labels.n == 2 && str_is(t->labels.v[1], "y"));
	assert_true(t->depends.n == 1 && str_is(t->depends.v[0], "d"));
	assert_true(str_is(t->extra, "{\"k\":1}"));
	assert_int_equal(t->status, BACKLOG);
	assert_int_equal(t->class_rank, EXPEDITE);
	assert_int_equal(t->priority, 1000);
	assert_true(t->due > t->not_before && t->not_before > t->created_at);
}

static void test_taken_id(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=Mixed title=first");
	ans = refused(s, CONFLICT, "create id=Mixed title=second");
	assert_true(str_is(ans->task->title, "first"));
	refused(s, CONFLICT, "create id=mIXED title=second");
	ans = ok(s, "create id=mixed title=second if_absent=1");
	assert_true(ans->existed && str_is(ans->task->id, "Mixed") &&
		    str_is(ans->task->title, "first"));
	assert_int_equal(show(s, "MIXED")->version, 1);
	ans = ok(s, "create id=other if_absent=1");
	assert_false(ans->existed);
	assert_true(str_is(ans->task->id, "other"));
}

static void test_ids_ignore_case(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=Alpha");
	ok(s, "create id=Gamma");
	ok(s, "create id=beta depends=GAMMA parent=alpha");
	assert_true(str_is(show(s, "BETA")->depends.v[0], "Gamma"));
	assert_true(str_is(show(s, "beta")->parent, "Alpha"));
	ok(s, "claim id=aLPHA new_token=T");
	assert_true(str_is(show(s, "alpha")->lock.holder, "ann"));
	assert_int_equal(ok(s, "list parent=ALPHA")->n_tasks, 1);
	assert_int_equal(count_events(s, "alphA", "claimed"), 1);
	ok(s, "undepend id=beta depends=gamma");
	assert_int_equal(show(s, "beta")->depends.n, 0);
}

static void test_refused(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=done");
	ok(s, "claim id=done new_token=T");
	ok(s, "done id=done token=T");
	ok(s, "create id=off");
	ok(s, "cancel id=off reason=r");
	refused(s, MISCONFIGURED, "create parent=done");
	refused(s, MISCONFIGURED, "create parent=off");
	refused(s, NOT_FOUND, "create parent=nobody");
	refused(s, NOT_FOUND, "create depends=done,nobody");
	refused(s, NOT_FOUND, "create id=a depends=nobody");
	refused(s, USAGE, "create status=Done");
	refused(s, USAGE, "create status=In_Progress");
	refused(s, USAGE, "create title=");
	refused(s, USAGE, "create id=../x");
	refused(s, USAGE, "create id=x.lock");
	refused(s, USAGE, "create priority=1001");
	refused(s, USAGE, "create parent=..");
	refused(s, USAGE, "create depends=a,-b");
	refused(s, USAGE, "create extra=[]");
	refused(s, USAGE, "create extra={");
	refused(s, NOT_FOUND, "show id=a");
	assert_true(str_is(ok(s, "create")->task->id, "t1"));
}

static void test_refused_ids_elsewhere(void **state)
{
	struct suite *s = *state;
	static const char *const calls[] = {
		"claim id=x new_token=T",
		"heartbeat id=x token=T",
		"release id=x token=T",
		"block id=x token=T reason=r unblock_action=u",
		"unblock id=x",
		"escalate id=x token=T reason=r",
		"review id=x token=T summary=s",
		"approve id=x",
		"rework id=x reason=r",
		"done id=x token=T",
		"fail id=x token=T reason=r",
		"retry id=x",
		"reopen id=x reason=r",
		"cancel id=x reason=r",
		"remove id=x",
		"update id=x title=t",
		"status id=x status=Done",
		"comment id=x text=t",
		"depend id=x depends=x",
		"undepend id=x depends=x",
		"lock_acquire id=x new_token=T",
		"lock_release id=x token=T",
		"lock_break id=x reason=r",
		"lock_status id=x",
		"show id=x",
		"log id=x",
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		refused(s, NOT_FOUND, "%s", calls[i]);
}

static void test_delay(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a delay=2t");
	ok(s, "create id=b not_before=+4t");
	assert_int_equal(refused(s, NO_TASKS, "take new_token=T")->wait_ms > tick(), 1);
	assert_true(call(s, "next")->wait_ms <= 2 * tick());
	advance(2 * tick());
	assert_true(str_is(ok(s, "next")->task->id, "a"));
	assert_true(str_is(ok(s, "take new_token=T")->task->id, "a"));
	refused(s, NO_TASKS, "take new_token=U");
	/* it can still be claimed by name */
	ok(s, "claim id=b new_token=U");
	ok(s, "release id=b token=U");
	refused(s, NO_TASKS, "take new_token=V");
	advance(2 * tick());
	assert_true(str_is(ok(s, "take new_token=V")->task->id, "b"));
}

static void test_update_delay(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a delay=2t");
	ok(s, "update id=a delay=0");
	assert_int_equal(show(s, "a")->not_before, 0);
	assert_true(str_is(ok(s, "next")->task->id, "a"));
	ok(s, "update id=a delay=1t");
	refused(s, NO_TASKS, "next");
	ok(s, "create id=b status=Backlog");
	refused(s, NO_TASKS, "take new_token=T");
	ok(s, "update id=b status=Ready");
	assert_true(str_is(ok(s, "take new_token=T")->task->id, "b"));
}

int create_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_counter),        QUEUE_TEST(test_counter_skips_given_ids),
		QUEUE_TEST(test_counter_begins), QUEUE_TEST(test_counter_after_remove),
		QUEUE_TEST(test_defaults),       QUEUE_TEST(test_fields),
		QUEUE_TEST(test_taken_id),       QUEUE_TEST(test_ids_ignore_case),
		QUEUE_TEST(test_refused),        QUEUE_TEST(test_refused_ids_elsewhere),
		QUEUE_TEST(test_delay),          QUEUE_TEST(test_update_delay),
	};

	return cmocka_run_group_tests_name("create", tests, NULL, NULL);
}
