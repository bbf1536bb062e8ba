/* Records and changes: invariants 1, 4, 5, 8 and 10. */
#include "conf.h"

/* --- round trips -------------------------------------------------------------------------------- */

static void test_absent(void **state)
{
	struct conf *c = *state;

	assert_null(conf_get(c, STR("task/none")));
	assert_int_equal(conf_drop(c, STR("task/none")), 0);
	assert_null(conf_get(c, STR("task/none")));
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
}

static void test_every_field(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "full"), *got;
	char token[32];

	for (int i = 0; i < 32; i++)
		token[i] = (char)(i * 8); /* includes a NUL and bytes that are not UTF-8 */
	r.ix.lane = LANE_LATER;
	r.ix.status = 15;
	r.ix.class_rank = 4;
	r.ix.priority = -7;
	r.ix.eligible_at = conf_now(c) + 50 * conf_tick();
	r.ix.updated_at = 4102444800000;
	r.ix.created_at = 1;
	r.ix.holder = STR("agent \xc3\xbc/1");
	r.ix.token = str_n(token, sizeof(token));
	r.ix.parent = STR("task/top");
	r.ix.type = STR("bug");
	r.ix.labels = conf_list(c, "b a \xc3\xa9 it's \"q\" x,y 100%_ [z] {}");
	r.ix.depends = conf_list(c, "task/one task/two");
	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	assert_non_null(got);
	conf_same(&r, got);
	assert_true(got->rev > 0);
	assert_false(got->body_changed);
}

static void test_bare_record(void **state)
{
	struct conf *c = *state;
	struct record r = { .key = STR("meta/counter") }, *got;

	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	assert_non_null(got);
	conf_same(&r, got);
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
}

static void test_binary_hot(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "bin"), *got;
	char hot[512];

	for (size_t i = 0; i < sizeof(hot); i++)
		hot[i] = (char)i;
	r.hot = str_n(hot, sizeof(hot));
	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	assert_non_null(got);
	conf_same(&r, got);
}

static void test_large_body(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "large"), *got;
	size_t n = 256 * 1024;
	char *text = arena_alloc(&c->a, n);

	for (size_t i = 0; i < n; i++)
		text[i] = (char)('a' + i % 26);
	memcpy(text, "{\"description\":\"", 16);
	memcpy(text + n - 2, "\"}", 2);
	r.body = str_n(text, n);
	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	assert_non_null(got);
	conf_same(&r, got);
}

static void test_long_lists(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "lists"), *got;
	struct query q = { .label = STR("label-63"), .depends_on = STR("task/dep-199") };

	for (int i = 0; i < 64; i++)
		r.ix.labels = arena_append(&c->a, r.ix.labels, arena_printf(&c->a, "label-%d", i));
	for (int i = 0; i < 200; i++)
		r.ix.depends = arena_append(&c->a, r.ix.depends,
					    arena_printf(&c->a, "task/dep-%d", i));
	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	assert_non_null(got);
	conf_same(&r, got);
	assert_string_equal(conf_scan(c, &q), "lists ");
	r.ix.labels.n = r.ix.depends.n = 0;
	assert_int_equal(conf_put(c, &r), 0);
	conf_same(&r, conf_get(c, r.key));
	assert_string_equal(conf_scan(c, &q), "");
}

static void test_long_key(void **state)
{
	struct conf *c = *state;
	char key[200] = "lock/";
	struct record r = { .key = str_n(key, sizeof(key)), .hot = STR("x") };

	memset(key + 5, 'k', sizeof(key) - 5);
	assert_int_equal(conf_put(c, &r), 0);
	assert_non_null(conf_get(c, r.key));
	assert_null(conf_get(c, str_n(key, sizeof(key) - 1)));
}

static void test_keys_are_bytes(void **state)
{
	struct conf *c = *state;
	struct record a = conf_task(c, "Case"), b = conf_task(c, "case");

	a.hot = STR("upper");
	b.hot = STR("lower");
	assert_int_equal(conf_put(c, &a), 0);
	assert_int_equal(conf_put(c, &b), 0);
	assert_true(str_is(conf_get(c, a.key)->hot, "upper"));
	assert_true(str_is(conf_get(c, b.key)->hot, "lower"));
}

