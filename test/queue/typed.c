/* Locks of the whole queue and the emergency, inside the transactions of other agents. */
#include "suite.h"

#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"

/* No call waits here; race/typed.c tests waiting. */
static int setup(void **state)
{
	struct suite *s;

	suite_setup(state);
	s = *state;
	s->config.opt.timeout_ms = 0;
	reopen(s);
	return 0;
}

#define TYPED_TEST(f) cmocka_unit_test_setup_teardown(f, setup, suite_teardown)

static bool says(const struct answer *ans, const char *text)
{
	return str_has_nocase(ans->message, str_c(text));
}

/* Every operation that changes something, each in a form that would succeed. */
static const char *const changes[] = {
	"create id=new",
	"take new_token=N",
	"claim id=ready new_token=N",
	"release id=mine token=T",
	"block id=mine token=T reason=r unblock_action=u",
	"escalate id=mine token=T reason=r",
	"review id=mine token=T summary=s",
	"done id=mine token=T",
	"done id=mine token=T claim_next=1 new_token=N",
	"fail id=mine token=T reason=r",
	"cancel id=ready reason=r",
	"remove id=ready",
	"update id=ready title=x",
	"status id=ready status=backlog",
	"comment id=ready text=x",
	"depend id=ready depends=other",
	"lock_acquire id=ready new_token=N",
	"lock_release id=mine token=T",
	"lock_break id=mine reason=r",
	"lock_cleanup",
	"archive",
	"id_claim",
	"id_init from=1000000",
	"unblock id=blocked",
	"approve id=review",
	"rework id=review reason=r",
	"reopen id=over reason=r",
	"retry id=failed",
	"undepend id=tied depends=other",
	"pause",
	"resume",
	"undo id=over",
};

static void scene(struct suite *s)
{
	ok(s, "create id=ready");
	ok(s, "create id=other");
	ok(s, "create id=tied depends=other");
	ok(s, "create id=mine");
	ok(s, "claim id=mine new_token=T");
	ok(s, "create id=blocked");
	ok(s, "claim id=blocked new_token=B");
	ok(s, "block id=blocked token=B reason=r unblock_action=u");
	ok(s, "create id=review");
	ok(s, "claim id=review new_token=B");
	ok(s, "review id=review token=B summary=s");
	ok(s, "create id=over");
	ok(s, "cancel id=over reason=r");
	ok(s, "create id=failed");
	ok(s, "claim id=failed new_token=B");
	ok(s, "fail id=failed token=B reason=r");
}

/* The list above has every such operation. */
static void test_all_operations(void **state)
{
	struct suite *s = *state;
	bool have[OP_END] = { false };

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		have[parse(s, changes[i]).op] = true;
	for (int op = OP_NONE + 1; op < OP_END; op++) {
		if (op_flags((enum op)op) & OP_READS || op == OP_HEARTBEAT ||
		    op == OP_EMERGENCY_ON || op == OP_EMERGENCY_OFF)
			continue;
		if (!have[op])
			fail_msg("nobody tries %s under a lock of the whole queue",
				 op_name((enum op)op));
	}
}

static void expect_open(struct suite *s)
{
	ok(s, "heartbeat id=mine token=T");
	ok(s, "show id=mine");
	ok(s, "list");
	ok(s, "next");
	ok(s, "log");
	ok(s, "locks");
	ok(s, "typed");
	ok(s, "emergency");
	ok(s, "lock_status id=@maintenance");
}

static void test_maintenance(void **state)
{
	struct suite *s = *state;

	scene(s);
	ok(s,
	   "lock_acquire id=@maintenance new_token=M agent=bob user=root host=box operation=restore");
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct answer *ans = refused(s, API_ERROR, "%s", changes[i]);

		assert_true(says(ans, "bob") && says(ans, "restore") && says(ans, "root") &&
			    says(ans, "box"));
		assert_int_equal(ans->applied, 'n');
	}
	expect_open(s);
	assert_true(says(refused(s, CONFLICT, "lock_acquire id=@batch new_token=N"), "bob"));
	assert_true(says(refused(s, CONFLICT, "lock_acquire id=@maintenance new_token=N"), "bob"));
	ok(s, "lock_release id=@maintenance token=M agent=bob");
	ok(s, "create id=new");
	ok(s, "done id=mine token=T");
}

