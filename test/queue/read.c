/* The calls that only read: list, locks, overview, log, show, next --explain. */
#include "suite.h"

static void fill(struct suite *s)
{
	ok(s, "create id=p title=Parent");
	ok(s,
	   "create id=a title=Fix_the_DOOR type=bug labels=ui,door class_rank=Expedite agent=eve");
	advance(tick());
	ok(s, "create id=c title=window labels=ui parent=p");
	ok(s, "create id=b title=x description=a_door_too type=bug parent=p status=Backlog");
	advance(tick());
	ok(s, "create id=d title=held");
	ok(s, "claim id=d new_token=D agent=bob");
	ok(s, "create id=e title=reviewed");
	ok(s, "claim id=e new_token=E agent=carol");
	ok(s, "review id=e token=E summary=the_doorbell_rings");
}

static void listed(struct suite *s, const char *filter, const char *want, int64_t total)
{
	struct answer *ans = ok(s, "list %s", filter);

	if (strcmp(ids(s, ans), want) != 0 || ans->total != total)
		fail_msg("list %s: '%s', %d in all", filter, ids(s, ans), (int)ans->total);
	assert_int_equal(ans->kind, ANSWER_TASKS);
}

static void test_list(void **state)
{
	struct suite *s = *state;

	fill(s);
	if (clock_is_ours())
		listed(s, "", "a p b c d e", 6); /* by created_at, then id */
	assert_int_equal(ok(s, "list")->total, 6);
	listed(s, "statuses=Backlog", "b", 1);
	listed(s, "statuses=Backlog,Review", "b e", 2);
	listed(s, "statuses=Done", "", 0);
	listed(s, "holder=bob", "d", 1);
	listed(s, "holder=carol", "", 0);
	listed(s, "label=ui", "a c", 2);
	listed(s, "label=UI", "", 0);
	listed(s, "class_rank=Expedite", "a", 1);
	listed(s, "type=bug", "a b", 2);
	listed(s, "type=bug statuses=Backlog", "b", 1);
	listed(s, "text=door", "a b e", 3);
	listed(s, "text=DOOR label=door", "a", 1);
	listed(s, "text=nothing", "", 0);
	assert_int_equal(ok(s, "list parent=p")->total, 2);
	assert_int_equal(ok(s, "list parent=nobody")->total, 0);
}

static void test_limit(void **state)
{
	struct suite *s = *state;

	fill(s);
	listed(s, "limit=1 label=ui", "a", 2);
	listed(s, "limit=2 text=door", "a b", 3);
	listed(s, "limit=3 text=door", "a b e", 3);
	assert_int_equal(ok(s, "list limit=4")->n_tasks, 4);
	assert_int_equal(ok(s, "list limit=4")->total, 6);
}

/* Neither work nor edits move a task in the list. */
static void test_stable_order(void **state)
{
	struct suite *s = *state;
	const char *before;

	fill(s);
	before = ids(s, ok(s, "list"));
	advance(tick());
	ok(s, "update id=c title=z priority=100 class_rank=Expedite");
	ok(s, "release id=d token=D");
	ok(s, "take new_token=T");
	assert_string_equal(ids(s, ok(s, "list")), before);
}

static void test_locks(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	fill(s);
	ok(s, "lock_acquire id=a new_token=M agent=eve ttl=2t");
	ans = ok(s, "locks");
	assert_int_equal(ans->kind, ANSWER_LOCKS);
	assert_string_equal(ids(s, ans), "a d");
	assert_int_equal(ans->total, 2);
	assert_string_equal(ids(s, ok(s, "locks holder=bob")), "d");
	assert_int_equal(ok(s, "locks limit=1")->n_tasks, 1);
	assert_int_equal(ok(s, "locks limit=1")->total, 2);
	ans = ok(s, "lock_status id=a");
	assert_true(ans->kind == ANSWER_LOCK && str_is(ans->task->lock.holder, "eve"));
	ok(s, "done id=d token=D agent=bob");
	assert_string_equal(ids(s, ok(s, "locks")), "a");
}