/* --- puts and drops ----------------------------------------------------------------------------- */

static void test_body_kept(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1"), *got;

	r.body = STR("{\"title\":\"first\"}");
	assert_int_equal(conf_put(c, &r), 0);
	r.body = STR("{\"title\":\"not this one\"}");
	r.body_changed = false;
	r.hot = STR("second");
	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	assert_true(str_is(got->body, "{\"title\":\"first\"}"));
	assert_true(str_is(got->hot, "second"));
	r.body = (struct str){ 0 };
	assert_int_equal(conf_put(c, &r), 0);
	assert_true(str_is(conf_get(c, r.key)->body, "{\"title\":\"first\"}"));
	r.body_changed = true;
	assert_int_equal(conf_put(c, &r), 0);
	assert_int_equal(conf_get(c, r.key)->body.n, 0);
}

static int keep_body(const struct record *r, void *ctx)
{
	struct conf *c = ctx;

	r = record_copy(&c->a, r);
	assert_int_equal(r->body.n, 13);
	return 0;
}

static int expect_no_body(const struct record *r, void *ctx)
{
	(void)ctx;
	assert_int_equal(r->body.n, 0);
	return 0;
}

static void test_scan_body(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");

	assert_int_equal(conf_put(c, &r), 0);
	assert_int_equal(c->s->ops->scan(c->s, &(struct query){ .body = true }, keep_body, c), 0);
	assert_int_equal(c->s->ops->scan(c->s, &(struct query){ 0 }, expect_no_body, NULL), 0);
}

static void test_rev_grows(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1"), other = conf_task(c, "t2");
	int64_t rev = 0;

	for (int i = 0; i < 5; i++) {
		struct record *got;

		assert_int_equal(conf_put(c, &r), 0);
		got = conf_get(c, r.key);
		assert_true(got->rev > rev);
		rev = got->rev;
		assert_int_equal(conf_put(c, &other), 0);
		assert_true(conf_get(c, r.key)->rev == rev);
	}
}

static void test_drop(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1"), *got;

	r.ix.labels = conf_list(c, "red");
	r.ix.depends = conf_list(c, "task/x");
	assert_int_equal(conf_put(c, &r), 0);
	assert_int_equal(conf_drop(c, r.key), 0);
	assert_null(conf_get(c, r.key));
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "");
	assert_string_equal(conf_scan(c, &(struct query){ .label = STR("red") }), "");
	r.ix.labels.n = r.ix.depends.n = 0;
	r.body = STR("{}");
	assert_int_equal(conf_put(c, &r), 0);
	got = conf_get(c, r.key);
	conf_same(&r, got);
	assert_string_equal(conf_scan(c, &(struct query){ .label = STR("red") }), "");
	assert_string_equal(conf_scan(c, &(struct query){ .depends_on = STR("task/x") }), "");
}

static int drop_then_put(struct edit *e, void *ctx)
{
	struct record *r = ctx;

	edit_drop(e, r->key);
	edit_put(e, r);
	return 0;
}

static void test_drop_then_put(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");

	assert_int_equal(conf_put(c, &r), 0);
	r.body_changed = false;
	r.body = (struct str){ 0 };
	assert_int_equal(conf_modify(c, drop_then_put, &r), 0);
	assert_int_equal(conf_get(c, r.key)->body.n, 0);
}

static void test_going(void **state)
{
	struct conf *c = *state;
	struct record r = { .key = STR("request/1"), .hot = STR("answer") };

	r.ix.lane = LANE_GOING;
	r.ix.eligible_at = conf_now(c) + 2 * conf_tick();
	assert_int_equal(conf_put(c, &r), 0);
	assert_non_null(conf_get(c, r.key));
	conf_advance(2 * conf_tick());
	assert_null(conf_get(c, r.key));
	r.ix.eligible_at = conf_now(c) + 9 * conf_tick();
	assert_int_equal(conf_put(c, &r), 0);
	assert_non_null(conf_get(c, r.key));
}

/* --- whole or not at all ------------------------------------------------------------------------ */

