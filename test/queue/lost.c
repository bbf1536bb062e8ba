/* Stores that fail: lost replies, changes that are not made; and several calls at once. */
#include "suite.h"

/* "before" may be several calls, separated by ';'. */
static const struct lost {
	const char *before, *call, *event;
	int events;
} cases[] = {
	{ "", "create id=b request_id=r", "created", 1 },
	{ "", "create request_id=r", "created", 1 },
	{ "create id=a", "claim id=a new_token=T", "claimed", 1 },
	{ "create id=a", "take new_token=T", "claimed", 1 },
	{ "create id=a", "lock_acquire id=a new_token=T", "locked", 1 },
	{ "create id=a;lock_acquire id=a new_token=T", "lock_release id=a token=T", "unlocked", 1 },
	{ "create id=a;claim id=a new_token=T", "done id=a token=T", "done", 1 },
	{ "create id=a;claim id=a new_token=T", "review id=a token=T summary=s", "review", 1 },
	{ "create id=a;claim id=a new_token=T", "release id=a token=T", "released", 1 },
	{ "create id=a;claim id=a new_token=T", "fail id=a token=T reason=r", "failed", 1 },
	{ "create id=a;claim id=a new_token=T", "escalate id=a token=T reason=r", "escalated", 1 },
	{ "create id=a;claim id=a new_token=T", "cancel id=a token=T reason=r", "canceled", 1 },
	{ "create id=a;claim id=a new_token=T", "block id=a token=T reason=r unblock_action=u",
	  "blocked", 1 },
	{ "create id=a;claim id=a new_token=T;create id=b",
	  "done id=a token=T claim_next=1 new_token=N", "claimed", 2 },
	{ "create id=a", "comment id=a text=x request_id=r", "comment", 1 },
	{ "create id=a", "update id=a title=x request_id=r", "updated", 1 },
	{ "create id=a", "cancel id=a reason=r request_id=r", "canceled", 1 },
	{ "create id=a", "remove id=a request_id=r", "removed", 1 },
	{ "create id=a;claim id=a new_token=T;review id=a token=T summary=s",
	  "approve id=a request_id=r", "approved", 1 },
	{ "create id=a;create id=b", "depend id=a depends=b request_id=r", "depends", 1 },
	{ "create id=a;claim id=a new_token=T", "lock_break id=a reason=r request_id=r",
	  "lock_broken", 1 },
};
#define N_CASES (sizeof(cases) / sizeof(*cases))

static void fresh_queue(void **state)
{
	suite_teardown(state);
	suite_setup(state);
}

static void prepare(struct suite *s, const char *before)
{
	struct str rest = str_c(before);

	while (rest.n)
		ok(s, "%s", arena_cstr(&s->a, str_cut(&rest, ';')));
}

/* The parts in which the two answers must agree. */
static void same_answer(const char *what, const struct answer *want, const struct answer *have)
{
	if (have->code != SUCCESS || !have->repeated)
		fail_msg("%s: the repeat got %s (%.*s)", what, result_name(have->code),
			 STRF(have->message));
	assert_true(!want->task == !have->task && !want->next == !have->next);
	assert_true(!want->lock == !have->lock && !want->next_lock == !have->next_lock);
	if (want->task)
		assert_true(str_eq(want->task->id, have->task->id) &&
			    want->task->status == have->task->status &&
			    want->task->version == have->task->version);
	if (want->next)
		assert_true(str_eq(want->next->id, have->next->id) &&
			    want->next->version == have->next->version);
	if (want->lock)
		assert_true(str_eq(want->lock->token, have->lock->token) &&
			    want->lock->fence == have->lock->fence);
	if (want->next_lock)
		assert_true(str_eq(want->next_lock->token, have->next_lock->token) &&
			    want->next_lock->fence == have->next_lock->fence);
}

static void test_repeat_is_the_first_answer(void **state)
{
	for (size_t i = 0; i < N_CASES; i++) {
		struct suite *s = *state;
		struct answer *first;
		struct str before;

		prepare(s, cases[i].before);
		first = ok(s, "%s", cases[i].call);
		before = dump(s);
		same_answer(cases[i].call, first, call(s, "%s", cases[i].call));
		same_dump(before, dump(s), cases[i].call);
		fresh_queue(state);
	}
}

