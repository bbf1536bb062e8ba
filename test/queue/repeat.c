/* Repeats: a call whose answer was lost gets the same answer again, and takes effect once. */
#include "suite.h"

/* --- by the token ----------------------------------------------------------------------------- */

static void test_claim(void **state)
{
	struct suite *s = *state;
	struct answer *first, *again;

	ok(s, "create id=a");
	first = ok(s, "claim id=a new_token=T ttl=3t");
	advance(tick());
	again = ok(s, "claim id=a new_token=T ttl=3t");
	assert_true(again->repeated && !first->repeated);
	assert_true(again->lock->fence == 1 && again->lock->expires_at == first->lock->expires_at);
	assert_true(str_is(again->lock->token, "T"));
	assert_int_equal(again->task->version, first->task->version);
	assert_int_equal(again->task->attempts, 1);
	assert_int_equal(count_events(s, "a", "claimed"), 1);
	refused(s, CONFLICT, "claim id=a new_token=U");
	advance(2 * tick());
	/* too late: this is a new acquisition */
	again = ok(s, "claim id=a new_token=T");
	assert_true(!again->repeated && again->lock->fence == 2);
}

static void test_take(void **state)
{
	struct suite *s = *state;
	struct answer *again;

	ok(s, "create id=a");
	ok(s, "create id=b class_rank=Intangible");
	ok(s, "take new_token=T ttl=3t");
	ok(s, "create id=c class_rank=Expedite");
	again = ok(s, "take new_token=T ttl=3t");
	assert_true(again->repeated && str_is(again->task->id, "a") && again->lock->fence == 1);
	assert_true(str_is(again->lock->token, "T"));
	assert_int_equal(count_events(s, "", "claimed"), 1);
	assert_true(str_is(ok(s, "take new_token=U")->task->id, "c"));
	advance(3 * tick());
	again = ok(s, "take new_token=T");
	assert_true(!again->repeated && again->lock->fence == 2 && str_is(again->task->id, "a"));
}

/* One token on a task whose lease expired and on a live one: the repeat concerns the live one. */
static void test_take_after_expiry(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=low priority=1");
	ok(s, "take new_token=T ttl=1t");
	advance(tick());
	ok(s, "create id=high priority=9");
	ok(s, "create id=higher priority=10");
	assert_true(str_is(ok(s, "take new_token=T ttl=3t")->task->id, "higher"));
	assert_true(str_is(ok(s, "take new_token=T ttl=3t")->task->id, "higher"));
	expect_status(s, "high", READY);
}

/* A lost `take` already gave its token a task: `done --claim-next` with that token takes no second
 * one. */
static void test_claim_next_after_lost_take(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a priority=9");
	ok(s, "create id=b priority=5");
	ok(s, "create id=c priority=1");
	ok(s, "claim id=a new_token=T");
	ok(s, "take new_token=N");
	ans = ok(s, "done id=a token=T claim_next=1 new_token=N");
	assert_true(str_is(ans->next->id, "b") && str_is(ans->next_lock->token, "N"));
	expect_status(s, "c", READY);
}

static void test_lock_acquire(void **state)
{
	struct suite *s = *state;
	struct answer *again;

	ok(s, "create id=a");
	ok(s, "lock_acquire id=a new_token=T");
	again = ok(s, "lock_acquire id=a new_token=T");
	assert_true(again->repeated && again->lock->fence == 1);
	assert_int_equal(count_events(s, "a", "locked"), 1);
}

static const struct last_result {
	const char *call, *event;
	enum status status;
} results[] = {
	{ "done id=a token=T summary=s", "done", DONE },
	{ "review id=a token=T summary=s", "review", REVIEW },
	{ "release id=a token=T reason=r", "released", READY },
	{ "fail id=a token=T reason=r", "failed", FAILED },
	{ "block id=a token=T reason=r unblock_action=u", "blocked", BLOCKED },
	{ "escalate id=a token=T reason=r", "escalated", NEEDS_HELP },
	{ "cancel id=a token=T reason=r", "canceled", CANCELED },
	{ "status id=a token=T status=Done", "done", DONE },
	{ "status id=a token=T status=Review", "review", REVIEW },
	{ "status id=a token=T status=Ready", "released", READY },
	{ "status id=a token=T status=Failed reason=r", "failed", FAILED },
};
#define N_RESULTS (sizeof(results) / sizeof(*results))

static void test_last_result(void **state)
{
	struct suite *s = *state;

	for (size_t i = 0; i < N_RESULTS; i++) {
		struct answer *first, *again;

		int events;

		if (i)
			ok(s, "remove id=a force=1 reason=r");
		ok(s, "create id=a");
		events = count_events(s, "a", results[i].event);
		ok(s, "claim id=a new_token=T ttl=2t");
		first = ok(s, "%s", results[i].call);
		assert_int_equal(first->task->status, results[i].status);
		assert_false(first->repeated);
		advance(3 * tick());
		again = ok(s, "%s", results[i].call);
		assert_true(again->repeated && again->task->version == first->task->version);
		assert_int_equal(again->task->status, results[i].status);
		assert_int_equal(count_events(s, "a", results[i].event), events + 1);
		refused(s, LOST_LOCK, "heartbeat id=a token=T");
	}
}