static void test_lease(void **state)
{
	struct suite *s = *state;
	struct answer *ans = ok(s, "lock_acquire id=@Maintenance new_token=M ttl=4t agent=bob");

	assert_int_equal(ans->lock->fence, 1);
	assert_true(str_is(ans->lock->token, "M") && str_is(ans->task->id, "@maintenance"));
	assert_true(ok(s, "lock_acquire id=@maintenance new_token=M agent=bob")->repeated);
	advance(3 * tick());
	ok(s, "heartbeat id=@maintenance token=M");
	advance(3 * tick());
	refused(s, API_ERROR, "create id=a");
	refused(s, LOST_LOCK, "heartbeat id=@maintenance token=X");
	refused(s, LOST_LOCK, "lock_release id=@maintenance token=X");
	advance(2 * tick());
	refused(s, LOST_LOCK, "heartbeat id=@maintenance token=M");
	ok(s, "create id=a");
	ans = ok(s, "lock_acquire id=@maintenance new_token=N");
	assert_int_equal(ans->lock->fence, 2);
	refused(s, LOST_LOCK, "lock_release id=@maintenance token=M");
	ok(s, "lock_break id=@maintenance reason=r");
	ok(s, "create id=b");
	assert_true(ok(s, "lock_release id=@maintenance token=N")->repeated);
	assert_int_equal(count_events(s, "@maintenance", "locked"), 2);
	assert_int_equal(count_events(s, "@maintenance", "lock_broken"), 1);
}

static void test_separation(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	ok(s, "lock_acquire id=@batch new_token=B agent=bob");
	ok(s, "create id=a");
	refused(s, API_ERROR, "archive");
	refused(s, CONFLICT, "lock_acquire id=@write new_token=W");
	ok(s, "lock_acquire id=@config new_token=C");
	ok(s, "lock_release id=@config token=C");
	s->config.policy.untyped = true;
	reopen(s);
	refused(s, API_ERROR, "create id=b");
	refused(s, CONFLICT, "lock_acquire id=@config new_token=C");
	expect_status(s, "a", READY);
	ok(s, "lock_release id=@batch token=B agent=bob");
	ok(s, "create id=b");
	ok(s, "archive");
}

static struct str passes(void *ctx, enum typed kind, struct arena *a)
{
	(void)a;
	return kind == TYPED_MAINTENANCE ? *(struct str *)ctx : STR("");
}

static void test_own(void **state)
{
	struct suite *s = *state;
	struct str token = STR("M");

	s->config.pass = passes;
	s->config.pass_ctx = &token;
	reopen(s);
	ok(s, "lock_acquire id=@maintenance new_token=M");
	ok(s, "create id=a");
	ok(s, "lock_acquire id=@batch new_token=B");
	refused(s, CONFLICT, "lock_acquire id=@maintenance new_token=N");
	token = STR("wrong");
	refused(s, API_ERROR, "create id=b");
}

struct count_passes {
	struct str token;
	int asked;
};

static struct str passes_counted(void *ctx, enum typed kind, struct arena *a)
{
	struct count_passes *p = ctx;

	(void)a;
	p->asked++;
	return kind == TYPED_BATCH ? p->token : STR("");
}

/* The lock holder's batch succeeds at the second attempt, with any number of changes. */
static void test_own_batch(void **state)
{
	struct suite *s = *state;
	struct count_passes pass = { .token = STR("B") };
	struct request rqs[50];
	struct answer answers[50];
	const size_t n = sizeof(rqs) / sizeof(*rqs);

	s->config.pass = passes_counted;
	s->config.pass_ctx = &pass;
	reopen(s);
	ok(s, "lock_acquire id=@batch new_token=B");
	for (size_t i = 0; i < n; i++)
		rqs[i] = parse(s, "create title=x part_of=2");
	pass.asked = 0;
	assert_int_equal(queue_call_all(s->q, rqs, NULL, answers, n, &s->a), n);
	assert_int_equal(pass.asked, 1);
	assert_int_equal(ok(s, "list")->total, n);
	pass.token = STR("wrong");
	assert_int_equal(queue_call_all(s->q, rqs, NULL, answers, n, &s->a), 0);
	assert_int_equal(answers[0].code, API_ERROR);
	assert_int_equal(ok(s, "list")->total, n);
}

