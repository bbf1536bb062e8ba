/* The event log: invariant 6. */
#include "conf.h"

struct seen {
	struct conf *c;
	struct buf text;
	struct str cursor[64];
	size_t n;
	int stop; /* > 0: stops after that many entries; < 0: fails */
};

static int note(const struct entry *e, void *ctx)
{
	struct seen *s = ctx;

	buf_addf(&s->text, "%.*s=%.*s ", STRF(e->key), STRF(e->data));
	assert_true(e->cursor.n > 0);
	assert_true(e->at > 0);
	if (s->n < 64)
		s->cursor[s->n] = arena_str(&s->c->a, e->cursor);
	s->n++;
	if (s->stop < 0)
		return s->stop;
	return s->stop && s->n == (size_t)s->stop;
}

static const char *entries(struct conf *c, const struct entry_query *q, struct seen *out)
{
	struct seen own = { 0 }, *s = out ? out : &own;
	const char *text;
	int rc;

	s->c = c;
	s->n = 0;
	s->text = BUF_MAX(1 << 20);
	rc = c->s->ops->entries(c->s, q, note, s);
	text = arena_cstr(&c->a, buf_str(&s->text));
	buf_free(&s->text);
	if (rc)
		fail_msg("entries: %d %s", rc, c->err.text);
	return text;
}

static int log_words(struct edit *e, void *ctx)
{
	struct str rest = str_c(ctx);

	while (rest.n) {
		struct str data = str_cut(&rest, ' '), key = str_cut(&data, '=');

		edit_log(e, key, data);
	}
	return 0;
}

static void append(struct conf *c, const char *words)
{
	assert_int_equal(conf_modify(c, log_words, (void *)(uintptr_t)words), 0);
}

static void test_order(void **state)
{
	struct conf *c = *state;

	assert_string_equal(entries(c, &(struct entry_query){ 0 }, NULL), "");
	append(c, "a=1 b=2 a=3");
	append(c, "c=4");
	append(c, "=5 a=6");
	assert_string_equal(entries(c, &(struct entry_query){ 0 }, NULL),
			    "a=1 b=2 a=3 c=4 =5 a=6 ");
	assert_string_equal(entries(c, &(struct entry_query){ .key = STR("a") }, NULL),
			    "a=1 a=3 a=6 ");
	assert_string_equal(entries(c, &(struct entry_query){ .key = STR("x") }, NULL), "");
}

static void test_after(void **state)
{
	struct conf *c = *state;
	struct seen s = { 0 };
	struct entry_query q = { 0 };

	append(c, "a=1 b=2 a=3 b=4");
	entries(c, &q, &s);
	assert_int_equal(s.n, 4);
	q.after = s.cursor[1];
	assert_string_equal(entries(c, &q, NULL), "a=3 b=4 ");
	q.key = STR("b");
	assert_string_equal(entries(c, &q, NULL), "b=4 ");
	q.key = (struct str){ 0 };
	q.after = s.cursor[3];
	assert_string_equal(entries(c, &q, NULL), "");
	append(c, "c=5");
	assert_string_equal(entries(c, &q, NULL), "c=5 ");
	conf_reopen(c);
	assert_string_equal(entries(c, &q, NULL), "c=5 ");
}

static void test_last(void **state)
{
	struct conf *c = *state;
	struct seen s = { 0 };
	struct entry_query q = { .last = 2 };

	append(c, "a=1 b=2 a=3 b=4 a=5");
	assert_string_equal(entries(c, &q, &s), "b=4 a=5 ");
	q.last = 99;
	assert_string_equal(entries(c, &q, &s), "a=1 b=2 a=3 b=4 a=5 ");
	q.last = 2;
	q.key = STR("a");
	assert_string_equal(entries(c, &q, NULL), "a=3 a=5 ");
	q.last = 3;
	assert_string_equal(entries(c, &q, NULL), "a=1 a=3 a=5 ");
	q.last = SIZE_MAX;
	assert_string_equal(entries(c, &q, NULL), "a=1 a=3 a=5 ");
	q.last = 2;
	q.after = s.cursor[2];
	assert_string_equal(entries(c, &q, NULL), "a=5 ");
}

static bool is_odd(const struct entry *e, void *ctx)
{
	(void)ctx;
	return (e->data.p[0] - '0') % 2;
}

