/* Handles and queues: which changes one handle sees of another, and which data stays. */
#include "conf.h"

static void test_isolation(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	struct str first = c->env.opt.queue;
	struct store *one = c->s;
	struct conf_plan p = { .put = &r, .log = STR("here") };
	int64_t n;

	assert_int_equal(conf_modify(c, conf_follow, &p), 0);
	c->env.opt.queue = arena_printf(&c->a, "%.*s-b", STRF(first));
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

	c->env.opt.queue = STR("no-such-queue");
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

struct offered {
	struct conf *c;
	const char *id;
};

static int note_first(struct edit *e, void *ctx)
{
	struct offered *o = ctx;
	struct record *r;
	int rc = edit_first(e, &(struct query){ .pick = PICK_ELIGIBLE }, &r);

	o->id = rc ? "" : arena_cstr(&o->c->a, r->ix.id);
	return rc < 0 ? rc : 1;
}

static const char *first_offer(struct conf *c)
{
	struct offered o = { .c = c };

	assert_int_equal(conf_modify(c, note_first, &o), 1);
	return o.id;
}

/* A handle that has seen that nothing is due learns of a record that becomes due later, whoever writes it. */
static void test_due_later(void **state)
{
	struct conf *c = *state;
	struct store *one = c->s, *two = conf_open(c, STORE_WRITE);

	assert_non_null(two);
	for (int i = 0; i < 2; i++) {
		struct record r = conf_task(c, i ? "own" : "other");

		c->s = one;
		assert_string_equal(first_offer(c), "");
		r.ix.lane = LANE_LATER;
		r.ix.eligible_at = conf_now(c) + conf_tick();
		c->s = i ? one : two;
		assert_int_equal(conf_put(c, &r), 0);
		conf_advance(2 * conf_tick());
		c->s = one;
		assert_string_equal(first_offer(c), i ? "own" : "other");
		r.ix.lane = LANE_NONE;
		r.rev = 1;
		assert_int_equal(conf_put(c, &r), 0);
	}
	store_close(two);
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

/* --- names --------------------------------------------------------------------------------------- */

struct names {
	struct str wanted;
	int seen, others;
};

static void count_name(void *ctx, struct str name)
{
	struct names *n = ctx;

	n->seen += str_eq(name, n->wanted);
	n->others += !str_eq(name, n->wanted);
}

static struct names find_name(struct conf *c, struct str name)
{
	struct names n = { .wanted = name };

	assert_int_equal(c->s->ops->queues(c->s, count_name, &n), 0);
	return n;
}

static void test_names(void **state)
{
	struct conf *c = *state;
	struct str own = c->env.opt.queue, odd = STR("5 % odd/\xc3\xbc");

	if (!c->s->ops->queues)
		skip_because("this store has one queue");
	assert_int_equal(find_name(c, own).seen, 1);
	assert_int_equal(find_name(c, odd).seen, 0);
	store_close(c->s);
	c->env.opt.queue = odd;
	c->s = conf_open(c, STORE_CREATE);
	assert_non_null(c->s);
	assert_int_equal(find_name(c, own).seen, 1);
	assert_int_equal(find_name(c, odd).seen, 1);
	assert_int_equal(c->s->ops->discard(c->s), 0);
	store_close(c->s);
	c->env.opt.queue = own;
	c->s = conf_open(c, STORE_READ);
	assert_non_null(c->s);
	assert_int_equal(find_name(c, odd).seen, 0);
	assert_int_equal(find_name(c, own).seen, 1);
}

/* --- discarding ---------------------------------------------------------------------------------- */

/* Opens a queue beside the test's own, with one task in it, as c->s. */
static void open_beside(struct conf *c, struct str name)
{
	struct record r;

	c->env.opt.queue = name;
	c->s = conf_open(c, STORE_CREATE);
	assert_non_null(c->s);
	r = conf_task(c, "t1");
	assert_int_equal(
		conf_modify(c, conf_follow, &(struct conf_plan){ .put = &r, .log = STR("b") }), 0);
}

static void fill(struct conf *c)
{
	struct record r[3] = { conf_task(c, "t1"), conf_task(c, "t2"), conf_task(c, "t3") };

	r[0].ix.labels = conf_list(c, "red blue");
	r[1].ix.depends = conf_list(c, "task/t1");
	r[2].ix.parent = conf_key(c, "t1");
	for (int i = 0; i < 3; i++)
		assert_int_equal(conf_modify(c, conf_follow,
					     &(struct conf_plan){ .put = &r[i], .log = STR("a") }),
				 0);
}

static void assert_empty(struct conf *c)
{
	int64_t counts[16], n;

	assert_null(conf_get(c, conf_key(c, "t1")));
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
	assert_string_equal(conf_scan(c, &(struct query){ .depends_on = conf_key(c, "t1") }), "");
	assert_string_equal(conf_scan(c, &(struct query){ .parent = conf_key(c, "t1") }), "");
	assert_int_equal(c->s->ops->count(c->s, &(struct query){ 0 }, &n), 0);
	assert_true(n == 0);
	assert_int_equal(c->s->ops->tally(c->s, counts), 0);
	for (int i = 0; i < 16; i++)
		assert_true(counts[i] == 0);
	assert_int_equal(conf_log_length(c), 0);
}

static void assert_beside(struct conf *c)
{
	int64_t counts[16];

	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "t1 ");
	assert_true(str_is(conf_get(c, conf_key(c, "t1"))->hot, "hot"));
	assert_true(conf_get(c, conf_key(c, "t1"))->body.n > 0);
	assert_int_equal(c->s->ops->tally(c->s, counts), 0);
	assert_true(counts[1] == 1);
	assert_int_equal(conf_log_length(c), 1);
}

/* The queue does not exist, or is empty; a new one in its place is complete. */
static void assert_discarded(struct conf *c)
{
	struct store *s = NULL;
	int rc;

	c->env.mode = STORE_WRITE;
	rc = store_open(&s, str_c(conf_uri()), &c->env);
	assert_true(rc == 0 || rc == STORE_ABSENT);
	store_close(s);
	c->s = conf_open(c, STORE_CREATE);
	assert_non_null(c->s);
	assert_empty(c);
	for (int i = 0; i < 4; i++) {
		struct record r = conf_task(c, arena_printf(&c->a, "x%d", i).p);

		r.body_changed = false;
		assert_int_equal(conf_put(c, &r), 0);
		assert_true(conf_get(c, r.key)->body.n == 0);
	}
	assert_string_equal(conf_scan(c, &(struct query){ .depends_on = conf_key(c, "t1") }), "");
	assert_string_equal(conf_scan(c, &(struct query){ .label = STR("red") }), "");
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "x0 x1 x2 x3 ");
	assert_int_equal(conf_log_length(c), 0);
}