static void test_lost_reply(void **state)
{
	for (size_t i = 0; i < N_CASES; i++) {
		struct suite *s = unless_served(state, "it breaks the store in its own process");
		struct queue *q;
		struct answer *ans;

		prepare(s, cases[i].before);
		q = open_faulty(s, "modify:1:lost");
		ans = call_on(s, q, "%s", cases[i].call);
		assert_int_equal(ans->code, API_ERROR);
		assert_int_equal(ans->applied, '?');
		assert_true(!ans->task && !ans->lock && !ans->next);
		ans = call_on(s, q, "%s", cases[i].call);
		if (ans->code != SUCCESS || !ans->repeated)
			fail_msg("%s: the repeat got %s (%.*s)", cases[i].call,
				 result_name(ans->code), STRF(ans->message));
		queue_close(q);
		if (count_events(s, "", cases[i].event) != cases[i].events)
			fail_msg("%s was not done exactly once", cases[i].call);
		fresh_queue(state);
	}
}

static void test_not_applied(void **state)
{
	static const char *const faults[] = { "modify:1:fail", "modify:1:busy", "modify:1:full" };

	for (size_t i = 0; i < N_CASES * 3; i++) {
		struct suite *s = unless_served(state, "it breaks the store in its own process");
		const char *text = cases[i / 3].call;
		struct queue *q;
		struct answer *ans;
		struct str before;

		prepare(s, cases[i / 3].before);
		before = dump(s);
		q = open_faulty(s, faults[i % 3]);
		ans = call_on(s, q, "%s", text);
		assert_int_equal(ans->code, API_ERROR);
		assert_int_equal(ans->applied, 'n');
		assert_true(ans->message.n && !ans->task);
		same_dump(before, dump(s), text);
		ans = call_on(s, q, "%s", text);
		if (ans->code != SUCCESS || ans->repeated)
			fail_msg("%s: then %s (%.*s)", text, result_name(ans->code),
				 STRF(ans->message));
		queue_close(q);
		fresh_queue(state);
	}
}

static void test_unknown_but_not_made(void **state)
{
	struct suite *s = unless_served(state, "it breaks the store in its own process");
	struct queue *q;
	struct answer *ans;

	ok(s, "create id=a");
	q = open_faulty(s, "modify:1:unknown");
	assert_int_equal(call_on(s, q, "take new_token=T")->applied, '?');
	ans = call_on(s, q, "take new_token=T");
	assert_true(ans->code == SUCCESS && !ans->repeated && ans->lock->fence == 1);
	queue_close(q);
}

static void test_reads_fail(void **state)
{
	static const char *const reads[][2] = {
		{ "get:1", "show id=a" },
		{ "entries:1", "show id=a" },
		{ "scan:1", "list" },
		{ "count:1", "list" },
		{ "scan:1", "list text=a" },
		{ "entries:1", "log" },
		{ "get:1", "log id=a" },
		{ "scan:1", "next" },
		{ "scan:1", "next explain=1" },
		{ "scan:2", "next explain=1" },
		{ "count:1", "next explain=1" },
		{ "tally:1", "overview" },
		{ "scan:1", "overview" },
		{ "scan:1", "locks" },
		{ "count:1", "locks" },
		{ "get:1", "lock_status id=a" },
		{ "get:1", "id_peek" },
		{ "get:2", "id_peek" },
	};
	struct suite *s = unless_served(state, "it breaks the store in its own process");

	ok(s, "create id=a");
	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		struct queue *q = open_faulty(s, reads[i][0]);
		struct answer *ans = call_on(s, q, "%s", reads[i][1]);

		if (ans->code != API_ERROR || !ans->message.n || ans->n_tasks || ans->task)
			fail_msg("%s with %s: %s", reads[i][1], reads[i][0],
				 result_name(ans->code));
		assert_int_equal(call_on(s, q, "%s", reads[i][1])->code, SUCCESS);
		queue_close(q);
	}
}