static void test_overview(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	fill(s);
	ans = ok(s, "overview");
	assert_int_equal(ans->kind, ANSWER_OVERVIEW);
	assert_int_equal(ans->total, 6);
	assert_int_equal(ans->counts[READY], 3);
	assert_int_equal(ans->counts[BACKLOG], 1);
	assert_int_equal(ans->counts[IN_PROGRESS], 1);
	assert_int_equal(ans->counts[REVIEW], 1);
	assert_int_equal(ans->counts[DONE], 0);
	assert_string_equal(ids(s, ans), "d");
	ok(s, "done id=d token=D agent=bob");
	ok(s, "remove id=a");
	ans = ok(s, "overview");
	assert_int_equal(ans->counts[DONE], 1);
	assert_int_equal(ans->counts[READY], 2);
	assert_int_equal(ans->total, 5);
	assert_int_equal(ans->n_tasks, 0);
}

static void test_log(void **state)
{
	struct suite *s = *state;
	struct answer *ans, *rest;

	ok(s, "create id=a title=t run=r9");
	ok(s, "create id=b");
	ok(s, "claim id=a new_token=T agent=bob");
	ok(s, "heartbeat id=a token=T");
	ok(s, "comment id=a text=hello agent=eve");
	ok(s, "done id=a token=T agent=bob summary=s");
	ans = ok(s, "log id=a");
	assert_int_equal(ans->kind, ANSWER_EVENTS);
	assert_int_equal(ans->n_events, 4);
	assert_true(str_is(ans->events[0].name, "created") && str_is(ans->events[0].run, "r9"));
	assert_true(ans->events[1].from == READY && ans->events[1].to == IN_PROGRESS);
	assert_true(ans->events[1].fence == 1 && str_is(ans->events[1].agent, "bob"));
	assert_true(str_is(ans->events[2].text, "hello") && str_is(ans->events[2].agent, "eve"));
	assert_true(ans->events[3].to == DONE && str_is(ans->events[3].text, "s"));
	for (size_t i = 1; i < ans->n_events; i++)
		assert_true(ans->events[i].at >= ans->events[i - 1].at);
	assert_int_equal(ok(s, "log")->n_events, 5);
	rest = ok(s, "log limit=2");
	assert_true(rest->n_events == 2 && str_is(rest->events[1].name, "done"));
	rest = ok(s, "log id=a after=%.*s", STRF(ans->events[1].cursor));
	assert_true(rest->n_events == 2 && str_is(rest->events[0].name, "comment"));
	rest = ok(s, "log after=%.*s", STRF(ans->events[3].cursor));
	assert_int_equal(rest->n_events, 0);
}

static void test_show(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "comment id=a text=one");
	ok(s, "comment id=a text=two agent=bob");
	ans = ok(s, "show id=A");
	assert_true(ans->n_events == 2 && str_is(ans->events[1].text, "two"));
	/* a comment is not an edit */
	assert_int_equal(ans->task->version, 1);
	assert_true(ans->task->updated_at == ans->task->created_at);
	assert_true(ans->now >= ans->task->created_at);
}

/* The claim of a task that came back: the last five comments among the last 30 lines of its log. */
static void test_past(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ans = ok(s, "claim id=a new_token=T");
	assert_true(ans->n_events == 0 && !ans->came_back);
	for (int i = 1; i <= 7; i++)
		ok(s, "comment id=a text=c%d agent=eve", i);
	ok(s, "release id=a token=T");
	ans = ok(s, "claim id=a new_token=U agent=bob");
	assert_int_equal(ans->n_events, 5);
	for (size_t i = 0; i < ans->n_events; i++) {
		assert_true(str_is(ans->events[i].name, "comment") && ans->events[i].cursor.n);
		assert_true(str_is(ans->events[i].text,
				   (const char *[]){ "c3", "c4", "c5", "c6", "c7" }[i]));
	}
	assert_true(str_is(ans->came_back->by, "ann"));
	ok(s, "release id=a token=U agent=bob");
	for (int i = 0; i < 25; i++)
		ok(s, "update id=a priority=%d", 2 + i % 2);
	ans = ok(s, "claim id=a new_token=T");
	assert_true(ans->n_events == 1 && str_is(ans->events[0].text, "c7"));
	assert_true(str_is(ans->came_back->by, "bob"));
	ok(s, "release id=a token=T");
	ans = ok(s, "claim id=a new_token=U");
	assert_true(ans->n_events == 0 && str_is(ans->came_back->by, "ann"));
}

/* The texts of a block stay on the task until the next block, and its event has both; only the reason is not given as
 * why the task came back after somebody got past it. */