static void leaves_nothing(struct conf *c, int rc)
{
	struct record old = conf_task(c, "old"), fresh = conf_task(c, "new");
	struct conf_plan p = {
		.put = &fresh, .drop = old.key, .log = STR("x"), .rc = rc, .env = &c->env
	};
	int64_t counts[16];

	assert_int_equal(conf_put(c, &old), 0);
	assert_int_equal(conf_modify(c, conf_follow, &p), rc);
	assert_non_null(conf_get(c, old.key));
	assert_null(conf_get(c, fresh.key));
	assert_int_equal(conf_log_length(c), 0);
	assert_int_equal(c->s->ops->tally(c->s, counts), 0);
	assert_true(counts[1] == 1);
	p.rc = 0;
	assert_int_equal(conf_modify(c, conf_follow, &p), 0);
	assert_null(conf_get(c, old.key));
	assert_non_null(conf_get(c, fresh.key));
	assert_int_equal(conf_log_length(c), 1);
}

static void test_refusal(void **state)
{
	leaves_nothing(*state, 7);
}

static void test_fault(void **state)
{
	struct conf *c = *state;

	leaves_nothing(c, STORE_IO);
	assert_int_equal(c->err.fault, STORE_IO);
	assert_int_equal(c->err.applied, 'n');
}

static void test_several(void **state)
{
	struct conf *c = *state;
	struct str key = STR("meta/x");
	struct record never = conf_task(c, "never");
	struct conf_plan refuse = { .put = &never, .drop = key, .log = STR("no"), .rc = 3 };
	struct change ch[] = {
		{ .fn = conf_append_x, .ctx = &key, .rc = 99 },
		{ .fn = conf_append_x, .ctx = &key, .rc = 99 },
		{ .fn = conf_follow, .ctx = &refuse, .rc = 99 },
		{ .fn = conf_append_x, .ctx = &key, .rc = 99 },
	};

	assert_int_equal(c->s->ops->modify(c->s, ch, 4), 0);
	assert_int_equal(ch[0].rc, 0);
	assert_int_equal(ch[1].rc, 0);
	assert_int_equal(ch[2].rc, 3);
	assert_int_equal(ch[3].rc, 0);
	assert_true(str_is(conf_get(c, key)->hot, "xxx"));
	assert_null(conf_get(c, never.key));
	assert_int_equal(conf_log_length(c), 0);
}

static void test_several_with_fault(void **state)
{
	struct conf *c = *state;
	struct str key = STR("meta/x");
	struct conf_plan ok = { .drop = STR("task/none"), .log = STR("no") };
	struct conf_plan bad = { .rc = STORE_FULL, .env = &c->env };
	struct change ch[] = {
		{ .fn = conf_append_x, .ctx = &key, .rc = 99 },
		{ .fn = conf_follow, .ctx = &ok, .rc = 99 },
		{ .fn = conf_follow, .ctx = &bad, .rc = 99 },
		{ .fn = conf_append_x, .ctx = &key, .rc = 99 },
	};

	assert_int_equal(conf_modify(c, conf_append_x, &key), 0);
	assert_int_equal(c->s->ops->modify(c->s, ch, 4), STORE_FULL);
	assert_int_equal(conf_log_length(c), 0);
	assert_true(str_is(conf_get(c, key)->hot, "x"));
	assert_int_equal(conf_modify(c, conf_append_x, &key), 0);
	assert_true(str_is(conf_get(c, key)->hot, "xx"));
}

/* Collects the ids that a query of the change finds. */
struct finds {
	struct query q;
	struct id_list ids;
};

static int find(struct edit *e, void *ctx)
{
	struct finds *f = ctx;

	return edit_scan(e, &f->q, conf_add_id, &f->ids);
}

static const char *found(struct finds *f)
{
	buf_addc(&f->ids.ids, '\0');
	return f->ids.ids.p;
}

