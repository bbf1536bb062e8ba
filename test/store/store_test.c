/* Code that all stores share: URIs, the registry, the overlay's size; and the rules of mem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "store/mem/mem.h"
#include "store/store.h"

static struct store_error err;
static int64_t clock_ms = 1000;

static int64_t fake_clock(void)
{
	return clock_ms;
}

static struct store_env make_env(void)
{
	return (struct store_env){
		.mode = STORE_CREATE, .opt.timeout_ms = 100, .opt.who = STR("tester"), .err = &err
	};
}

static struct store *open_uri(const char *uri, const struct store_env *env)
{
	struct store *s = NULL;
	int rc = store_open(&s, str_c(uri), env);

	if (rc)
		fail_msg("%s: %d %s", uri, rc, err.text);
	return s;
}

/* --- URIs --------------------------------------------------------------------------------------- */

static void test_uri_shown(void **state)
{
	static const char *const cases[][2] = {
		{ "git:https://ann:secret@host:8/q.git?x=b", "git:https://host:8/q.git?x=b" },
		{ "git:https://key@host/q", "git:https://host/q" },
		{ "http://a:b@c@host", "http://host" },
		{ "ssh://git@host/q", "ssh://git@host/q" },
		{ "ssh://git:secret@host/q", "ssh://git@host/q" },
		{ "ssh://:secret@host", "ssh://host" },
		{ "git:me@host:q", "git:me@host:q" },
		{ "file:///srv/a@b", "file:///srv/a@b" },
		{ "sqlite:a.db", "sqlite:a.db" },
		{ "postgres://u:secret@h1,h2:5433/db?sslmode=require&queue=x",
		  "postgres://u@h1,h2:5433/db?sslmode=require&queue=x" },
		{ "postgres://u@h/db", "postgres://u@h/db" },
		{ "postgresql:///db?host=/run&password=secret&queue=x",
		  "postgresql:///db?host=/run&queue=x" },
		{ "postgres://h/db?password=se@cret", "postgres://…" },
		{ "postgres://h:5432/db?sslpassword=secret&queue=a",
		  "postgres://h:5432/db?queue=a" },
		{ "postgres://u:sec/ret@h/db", "postgres://…" },
		{ "postgres://u:sec?ret@h/db", "postgres://…" },
		{ "fault+postgres://u:secret@h/db", "fault+postgres://u@h/db" },
		{ "", "" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(arena_cstr(&a, uri_shown(&a, str_c(cases[i][0]))), cases[i][1]);
	arena_free(&a);
}

static void test_uri(void **state)
{
	static const struct {
		const char *text, *scheme, *path, *params, *fragment;
	} cases[] = {
		{ "mem:", "mem", "", "", "" },
		{ "sqlite:/a/q.db", "sqlite", "/a/q.db", "", "" },
		{ "sqlite:a b?queue=x&y=1", "sqlite", "a b", "queue=x&y=1", "" },
		{ "sqlite:/c#/what?/q.db", "sqlite", "/c#/what?/q.db", "", "" },
		{ "sqlite:/a?b=c/q.db", "sqlite", "/a?b=c/q.db", "", "" },
		{ "files:/a#b?queue=x", "files", "/a#b", "queue=x", "" },
		{ "sqlite:a?b", "sqlite", "a?b", "", "" },
		{ "git:origin#branch", "git", "origin", "", "branch" },
		{ "git:origin?queue=x#branch", "git", "origin", "queue=x", "branch" },
		{ "git:origin#branch?queue=x", "git", "origin", "queue=x", "branch" },
		{ "postgres://u:p@h:5432/db?x=1", "postgres", "//u:p@h:5432/db", "x=1", "" },
		{ "fault+mem:x", "fault+mem", "x", "", "" },
		{ "mem:?", "mem", "", "", "" },
		{ "mem:a#b#c", "mem", "a", "", "b#c" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct uri u;

		assert_int_equal(uri_parse(str_c(cases[i].text), &u), 0);
		assert_true(str_is(u.text, cases[i].text));
		assert_true(str_is(u.scheme, cases[i].scheme));
		assert_true(str_is(u.path, cases[i].path));
		assert_true(str_is(u.params, cases[i].params));
		assert_true(str_is(u.fragment, cases[i].fragment));
	}
}

static void test_no_uri(void **state)
{
	static const char *const bad[] = { "",       ":",    ":x",    "queue.db",
					   "/a/b:c", "1a:x", "a b:x", "\xc3\xbc:x" };
	struct uri u;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(uri_parse(str_c(bad[i]), &u), -1);
	assert_int_equal(uri_parse((struct str){ 0 }, &u), -1);
}

static void test_params(void **state)
{
	struct uri u;

	(void)state;
	assert_int_equal(uri_parse(STR("mem:?a=1&bb=2=3&c&d="), &u), 0);
	assert_true(str_is(uri_param(&u, "a"), "1"));
	assert_true(str_is(uri_param(&u, "bb"), "2=3"));
	assert_int_equal(uri_param(&u, "b").n, 0);
	assert_int_equal(uri_param(&u, "c").n, 0);
	assert_int_equal(uri_param(&u, "d").n, 0);
}

/* --- the registry ------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
	struct store_env env = make_env();
	struct store *s;

	(void)state;
	assert_int_equal(store_open(&s, STR("queue.db"), &env), STORE_UNSUPPORTED);
	assert_null(s);
	assert_int_equal(err.applied, 'n');
	assert_non_null(strstr(err.text, "the stores are sqlite:, mem:, files:, git:"));
	assert_int_equal(store_open(&s, STR("sqlit:queue.db"), &env), STORE_UNSUPPORTED);
	assert_string_equal(err.hint, "did you mean sqlite:?");
	assert_int_equal(store_open(&s, STR("SQLITE:queue.db"), &env), STORE_UNSUPPORTED);
	assert_int_equal(store_open(&s, STR("../../evil:x"), &env), STORE_UNSUPPORTED);
	assert_int_equal(store_open(&s, (struct str){ 0 }, &env), STORE_UNSUPPORTED);
	assert_int_equal(store_open(&s, STR("qqq:user:secret@x"), &env), STORE_UNSUPPORTED);
	assert_null(strstr(err.text, "secret"));
}

static void test_queue_param(void **state)
{
	struct store_env env = make_env();
	struct store *s = open_uri("mem:p?queue=one", &env);

	(void)state;
	assert_true(str_is(s->env.opt.queue, "one"));
	store_close(s);
	env.opt.queue = STR("two");
	s = open_uri("mem:p?queue=one", &env);
	assert_true(str_is(s->env.opt.queue, "two"));
	store_close(s);
	mem_reset();
	store_close(NULL);
}

/* --- the overlay -------------------------------------------------------------------------------- */

#define MANY 20000

static int put_many(struct edit *e, void *ctx)
{
	struct record *r;
	int64_t *found = ctx;

	for (int i = 0; i < MANY; i++) {
		r = arena_new(e->arena, struct record);
		r->key = arena_printf(e->arena, "task/t%d", i);
		r->ix.status = 1;
		r->ix.created_at = MANY - i;
		edit_put(e, r);
	}
	for (int i = 0; i < MANY; i++) {
		struct str key = arena_printf(e->arena, "task/t%d", i * 2);

		*found += edit_get(e, key, &r) == 0;
	}
	return 0;
}

/* An import: its time must be linear in the number of records, not quadratic. */
static void test_import(void **state)
{
	struct store_env env = make_env();
	struct store *s = open_uri("mem:", &env);
	int64_t found = 0, n;
	struct change ch = { .fn = put_many, .ctx = &found };
	clock_t began = clock();

	(void)state;
	assert_int_equal(s->ops->modify(s, &ch, 1), 0);
	assert_int_equal(found, MANY / 2);
	assert_int_equal(s->ops->count(s, &(struct query){ 0 }, &n), 0);
	assert_int_equal(n, MANY);
	assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
	store_close(s);
}

/* --- mem ---------------------------------------------------------------------------------------- */

static int put_one(struct edit *e, void *ctx)
{
	struct record *r = arena_new(e->arena, struct record);

	r->key = STR("task/t1");
	r->ix.status = 1;
	r->hot = str_c(ctx);
	edit_put(e, r);
	return 0;
}

static int64_t count_all(struct store *s)
{
	int64_t n = -1;

	assert_int_equal(s->ops->count(s, &(struct query){ 0 }, &n), 0);
	return n;
}

static void test_mem_places(void **state)
{
	struct store_env env = make_env();
	struct store *a = open_uri("mem:", &env), *b = open_uri("mem:", &env),
		     *c = open_uri("mem:n", &env);
	struct change ch = { .fn = put_one, .ctx = "x" };

	(void)state;
	assert_int_equal(a->ops->modify(a, &ch, 1), 0);
	assert_int_equal(c->ops->modify(c, &ch, 1), 0);
	assert_int_equal(count_all(b), 0);
	store_close(a);
	store_close(b);
	store_close(c);
	env.mode = STORE_WRITE;
	assert_int_equal(store_open(&a, STR("mem:"), &env), STORE_ABSENT);
	assert_int_equal(store_open(&a, STR("mem:other"), &env), STORE_ABSENT);
	c = open_uri("mem:n", &env);
	assert_int_equal(count_all(c), 1);
	mem_reset();
	assert_int_equal(count_all(c), 1);
	assert_int_equal(store_open(&a, STR("mem:n"), &env), STORE_ABSENT);
	store_close(c);
}

struct nest {
	struct store *other;
	int rc;
};

static int change_inside(struct edit *e, void *ctx)
{
	struct nest *n = ctx;
	struct change ch = { .fn = put_one, .ctx = "inner" };

	n->rc = n->other->ops->modify(n->other, &ch, 1);
	return put_one(e, "outer");
}

static void test_mem_busy(void **state)
{
	struct store_env env = make_env();
	struct store *a = open_uri("mem:busy", &env), *b = open_uri("mem:busy", &env);
	struct nest n = { b, 0 };
	struct change ch = { .fn = change_inside, .ctx = &n };

	(void)state;
	assert_int_equal(a->ops->modify(a, &ch, 1), 0);
	assert_int_equal(n.rc, STORE_BUSY);
	assert_non_null(strstr(err.text, "tester"));
	store_close(a);
	store_close(b);
	mem_reset();
}

/* A reader's callback may change the records that it reads. */
static int change_while_reading(const struct record *r, void *ctx)
{
	struct store *s = ctx;
	struct change ch = { .fn = put_one, .ctx = "second" };

	assert_int_equal(s->ops->modify(s, &ch, 1), 0);
	assert_true(str_is(r->hot, "first"));
	return 0;
}

static void test_mem_read_and_change(void **state)
{
	struct store_env env = make_env();
	struct store *s = open_uri("mem:", &env);
	struct change ch = { .fn = put_one, .ctx = "first" };

	(void)state;
	assert_int_equal(s->ops->modify(s, &ch, 1), 0);
	assert_int_equal(s->ops->scan(s, &(struct query){ 0 }, change_while_reading, s), 0);
	store_close(s);
}

static int put_going(struct edit *e, void *ctx)
{
	struct record *r = arena_new(e->arena, struct record);

	r->key = arena_printf(e->arena, "request/%d", *(int *)ctx);
	r->ix.lane = LANE_GOING;
	r->ix.eligible_at = e->now + 10;
	edit_put(e, r);
	return 0;
}

static void count_check(void *ctx, enum check_level level, const char *what, struct str text,
			struct str fix)
{
	(void)level;
	(void)what;
	(void)fix;
	*(bool *)ctx = text.n && strstr(text.p, " 64 records") != NULL;
}

/* Dropped records do not pile up: every 64th change sweeps. */
static void test_mem_sweep(void **state)
{
	struct store_env env = make_env();
	struct store *s;
	bool swept = false;

	(void)state;
	env.opt.wall = fake_clock;
	s = open_uri("mem:", &env);
	for (int i = 0; i < 640; i++) {
		struct change ch = { .fn = put_going, .ctx = &i };

		clock_ms += i % 64 ? 0 : 100;
		assert_int_equal(s->ops->modify(s, &ch, 1), 0);
	}
	assert_int_equal(s->ops->check(s, count_check, &swept), 0);
	assert_true(swept);
	store_close(s);
}

static void test_mem_clock(void **state)
{
	struct store_env env = make_env();
	struct store *s;

	(void)state;
	env.opt.wall = fake_clock;
	s = open_uri("mem:c", &env);
	clock_ms = 777000;
	assert_int_equal(s->ops->now(s), 777000);
	store_close(s);
	env.opt.wall = NULL;
	s = open_uri("mem:c", &env);
	assert_true(s->ops->now(s) > 1000000000000);
	store_close(s);
	mem_reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uri),       cmocka_unit_test(test_uri_shown),
		cmocka_unit_test(test_no_uri),    cmocka_unit_test(test_params),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_queue_param),
		cmocka_unit_test(test_import),    cmocka_unit_test(test_mem_places),
		cmocka_unit_test(test_mem_busy),  cmocka_unit_test(test_mem_read_and_change),
		cmocka_unit_test(test_mem_sweep), cmocka_unit_test(test_mem_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
