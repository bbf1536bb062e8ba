/*
 * Who is offered, from when on, and in which words; who waits for whom.
 */
#include "core_kit.h"

#include "core/graph.h"
#include "core/order.h"

#define NOW INT64_C(1700000000000)
#define LATER (NOW + 60000)
#define BEFORE (NOW - 60000)

static struct arena mem;

static int free_memory(void **state)
{
	(void)state;
	arena_free(&mem);
	return 0;
}

/* --- order ---------------------------------------------------------------------------------------- */

struct offered {
	int64_t status, not_before, open_deps, free_at;
	char lock; /* 0: none; o: our own kind, e: without expiry, f: foreign, x: foreign without expiry */
	int64_t expires;
	enum offer offer;
	int64_t at;
	bool eligible;
	const char *why;
};

static struct task offered_task(const struct offered *o)
{
	struct task t = { .id = STR("t1"),
			  .status = o->status,
			  .not_before = o->not_before,
			  .open_deps = o->open_deps,
			  .free_at = o->free_at };

	if (!o->lock)
		return t;
	t.lock.holder = STR("bob");
	t.lock.foreign = o->lock == 'f' || o->lock == 'x';
	t.lock.token = t.lock.foreign ? STR("") : STR("token");
	t.lock.expires_at = o->expires;
	return t;
}

