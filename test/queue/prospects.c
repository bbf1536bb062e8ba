/* The work that a loop can still expect of a queue that has no eligible task for it. */
#include "queue/queue.h"

#include "suite.h"

/* The prospects of a loop with these filters: the numbers of tasks that can come and that need a person, and one of the
 * latter. Returns the time until the next lease or delay is over. */
static int64_t expect(struct suite *s, const char *filter, bool people, int64_t coming,
		      int64_t stuck, const char *stuck_id)
{
	struct request rq = parse(s, arena_printf(&s->a, "take new_token=X %s", filter).p);
	struct forecast p;
	struct answer ans = { 0 };

	assert_int_equal(queue_forecast(s->q, &rq, people, &p, &ans, &s->a), SUCCESS);
	if (p.coming != coming || p.stuck != stuck || !str_is(p.stuck_id, stuck_id))
		fail_msg("'%s'%s: %d coming, %d stuck, for example '%.*s'", filter,
			 people ? " with people" : "", (int)p.coming, (int)p.stuck,
			 STRF(p.stuck_id));
	return p.wait_ms;
}

static void test_nothing_open(void **state)
{
	struct suite *s = *state;

	assert_int_equal(expect(s, "", true, 0, 0, ""), 0);
	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "done id=a token=T");
	assert_int_equal(expect(s, "", true, 0, 0, ""), 0);
}

/* Progress reaches the tasks that wait for work that an agent holds, and no task that also waits for another one. */
static void test_work_of_others(void **state)
{
	struct suite *s = *state;
	int64_t wait;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "create id=c depends=b");
	ok(s, "create id=x status=Backlog");
	ok(s, "create id=d depends=c,x");
	ok(s, "claim id=a new_token=T ttl=3t");
	wait = expect(s, "", false, 3, 1, "d");
	assert_true(wait > 0 && wait <= 3 * tick());
	ok(s, "block id=a token=T reason=r unblock_action=u");
	expect(s, "", false, 0, 4, "a");
	expect(s, "", true, 3, 1, "d");
}

static void test_people(void **state)
{
	static const char *const ends[] = { "block reason=r unblock_action=u", "escalate reason=r",
					    "review summary=s" };
	struct suite *s = *state;

	for (int i = 0; i < 3; i++) {
		const char *id = arena_printf(&s->a, "p%d", i).p;

		ok(s, "create id=%s", id);
		ok(s, "claim id=%s new_token=T", id);
		ok(s, "%s id=%s token=T", ends[i], id);
		expect(s, "", false, 0, i + 1, "p0");
		expect(s, "", true, i + 1, 0, "");
	}
	ok(s, "create id=f");
	ok(s, "claim id=f new_token=T");
	ok(s, "fail id=f token=T reason=r");
	ok(s, "create id=g depends=f");
	expect(s, "", true, 3, 1, "g"); /* a Failed task itself is not counted */
}

/* A filter leaves tasks out, but their progress counts. */
static void test_filter(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a labels=web");
	ok(s, "create id=b labels=db depends=a");
	ok(s, "create id=c labels=web type=bug class_rank=Expedite");
	expect(s, "label=db", false, 1, 0, "");
	expect(s, "label=web", false, 2, 0, "");
	expect(s, "type=bug", false, 1, 0, "");
	expect(s, "class_rank=Expedite", false, 1, 0, "");
	expect(s, "label=none", false, 0, 0, "");
	ok(s, "update id=a status=Backlog");
	expect(s, "label=db", false, 0, 1, "b");
}

/* A task that the loop released is not work for it, unless a dependency or a sub-task changes it. */
static void test_released(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	expect(s, "", false, 2, 0, "");
	expect(s, "except=a", false, 0, 2, "a");
	ok(s, "claim id=a new_token=T agent=bob");
	expect(s, "except=a", false, 1, 1, "a"); /* bob's work brings b */
	ok(s, "release id=a token=T");
	ok(s, "create id=sub parent=a");
	expect(s, "except=a", false, 3, 0, "");
	expect(s, "except=a,sub", false, 0, 3, "a");
}

static void test_time(void **state)
{
	struct suite *s = *state;
	int64_t wait;

	ok(s, "create id=a delay=5t");
	ok(s, "create id=b delay=2t");
	wait = expect(s, "", false, 2, 0, "");
	assert_true(wait > 0 && wait <= 2 * tick());
}

/* With keep_abandoned only a person brings back a task whose lease expired. */
static void test_keep_abandoned(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	ok(s, "create id=a");
	ok(s, "create id=b depends=a");
	ok(s, "claim id=a new_token=T ttl=4t");
	s->config.policy.keep_abandoned = true;
	reopen(s);
	expect(s, "", false, 2, 0, "");
	advance(4 * tick());
	expect(s, "", false, 0, 2, "a");
}

int prospects_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_nothing_open),   QUEUE_TEST(test_work_of_others),
		QUEUE_TEST(test_people),         QUEUE_TEST(test_filter),
		QUEUE_TEST(test_released),       QUEUE_TEST(test_time),
		QUEUE_TEST(test_keep_abandoned),
	};

	return cmocka_run_group_tests_name("prospects", tests, NULL, NULL);
}