/* The result is kept until the next acquisition. */
static void test_last_result_is_replaced(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "release id=a token=T");
	ok(s, "comment id=a text=hello");
	assert_true(ok(s, "release id=a token=T")->repeated);
	refused(s, LOST_LOCK, "done id=a token=T");
	ok(s, "claim id=a new_token=U agent=bob");
	refused(s, LOST_LOCK, "release id=a token=T");
	ok(s, "done id=a token=U agent=bob");
	refused(s, LOST_LOCK, "done id=a token=T");
	assert_true(ok(s, "done id=a token=U agent=bob")->repeated);
}

/* --- done --claim-next ------------------------------------------------------------------------ */

static void test_claim_next(void **state)
{
	struct suite *s = *state;
	struct answer *ans, *again;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T");
	ans = ok(s, "done id=a token=T claim_next=1 new_token=N ttl=3t");
	assert_true(ans->has_next && str_is(ans->next->id, "b"));
	assert_true(str_is(ans->next_lock->token, "N") && ans->next_lock->fence == 1);
	assert_int_equal(ans->next_lock->ttl, 3 * tick());
	assert_int_equal(ans->task->status, DONE);
	again = ok(s, "done id=a token=T claim_next=1 new_token=N ttl=3t");
	assert_true(again->repeated && str_is(again->next->id, "b"));
	assert_true(str_is(again->next_lock->token, "N") && again->next_lock->fence == 1);
	assert_true(again->next_lock->expires_at == ans->next_lock->expires_at);
	/* a caller that has saved its token already sends another one: it gets the same task, but
	 * not the token */
	again = ok(s, "done id=a token=T claim_next=1 new_token=X");
	assert_true(str_is(again->next->id, "b") && !again->next_lock->token.n);
	assert_int_equal(count_events(s, "", "claimed"), 2);
	assert_int_equal(count_events(s, "", "done"), 1);
	ans = ok(s, "done id=b token=N claim_next=1 new_token=O");
	assert_true(ans->has_next && !ans->next && !ans->next_lock && ans->code == SUCCESS);
	ok(s, "create id=c");
	again = ok(s, "done id=b token=N claim_next=1 new_token=O");
	assert_true(again->repeated && again->has_next && !again->next);
	expect_status(s, "c", READY);
}

/* The next task is the one that waited for this one. */
static void test_claim_next_made_eligible(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=late class_rank=Intangible");
	ok(s, "create id=b depends=a");
	ok(s, "claim id=a new_token=T");
	assert_true(str_is(ok(s, "next")->task->id, "late"));
	assert_true(str_is(ok(s, "done id=a token=T claim_next=1 new_token=N")->next->id, "b"));
	assert_int_equal(show(s, "b")->open_deps, 0);
	assert_true(str_is(ok(s, "done id=b token=N claim_next=1 new_token=O")->next->id, "late"));
}

static void test_claim_next_refused(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T");
	refused(s, LOST_LOCK, "done id=a token=X claim_next=1 new_token=N");
	refused(s, USAGE, "done id=a token=T claim_next=1");
	ok(s, "done id=a token=T");
	/* it was done before without a next task, and the repeat says the same */
	assert_null(ok(s, "done id=a token=T claim_next=1 new_token=N")->next);
	expect_status(s, "b", READY);
}

static void test_claim_next_gone_since(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T");
	ok(s, "done id=a token=T claim_next=1 new_token=N ttl=1t");
	advance(tick());
	ok(s, "take new_token=O agent=bob");
	ans = ok(s, "done id=a token=T claim_next=1 new_token=N");
	assert_true(ans->repeated && ans->has_next && !ans->next);
	ok(s, "remove id=b force=1 reason=r");
	ans = ok(s, "done id=a token=T claim_next=1 new_token=N");
	assert_true(ans->repeated && ans->has_next && !ans->next && str_is(ans->task->id, "a"));
}

/* --- by the request id ------------------------------------------------------------------------ */

static void test_request_create(void **state)
{
	struct suite *s = *state;
	struct answer *again;

	ok(s, "create request_id=r1 title=first");
	again = ok(s, "create request_id=r1 title=first");
	assert_true(again->repeated && str_is(again->task->id, "t1"));
	assert_int_equal(ok(s, "list")->total, 1);
	assert_true(str_is(ok(s, "create request_id=r2")->task->id, "t2"));
	/* the first answer, even if the task has changed since */
	ok(s, "cancel id=t1 reason=r");
	again = ok(s, "create request_id=r1 title=first");
	assert_int_equal(again->task->status, READY);
	ok(s, "remove id=t1");
	assert_true(str_is(ok(s, "create request_id=r1 title=first")->task->id, "t1"));
	assert_int_equal(ok(s, "list")->total, 1);
}