static void discard_beside(struct conf *c, struct str name)
{
	struct str other = arena_printf(&c->a, "%s-beside", c->queue);

	store_close(c->s);
	open_beside(c, other);
	store_close(c->s);
	c->env.opt.queue = name;
	c->s = conf_open(c, STORE_CREATE);
	assert_non_null(c->s);
	fill(c);
	assert_int_equal(c->s->ops->discard(c->s), 0);
	assert_int_equal(c->s->ops->discard(c->s), 0);
	store_close(c->s);
	assert_discarded(c);
	store_close(c->s);
	c->env.opt.queue = other;
	c->s = conf_open(c, STORE_WRITE);
	assert_non_null(c->s);
	assert_beside(c);
}

static void test_discard(void **state)
{
	struct conf *c = *state;

	discard_beside(c, c->env.opt.queue);
}

static void test_discard_default(void **state)
{
	discard_beside(*state, STR(""));
}

/* A handle of a removed queue: the queue is empty or does not exist. */
static void assert_nothing(struct conf *c)
{
	struct record r;
	int rc = c->s->ops->get(c->s, conf_key(c, "t1"), &r, &c->a);

	if (rc == STORE_ABSENT)
		return;
	assert_empty(c);
}

/* A handle that stayed open writes into no queue, least of all into a new one. */
static void test_discard_open_elsewhere(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t9");
	struct store *old = c->s, *other = conf_open(c, STORE_WRITE);
	int rc;

	assert_non_null(other);
	fill(c);
	c->s = other;
	assert_int_equal(other->ops->discard(other), 0);
	store_close(other);
	open_beside(c, arena_printf(&c->a, "%s-later", c->queue));
	other = c->s;
	c->s = old;
	assert_nothing(c);
	rc = conf_put(c, &r);
	assert_true(rc == 0 || rc == STORE_ABSENT);
	if (rc)
		assert_int_equal(c->err.applied, 'n');
	store_close(old);
	c->s = other;
	assert_beside(c);
}

struct follower {
	struct arena *a;
	struct str cursor;
	int n;
};

static int follow_entry(const struct entry *e, void *ctx)
{
	struct follower *f = ctx;

	f->cursor = arena_str(f->a, e->cursor);
	f->n++;
	return 0;
}

/* The number of entries that are new to the follower. */
static int follow(struct conf *c, struct follower *f)
{
	struct entry_query q = { .after = f->cursor };

	f->n = 0;
	assert_int_equal(c->s->ops->entries(c->s, &q, follow_entry, f), 0);
	return f->n;
}

/* Entries that are logged later come after every cursor. */
static void test_discard_cursor(void **state)
{
	struct conf *c = *state;
	struct str mine = c->env.opt.queue;
	struct follower f = { .a = &c->a };
	struct store *other;

	store_close(c->s);
	open_beside(c, arena_printf(&c->a, "%s-log", c->queue));
	other = c->s;
	assert_int_equal(follow(c, &f), 1);
	c->env.opt.queue = mine;
	c->s = conf_open(c, STORE_WRITE);
	assert_non_null(c->s);
	fill(c);
	assert_int_equal(c->s->ops->discard(c->s), 0);
	store_close(c->s);
	c->s = other;
	assert_int_equal(follow(c, &f), 0);
	fill(c);
	assert_int_equal(follow(c, &f), 3);
}

static void test_discard_read_only(void **state)
{
	struct conf *c = *state;

	fill(c);
	store_close(c->s);
	c->s = conf_open(c, STORE_READ);
	assert_non_null(c->s);
	assert_int_equal(c->s->ops->discard(c->s), STORE_READONLY);
	assert_int_equal(c->err.applied, 'n');
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "t1 t2 t3 ");
}

int conf_places(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST(test_isolation),       CONF_TEST(test_unknown_queue),
		CONF_TEST(test_create_again),    CONF_TEST(test_reopen),
		CONF_TEST(test_read_only),       CONF_TEST(test_two_handles),
		CONF_TEST(test_due_later),       CONF_TEST(test_names),
		CONF_TEST(test_check),           CONF_TEST(test_discard),
		CONF_TEST(test_discard_default), CONF_TEST(test_discard_open_elsewhere),
		CONF_TEST(test_discard_cursor),  CONF_TEST(test_discard_read_only),
	};

	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