/* The newest N entries that count, and all that follow the oldest of them. */
static void test_last_that_count(void **state)
{
	struct conf *c = *state;
	struct entry_query q = { .last = 2, .counts = is_odd };
	struct buf many = BUF_MAX(1000);
	struct seen s = { 0 };
	int64_t later;

	append(c, "a=1 b=3 a=2 b=5 b=6 a=7 a=8");
	assert_string_equal(entries(c, &q, &s), "b=5 b=6 a=7 a=8 ");
	q.key = STR("a");
	assert_string_equal(entries(c, &q, NULL), "a=1 a=2 a=7 a=8 ");
	q.key = STR("");
	q.after = s.cursor[0];
	assert_string_equal(entries(c, &q, NULL), "b=6 a=7 a=8 ");
	q = (struct entry_query){ .last = 4, .counts = is_odd };
	assert_string_equal(entries(c, &q, NULL), "a=1 b=3 a=2 b=5 b=6 a=7 a=8 ");
	conf_advance(conf_tick());
	later = conf_now(c);
	for (int i = 0; i < 120; i++)
		buf_addf(&many, i ? "c=4 " : "c=9 ");
	append(c, arena_cstr(&c->a, buf_str(&many)));
	buf_free(&many);
	q = (struct entry_query){ .last = 1, .counts = is_odd, .until = later };
	assert_string_equal(entries(c, &q, NULL), "a=7 a=8 ");
	q = (struct entry_query){ .last = 3, .counts = is_odd, .since = later };
	entries(c, &q, &s);
	assert_int_equal(s.n, 120);
}

/* Following page by page: no gaps, no repeats. */
static void test_follow(void **state)
{
	struct conf *c = *state;
	struct seen s = { .stop = 3 };
	struct entry_query q = { 0 };
	struct buf all = BUF_MAX(1 << 16);
	const char *page;

	for (int i = 0; i < 10; i++)
		append(c, "a=x b=y");
	for (int i = 0; i < 20; i++) {
		page = entries(c, &q, &s);
		if (!s.n)
			break;
		buf_adds(&all, str_c(page));
		q.after = s.cursor[s.n - 1];
	}
	buf_addc(&all, '\0');
	s.stop = 0;
	assert_string_equal(all.p, entries(c, &(struct entry_query){ 0 }, &s));
	assert_int_equal(s.n, 20);
	buf_free(&all);
}

static void test_stop(void **state)
{
	struct conf *c = *state;
	struct seen s = { .c = c, .stop = STORE_CORRUPT, .text = BUF_MAX(1000) };

	append(c, "a=1 b=2");
	assert_int_equal(c->s->ops->entries(c->s, &(struct entry_query){ 0 }, note, &s),
			 STORE_CORRUPT);
	assert_int_equal(s.n, 1);
	buf_free(&s.text);
}

static int note_bytes(const struct entry *e, void *ctx)
{
	struct str *want = ctx;

	assert_true(str_eq(e->data, *want));
	want->n = 0;
	return 0;
}

static int log_bytes(struct edit *e, void *ctx)
{
	edit_log(e, STR("task/t1"), *(struct str *)ctx);
	return 0;
}

static void test_binary(void **state)
{
	struct conf *c = *state;
	size_t n = 70000;
	char *p = arena_alloc(&c->a, n);
	struct str data = str_n(p, n);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)i;
	assert_int_equal(conf_modify(c, log_bytes, &data), 0);
	assert_int_equal(c->s->ops->entries(c->s, &(struct entry_query){ 0 }, note_bytes, &data),
			 0);
	assert_int_equal(data.n, 0);
}

static int note_at(const struct entry *e, void *ctx)
{
	*(int64_t *)ctx = e->at;
	return 0;
}

static void test_time(void **state)
{
	struct conf *c = *state;
	int64_t before = conf_now(c), at = 0;

	append(c, "a=1");
	assert_int_equal(c->s->ops->entries(c->s, &(struct entry_query){ 0 }, note_at, &at), 0);
	assert_true(at >= before && at <= conf_now(c));
}

static int log_old(struct edit *e, void *ctx)
{
	edit_log_at(e, *(int64_t *)ctx, STR("a"), STR("old"));
	return 0;
}

static void test_since(void **state)
{
	struct conf *c = *state;
	struct entry_query q = { 0 };
	struct seen s = { 0 };
	int64_t first = conf_now(c), second, third;

	append(c, "a=1 b=2");
	conf_advance(conf_tick());
	second = conf_now(c);
	append(c, "a=3");
	conf_advance(conf_tick());
	third = conf_now(c);
	append(c, "b=4 a=5");
	q.since = second;
	assert_string_equal(entries(c, &q, &s), "a=3 b=4 a=5 ");
	q.last = 2;
	assert_string_equal(entries(c, &q, NULL), "b=4 a=5 ");
	q.last = 0;
	q.key = STR("a");
	assert_string_equal(entries(c, &q, NULL), "a=3 a=5 ");
	q.until = third;
	q.last = 1;
	assert_string_equal(entries(c, &q, NULL), "a=3 ");
	q.last = 0;
	assert_string_equal(entries(c, &q, NULL), "a=3 ");
	q.key = STR("");
	q.after = s.cursor[0];
	assert_string_equal(entries(c, &q, NULL), "");
	q.until = 0;
	assert_string_equal(entries(c, &q, NULL), "b=4 a=5 ");
	q = (struct entry_query){ .until = second };
	assert_string_equal(entries(c, &q, NULL), "a=1 b=2 ");
	q = (struct entry_query){ .since = conf_now(c) + 3600000 };
	assert_string_equal(entries(c, &q, NULL), "");
	assert_int_equal(conf_modify(c, log_old, &first), 0);
	q = (struct entry_query){ .since = third, .unordered = true };
	assert_string_equal(entries(c, &q, NULL), "b=4 a=5 ");
}