static const struct offered offers[] = {
	{ READY, 0, 0, 0, 0, 0, OFFER_NOW, 0, true, "ready" },
	{ READY, BEFORE, 0, 0, 0, 0, OFFER_LATER, BEFORE, true, "ready" },
	{ READY, NOW, 0, 0, 0, 0, OFFER_LATER, NOW, true, "ready" },
	{ READY, NOW + 1, 0, 0, 0, 0, OFFER_LATER, NOW + 1, false, "not before its time, in 1ms" },
	{ READY, 0, 2, 0, 0, 0, OFFER_WAITING, 0, false, "waits for 2 of its dependencies" },
	{ READY, LATER, 2, 0, 0, 0, OFFER_WAITING, LATER, false,
	  "waits for 2 of its dependencies" },
	{ READY, 0, 0, 0, 'o', LATER, OFFER_LATER, LATER, false, "held by bob for another 1m" },
	{ READY, 0, 0, 0, 'o', NOW, OFFER_LATER, NOW, true, "ready" },
	{ READY, LATER + 1000, 0, 0, 'o', LATER, OFFER_LATER, LATER + 1000, false,
	  "not before its time, in 1m 1s" },
	{ READY, 0, 0, 77, 'e', 0, OFFER_NOW, 0, true, "ready" },
	{ READY, 0, 0, 0, 'f', LATER, OFFER_LATER, LATER, false, "held by bob for another 1m" },
	{ READY, 0, 0, 0, 'x', 0, OFFER_NONE, 0, false, "Ready, held by bob" },
	/* In Progress: its agent crashed, or it was left without a lock */
	{ IN_PROGRESS, LATER, 3, 0, 'o', BEFORE, OFFER_LATER, BEFORE, true,
	  "abandoned: its lease ran out" },
	{ IN_PROGRESS, 0, 0, 0, 'o', NOW, OFFER_LATER, NOW, true, "abandoned: its lease ran out" },
	{ IN_PROGRESS, 0, 0, 0, 'o', LATER, OFFER_LATER, LATER, false,
	  "held by bob for another 1m" },
	{ IN_PROGRESS, 0, 0, LATER, 'e', 0, OFFER_NOW, 0, true, "abandoned: its lease ran out" },
	{ IN_PROGRESS, 0, 0, 0, 0, 0, OFFER_NOW, 0, true, "left without a lock" },
	{ IN_PROGRESS, 0, 0, NOW, 0, 0, OFFER_LATER, NOW, true, "left without a lock" },
	{ IN_PROGRESS, 0, 0, LATER, 0, 0, OFFER_LATER, LATER, false,
	  "kept for the agent that knows it until its last lease's length has passed, in 1m" },
	{ IN_PROGRESS, 0, 0, 0, 'x', 0, OFFER_NONE, 0, false, "In Progress, held by bob" },
	{ IN_PROGRESS, 0, 0, 0, 'f', BEFORE, OFFER_LATER, BEFORE, true,
	  "abandoned: its lease ran out" },
	{ BACKLOG, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Backlog" },
	{ BLOCKED, 0, 0, 0, 'o', LATER, OFFER_NONE, 0, false, "Blocked, held by bob" },
	{ BLOCKED, 0, 0, 0, 'o', BEFORE, OFFER_NONE, 0, false, "its status is Blocked" },
	{ NEEDS_HELP, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Needs Help" },
	{ REVIEW, 0, 0, 5, 0, 0, OFFER_NONE, 0, false, "its status is Review" },
	{ DONE, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Done" },
	{ FAILED, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Failed" },
	{ CANCELED, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Canceled" },
};

static void offers_and_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(offers); i++) {
		struct task t = offered_task(&offers[i]);
		bool eligible;
		int64_t at = -7;
		struct str why = order_why(&t, &policy_default, NOW, &mem, &eligible);

		assert_int_equal(order_offer(&t, &at), offers[i].offer);
		assert_int_equal(at, offers[i].at);
		assert_int_equal(eligible, offers[i].eligible);
		assert_string_equal(arena_cstr(&mem, why), offers[i].why);
	}
}

static void other_policies(void **state)
{
	struct policy keep = policy_default, ignore = policy_default;
	struct task waiting = { .status = READY, .open_deps = 1 };
	struct task later = { .status = READY, .open_deps = 1, .not_before = LATER };
	struct task left = { .status = IN_PROGRESS };
	struct task kept = { .status = IN_PROGRESS, .free_at = LATER };
	bool eligible;

	(void)state;
	keep.keep_abandoned = true;
	ignore.ignore_depends = true;
	assert_true(str_holds(order_why(&left, &keep, NOW, &mem, &eligible), "is keep"));
	assert_false(eligible);
	assert_true(str_holds(order_why(&kept, &keep, NOW, &mem, &eligible), "kept for"));
	assert_false(eligible);
	assert_true(str_is(order_why(&waiting, &ignore, NOW, &mem, &eligible),
			   "ready; its dependencies are ignored"));
	assert_true(eligible);
	assert_true(str_holds(order_why(&later, &ignore, NOW, &mem, &eligible), "not before"));
	assert_false(eligible);
	waiting.open_deps = 0;
	assert_true(str_is(order_why(&waiting, &keep, NOW, &mem, &eligible), "ready"));
	assert_true(eligible);
}

/* --- counts --------------------------------------------------------------------------------------- */

static bool open_sub(int64_t s)
{
	return s && s != DONE && s != CANCELED;
}

static bool open_dep(int64_t s)
{
	return s && s != DONE;
}

static void counts(void **state)
{
	(void)state;
	for (int64_t from = 0; from < STATUS_END; from++)
		for (int64_t to = 0; to < STATUS_END; to++) {
			struct task want = { .open_subs = 5, .open_deps = 6, .canceled_deps = 7 },
				    t = want;

			want.open_subs += open_sub(to) - open_sub(from);
			assert_int_equal(graph_sub_moved(&t, from, to),
					 open_sub(to) != open_sub(from));
			assert_int_equal(task_diff(&want, &t, "sub-task"), 0);
			want.open_deps += open_dep(to) - open_dep(from);
			want.canceled_deps += (to == CANCELED) - (from == CANCELED);
			assert_int_equal(graph_dep_moved(&t, from, to),
					 open_dep(to) != open_dep(from) ||
						 (to == CANCELED) != (from == CANCELED));
			assert_int_equal(task_diff(&want, &t, "dependency"), 0);
		}
}

static void settles(void **state)
{
	(void)state;
	for (int64_t s = BACKLOG; s < STATUS_END; s++)
		for (int64_t canceled = 0; canceled < 2; canceled++) {
			struct task was = { .status = s,
					    .canceled_deps = canceled,
					    .updated_at = 1,
					    .blocker_reason = STR("old") };
			struct task want = was, named = was, unnamed = was;
			bool moves = s == READY && canceled;

			if (moves) {
				want.status = NEEDS_HELP;
				want.updated_at = NOW;
				want.blocker_reason = STR("t4, which it depends on, was canceled");
			}
			assert_int_equal(graph_settle(&named, STR("t4"), NOW, &mem), moves);
			assert_int_equal(task_diff(&want, &named, "named"), 0);
			if (moves)
				want.blocker_reason = STR("a task that it depends on was canceled");
			assert_int_equal(graph_settle(&unnamed, STR(""), NOW, &mem), moves);
			assert_int_equal(task_diff(&want, &unnamed, "unnamed"), 0);
		}
}

/* --- cycles --------------------------------------------------------------------------------------- */

struct edges {
	const char *pairs; /* "ab bc": a waits for b, b for c */
	int asked;
};

static int next_of(void *ctx, struct str id, struct strs *out)
{
	struct edges *e = ctx;

	e->asked++;
	if (id.p[0] == '!')
		return -EIO;
	for (const char *p = e->pairs; *p; p += p[2] ? 3 : 2)
		if (p[0] == id.p[0])
			*out = arena_append(&mem, *out, str_n(p + 1, 1));
	return 0;
}

static void cycles(void **state)
{
	static const struct {
		const char *pairs, *from, *to;
		int want;
	} all[] = {
		{ "", "a", "a", 1 }, /* itself */
		{ "", "a", "b", 0 },
		{ "ab", "a", "b", 1 },
		{ "ab", "b", "a", 0 },
		{ "ab ba", "b", "a", 1 },       /* a pair */
		{ "ab bc ca", "b", "a", 1 },    /* a ring */
		{ "ab bc ca", "c", "d", 0 },    /* a ring that does not hold what is looked for */
		{ "aa ab", "a", "c", 0 },       /* a loop at the start */
		{ "ab ac bd cd", "a", "d", 1 }, /* a diamond */
		{ "ab ac bd cd", "a", "e", 0 },
		{ "ab ac bd cd", "d", "a", 0 },
		{ "ab bc cd db de", "a", "e", 1 }, /* out of a ring */
		{ "ab ac ad ae be ce de", "a", "f", 0 },
		{ "ab a! bc", "a", "z", -EIO },
		{ "ab a! bc", "a", "!", 1 }, /* found before it is looked into */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct edges e = { all[i].pairs, 0 };

		assert_int_equal(
			graph_reaches(str_c(all[i].from), str_c(all[i].to), next_of, &e, &mem),
			all[i].want);
	}
}

static void each_is_asked_once(void **state)
{
	struct edges e = { "ab ac ad bd be ce cf df ef fa", 0 };

	(void)state;
	assert_int_equal(graph_reaches(STR("a"), STR("z"), next_of, &e, &mem), 0);
	assert_int_equal(e.asked, 6);
}

#define CHAIN 10000

static int chained(void *ctx, struct str id, struct strs *out)
{
	int64_t n;

	(*(int *)ctx)++;
	assert_true(str_to_i64(id, &n));
	if (n < CHAIN)
		*out = arena_append(&mem, *out, arena_printf(&mem, "%lld", (long long)n + 1));
	if (n % 100 == 0) /* and back, into what was seen */
		*out = arena_append(&mem, *out, arena_printf(&mem, "%lld", (long long)n / 2));
	return 0;
}

static void long_chain(void **state)
{
	int asked = 0;

	(void)state;
	assert_int_equal(graph_reaches(STR("1"), STR("10000"), chained, &asked, &mem), 1);
	assert_true(asked <= CHAIN);
	asked = 0;
	assert_int_equal(graph_reaches(STR("1"), STR("nowhere"), chained, &asked, &mem), 0);
	assert_int_equal(asked, CHAIN + 1 - 1);
}

static int fan(void *ctx, struct str id, struct strs *out)
{
	struct strs *all = ctx;

	if (str_is(id, "top"))
		*out = *all;
	return 0;
}

static void wide_fan(void **state)
{
	struct strs all = { arena_array(&mem, struct str, CHAIN), CHAIN };

	(void)state;
	for (int i = 0; i < CHAIN; i++)
		all.v[i] = arena_printf(&mem, "leaf-%d", i / 2); /* each twice */
	assert_int_equal(graph_reaches(STR("top"), STR("leaf-4999"), fan, &all, &mem), 1);
	assert_int_equal(graph_reaches(STR("top"), STR("leaf-5000"), fan, &all, &mem), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offers_and_why), cmocka_unit_test(other_policies),
		cmocka_unit_test(counts),         cmocka_unit_test(settles),
		cmocka_unit_test(cycles),         cmocka_unit_test(each_is_asked_once),
		cmocka_unit_test(long_chain),     cmocka_unit_test(wide_fan),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