/* Locks of the whole queue do not appear in lists: they are not tasks. */
static void test_no_task(void **state)
{
	struct suite *s = *state;

	ok(s, "lock_acquire id=@write new_token=W");
	assert_int_equal(ok(s, "list")->total, 0);
	assert_int_equal(ok(s, "locks")->total, 0);
	assert_int_equal(ok(s, "overview")->total, 0);
	assert_int_equal(ok(s, "typed")->total, 1);
	refused(s, USAGE, "show id=@write");
	refused(s, USAGE, "claim id=@write new_token=T");
	refused(s, USAGE, "lock_acquire id=@nothing new_token=T");
	ok(s, "lock_release id=@write token=W");
	assert_int_equal(ok(s, "typed")->total, 0);
	refused(s, NO_TASKS, "take new_token=W");
}

static void test_cleanup(void **state)
{
	struct suite *s = *state;
	struct arena a = { 0 };
	struct str host = os_hostname(&a), here = proc_here(&a);

	ok(s, "lock_acquire id=@config new_token=C ttl=1t");
	advance(tick());
	assert_string_equal(ids(s, ok(s, "lock_cleanup")), "@config");
	assert_string_equal(ids(s, ok(s, "lock_cleanup")), "");
	/* the holder's process is gone: nobody has to wait until the lease expires */
	ok(s, "lock_acquire id=@maintenance new_token=M pid=%d pid_start=1 host=%.*s boot_id=%.*s",
	   (int)getpid(), STRF(host), STRF(here));
	assert_int_equal(ok(s, "typed")->tasks[0].lock.life, LIFE_DEAD);
	assert_string_equal(ids(s, ok(s, "lock_cleanup")), "@maintenance");
	ok(s, "create id=a");
	ok(s,
	   "lock_acquire id=@maintenance new_token=M pid=%d pid_start=%lld host=%.*s boot_id=%.*s",
	   (int)getpid(), (long long)os_process_start(getpid()), STRF(host), STRF(here));
	assert_int_equal(ok(s, "lock_status id=@maintenance")->task->lock.life, LIFE_ALIVE);
	refused(s, API_ERROR, "lock_cleanup");
	arena_free(&a);
}

/* Nobody waits for the lock of a process that died; one that may be alive keeps everybody out. */
static void test_dead_holder(void **state)
{
	struct suite *s = *state;
	struct arena a = { 0 };
	struct str host = os_hostname(&a), here = proc_here(&a), boot = here,
		   first = str_cut(&boot, '/'),
		   other = arena_printf(&a, "%.*s/pid:[1]", STRF(first));
	const struct {
		struct str host, place;
		int64_t start;
		bool dead;
	} holders[] = {
		{ host, here, 1, true },
		{ host, here, 0, false },
		{ STR("other.example"), here, 1, false },
		{ host, STR("another-boot/pid:[1]"), 1, false },
		{ host, other, 1, false },
		{ host, STR(""), 1, false },
	};

	for (size_t i = 0; i < sizeof(holders) / sizeof(*holders); i++) {
		ok(s,
		   "lock_acquire id=@maintenance new_token=M%zu pid=%d pid_start=%lld host=%.*s%s%.*s",
		   i, (int)getpid(), (long long)holders[i].start, STRF(holders[i].host),
		   holders[i].place.n ? " boot_id=" : "", STRF(holders[i].place));
		if (holders[i].dead) {
			ok(s, "create id=a%zu", i);
			refused(s, LOST_LOCK, "heartbeat id=@maintenance token=M%zu", i);
			assert_int_equal(count_events(s, "@maintenance", "cleaned_up"), 1);
		} else {
			refused(s, API_ERROR, "create id=a%zu", i);
			ok(s, "heartbeat id=@maintenance token=M%zu", i);
			ok(s, "lock_release id=@maintenance token=M%zu", i);
		}
	}
	ok(s,
	   "lock_acquire id=@write new_token=W agent=bob pid=%d pid_start=1 host=%.*s boot_id=%.*s",
	   (int)getpid(), STRF(host), STRF(here));
	ok(s, "lock_acquire id=@write new_token=V agent=cy");
	assert_true(str_is(ok(s, "lock_status id=@write")->task->lock.holder, "cy"));
	refused(s, API_ERROR, "create id=b");
	assert_int_equal(count_events(s, "@write", "cleaned_up"), 1);
	arena_free(&a);
}

