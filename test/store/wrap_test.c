/* The wrapper: an injected fault is exactly the requested one, and the calls are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/mem/mem.h"
#include "store/store.h"

static struct store_error err;
static const struct store_env env = { .mode = STORE_CREATE,
				      .opt.timeout_ms = 1000,
				      .opt.who = { "tester", 6 },
				      .err = &err };

static struct store *open_uri(const char *uri)
{
	struct store *s = NULL;
	int rc = store_open(&s, str_c(uri), &env);

	if (rc)
		fail_msg("%s: %d %s", uri, rc, err.text);
	return s;
}

static int put_t1(struct edit *e, void *ctx)
{
	struct record *r, *got;

	(void)ctx;
	if (edit_get(e, STR("task/t1"), &got) < 0)
		return STORE_CORRUPT;
	r = arena_new(e->arena, struct record);
	*r = (struct record){
		.key = STR("task/t1"),
		.ix = { .status = 1, .lane = LANE_READY, .id = STR("t1") },
		.hot = STR("hot-secret"),
		.body = STR("body-secret"),
		.body_changed = true,
	};
	edit_put(e, r);
	edit_log(e, r->key, STR("made"));
	return 0;
}

static int refuse(struct edit *e, void *ctx)
{
	(void)e;
	(void)ctx;
	return 7;
}

static int modify(struct store *s)
{
	struct change ch = { .fn = put_t1, .rc = 99 };
	int rc = s->ops->modify(s, &ch, 1);

	if (rc < 0)
		assert_true(ch.rc != 0);
	return rc ? rc : ch.rc;
}

static bool there(struct store *s)
{
	struct arena a = { 0 };
	struct record r;
	int rc = s->ops->get(s, STR("task/t1"), &r, &a);

	arena_free(&a);
	assert_true(rc >= 0);
	return rc == 0;
}

static int ignore_record(const struct record *r, void *ctx)
{
	(void)r;
	(void)ctx;
	return 0;
}

static int ignore_entry(const struct entry *e, void *ctx)
{
	(void)e;
	(void)ctx;
	return 0;
}

/* --- fault -------------------------------------------------------------------------------------- */

static void test_nth(void **state)
{
	struct store *s = open_uri("fault+mem:nth?fault=modify:2&queue=q");

	(void)state;
	assert_int_equal(modify(s), 0);
	assert_int_equal(modify(s), STORE_IO);
	assert_int_equal(err.applied, 'n');
	assert_int_equal(err.fault, STORE_IO);
	assert_int_equal(modify(s), 0);
	assert_true(str_is(s->env.opt.queue, "q"));
	store_close(s);
}

static void test_nothing_applied(void **state)
{
	struct store *s = open_uri("fault+mem:?fault=modify:1:fail:always");

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(modify(s), STORE_IO);
	assert_false(there(s));
	store_close(s);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *uri;
		int rc;
		char applied;
		bool made;
	} cases[] = {
		{ "fault+mem:?fault=modify:1", STORE_IO, 'n', false },
		{ "fault+mem:?fault=modify:1:fail", STORE_IO, 'n', false },
		{ "fault+mem:?fault=modify:1:busy", STORE_BUSY, 'n', false },
		{ "fault+mem:?fault=modify:1:full", STORE_FULL, 'n', false },
		{ "fault+mem:?fault=modify:1:lost", STORE_IO, '?', true },
		{ "fault+mem:?fault=modify:1:unknown", STORE_IO, '?', false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *s = open_uri(cases[i].uri);

		assert_int_equal(modify(s), cases[i].rc);
		assert_int_equal(err.applied, cases[i].applied);
		assert_int_equal(there(s), cases[i].made);
		store_close(s);
	}
}

static void test_each_call(void **state)
{
	struct store *s = open_uri(
		"fault+mem:?fault=get:1&fault=scan:1:busy&fault=count:1&fault=tally:1:full");
	struct arena a = { 0 };
	struct record r;
	int64_t n, counts[16];
	struct query q = { 0 };

	(void)state;
	assert_int_equal(s->ops->get(s, STR("x"), &r, &a), STORE_IO);
	assert_int_equal(s->ops->scan(s, &q, ignore_record, NULL), STORE_BUSY);
	assert_int_equal(s->ops->count(s, &q, &n), STORE_IO);
	assert_int_equal(s->ops->tally(s, counts), STORE_FULL);
	assert_int_equal(modify(s), 0); /* the reads of an edit are not counted as the caller's */
	assert_int_equal(s->ops->get(s, STR("x"), &r, &a), 1);
	assert_int_equal(s->ops->scan(s, &q, ignore_record, NULL), 0);
	assert_int_equal(s->ops->count(s, &q, &n), 0);
	assert_int_equal(s->ops->tally(s, counts), 0);
	store_close(s);
	s = open_uri("fault+mem:?fault=entries:1:lost");
	assert_int_equal(s->ops->entries(s, &(struct entry_query){ 0 }, ignore_entry, NULL),
			 STORE_IO);
	assert_int_equal(err.applied, 'n');
	store_close(s);
	arena_free(&a);
}

