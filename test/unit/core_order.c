/*
 * Which tasks are offered, from when on, with which words; and which tasks wait for which.
 */
#include "core_kit.h"

#include "core/counts.h"
#include "core/order.h"

#define LATER (NOW + 60000)
#define BEFORE (NOW - 60000)

/* --- order ---------------------------------------------------------------------------------------- */

struct offered {
	int64_t status, not_before, open_deps, free_at;
	/* 0: none; o: our own kind, e: without expiry, f: foreign, x: foreign without expiry */
	char lock;
	int64_t expires;
	enum offer offer;
	int64_t at;
	bool eligible;
	const char *why;
	int64_t open_subs;
};

static struct task offered_task(const struct offered *o)
{
	struct task t = { .id = STR("t1"),
			  .status = o->status,
			  .not_before = o->not_before,
			  .open_deps = o->open_deps,
			  .open_subs = o->open_subs,
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
	{ READY, 0, 0, 0, 0, 0, OFFER_NOW, 0, true, "ready", 0 },
	{ READY, BEFORE, 0, 0, 0, 0, OFFER_LATER, BEFORE, true, "ready", 0 },
	{ READY, NOW, 0, 0, 0, 0, OFFER_LATER, NOW, true, "ready", 0 },
	{ READY, NOW + 1, 0, 0, 0, 0, OFFER_LATER, NOW + 1, false,
	  "waits for its not-before time, in 1ms", 0 },
	{ READY, 0, 2, 0, 0, 0, OFFER_WAITING, 0, false, "waits for 2 of its dependencies", 0 },
	{ READY, LATER, 2, 0, 0, 0, OFFER_WAITING, LATER, false, "waits for 2 of its dependencies",
	  0 },
	{ READY, 0, 0, 0, 'o', LATER, OFFER_LATER, LATER, false, "held by bob for another 1m", 0 },
	{ READY, 0, 0, 0, 'o', NOW, OFFER_LATER, NOW, true, "ready", 0 },
	{ READY, LATER + 1000, 0, 0, 'o', LATER, OFFER_LATER, LATER + 1000, false,
	  "waits for its not-before time, in 1m 1s", 0 },
	{ READY, 0, 0, 77, 'e', 0, OFFER_NOW, 0, true, "ready", 0 },
	{ READY, 0, 0, 0, 'f', LATER, OFFER_LATER, LATER, false, "held by bob for another 1m", 0 },
	{ READY, 0, 0, 0, 'x', 0, OFFER_NONE, 0, false, "Ready, held by bob", 0 },
	/* In Progress: the agent crashed, or the task was left without a lock */
	{ IN_PROGRESS, LATER, 3, 0, 'o', BEFORE, OFFER_LATER, BEFORE, true,
	  "abandoned: its lease expired", 0 },
	{ IN_PROGRESS, 0, 0, 0, 'o', NOW, OFFER_LATER, NOW, true, "abandoned: its lease expired",
	  0 },
	{ IN_PROGRESS, 0, 0, 0, 'o', LATER, OFFER_LATER, LATER, false, "held by bob for another 1m",
	  0 },
	{ IN_PROGRESS, 0, 0, LATER, 'e', 0, OFFER_NOW, 0, true, "abandoned: its lease expired", 0 },
	{ IN_PROGRESS, 0, 0, 0, 0, 0, OFFER_NOW, 0, true, "left without a lock", 0 },
	{ IN_PROGRESS, 0, 0, NOW, 0, 0, OFFER_LATER, NOW, true, "left without a lock", 0 },
	{ IN_PROGRESS, 0, 0, LATER, 0, 0, OFFER_LATER, LATER, false,
	  "kept for its last agent for another 1m", 0 },
	{ IN_PROGRESS, 0, 0, 0, 'x', 0, OFFER_NONE, 0, false, "In Progress, held by bob", 0 },
	{ IN_PROGRESS, 0, 0, 0, 'f', BEFORE, OFFER_LATER, BEFORE, true,
	  "abandoned: its lease expired", 0 },
	/* sub-tasks are open */
	{ READY, 0, 0, 0, 0, 0, OFFER_PARENT, 0, false, "waits for its 1 open sub-task", 1 },
	{ READY, LATER, 0, 0, 0, 0, OFFER_PARENT, LATER, false, "waits for its 2 open sub-tasks",
	  2 },
	{ READY, 0, 3, 0, 0, 0, OFFER_BOTH, 0, false,
	  "waits for 3 of its dependencies and its 2 open sub-tasks", 2 },
	{ READY, 0, 0, 0, 'o', LATER, OFFER_PARENT, LATER, false, "waits for its 1 open sub-task",
	  1 },
	{ IN_PROGRESS, 0, 3, 0, 'o', LATER, OFFER_PARENT, LATER, false,
	  "held by bob for another 1m", 1 },
	{ IN_PROGRESS, 0, 3, 0, 'o', BEFORE, OFFER_PARENT, BEFORE, false,
	  "waits for its 1 open sub-task", 1 },
	{ IN_PROGRESS, 0, 0, LATER, 0, 0, OFFER_PARENT, LATER, false,
	  "waits for its 1 open sub-task", 1 },
	{ REVIEW, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Review", 1 },
	{ BACKLOG, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Backlog", 0 },
	{ BLOCKED, 0, 0, 0, 'o', LATER, OFFER_NONE, 0, false, "Blocked, held by bob", 0 },
	{ BLOCKED, 0, 0, 0, 'o', BEFORE, OFFER_NONE, 0, false, "its status is Blocked", 0 },
	{ NEEDS_HELP, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Needs Help", 0 },
	{ REVIEW, 0, 0, 5, 0, 0, OFFER_NONE, 0, false, "its status is Review", 0 },
	{ DONE, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Done", 0 },
	{ FAILED, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Failed", 0 },
	{ CANCELED, 0, 0, 0, 0, 0, OFFER_NONE, 0, false, "its status is Canceled", 0 },
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
		assert_int_equal(order_waits(&t, &policy_default, NOW),
				 str_starts(why, STR("waits for")) &&
					 !str_holds(why, "not-before"));
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
	assert_true(str_holds(order_why(&later, &ignore, NOW, &mem, &eligible), "not-before time"));
	assert_false(eligible);
	waiting.open_deps = 0;
	assert_true(str_is(order_why(&waiting, &keep, NOW, &mem, &eligible), "ready"));
	assert_true(eligible);
}

static void parents_offered(void **state)
{
	struct policy offer = policy_default, none = policy_default;
	struct task parent = { .status = READY, .open_subs = 1 };
	struct task begun = { .status = IN_PROGRESS, .open_subs = 1, .open_deps = 1 };
	struct task both = { .status = READY, .open_subs = 1, .open_deps = 1 };
	bool eligible;

	(void)state;
	offer.offer_parents = none.offer_parents = none.ignore_depends = true;
	assert_true(str_holds(order_why(&parent, &offer, NOW, &mem, &eligible), "in spite of"));
	assert_true(eligible);
	assert_true(str_holds(order_why(&begun, &offer, NOW, &mem, &eligible), "in spite of"));
	assert_true(eligible);
	assert_true(str_is(order_why(&both, &offer, NOW, &mem, &eligible),
			   "waits for 1 of its dependencies"));
	assert_false(eligible);
	assert_true(str_holds(order_why(&both, &none, NOW, &mem, &eligible), "are ignored"));
	assert_true(eligible);
	none.offer_parents = false;
	assert_true(str_is(order_why(&both, &none, NOW, &mem, &eligible),
			   "waits for its 1 open sub-task"));
	assert_false(eligible);
}

static void lanes_by_policy(void **state)
{
	struct policy p = policy_default;

	(void)state;
	assert_int_equal(order_waiting(&p), 0);
	p.ignore_depends = true;
	assert_int_equal(order_waiting(&p), LANE_BIT(LANE_WAITING));
	p.offer_parents = true;
	assert_int_equal(order_waiting(&p), LANES_WAITING);
	p.ignore_depends = false;
	assert_int_equal(order_waiting(&p), LANE_BIT(LANE_PARENT));
	for (int lane = LANE_NONE; lane <= LANE_BOTH; lane++)
		assert_int_equal(lane_waits(lane), (LANES_WAITING >> lane) & 1);
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
				want.blocker_reason = STR("its dependency t4 was canceled");
			}
			assert_int_equal(graph_settle(&named, STR("t4"), NOW, &mem), moves);
			assert_int_equal(task_diff(&want, &named, "named"), 0);
			if (moves)
				want.blocker_reason = STR("a dependency was canceled");
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
		{ "", "a", "a", 1 }, /* a task and itself */
		{ "", "a", "b", 0 },
		{ "ab", "a", "b", 1 },
		{ "ab", "b", "a", 0 },
		{ "ab ba", "b", "a", 1 },       /* a pair */
		{ "ab bc ca", "b", "a", 1 },    /* a ring */
		{ "ab bc ca", "c", "d", 0 },    /* a ring without the goal */
		{ "aa ab", "a", "c", 0 },       /* a loop at the start */
		{ "ab ac bd cd", "a", "d", 1 }, /* a diamond */
		{ "ab ac bd cd", "a", "e", 0 },
		{ "ab ac bd cd", "d", "a", 0 },
		{ "ab bc cd db de", "a", "e", 1 }, /* leads out of a ring */
		{ "ab ac ad ae be ce de", "a", "f", 0 },
		{ "ab a! bc", "a", "z", -EIO },
		{ "ab a! bc", "a", "!", 1 }, /* found before it is read */
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
	if (n % 100 == 0) /* and an edge back to a visited task */
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
		all.v[i] = arena_printf(&mem, "leaf-%d", i / 2); /* each one twice */
	assert_int_equal(graph_reaches(STR("top"), STR("leaf-4999"), fan, &all, &mem), 1);
	assert_int_equal(graph_reaches(STR("top"), STR("leaf-5000"), fan, &all, &mem), 0);
}

/* A count from a store that others write to never goes below 0. */
static void counts_from_elsewhere(void **state)
{
	struct task t = { 0 };

	(void)state;
	assert_true(graph_sub_moved(&t, READY, DONE));
	assert_true(graph_dep_moved(&t, CANCELED, DONE));
	assert_int_equal(t.open_subs, 0);
	assert_int_equal(t.open_deps, 0);
	assert_int_equal(t.canceled_deps, 0);
}

/* --- the index ------------------------------------------------------------------------------------ */

static struct index some_index(void)
{
	struct task t = { .id = STR("t1"),
			  .status = READY,
			  .class_rank = 2,
			  .priority = 5,
			  .updated_at = NOW,
			  .created_at = BEFORE,
			  .parent = STR("T0"),
			  .depends = { arena_array(&mem, struct str, 1), 1 } };
	struct index ix;

	t.depends.v[0] = STR("T9");
	order_index(&t, &ix, &mem);
	return ix;
}

static void index_of_a_task(void **state)
{
	const struct task none = { .id = STR("t1"), .status = DONE };
	struct index ix = some_index();

	(void)state;
	assert_int_equal(ix.lane, LANE_READY);
	assert_string_equal(arena_cstr(&mem, ix.parent),
			    arena_cstr(&mem, task_key(&mem, STR("T0"))));
	assert_int_equal(ix.depends.n, 1);
	assert_true(str_eq(ix.depends.v[0], task_key(&mem, STR("T9"))));
	order_index(&none, &ix, &mem);
	assert_int_equal(ix.lane, LANE_NONE);
	assert_int_equal(ix.parent.n, 0);
}

/* A better class first, then the higher priority, the earlier due date, the one that waits longest, the smaller id. */
static void order_of_two(void **state)
{
	struct index a = some_index(), b = a;

	(void)state;
	assert_int_equal(index_cmp(&a, &b), 0);
	b.id = STR("T1");
	assert_true(index_cmp(&a, &b) > 0 && index_cmp(&b, &a) < 0);
	b.id = STR("t10");
	assert_true(index_cmp(&a, &b) < 0 && index_cmp(&b, &a) > 0);
	b.updated_at--;
	assert_true(index_cmp(&a, &b) > 0 && index_cmp(&b, &a) < 0);
	a.due = 5;
	assert_true(index_cmp(&a, &b) < 0 && index_cmp(&b, &a) > 0);
	b.due = 4;
	assert_true(index_cmp(&a, &b) > 0 && index_cmp(&b, &a) < 0);
	b.priority--;
	assert_true(index_cmp(&a, &b) < 0 && index_cmp(&b, &a) > 0);
	b.class_rank--;
	assert_true(index_cmp(&a, &b) > 0 && index_cmp(&b, &a) < 0);
}

#define DIFFERS(field, value)                       \
	do {                                        \
		struct index other = a;             \
		other.field = (value);              \
		assert_false(index_eq(&a, &other)); \
	} while (0)

static void every_field_counts(void **state)
{
	const struct index a = some_index();
	struct index same = a;

	(void)state;
	assert_true(index_eq(&a, &same));
	DIFFERS(lane, LANE_LATER);
	DIFFERS(status, DONE);
	DIFFERS(class_rank, 3);
	DIFFERS(priority, 6);
	DIFFERS(eligible_at, LATER);
	DIFFERS(updated_at, LATER);
	DIFFERS(created_at, LATER);
	DIFFERS(id, STR("t2"));
	DIFFERS(holder, STR("bob"));
	DIFFERS(token, STR("token"));
	DIFFERS(parent, STR("t3"));
	DIFFERS(type, STR("bug"));
	DIFFERS(labels, ((struct strs){ same.depends.v, 1 }));
	DIFFERS(depends, ((struct strs){ 0 }));
}

static void gone_at_its_time(void **state)
{
	struct index ix = { .lane = LANE_GOING, .eligible_at = NOW };

	(void)state;
	assert_false(index_gone(&ix, NOW - 1));
	assert_true(index_gone(&ix, NOW));
	ix.lane = LANE_LATER;
	assert_false(index_gone(&ix, NOW));
}

/* --- ids in natural order ------------------------------------------------------------------------- */

static struct str id_key(struct str id)
{
	char key[ID_KEY_MAX];

	return arena_str(&mem, index_id_key(id, key));
}

static struct str id_of(char c, size_t n, const char *end)
{
	char *p = arena_array(&mem, char, n + 20);

	p[0] = 't';
	memset(p + 1, c, n);
	memcpy(p + 1 + n, end, strlen(end) + 1);
	return str_c(p);
}

static void ids_in_natural_order(void **state)
{
	const struct str ids[] = { STR("0"),
				   STR("1"),
				   STR("001"),
				   STR("01"),
				   STR("2"),
				   STR("10"),
				   STR("A"),
				   STR("a-1"),
				   STR("a.1"),
				   STR("a0"),
				   STR("a00"),
				   STR("a1"),
				   STR("a01"),
				   STR("a1-b"),
				   STR("a1.0"),
				   STR("a1_2"),
				   STR("a1_10"),
				   STR("a1b"),
				   STR("a2"),
				   STR("a10"),
				   STR("aB"),
				   STR("t2"),
				   STR("T10"),
				   STR("t99999999"),
				   STR("t100000000"),
				   STR("t0100000000"),
				   STR("t100000001"),
				   STR("t999999999"),
				   id_of('1', 10, ""),
				   id_of('9', 99, ""),
				   id_of('1', 100, ""),
				   id_of('9', 126, ""),
				   id_of('1', 127, ""),
				   id_of('9', 127, ""),
				   STR("tt") };
	size_t n = sizeof(ids) / sizeof(ids[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			int c = str_cmp(id_key(ids[i]), id_key(ids[k]));

			if ((c > 0) - (c < 0) != (i > k) - (i < k))
				fail_msg("%.*s and %.*s: %d", STRF(ids[i]), STRF(ids[k]), c);
		}
}

static void ids_have_one_key_in_any_case(void **state)
{
	(void)state;
	assert_true(str_eq(id_key(STR("Fix-001z")), id_key(STR("fIX-001Z"))));
	assert_true(str_is(id_key(STR("t2")), "t12"));
	assert_true(str_is(id_key(STR("T10_0")), "t210_0"));
	assert_true(str_is(id_key(STR("t007")), "t17 t007"));
	assert_true(str_is(id_key(STR("@{[`")), "@{[`"));
	assert_int_equal(id_key(STR("")).n, 0);
	assert_int_equal(id_key(id_of('0', 128, "")).n, 0); /* no id is so long */
	assert_true(id_key(id_of('0', 127, "")).n < ID_KEY_MAX);
}

/* Two different ids never share a key, and every key fits into its space. */
static void ids_at_random(void **state)
{
	static const char some[] = "0019aA._-";
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char a[ID_MAX + 1], b[ID_MAX + 1];
		size_t n = 1 + (size_t)i % (i % 100 ? 5 : ID_MAX);

		for (size_t k = 0; k < n; k++) {
			seed = seed * 1103515245 + 12345;
			a[k] = some[(seed >> 16) % (sizeof(some) - 1)];
			b[k] = (seed >> 24) % 8 ? a[k] : some[(seed >> 20) % (sizeof(some) - 1)];
		}
		a[n] = b[n] = 0;
		assert_true(id_key(str_c(a)).n < ID_KEY_MAX);
		assert_true(str_eq(id_key(str_c(a)), id_key(str_c(b))) ==
			    str_eq_nocase(str_c(a), str_c(b)));
	}
}

static void due_is_in_the_index(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY, .due = NOW };
	struct index a, b;

	(void)state;
	order_index(&t, &a, &mem);
	assert_true(a.due == NOW);
	b = a;
	assert_true(index_eq(&a, &b));
	b.due = 0;
	assert_false(index_eq(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offers_and_why),
		cmocka_unit_test(other_policies),
		cmocka_unit_test(parents_offered),
		cmocka_unit_test(lanes_by_policy),
		cmocka_unit_test(counts),
		cmocka_unit_test(settles),
		cmocka_unit_test(cycles),
		cmocka_unit_test(each_is_asked_once),
		cmocka_unit_test(long_chain),
		cmocka_unit_test(wide_fan),
		cmocka_unit_test(counts_from_elsewhere),
		cmocka_unit_test(index_of_a_task),
		cmocka_unit_test(order_of_two),
		cmocka_unit_test(every_field_counts),
		cmocka_unit_test(gone_at_its_time),
		cmocka_unit_test(ids_in_natural_order),
		cmocka_unit_test(ids_have_one_key_in_any_case),
		cmocka_unit_test(ids_at_random),
		cmocka_unit_test(due_is_in_the_index),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
