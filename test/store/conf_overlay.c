/* An edit reads its own write-set on top of the store's records. */
#include "conf.h"

/* Runs checks inside a change. cmocka's asserts jump out, which no store could survive. So an edit
 * records what it saw, and the test checks it afterwards. */
struct seen {
	struct conf *c;
	struct buf text;
	struct record *put[4];
	struct str drop;
	struct query q;
	int (*then)(struct edit *e, struct seen *s);
};

static int scan_ids(struct edit *e, struct seen *s, const struct query *q)
{
	struct id_list l = { .ids = BUF_MAX(1 << 16) };
	int rc = edit_scan(e, q, conf_add_id, &l);

	buf_adds(&s->text, buf_str(&l.ids));
	buf_addf(&s->text, "| ");
	buf_free(&l.ids);
	return rc;
}

static int first_id(struct edit *e, struct seen *s, const struct query *q)
{
	struct record *r;
	int rc = edit_first(e, q, &r);

	if (rc == 0)
		buf_adds(&s->text, r->ix.id);
	else
		buf_addf(&s->text, "%s", rc == 1 && !r ? "none" : "FAULT");
	buf_addf(&s->text, " ");
	return rc < 0 ? rc : 0;
}

/* Puts, drops, scans by s->q, takes its first. */
static int look(struct edit *e, void *ctx)
{
	struct seen *s = ctx;
	int rc;

	s->text.n = 0;
	for (int i = 0; i < 4; i++)
		if (s->put[i])
			edit_put(e, s->put[i]);
	if (s->drop.n)
		edit_drop(e, s->drop);
	rc = s->then ? s->then(e, s) : 0;
	if (rc == 0)
		rc = scan_ids(e, s, &s->q);
	if (rc == 0)
		rc = first_id(e, s, &s->q);
	return rc;
}

/* The edit must have seen what a reader sees after the commit. */
static void check_look(struct conf *c, struct seen *s, const char *want)
{
	const char *got;

	s->c = c;
	s->text = BUF_MAX(1 << 16);
	assert_int_equal(conf_modify(c, look, s), 0);
	got = arena_cstr(&c->a, buf_str(&s->text));
	buf_free(&s->text);
	assert_string_equal(got, want);
	got = conf_scan(c, &s->q);
	assert_non_null(strstr(want, got));
}

static void put_tasks(struct conf *c, const char *ids)
{
	struct strs list = conf_list(c, ids);

	for (size_t i = 0; i < list.n; i++) {
		struct record r = conf_task(c, arena_cstr(&c->a, list.v[i]));

		r.ix.created_at = r.ix.updated_at = 1000 + (int64_t)i * 10;
		assert_int_equal(conf_put(c, &r), 0);
	}
}

static struct record task_at(struct conf *c, const char *id, int64_t when)
{
	struct record r = conf_task(c, id);

	r.ix.created_at = r.ix.updated_at = when;
	return r;
}

static void test_own_put(void **state)
{
	struct conf *c = *state;
	struct record first, mid, last, moved;
	struct seen s = { .q = { .pick = PICK_ELIGIBLE } };

	put_tasks(c, "a b c");
	first = task_at(c, "z", 1);
	mid = task_at(c, "y", 1015);
	last = task_at(c, "x", 2000);
	moved = task_at(c, "a", 1017);
	s.put[0] = &last;
	s.put[1] = &first;
	s.put[2] = &mid;
	s.put[3] = &moved;
	check_look(c, &s, "z b y a c x | z ");
}

static void test_own_drop(void **state)
{
	struct conf *c = *state;
	struct seen s = { .q = { .pick = PICK_ELIGIBLE } };

	put_tasks(c, "a b c");
	s.drop = conf_key(c, "a");
	check_look(c, &s, "b c | b ");
}

static void test_all_dropped(void **state)
{
	struct conf *c = *state;
	struct seen s = { .q = { .pick = PICK_ELIGIBLE } };

	put_tasks(c, "a");
	s.drop = conf_key(c, "a");
	check_look(c, &s, "| none ");
}

/* Closing the last dependency makes the dependent task eligible, in the same edit. */
static void test_own_made_eligible(void **state)
{
	struct conf *c = *state;
	struct record blocked, off;
	struct seen s = { .q = { .pick = PICK_ELIGIBLE } };

	put_tasks(c, "a b");
	blocked = task_at(c, "blocked", 500);
	blocked.ix.lane = LANE_WAITING;
	assert_int_equal(conf_put(c, &blocked), 0);
	assert_string_equal(conf_scan(c, &s.q), "a b ");
	blocked.ix.lane = LANE_READY;
	off = task_at(c, "a", 1000);
	off.ix.lane = LANE_NONE;
	s.put[0] = &blocked;
	s.put[1] = &off;
	check_look(c, &s, "blocked b | blocked ");
}