/* If others replace records during a read, the read starts again. */
static void test_moved(void **state)
{
	struct suite *s = unless_served(state, "it breaks the store in its own process");
	struct queue *q;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	q = open_faulty(s, "get:1:moved&fault=scan:1:moved");
	ans = call_on(s, q, "list");
	assert_int_equal(ans->code, SUCCESS);
	assert_string_equal(ids(s, ans), "a b");
	assert_int_equal(call_on(s, q, "show id=a")->code, SUCCESS);
	queue_close(q);
	q = open_faulty(s, "get:1:moved:always");
	ans = call_on(s, q, "show id=a");
	assert_int_equal(ans->code, API_ERROR);
	assert_true(str_is(ans->fault, "moved") && !ans->task);
	queue_close(q);
}

/* --- several at once -------------------------------------------------------------------------- */

static void many(struct suite *s, struct queue *q, const char *const *texts, struct answer *answers,
		 size_t n)
{
	struct request rqs[16] = { 0 };

	for (size_t i = 0; i < n; i++)
		rqs[i] = parse(s, texts[i]);
	queue_call_many(q, rqs, answers, n, &s->a);
}

static void test_many(void **state)
{
	static const char *const texts[] = {
		"create id=a",
		"create id=b depends=a",
		"claim id=nobody new_token=T",
		"claim id=a new_token=T",
		"claim id=a new_token=U",
		"create title=",
		"create id=c parent=c",
		"done id=a token=T claim_next=1 new_token=N",
		"create",
		"create request_id=r",
		"create request_id=r",
	};
	static const enum result codes[] = { SUCCESS,  SUCCESS, NOT_FOUND,     SUCCESS,
					     CONFLICT, USAGE,   MISCONFIGURED, SUCCESS,
					     SUCCESS,  SUCCESS, SUCCESS };
	struct suite *s = *state;
	struct answer answers[11];

	many(s, s->q, texts, answers, 11);
	for (size_t i = 0; i < 11; i++)
		if (answers[i].code != codes[i])
			fail_msg("%s: %s (%.*s)", texts[i], result_name(answers[i].code),
				 STRF(answers[i].message));
	assert_true(str_is(answers[7].next->id, "b"));
	assert_true(str_is(answers[8].task->id, "t1") && str_is(answers[9].task->id, "t2"));
	assert_true(answers[10].repeated && str_is(answers[10].task->id, "t2"));
	assert_string_equal(ids(s, ok(s, "list")), "a b t1 t2");
	expect_status(s, "a", DONE);
	expect_status(s, "b", IN_PROGRESS);
	for (size_t i = 0; i < 11; i++)
		assert_true(answers[i].now == answers[0].now || codes[i] == USAGE);
}

static void test_many_lost(void **state)
{
	static const char *const texts[] = { "create id=a request_id=1", "claim id=x new_token=X",
					     "create id=b request_id=2" };
	struct suite *s = unless_served(state, "it breaks the store in its own process");
	struct queue *q = open_faulty(s, "modify:1:lost");
	struct answer answers[3];

	many(s, q, texts, answers, 3);
	for (int i = 0; i < 3; i++)
		assert_true(answers[i].code == API_ERROR && answers[i].applied == '?');
	many(s, q, texts, answers, 3);
	assert_true(answers[0].repeated && answers[2].repeated && answers[1].code == NOT_FOUND);
	queue_close(q);
	assert_int_equal(ok(s, "list")->total, 2);
}

static void test_many_reads(void **state)
{
	static const char *const texts[] = { "show id=a", "create id=b", "list statuses=Ready",
					     "next" };
	struct suite *s = *state;
	struct answer answers[4];

	ok(s, "create id=a");
	many(s, s->q, texts, answers, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(answers[i].code, SUCCESS);
	assert_true(str_is(answers[0].task->id, "a") && str_is(answers[1].task->id, "b"));
	assert_true(str_is(answers[3].task->id, "a"));
}

int lost_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_repeat_is_the_first_answer),
		QUEUE_TEST(test_lost_reply),
		QUEUE_TEST(test_not_applied),
		QUEUE_TEST(test_unknown_but_not_made),
		QUEUE_TEST(test_reads_fail),
		QUEUE_TEST(test_moved),
		QUEUE_TEST(test_many),
		QUEUE_TEST(test_many_lost),
		QUEUE_TEST(test_many_reads),
	};

	return cmocka_run_group_tests_name("lost", tests, NULL, NULL);
}