static void test_block_texts_stay(void **state)
{
	static const char *const ways[] = {
		"review id=a token=U summary=s", "approve id=a",
		"reopen id=a reason=again",      "claim id=a new_token=T",
		"review id=a token=T summary=s", "rework id=a reason=more",
		"claim id=a new_token=T"
	};
	struct suite *s = *state;
	struct answer *ans;
	size_t at = 0;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "block id=a token=T reason=nokey unblock_action=ask next_check=4000000000000");
	ok(s, "unblock id=a");
	ans = ok(s, "claim id=a new_token=U");
	assert_true(str_has_nocase(ans->came_back->reason, STR("nokey")));
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		ans = ok(s, "%s", ways[i]);
		assert_true(str_is(ans->task->blocker_reason, "nokey"));
		assert_true(str_is(ans->task->unblock_action, "ask"));
		assert_true(!ans->task->next_check);
		assert_true(!ans->came_back ||
			    !str_has_nocase(ans->came_back->reason, STR("nokey")));
	}
	ans = ok(s, "done id=a token=T");
	assert_true(str_is(ans->task->blocker_reason, "nokey"));
	ans = ok(s, "log id=a");
	while (at < ans->n_events && !str_is(ans->events[at].name, "blocked"))
		at++;
	assert_true(at < ans->n_events && str_is(ans->events[at].text, "nokey") &&
		    str_is(ans->events[at].unblock_action, "ask"));
	ok(s, "reopen id=a reason=again");
	ok(s, "lock_acquire id=a new_token=L");
	ans = ok(s, "block id=a token=L reason=nodisk unblock_action=buy");
	assert_true(str_is(ans->task->blocker_reason, "nodisk") &&
		    str_is(ans->task->unblock_action, "buy"));
}

/* Nobody claimed the task between the block and its completion under a manual lock. */
static void test_old_block_is_no_return(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "block id=a token=T reason=nokey unblock_action=ask");
	ok(s, "unblock id=a");
	ok(s, "update id=a status=ready");
	ok(s, "lock_acquire id=a new_token=L");
	ok(s, "done id=a token=L");
	ok(s, "reopen id=a reason=broken");
	ans = ok(s, "claim id=a new_token=U");
	assert_true(str_has_nocase(ans->came_back->reason, STR("broken")));
	assert_false(str_has_nocase(ans->came_back->reason, STR("nokey")));
}

#define BRIEF "view=65536"

static void linked(const struct answer *ans, size_t i, enum link_kind kind, const char *id,
		   enum status status)
{
	const struct task_link *l = &ans->related->links[i];

	assert_true(i < ans->related->n_links && l->kind == kind && l->status == status);
	assert_true(str_is(l->id, id) && str_is(l->title, "a task"));
}

/* The claim tells its holder about the tasks around the task, its comments, and the other tasks of the holder. */
static void test_brief(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=p");
	ok(s, "create id=d");
	ok(s, "create id=a parent=p depends=d");
	ans = ok(s, "lock_acquire id=a new_token=L " BRIEF);
	linked(ans, 0, LINK_PARENT, "p", READY);
	linked(ans, 1, LINK_DEPENDS, "d", READY);
	assert_true(ans->related->n_links == 2 && !ans->related->n_history && !ans->n_events);
	ok(s, "lock_release id=a token=L");
	for (int i = 1; i <= 7; i++)
		ok(s, "comment id=a text=c%d agent=eve", i);
	ok(s, "create id=b");
	ok(s, "claim id=b new_token=B");
	ok(s, "claim id=d new_token=D");
	ans = ok(s, "done id=d token=D claim_next=1 new_token=T " BRIEF);
	assert_true(str_is(ans->next->id, "a") && !ans->came_back && !ans->n_tasks);
	assert_true(ans->n_events == 5 && str_is(ans->events[4].text, "c7"));
	linked(ans, 0, LINK_PARENT, "p", READY);
	assert_int_equal(ans->related->n_links, 1); /* a Done dependency is no news */
	ans = call(s, "take new_token=X " BRIEF);
	assert_true(ans->code == NO_TASKS && !ans->related);
	assert_string_equal(ids(s, ans), "a b");
	assert_string_equal(ids(s, call(s, "next " BRIEF)), "a b");
	ok(s, "release id=a token=T reason=why");
	ans = ok(s, "take new_token=U " BRIEF);
	assert_true(str_is(ans->task->id, "a") && str_is(ans->came_back->by, "ann"));
	assert_string_equal(ids(s, ans), "b");
	assert_int_equal(ans->related->n_history, 4);
	assert_true(str_is(ans->related->history[1].name, "unlocked") &&
		    str_is(ans->related->history[3].name, "released"));
	ans = ok(s, "show id=a " BRIEF);
	linked(ans, 0, LINK_PARENT, "p", READY);
	assert_true(ans->n_events == 5 && str_is(ans->events[0].text, "c3"));
}