static void test_any(void **state)
{
	struct store *s;
	int64_t counts[16];

	(void)state;
	assert_int_equal(store_open(&s, STR("fault+mem:?fault=any:1"), &env), STORE_IO);
	assert_int_equal(store_open(&s, STR("fault+mem:?fault=open:1:busy"), &env), STORE_BUSY);
	assert_null(s);
	s = open_uri("fault+mem:?fault=any:3::always");
	assert_int_equal(s->ops->tally(s, counts), 0);
	assert_int_equal(modify(s), STORE_IO);
	assert_int_equal(s->ops->tally(s, counts), STORE_IO);
	store_close(s);
}

/* Returns how many of 300 changes failed, and marks them. */
static int struck(const char *uri, bool *out)
{
	struct store *s = open_uri(uri);
	int n = 0;

	for (int i = 0; i < 300; i++)
		n += out[i] = modify(s) != 0;
	store_close(s);
	return n;
}

static void test_random(void **state)
{
	bool one[300], same[300], other[300];
	int n = struck("fault+mem:?fault=modify:~10:lost:7", one);

	(void)state;
	assert_in_range(n, 10, 60);
	assert_int_equal(struck("fault+mem:?fault=modify:~10:lost:7", same), n);
	assert_memory_equal(one, same, sizeof(one));
	struck("fault+mem:?fault=modify:~10:lost:8", other);
	assert_memory_not_equal(one, other, sizeof(one));
	assert_int_equal(struck("fault+mem:?fault=modify:~1", one), 300);
}

static void test_discard(void **state)
{
	struct store *s = open_uri("fault+mem:?fault=discard:1&fault=discard:2:lost");

	(void)state;
	assert_int_equal(modify(s), 0);
	assert_int_equal(s->ops->discard(s), STORE_IO);
	assert_int_equal(err.applied, 'n');
	assert_true(there(s));
	assert_int_equal(s->ops->discard(s), STORE_IO);
	assert_int_equal(err.applied, '?');
	assert_false(there(s));
	store_close(s);
}

static void test_bad_rules(void **state)
{
	static const char *const bad[] = {
		"fault+mem:?fault=",
		"fault+mem:?fault=modify",
		"fault+mem:?fault=modify:0",
		"fault+mem:?fault=modify:x",
		"fault+mem:?fault=fly:1",
		"fault+mem:?fault=modify:1:odd",
		"fault+mem:?fault=modify:1:fail:never",
		"fault+mem:?fault=modify:~0",
		"fault+mem:?fault=modify:~x",
		"fault+mem:?fault=modify:~5:fail:always",
		"fault+mem:?fault=modify:~9999999999",
		"fault+mem:?fault=get:1&fault=get:2&fault=get:3&fault=get:4&fault=get:5",
	};
	struct store *s;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(store_open(&s, str_c(bad[i]), &env), STORE_UNSUPPORTED);
	assert_int_equal(store_open(&s, STR("fault+nonsense"), &env), STORE_UNSUPPORTED);
}

/* Parameters of other wrappers stay, on either side of a fragment. */
static void test_params_stay(void **state)
{
	static const char *const uris[] = {
		"fault+mem:stay?a=1&fault=get:9&queue=q2&b=2",
		"fault+mem:stay?fault=get:9&queue=q2#frag",
		"fault+mem:stay#frag?queue=q2&fault=get:9",
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct store *s = open_uri(uris[i]);

		assert_true(str_is(s->env.opt.queue, "q2"));
		if (i == 0)
			assert_int_equal(modify(s), 0);
		assert_true(there(s));
		store_close(s);
	}
	mem_reset();
}

/* --- the calls ---------------------------------------------------------------------------------- */