static void test_limit(void **state)
{
	struct conf *c = *state;
	struct record a, b;
	struct seen s = { .q = { .limit = 2 } };

	put_tasks(c, "a b c d e");
	a = task_at(c, "a", 9000);
	b = task_at(c, "b", 9001);
	s.put[0] = &a;
	s.put[1] = &b;
	check_look(c, &s, "c d | c ");
}

static void test_after(void **state)
{
	struct conf *c = *state;
	struct record mid, moved;
	struct seen s = { .q = { .after = STR("task/b") } };

	put_tasks(c, "a b c d");
	mid = task_at(c, "m", 1025);
	s.put[0] = &mid;
	check_look(c, &s, "c m d | c ");
	moved = task_at(c, "b", 1027); /* the anchor itself moves */
	s.put[1] = &moved;
	check_look(c, &s, "d | d ");
	moved.ix.created_at = 1; /* and back, before all others */
	check_look(c, &s, "a c m d | a ");
	s.q.after = STR("task/none");
	check_look(c, &s, "| none ");
}

static void test_filters(void **state)
{
	struct conf *c = *state;
	struct record red, blue;
	struct seen s = { .q = { .label = STR("red"), .held = true } };

	put_tasks(c, "a b");
	red = task_at(c, "a", 1000);
	red.ix.labels = conf_list(c, "blue red");
	red.ix.holder = STR("agent-1");
	blue = task_at(c, "b", 1010);
	blue.ix.labels = conf_list(c, "blue");
	blue.ix.holder = STR("agent-1");
	s.put[0] = &red;
	s.put[1] = &blue;
	check_look(c, &s, "a | a ");
}

/* --- get ---------------------------------------------------------------------------------------- */

static int get_all(struct edit *e, struct seen *s)
{
	static const char *const keys[] = { "task/a", "task/b", "task/n", "task/none" };

	for (int i = 0; i < 4; i++) {
		struct record *r;
		int rc = edit_get(e, str_c(keys[i]), &r);

		if (rc == 0)
			buf_addf(&s->text, "%.*s/%.*s%s ", STRF(r->hot), STRF(r->body),
				 r->body_changed ? "!" : "");
		else
			buf_addf(&s->text, "%d ", rc);
	}
	return 0;
}

static void test_get(void **state)
{
	struct conf *c = *state;
	struct record a, n;
	struct seen s = { .then = get_all, .q = { .limit = 1 } };

	put_tasks(c, "a b");
	a = task_at(c, "a", 1000);
	a.hot = STR("HOT");
	a.body_changed = false;
	a.body = (struct str){ 0 }; /* as a scan reads it: the body is still the stored one */
	n = task_at(c, "n", 2000);
	n.body = STR("{}");
	s.put[0] = &a;
	s.put[1] = &n;
	s.drop = STR("task/b");
	check_look(c, &s, "HOT/{\"title\":\"t\"} 1 hot/{} 1 a | a ");
}

/* The copy may be changed freely; only a put counts, and the body of an earlier put stays. */
static int change_copy(struct edit *e, struct seen *s)
{
	struct record *r, *again;
	int rc = edit_get(e, STR("task/a"), &r);

	if (rc)
		return -99;
	r->hot = STR("changed");
	r->ix.labels.v[0] = STR("scribble");
	rc = edit_get(e, STR("task/a"), &again);
	if (rc)
		return -99;
	buf_addf(&s->text, "%.*s %.*s ", STRF(again->hot), STRF(again->ix.labels.v[0]));
	again->hot = STR("2nd");
	again->body = (struct str){ 0 };
	edit_put(e, again);
	again->hot = STR("too late");
	rc = edit_get(e, STR("task/a"), &r);
	buf_addf(&s->text, "%.*s %.*s ", STRF(r->hot), STRF(r->body));
	return rc;
}

static void test_copies(void **state)
{
	struct conf *c = *state;
	struct record a = task_at(c, "a", 1);
	struct seen s = { .then = change_copy, .q = { .limit = 1 } };

	a.ix.labels = conf_list(c, "red");
	assert_int_equal(conf_put(c, &a), 0);
	a.body = STR("{\"v\":2}");
	s.put[0] = &a;
	check_look(c, &s, "hot red 2nd {\"v\":2} a | a ");
	assert_true(str_is(conf_get(c, a.key)->hot, "2nd"));
	assert_true(str_is(conf_get(c, a.key)->body, "{\"v\":2}"));
}