static void test_request_of_another_call(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a request_id=r");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T");
	refused(s, CONFLICT, "create request_id=r");
	refused(s, CONFLICT, "create id=a title=other request_id=r");
	refused(s, CONFLICT, "create id=a agent=bob request_id=r");
	refused(s, CONFLICT, "create id=b request_id=r");
	refused(s, CONFLICT, "create id=c request_id=r");
	refused(s, CONFLICT, "done id=a token=T request_id=r");
	assert_true(ok(s, "create id=A request_id=r")->repeated);
	ok(s, "done id=a token=T request_id=q");
	refused(s, CONFLICT, "create id=a request_id=q");
}

static void test_request_done_and_review(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "create id=c");
	ok(s, "claim id=a new_token=T");
	ok(s, "review id=a token=T summary=s request_id=r1");
	ok(s, "rework id=a reason=r");
	ok(s, "claim id=a new_token=U");
	/* a new acquisition discards the last result, but not the answer kept for the request id */
	assert_int_equal(ok(s, "review id=a token=T summary=s request_id=r1")->task->status,
			 REVIEW);
	expect_status(s, "a", IN_PROGRESS);
	ok(s, "done id=a token=U request_id=r2 claim_next=1 new_token=N");
	ans = ok(s, "done id=a token=U request_id=r2 claim_next=1 new_token=N");
	assert_true(ans->repeated && str_is(ans->next->id, "b") &&
		    str_is(ans->next_lock->token, "N"));
	/* a caller that does not know the next token does not learn it */
	ans = ok(s, "done id=a token=U request_id=r2 claim_next=1 new_token=X");
	assert_true(ans->repeated && str_is(ans->next->id, "b") && !ans->next_lock->token.n);
	assert_int_equal(count_events(s, "", "done"), 1);
	expect_status(s, "c", READY);
}

static void test_request_others(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "claim id=b new_token=T");
	ok(s, "status id=b status=Done token=T request_id=r0");
	ok(s, "reopen id=b reason=r");
	assert_true(ok(s, "status id=b status=Done token=T request_id=r0")->repeated);
	expect_status(s, "b", READY);
	refused(s, USAGE, "claim id=b new_token=U request_id=r9");
	refused(s, USAGE, "take new_token=U request_id=r9");
	refused(s, USAGE, "status id=b status=In_Progress new_token=U request_id=r9");
	ok(s, "comment id=a text=x request_id=r1");
	assert_true(ok(s, "comment id=a text=x request_id=r1")->repeated);
	assert_int_equal(count_events(s, "a", "comment"), 1);
	ok(s, "update id=a priority=9 request_id=r2");
	ok(s, "update id=a priority=1");
	assert_true(ok(s, "update id=a priority=9 request_id=r2")->repeated);
	assert_int_equal(show(s, "a")->priority, 1);
	ok(s, "id_claim request_id=r3");
	assert_true(str_is(ok(s, "id_claim request_id=r3")->text, "t1"));
	ok(s, "remove id=a request_id=r4");
	assert_true(ok(s, "remove id=a request_id=r4")->repeated);
	refused(s, NOT_FOUND, "remove id=a request_id=r5");
}

/* Only calls that succeeded are remembered. */
static void test_request_refused(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	refused(s, CONFLICT, "create id=a request_id=r");
	refused(s, NOT_FOUND, "create id=b parent=p request_id=r");
	ok(s, "create id=p");
	assert_false(ok(s, "create id=b parent=p request_id=r")->repeated);
}

static void test_request_forgotten(void **state)
{
	const int64_t hour = 3600 * 1000;
	struct suite *s = *state;

	if (!clock_is_ours())
		skip_because("the server has the clock");
	ok(s, "create request_id=r");
	advance(24 * hour - 1);
	assert_true(ok(s, "create request_id=r")->repeated);
	advance(1);
	assert_true(str_is(ok(s, "create request_id=r")->task->id, "t2"));
	assert_true(str_is(ok(s, "create request_id=r")->task->id, "t2"));
	advance(24 * hour);
	ok(s, "create");
	assert_true(str_is(ok(s, "id_claim request_id=r")->text, "t4"));
}

int repeat_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_claim),
		QUEUE_TEST(test_take),
		QUEUE_TEST(test_lock_acquire),
		QUEUE_TEST(test_last_result),
		QUEUE_TEST(test_last_result_is_replaced),
		QUEUE_TEST(test_take_after_expiry),
		QUEUE_TEST(test_claim_next_after_lost_take),
		QUEUE_TEST(test_claim_next),
		QUEUE_TEST(test_claim_next_made_eligible),
		QUEUE_TEST(test_claim_next_refused),
		QUEUE_TEST(test_claim_next_gone_since),
		QUEUE_TEST(test_request_create),
		QUEUE_TEST(test_request_of_another_call),
		QUEUE_TEST(test_request_done_and_review),
		QUEUE_TEST(test_request_others),
		QUEUE_TEST(test_request_refused),
		QUEUE_TEST(test_request_forgotten),
	};

	return cmocka_run_group_tests_name("repeat", tests, NULL, NULL);
}