static int log_and_forget(struct edit *e, void *ctx)
{
	edit_forget(e, *(int64_t *)ctx, 0);
	edit_log(e, STR("c"), STR("cut"));
	return 0;
}

/* A store may keep what is to be forgotten. What is newer stays, and so does every cursor. */
static void test_forget(void **state)
{
	struct conf *c = *state;
	struct entry_query q = { 0 };
	struct seen s = { 0 };
	int64_t before;
	const char *all;

	append(c, "a=1 b=2");
	conf_advance(conf_tick());
	before = conf_now(c);
	append(c, "a=3");
	entries(c, &q, &s);
	assert_int_equal(conf_modify(c, log_and_forget, &before), 0);
	conf_reopen(c);
	all = entries(c, &q, NULL);
	if (strcmp(all, "a=3 c=cut ") != 0)
		assert_string_equal(all, "a=1 b=2 a=3 c=cut ");
	for (size_t i = 1; i < 3; i++) {
		q.after = s.cursor[i];
		assert_string_equal(entries(c, &q, NULL), i == 1 ? "a=3 c=cut " : "c=cut ");
	}
	append(c, "a=4");
	assert_string_equal(entries(c, &q, NULL), "c=cut a=4 ");
}

static int log_and_refuse(struct edit *e, void *ctx)
{
	(void)ctx;
	edit_log(e, STR("a"), STR("no"));
	return 4;
}

static void test_atomic(void **state)
{
	struct conf *c = *state;
	struct change ch[] = {
		{ .fn = log_words, .ctx = "a=1", .rc = 99 },
		{ .fn = log_and_refuse, .ctx = NULL, .rc = 99 },
		{ .fn = log_words, .ctx = "a=2", .rc = 99 },
	};

	assert_int_equal(c->s->ops->modify(c->s, ch, 3), 0);
	assert_int_equal(ch[1].rc, 4);
	assert_string_equal(entries(c, &(struct entry_query){ 0 }, NULL), "a=1 a=2 ");
}

static int add_data(const struct entry *e, void *ctx)
{
	buf_addf(ctx, "%.*s ", STRF(e->data));
	return 0;
}

static const char *inside(struct edit *e, const char *key, size_t last)
{
	struct entry_query q = { .key = str_c(key), .last = last };
	struct buf b = BUF_MAX(1000);
	const char *text;

	assert_int_equal(edit_entries(e, &q, add_data, &b), 0);
	text = arena_cstr(e->arena, buf_str(&b));
	buf_free(&b);
	return text;
}

static int read_inside(struct edit *e, void *ctx)
{
	(void)ctx;
	edit_log(e, STR("a"), STR("6"));
	edit_log(e, STR("b"), STR("7"));
	assert_string_equal(inside(e, "a", 0), "1 3 4 6 ");
	assert_string_equal(inside(e, "a", 1), "6 ");
	assert_string_equal(inside(e, "a", 2), "4 6 ");
	assert_string_equal(inside(e, "a", 3), "3 4 6 ");
	assert_string_equal(inside(e, "a", 9), "1 3 4 6 ");
	assert_string_equal(inside(e, "b", 0), "2 5 7 ");
	assert_string_equal(inside(e, "c", 0), "");
	return 0;
}

/* An edit sees the entries of the edits before it, though nothing is committed yet. */
static void test_inside(void **state)
{
	struct conf *c = *state;
	struct change ch[] = {
		{ .fn = log_words, .ctx = "a=4 b=5" },
		{ .fn = log_and_refuse },
		{ .fn = read_inside },
	};

	append(c, "a=1 b=2 a=3");
	assert_int_equal(c->s->ops->modify(c->s, ch, 3), 0);
	assert_string_equal(entries(c, &(struct entry_query){ .key = STR("a") }, NULL),
			    "a=1 a=3 a=4 a=6 ");
}

int conf_log(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST(test_order),           CONF_TEST(test_after),  CONF_TEST(test_last),
		CONF_TEST(test_last_that_count), CONF_TEST(test_follow), CONF_TEST(test_stop),
		CONF_TEST(test_binary),          CONF_TEST(test_time),   CONF_TEST(test_since),
		CONF_TEST(test_forget),          CONF_TEST(test_atomic), CONF_TEST(test_inside),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