static void use_all(struct store *s)
{
	struct change ch[] = { { .fn = put_t1, .rc = 99 }, { .fn = refuse, .rc = 99 } };
	struct arena a = { 0 };
	struct record r;
	int64_t n, counts[16];

	assert_int_equal(s->ops->modify(s, ch, 2), 0);
	assert_int_equal(ch[0].rc, 0);
	assert_int_equal(ch[1].rc, 7);
	assert_int_equal(s->ops->get(s, STR("task/t1"), &r, &a), 0);
	assert_int_equal(s->ops->get(s, STR("task/none"), &r, &a), 1);
	assert_int_equal(s->ops->scan(s, &(struct query){ 0 }, ignore_record, NULL), 0);
	assert_int_equal(s->ops->count(s, &(struct query){ 0 }, &n), 0);
	assert_int_equal(s->ops->tally(s, counts), 0);
	assert_int_equal(s->ops->entries(s, &(struct entry_query){ .last = 3 }, ignore_entry, NULL),
			 0);
	assert_int_equal(s->ops->get(s, STR("task/t1"), &r, &a), STORE_IO);
	assert_true(s->ops->now(s) > 0);
	assert_int_equal(s->ops->wake_fd(s), -1);
	s->ops->wake_clear(s);
	arena_free(&a);
}

/* Each call is one line on stderr, also a call that a rule breaks. */
static void test_calls(void **state)
{
	FILE *out = tmpfile();
	char text[1000] = "";
	int kept = dup(STDERR_FILENO);
	struct store *s;

	(void)state;
	assert_non_null(out);
	dup2(fileno(out), STDERR_FILENO);
	s = open_uri("fault+mem:calls?fault=calls&fault=get:3");
	use_all(s);
	store_close(s);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(out);
	assert_true(fread(text, 1, sizeof(text) - 1, out) > 0);
	fclose(out);
	assert_string_equal(text, "pawl-calls: open 0\n"
				  "pawl-calls: modify 0\n"
				  "pawl-calls: get 1\n"
				  "pawl-calls: get 0\n"
				  "pawl-calls: scan 1\n"
				  "pawl-calls: count 0\n"
				  "pawl-calls: tally 0\n"
				  "pawl-calls: entries 1\n"
				  "pawl-calls: get 0\n");
}

static int note_body(const struct record *r, void *ctx)
{
	*(const char **)ctx = r->body.p;
	return !str_is(r->body, "body-secret") || !str_is(r->ix.id, "t1");
}

static int note_data(const struct entry *e, void *ctx)
{
	*(const char **)ctx = e->data.p;
	return !str_is(e->data, "made") || !str_is(e->key, "task/t1");
}

/* The strings of a callback are not those of the store. */
static void test_copies(void **state)
{
	struct store *s = open_uri("fault+mem:copies?fault=copies"), *plain;
	const char *copied[2] = { 0 }, *kept[2] = { 0 };
	struct query all = { .body = true };
	struct entry_query log = { 0 };

	(void)state;
	assert_int_equal(modify(s), 0);
	plain = open_uri("mem:copies");
	for (int i = 0; i < 2; i++) {
		struct store *from = i ? plain : s;
		const char **to = i ? kept : copied;

		assert_int_equal(from->ops->scan(from, &all, note_body, &to[0]), 0);
		assert_int_equal(from->ops->entries(from, &log, note_data, &to[1]), 0);
	}
	assert_ptr_not_equal(copied[0], kept[0]);
	assert_ptr_not_equal(copied[1], kept[1]);
	store_close(s);
	s = open_uri("fault+mem:copies");
	assert_int_equal(s->ops->scan(s, &all, note_body, &copied[0]), 0);
	assert_int_equal(s->ops->entries(s, &log, note_data, &copied[1]), 0);
	assert_ptr_equal(copied[0], kept[0]);
	assert_ptr_equal(copied[1], kept[1]);
	store_close(s);
	store_close(plain);
	mem_reset();
}

static bool counts_itself(const struct entry *e, void *ctx)
{
	int *asked = ctx;

	(void)e;
	(*asked)++;
	return true;
}

/* Both functions of a query for entries get the ctx of the caller. */
static void test_entry_counts(void **state)
{
	struct entry_query q = { .last = 1, .counts = counts_itself };
	struct store *s = open_uri("fault+mem:counts?fault=copies");
	int asked = 0;

	(void)state;
	assert_int_equal(modify(s), 0);
	assert_int_equal(s->ops->entries(s, &q, ignore_entry, &asked), 0);
	assert_true(asked > 0);
	store_close(s);
	mem_reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nth),         cmocka_unit_test(test_nothing_applied),
		cmocka_unit_test(test_kinds),       cmocka_unit_test(test_each_call),
		cmocka_unit_test(test_any),         cmocka_unit_test(test_random),
		cmocka_unit_test(test_discard),     cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_params_stay), cmocka_unit_test(test_calls),
		cmocka_unit_test(test_copies),      cmocka_unit_test(test_entry_counts),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	mem_reset();
	return failed;
}