/* However long the log is, the brief has the last five comments and eight events before the claim. */
static void test_brief_of_long_log(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a");
	ok(s, "comment id=a text=c1");
	ok(s, "claim id=a new_token=T");
	ok(s, "release id=a token=T");
	for (int i = 0; i < 55; i++)
		ok(s, "update id=a priority=%d", 2 + i % 2);
	ans = ok(s, "claim id=a new_token=U " BRIEF);
	assert_true(ans->n_events == 1 && str_is(ans->events[0].text, "c1"));
	assert_int_equal(ans->related->n_history, 8);
	for (size_t i = 0; i < 8; i++)
		assert_true(str_is(ans->related->history[i].name, "updated"));
}

/* A repeated call gets the brief again, and a change of the same commit is part of it. */
static void test_brief_of_one_commit(void **state)
{
	struct suite *s = *state;
	struct request rqs[2];
	struct answer answers[2] = { 0 }, *ans;

	ok(s, "create id=a");
	rqs[0] = parse(s, "comment id=a text=first agent=eve");
	rqs[1] = parse(s, "claim id=a new_token=T " BRIEF);
	queue_call_many(s->q, rqs, answers, 2, &s->a);
	assert_true(answers[1].n_events == 1 && str_is(answers[1].events[0].text, "first"));
	ok(s, "create id=b parent=a");
	ok(s, "release id=a token=T");
	ok(s, "create id=c");
	ok(s, "claim id=c new_token=C");
	for (int i = 0; i < 2; i++) {
		ans = ok(s, "done id=c token=C claim_next=1 new_token=N request_id=R %s",
			 i ? BRIEF : "");
		assert_true(str_is(ans->next->id, "b") && ans->repeated == i);
		assert_true(!ans->related == !i);
	}
	linked(ans, 0, LINK_PARENT, "a", READY);
}

static void explained(struct suite *s, const char *id, bool eligible, const char *why)
{
	struct answer *ans = ok(s, "next explain=1");

	for (size_t i = 0; i < ans->n_candidates; i++) {
		const struct candidate *c = &ans->candidates[i];

		if (!str_is(c->id, id))
			continue;
		if (!c->eligible == eligible || !str_has_nocase(c->why, str_c(why)))
			fail_msg("%s: %s: %.*s", id, c->eligible ? "eligible" : "not eligible",
				 STRF(c->why));
		assert_true(!c->place == !eligible);
		return;
	}
	fail_msg("%s is not explained", id);
}

static void test_explain(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	fill(s);
	ok(s, "create id=w depends=a,c");
	ok(s, "create id=late delay=9t");
	ok(s, "create id=lost");
	ok(s, "claim id=lost new_token=L ttl=1t");
	ok(s, "create id=kept");
	ok(s, "claim id=kept new_token=K");
	ok(s, "lock_release id=kept token=K");
	advance(tick());
	explained(s, "a", true, "ready");
	explained(s, "b", false, "its status is Backlog");
	explained(s, "d", false, "held by bob");
	explained(s, "e", false, "Review");
	explained(s, "w", false, "waits for 2 of its dependencies");
	explained(s, "late", false, "waits for its not-before time");
	explained(s, "lost", true, "abandoned");
	explained(s, "kept", false, "kept for its last agent");
	ans = ok(s, "next explain=1");
	assert_int_equal(ans->n_candidates, 10);
	assert_int_equal(ans->total, 10);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ans->candidates[i].place, i + 1);
	/* by the time of creation, which is the same only while the clock stands still */
	explained(s, "p", false,
		  clock_is_ours() ? "waits for its 2 open sub-tasks: b, c"
				  : "waits for its 2 open sub-tasks: ");
	assert_true(str_is(ans->candidates[0].id, "a"));
	ans = ok(s, "next explain=1 limit=2");
	assert_int_equal(ans->n_candidates, 2);
	ans = ok(s, "next explain=1 label=ui");
	assert_string_equal(ids(s, ans), "a c");
	assert_int_equal(ans->n_candidates, 2);
}

/* Many are not all named. */
static void test_explain_names_three(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=p");
	for (int i = 1; i < 5; i++) {
		advance(tick());
		ok(s, "create id=s%d parent=p", i);
	}
	ok(s, "create id=x depends=s2,p,s1,s3");
	explained(s, "p", false, "its 4 open sub-tasks: s1, s2, s3, …");
	explained(s, "x", false, "waits for 4 of its dependencies: s2, p, s1, …");
}