static void test_emergency(void **state)
{
	struct suite *s = *state;

	scene(s);
	refused(s, USAGE, "emergency_on");
	ok(s, "emergency_on reason=fire agent=bob");
	assert_true(ok(s, "emergency_on reason=flood")->repeated);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct answer *ans = refused(s, API_ERROR, "%s", changes[i]);

		assert_true(says(ans, "fire") && says(ans, "bob"));
		assert_int_equal(ans->applied, 'n');
	}
	refused(s, API_ERROR, "lock_acquire id=@maintenance new_token=M");
	expect_open(s);
	advance(tick());
	ok(s, "heartbeat id=mine token=T");
	ok(s, "emergency_off reason=over");
	assert_true(ok(s, "emergency_off")->repeated);
	ok(s, "done id=mine token=T");
	assert_int_equal(count_events(s, "", "emergency_on"), 1);
	assert_int_equal(count_events(s, "", "emergency_off"), 1);
}

/* A repeat gets the first answer: it changes nothing. */
static void test_repeat(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a request_id=r1");
	ok(s, "emergency_on reason=fire");
	assert_true(ok(s, "create id=a request_id=r1")->repeated);
	ok(s, "emergency_off request_id=r2");
	assert_true(ok(s, "emergency_off request_id=r2")->repeated);
}

static void test_counts(void **state)
{
	struct suite *s = unless_served(state, "the server counts as its own settings say");
	struct health h;
	int64_t done;

	s->config.opt.counting = true;
	reopen(s);
	ok(s, "id_claim");
	if (!queue_health(s->q, &h))
		skip_because("this store counts nothing");
	done = h.op[OP_CREATE].done;
	ok(s, "create id=a");
	refused(s, CONFLICT, "create id=a");
	ok(s, "lock_acquire id=@maintenance new_token=M");
	refused(s, API_ERROR, "create id=b");
	assert_true(queue_health(s->q, &h));
	assert_int_equal(h.op[OP_CREATE].done, done + 2);
	assert_int_equal(h.op[OP_CREATE].failed, 1);
	assert_true(h.op[OP_CREATE].hold_us <= h.op[OP_CREATE].held * h.op[OP_CREATE].hold_max_us);
	s->config.opt.counting = false;
	reopen(s);
	refused(s, API_ERROR, "create id=b");
	assert_true(queue_health(s->q, &h));
	assert_int_equal(h.op[OP_CREATE].failed, 1);
}

int typed_tests(void)
{
	const struct CMUnitTest tests[] = {
		TYPED_TEST(test_all_operations),
		TYPED_TEST(test_maintenance),
		TYPED_TEST(test_lease),
		TYPED_TEST(test_separation),
		TYPED_TEST(test_own),
		TYPED_TEST(test_own_batch),
		TYPED_TEST(test_no_task),
		TYPED_TEST(test_cleanup),
		TYPED_TEST(test_dead_holder),
		TYPED_TEST(test_emergency),
		TYPED_TEST(test_repeat),
		TYPED_TEST(test_counts),
	};

	return cmocka_run_group_tests_name("typed", tests, NULL, NULL);
}