/* A change finds the records as the changes before it left them, and all of their fields are stored. */
static void test_several_scan(void **state)
{
	struct conf *c = *state;
	struct record r[] = { conf_task(c, "a"), conf_task(c, "b"), conf_task(c, "other") };
	struct conf_plan put[] = { { .put = &r[0], .log = STR("{}") },
				   { .put = &r[1] },
				   { .put = &r[2], .log = STR("{}") } };
	struct finds few = { .q = { .statuses = 1 << 3, .limit = 5 },
			     .ids = { &c->a, BUF_MAX(99) } };
	struct finds all = { .q = { .statuses = 1 << 3 }, .ids = { &c->a, BUF_MAX(99) } };
	struct change ch[] = {
		{ .fn = conf_follow, .ctx = &put[0] }, { .fn = conf_follow, .ctx = &put[1] },
		{ .fn = find, .ctx = &few },           { .fn = conf_follow, .ctx = &put[2] },
		{ .fn = find, .ctx = &all },
	};

	assert_int_equal(conf_put_all(c, r, 3), 0);
	for (int i = 0; i < 3; i++) {
		r[i].ix.status = 3;
		r[i].ix.lane = LANE_LATER;
		r[i].ix.priority = 7 + i;
		r[i].ix.class_rank = 1;
		r[i].ix.due = conf_now(c) + 10 * conf_tick();
		r[i].ix.eligible_at = conf_now(c) + 20 * conf_tick();
		r[i].ix.holder = i ? STR("") : STR("me");
		r[i].ix.token = i ? STR("t1") : STR("");
		r[i].hot = i ? STR("hot") : STR("warm");
	}
	assert_int_equal(c->s->ops->modify(c->s, ch, 5), 0);
	assert_string_equal(found(&few), "a b ");
	assert_string_equal(found(&all), "a b other ");
	buf_free(&few.ids.ids);
	buf_free(&all.ids.ids);
	for (int i = 0; i < 3; i++)
		conf_same(&r[i], conf_get(c, r[i].key));
	assert_int_equal(conf_log_length(c), 2);
}

struct bodies {
	struct str key;
	struct buf text;
};

/* Reads the record twice, and changes its own copy. */
static int note_body(struct edit *e, void *ctx)
{
	struct bodies *b = ctx;

	for (int i = 0; i < 2; i++) {
		struct record *r;
		int rc = edit_get(e, b->key, &r);

		if (rc)
			return rc < 0 ? rc : STORE_UNSUPPORTED;
		buf_addf(&b->text, "%.*s/%.*s ", STRF(r->body), STRF(r->ix.labels.v[0]));
		r->body = r->ix.labels.v[0] = STR("spoilt");
	}
	return 7;
}

/* Several changes of one commit read one body: each sees it as the changes before it left it. */
static void test_several_bodies(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "a"), again = r;
	struct conf_plan put = { .put = &again };
	struct bodies b = { r.key, BUF_MAX(999) };
	struct change ch[] = {
		{ .fn = note_body, .ctx = &b },     { .fn = note_body, .ctx = &b },
		{ .fn = conf_follow, .ctx = &put }, { .fn = note_body, .ctx = &b },
		{ .fn = note_body, .ctx = &b },
	};

	r.ix.labels = again.ix.labels = conf_list(c, "l");
	r.body = STR("{\"title\":\"one\"}");
	again.body = STR("{\"title\":\"two\"}");
	r.body_changed = again.body_changed = true;
	assert_int_equal(conf_put(c, &r), 0);
	assert_int_equal(c->s->ops->modify(c->s, ch, 5), 0);
	buf_addc(&b.text, '\0');
	assert_string_equal(b.text.p, "{\"title\":\"one\"}/l {\"title\":\"one\"}/l "
				      "{\"title\":\"one\"}/l {\"title\":\"one\"}/l "
				      "{\"title\":\"two\"}/l {\"title\":\"two\"}/l "
				      "{\"title\":\"two\"}/l {\"title\":\"two\"}/l ");
	buf_free(&b.text);
	assert_true(str_is(conf_get(c, r.key)->body, "{\"title\":\"two\"}"));
}

static void test_nothing_to_do(void **state)
{
	struct conf *c = *state;
	struct conf_plan p = { 0 };

	assert_int_equal(c->s->ops->modify(c->s, NULL, 0), 0);
	assert_int_equal(conf_modify(c, conf_follow, &p), 0);
	p.rc = 5;
	assert_int_equal(conf_modify(c, conf_follow, &p), 5);
}

struct others {
	struct conf *c;
	struct buf keys;
	int scans;
};

static int add_key(const struct record *r, void *ctx)
{
	struct others *o = ctx;

	buf_addf(&o->keys, "%.*s=%.*s/%.*s ", STRF(r->key), STRF(r->hot), STRF(r->body));
	return 0;
}