static void warned(const struct answer *ans, const char *text)
{
	assert_int_equal(ans->warnings.n, 1);
	assert_true(str_has_nocase(ans->warnings.v[0], str_c(text)));
}

/* Tasks that the caller's loop released. */
static void test_except(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=T1 priority=3");
	ok(s, "create id=t2 priority=2");
	ok(s, "create id=t3 priority=1");
	assert_true(str_is(ok(s, "next except=t1")->task->id, "t2"));
	assert_true(str_is(ok(s, "next except=t2,x")->task->id, "T1"));
	ans = refused(s, NO_TASKS, "next except=t1,t2,t3");
	warned(ans, "3 eligible tasks are passed over");
	ans = refused(s, NO_TASKS, "take new_token=X except=t1,t2,t3");
	warned(ans, "3 eligible tasks are passed over");
	ans = ok(s, "take new_token=A except=t1,t3");
	assert_true(str_is(ans->task->id, "t2"));
	assert_int_equal(ans->warnings.n, 0);
	ans = ok(s, "done id=t2 token=A claim_next=1 new_token=B except=t1");
	assert_true(str_is(ans->next->id, "t3"));
	ans = ok(s, "done id=t3 token=B claim_next=1 new_token=C except=t1");
	assert_null(ans->next);
	warned(ans, "1 eligible task is passed over");
	ok(s, "claim id=t1 new_token=D");
	refused(s, NO_TASKS, "next except=t1");
	assert_int_equal(refused(s, NO_TASKS, "take new_token=E except=t1")->warnings.n, 0);
}

static void test_next(void **state)
{
	struct suite *s = *state;
	struct str before;

	refused(s, NO_TASKS, "next");
	fill(s);
	before = dump(s);
	assert_true(str_is(ok(s, "next")->task->id, "a"));
	assert_true(str_is(ok(s, "next class_rank=Standard label=ui")->task->id, "c"));
	refused(s, NO_TASKS, "next type=none");
	assert_int_equal(call(s, "next type=none")->wait_ms, 0);
	same_dump(before, dump(s), "next");
	assert_true(str_is(ok(s, "take new_token=T label=ui class_rank=Standard")->task->id, "c"));
	assert_true(str_is(ok(s, "take new_token=U type=bug")->task->id, "a"));
	refused(s, NO_TASKS, "take new_token=V type=bug");
}

/* A task that the filter excludes does not count for the waiting time. */
static void test_wait_goes_by_the_filter(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a delay=2t type=x");
	ok(s, "create id=b delay=7t type=y");
	assert_true(call(s, "next")->wait_ms <= 2 * tick());
	assert_true(call(s, "next type=y")->wait_ms > 3 * tick());
	assert_true(call(s, "take new_token=T type=y")->wait_ms > 3 * tick());
	assert_int_equal(call(s, "take new_token=T type=z")->wait_ms, 0);
}

/* The clock advances between two looks at it, but each answer is consistent: it has one time. */
static void test_one_time(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	for (int ttl = 100; ttl < 140; ttl++) {
		struct answer *ans;

		ok(s, "claim id=a new_token=T ttl=%d", ttl);
		creep(true);
		do
			ans = call(s, "next");
		while (ans->code == NO_TASKS);
		creep(false);
		assert_int_equal(ans->code, SUCCESS);
		assert_true(ans->task->lock.expires_at <= ans->now);
		ok(s, "lock_break id=a reason=so");
	}
}

int read_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_one_time),
		QUEUE_TEST(test_list),
		QUEUE_TEST(test_limit),
		QUEUE_TEST(test_stable_order),
		QUEUE_TEST(test_locks),
		QUEUE_TEST(test_overview),
		QUEUE_TEST(test_log),
		QUEUE_TEST(test_show),
		QUEUE_TEST(test_past),
		QUEUE_TEST(test_block_texts_stay),
		QUEUE_TEST(test_old_block_is_no_return),
		QUEUE_TEST(test_brief),
		QUEUE_TEST(test_brief_of_long_log),
		QUEUE_TEST(test_brief_of_one_commit),
		QUEUE_TEST(test_explain),
		QUEUE_TEST(test_explain_names_three),
		QUEUE_TEST(test_except),
		QUEUE_TEST(test_next),
		QUEUE_TEST(test_wait_goes_by_the_filter),
	};

	return cmocka_run_group_tests_name("read", tests, NULL, NULL);
}
