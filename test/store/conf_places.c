/* Handles and queues: what one sees of another, and what stays. */
#include "conf.h"

static void test_isolation(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	struct str first = c->env.queue;
	struct store *one = c->s;
	struct conf_plan p = { .put = &r, .log = STR("here") };
	int64_t n;

	assert_int_equal(conf_modify(c, conf_follow, &p), 0);
	c->env.queue = arena_printf(&c->a, "%.*s-b", STRF(first));
	c->s = conf_open(c, STORE_CREATE);
	assert_non_null(c->s);
	assert_null(conf_get(c, r.key));
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
	assert_string_equal(conf_scan(c, &(struct query){ .pick = PICK_ELIGIBLE }), "");
	assert_int_equal(c->s->ops->count(c->s, &(struct query){ 0 }, &n), 0);
	assert_true(n == 0);
	assert_int_equal(conf_log_length(c), 0);
	r.hot = STR("other");
	assert_int_equal(conf_put(c, &r), 0);
	store_close(c->s);
	c->s = one;
	assert_true(str_is(conf_get(c, r.key)->hot, "hot"));
	assert_int_equal(conf_drop(c, r.key), 0);
	c->s = conf_open(c, STORE_WRITE);
	assert_true(str_is(conf_get(c, r.key)->hot, "other"));
	store_close(c->s);
	c->s = one;
}

static void test_unknown_queue(void **state)
{
	struct conf *c = *state;
	struct store *s = NULL;

	c->env.queue = STR("no-such-queue");
	c->env.mode = STORE_WRITE;
	assert_int_equal(store_open(&s, str_c(conf_uri()), &c->env), STORE_ABSENT);
	assert_null(s);
	assert_int_equal(c->err.fault, STORE_ABSENT);
	assert_true(strlen(c->err.text) > 0);
	c->env.mode = STORE_READ;
	assert_int_equal(store_open(&s, str_c(conf_uri()), &c->env), STORE_ABSENT);
}

static void test_create_again(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");

	assert_int_equal(conf_put(c, &r), 0);
	store_close(c->s);
	c->s = conf_open(c, STORE_CREATE);
	assert_non_null(c->s);
	assert_non_null(conf_get(c, r.key));
}

static void test_reopen(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	struct conf_plan p = { .put = &r, .log = STR("made") };
	int64_t counts[16], rev, now;

	assert_int_equal(conf_modify(c, conf_follow, &p), 0);
	rev = conf_get(c, r.key)->rev;
	now = conf_now(c);
	conf_reopen(c);
	conf_same(&r, conf_get(c, r.key));
	assert_true(conf_get(c, r.key)->rev == rev);
	assert_int_equal(conf_log_length(c), 1);
	assert_int_equal(c->s->ops->tally(c->s, counts), 0);
	assert_true(counts[1] == 1);
	assert_true(conf_now(c) >= now);
}

static void test_read_only(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1"), s = conf_task(c, "t2");

	assert_int_equal(conf_put(c, &r), 0);
	store_close(c->s);
	c->s = conf_open(c, STORE_READ);
	assert_non_null(c->s);
	assert_non_null(conf_get(c, r.key));
	assert_string_equal(conf_scan(c, &(struct query){ .pick = PICK_ELIGIBLE }), "t1 ");
	assert_int_equal(conf_put(c, &s), STORE_READONLY);
	assert_int_equal(c->err.applied, 'n');
	assert_null(conf_get(c, s.key));
}

static void test_two_handles(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	struct store *one = c->s, *two = conf_open(c, STORE_WRITE);
	struct str key = STR("meta/x");

	assert_non_null(two);
	for (int i = 0; i < 3; i++) {
		c->s = two;
		assert_int_equal(conf_modify(c, conf_append_x, &key), 0);
		c->s = one;
		assert_int_equal(conf_modify(c, conf_append_x, &key), 0);
	}
	assert_int_equal(conf_put(c, &r), 0);
	c->s = two;
	assert_true(str_is(conf_get(c, key)->hot, "xxxxxx"));
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "t1 ");
	store_close(two);
	c->s = one;
}

static void note_check(void *ctx, enum check_level level, const char *what, struct str text,
		       struct str fix)
{
	(void)fix;
	assert_non_null(what);
	assert_true(text.n > 0);
	if (level == CHECK_BAD)
		fail_msg("check: %s: %.*s", what, STRF(text));
	++*(int *)ctx;
}

static void test_check(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	int n = 0;

	assert_int_equal(conf_put(c, &r), 0);
	assert_int_equal(c->s->ops->check(c->s, note_check, &n), 0);
	assert_true(n > 0);
}

int conf_places(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST(test_isolation),    CONF_TEST(test_unknown_queue),
		CONF_TEST(test_create_again), CONF_TEST(test_reopen),
		CONF_TEST(test_read_only),    CONF_TEST(test_two_handles),
		CONF_TEST(test_check),
	};

	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