static int put_gone(struct edit *e, struct seen *s)
{
	struct record *r = arena_new(e->arena, struct record), *got;
	int rc;

	r->key = STR("request/x");
	r->ix.lane = LANE_GOING;
	r->ix.eligible_at = e->now;
	edit_put(e, r);
	rc = edit_get(e, r->key, &got);
	buf_addf(&s->text, "%d ", rc);
	r->ix.eligible_at = e->now + 60000;
	edit_put(e, r);
	rc = edit_get(e, r->key, &got);
	buf_addf(&s->text, "%d ", rc);
	return 0;
}

static void test_own_going(void **state)
{
	struct seen s = { .then = put_gone };

	check_look(*state, &s, "1 0 | none ");
}

/* --- changing while scanning -------------------------------------------------------------------- */

struct sweep {
	struct edit *e;
	struct seen *s;
};

static int touch_all(const struct record *r, void *ctx)
{
	struct sweep *w = ctx;
	struct record *next;

	buf_addf(&w->s->text, "%.*s ", STRF(r->ix.id));
	if (str_is(r->ix.id, "a")) {
		edit_drop(w->e, STR("task/b"));
		if (edit_get(w->e, STR("task/c"), &next) == 0) {
			next->ix.lane = LANE_NONE;
			edit_put(w->e, next);
		}
	}
	return 0;
}

static int scan_and_change(struct edit *e, struct seen *s)
{
	int rc = edit_scan(e, &s->q, touch_all, &(struct sweep){ e, s });

	buf_addf(&s->text, "| ");
	return rc;
}

static void test_change_in_scan(void **state)
{
	struct conf *c = *state;
	struct seen s = { .then = scan_and_change, .q = { .pick = PICK_ELIGIBLE } };

	put_tasks(c, "a b c d");
	s.c = c;
	s.text = BUF_MAX(1 << 16);
	assert_int_equal(conf_modify(c, look, &s), 0);
	buf_addc(&s.text, '\0');
	assert_string_equal(s.text.p, "a b c d | a d | a ");
	buf_free(&s.text);
	assert_string_equal(conf_scan(c, &s.q), "a d ");
}

static int stop_early(const struct record *r, void *ctx)
{
	(void)r;
	return ++*(int *)ctx == 2 ? 1 : 0;
}

static int stop_fault(const struct record *r, void *ctx)
{
	(void)r;
	++*(int *)ctx;
	return STORE_CORRUPT;
}

static int scan_stops(struct edit *e, struct seen *s)
{
	int n = 0, rc = edit_scan(e, &s->q, stop_early, &n);

	buf_addf(&s->text, "%d %d ", rc, n);
	n = 0;
	rc = edit_scan(e, &s->q, stop_fault, &n);
	buf_addf(&s->text, "%d %d ", rc, n);
	return 0;
}

static void test_stop(void **state)
{
	struct conf *c = *state;
	struct record n;
	struct seen s = { .then = scan_stops };
	int seen = 0;

	put_tasks(c, "a b c d");
	n = task_at(c, "n", 1);
	s.put[0] = &n;
	check_look(c, &s, "0 2 -9 1 n a b c d | n ");
	assert_int_equal(c->s->ops->scan(c->s, &s.q, stop_early, &seen), 0);
	assert_int_equal(seen, 2);
	seen = 0;
	assert_int_equal(c->s->ops->scan(c->s, &s.q, stop_fault, &seen), STORE_CORRUPT);
	assert_int_equal(seen, 1);
}

/* Reads one record while scanning others. */
static int get_other(const struct record *r, void *ctx)
{
	struct sweep *w = ctx;
	struct record *other;
	struct query q = { .pick = PICK_ELIGIBLE };
	int rc = edit_get(w->e, STR("task/a"), &other);

	if (rc == 0)
		rc = edit_first(w->e, &q, &other);
	if (rc == 0)
		buf_addf(&w->s->text, "%.*s%.*s ", STRF(r->ix.id), STRF(other->ix.id));
	return rc ? -99 : 0;
}

static int nested(struct edit *e, struct seen *s)
{
	return edit_scan(e, &s->q, get_other, &(struct sweep){ e, s });
}

static void test_nested_reads(void **state)
{
	struct conf *c = *state;
	struct seen s = { .then = nested, .q = { .pick = PICK_ELIGIBLE } };

	put_tasks(c, "a b c");
	check_look(c, &s, "aa ba ca a b c | a ");
}

int conf_overlay(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST(test_own_put),        CONF_TEST(test_own_drop),
		CONF_TEST(test_all_dropped),    CONF_TEST(test_own_made_eligible),
		CONF_TEST(test_limit),          CONF_TEST(test_after),
		CONF_TEST(test_filters),        CONF_TEST(test_get),
		CONF_TEST(test_copies),         CONF_TEST(test_own_going),
		CONF_TEST(test_change_in_scan), CONF_TEST(test_stop),
		CONF_TEST(test_nested_reads),
	};

	return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