/* Two looks see the same, no matter what other processes do in between. */
static int look_twice(void *ctx)
{
	struct others *o = ctx;
	struct query q = { .pick = PICK_OTHERS, .body = true };

	for (o->scans = 0; o->scans < 2; o->scans++)
		assert_int_equal(o->c->s->ops->scan(o->c->s, &q, add_key, o), 0);
	assert_non_null(conf_get(o->c, STR("task/t1")));
	return 7;
}

static void test_others(void **state)
{
	struct conf *c = *state;
	struct record t = conf_task(c, "t1"),
		      one = { .key = STR("meta/one"),
			      .hot = STR("h"),
			      .body = STR("b"),
			      .body_changed = true },
		      two = { .key = STR("gone/two"), .hot = STR("2") },
		      going = { .key = STR("request/x"),
				.ix = { .lane = LANE_GOING, .eligible_at = 1 } };
	struct others o = { .c = c, .keys = BUF_MAX(1000) };

	assert_int_equal(conf_put(c, &t), 0);
	assert_int_equal(conf_put(c, &one), 0);
	assert_int_equal(conf_put(c, &two), 0);
	assert_int_equal(conf_put(c, &going), 0);
	assert_int_equal(c->s->ops->snapshot(c->s, true, look_twice, &o), 7);
	if (strcmp(o.keys.p, "meta/one=h/b gone/two=2/ meta/one=h/b gone/two=2/ ") != 0)
		assert_string_equal(o.keys.p, "gone/two=2/ meta/one=h/b gone/two=2/ meta/one=h/b ");
	buf_free(&o.keys);
}

/* A trial answers as the change would, and nothing of it stays. */
static void test_trial(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "kept"), other = conf_task(c, "new");
	struct conf_plan puts = { .put = &other, .log = STR("{}"), .env = &c->env },
			 refuses = { .put = &other, .rc = 7, .env = &c->env },
			 fails = { .put = &other, .rc = STORE_UNSUPPORTED, .env = &c->env };
	struct change both[] = { { .fn = conf_follow, .ctx = &puts },
				 { .fn = conf_follow, .ctx = &refuses } };
	int log;

	assert_int_equal(conf_put(c, &r), 0);
	log = conf_log_length(c);
	store_trial(c->s, true);
	assert_int_equal(conf_modify(c, conf_append_x, &r.key), 0);
	assert_int_equal(conf_drop(c, r.key), 0);
	assert_int_equal(c->s->ops->modify(c->s, both, 2), 0);
	assert_int_equal(both[0].rc, 0);
	assert_int_equal(both[1].rc, 7);
	assert_int_equal(conf_modify(c, conf_follow, &fails), STORE_UNSUPPORTED);
	store_trial(c->s, false);
	conf_same(&r, conf_get(c, r.key));
	assert_null(conf_get(c, other.key));
	assert_int_equal(conf_log_length(c), log);
	conf_reopen(c);
	conf_same(&r, conf_get(c, r.key));
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "kept ");
	assert_int_equal(conf_put(c, &other), 0);
	assert_string_equal(conf_scan(c, &(struct query){ 0 }), "kept new ");
}

int conf_records(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST(test_absent),         CONF_TEST(test_every_field),
		CONF_TEST(test_bare_record),    CONF_TEST(test_binary_hot),
		CONF_TEST(test_large_body),     CONF_TEST(test_long_lists),
		CONF_TEST(test_long_key),       CONF_TEST(test_keys_are_bytes),
		CONF_TEST(test_body_kept),      CONF_TEST(test_scan_body),
		CONF_TEST(test_rev_grows),      CONF_TEST(test_drop),
		CONF_TEST(test_drop_then_put),  CONF_TEST(test_going),
		CONF_TEST(test_refusal),        CONF_TEST(test_fault),
		CONF_TEST(test_several),        CONF_TEST(test_several_with_fault),
		CONF_TEST(test_nothing_to_do),  CONF_TEST(test_others),
		CONF_TEST(test_trial),          CONF_TEST(test_several_scan),
		CONF_TEST(test_several_bodies),
	};

	return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
