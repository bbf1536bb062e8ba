/*
 * Tasks and events as bytes and as JSON: they survive a round trip, unknown fields are skipped,
 * damaged ones are refused, and no token is ever shown.
 */
#include "core_kit.h"

#include "format/pack.h"
#include "format/task_form.h"
#include "core/event.h"
#include "format/record_form.h"

static struct str packed(const struct task *t, unsigned parts)
{
	struct buf b = BUF_MAX(64u << 20);
	struct str out;

	task_pack(t, parts, &b);
	assert_false(b.full);
	out = arena_str(&mem, buf_str(&b));
	buf_free(&b);
	return out;
}

/* --- random tasks ---------------------------------------------------------------------------------- */

static struct str random_bytes(uint64_t *seed)
{
	size_t n = kit_random(seed, 3) ? kit_random(seed, 40) : kit_random(seed, 3000);
	char *p = arena_alloc(&mem, n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)kit_random(seed, 256);
	return str_n(p, n);
}

static int64_t random_number(uint64_t *seed)
{
	uint64_t v = (uint64_t)kit_random(seed, 1u << 30) << 34 ^
		     (uint64_t)kit_random(seed, 1u << 30) << 17 ^ kit_random(seed, 1u << 30);

	switch (kit_random(seed, 5)) {
	case 0:
		return 0;
	case 1:
		return INT64_MIN;
	case 2:
		return INT64_MAX;
	case 3:
		return -(int64_t)(v >> 20);
	default:
		return (int64_t)v;
	}
}

static void random_field(const struct kit_field *f, struct task *t, uint64_t *seed)
{
	void *p = (char *)t + f->offset;
	struct strs *list = p;

	if (f->kind == KIT_STR)
		*(struct str *)p = random_bytes(seed);
	else if (f->kind == KIT_NUMBER)
		*(int64_t *)p = random_number(seed);
	else
		for (uint32_t n = kit_random(seed, 5); n; n--)
			*list = arena_append(&mem, *list, random_bytes(seed));
}

static struct task random_task(uint64_t *seed)
{
	struct task t = { 0 };

	for (size_t i = 0; i < COUNT(kit_fields); i++)
		if (kit_random(seed, 4))
			random_field(&kit_fields[i], &t, seed);
	t.status = 1 + kit_random(seed, STATUS_END - 1);
	t.class_rank = kit_random(seed, CLASS_END);
	return t;
}

static void round_trip(void **state)
{
	uint64_t seed = 42;

	(void)state;
	for (int i = 0; i < SCALE(2000, 500); i++) {
		struct task t = random_task(&seed), back = { 0 }, halves = { 0 };

		assert_int_equal(task_unpack(packed(&t, HOT | BODY), &back, &mem), 0);
		assert_int_equal(task_diff(&t, &back, "whole"), 0);
		assert_int_equal(task_unpack(packed(&t, BODY), &halves, &mem), 0);
		assert_int_equal(task_unpack(packed(&t, HOT), &halves, &mem), 0);
		assert_int_equal(task_diff(&t, &halves, "in parts"), 0);
		assert_true(str_eq(packed(&t, HOT | BODY), packed(&back, HOT | BODY)));
		if (i % 50 == 0)
			arena_free(&mem);
	}
	assert_int_equal(packed(&(struct task){ 0 }, HOT | BODY).n, 0);
}

/* Claims and heartbeats rewrite only the hot part. */
static void parts(void **state)
{
	struct task t = {
		.id = STR("t1"), .title = STR("title"), .status = READY, .class_rank = STANDARD
	};
	struct str body = packed(&t, BODY), hot = packed(&t, HOT);

	(void)state;
	t.fence++;
	t.version++;
	t.status = IN_PROGRESS;
	t.lock = (struct lock){
		.holder = STR("ann"), .token = STR("hash"), .expires_at = 5, .ttl = 6
	};
	t.assignee = STR("ann");
	t.updated_at = t.started_at = NOW;
	assert_true(str_eq(packed(&t, BODY), body));
	assert_false(str_eq(packed(&t, HOT), hot));
}

/* --- damage ---------------------------------------------------------------------------------------- */

static void unknown_tags(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY, .class_rank = EXPEDITE, .fence = 9 },
		    back = { 0 };
	struct buf b = BUF_MAX(4096);

	(void)state;
	pack_str(&b, 200, STR("from a newer pawl"));
	task_pack(&t, HOT | BODY, &b);
	pack_int(&b, 0, 77);
	pack_int(&b, 255, -1);
	assert_int_equal(task_unpack(buf_str(&b), &back, &mem), 0);
	assert_int_equal(task_diff(&t, &back, "with unknown tags"), 0);
	buf_free(&b);
}

static bool is_used(uint8_t tag)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (field_table[i].tag == tag)
			return true;
	return false;
}

/* The decoder finds a field by the order of the tags. */
static void every_tag(void **state)
{
	(void)state;
	for (size_t i = 1; i < N_FIELDS; i++)
		assert_true(field_table[i].tag > field_table[i - 1].tag);
	for (unsigned tag = 0; tag < 256; tag++) {
		struct task back = { 0 }, none = { 0 };
		struct buf b = BUF_MAX(99);

		pack_str(&b, (uint8_t)tag, STR("\x02")); /* the text "\x02", or the number 1 */
		assert_int_equal(task_unpack(buf_str(&b), &back, &mem), 0);
		assert_int_equal(!task_same(&back, &none, HOT | BODY), is_used((uint8_t)tag));
		buf_free(&b);
	}
}

static void truncated(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct task t = random_task(&seed);
		struct str all = packed(&t, HOT);

		for (size_t n = 0; n < all.n; n++) {
			/* exact size, so that the sanitizer sees one byte too many */
			char *exact = malloc(n ? n : 1);
			struct task out = { 0 };
			int r;

			memcpy(exact, all.p, n);
			r = task_unpack(str_n(exact, n), &out, &mem);
			assert_true(r == 0 || r == -EBADMSG);
			free(exact);
		}
		arena_free(&mem);
	}
}

static void truncated_inside_a_field(void **state)
{
	struct buf b = BUF_MAX(4096);
	struct task out = { 0 };

	(void)state;
	pack_str(&b, 2, STR("a title"));
	for (size_t n = 1; n < b.n; n++)
		assert_int_equal(task_unpack(str_n(b.p, n), &out, &mem), -EBADMSG);
	buf_free(&b);
}

static void garbage(void **state)
{
	uint64_t seed = 99;
	int refused = 0;

	(void)state;
	for (int i = 0; i < SCALE(20000, 4000); i++) {
		struct str s = random_bytes(&seed);
		struct task t = { 0 };
		struct event e;
		int r = task_unpack(s, &t, &mem), q = event_unpack(s, &e);

		assert_true((r == 0 || r == -EBADMSG) && (q == 0 || q == -EBADMSG));
		refused += r < 0;
		if (i % 100 == 0)
			arena_free(&mem);
	}
	assert_true(refused > SCALE(10000, 2000));
}

static int unpack_one(uint8_t tag, struct str bytes)
{
	struct buf b = BUF_MAX(4096);
	struct task t = { 0 };
	int r;

	pack_str(&b, tag, bytes);
	r = task_unpack(buf_str(&b), &t, &mem);
	buf_free(&b);
	return r;
}

static int unpack_one_number(uint8_t tag, int64_t v)
{
	struct buf b = BUF_MAX(4096);
	struct task t = { 0 };
	int r;

	pack_int(&b, tag, v);
	r = task_unpack(buf_str(&b), &t, &mem);
	buf_free(&b);
	return r;
}

/* Numbers that the rules use as table indexes must be in range. */
static void no_such_number(void **state)
{
	(void)state;
	assert_int_equal(unpack_one(26, STR("")), -EBADMSG);
	assert_int_equal(unpack_one(26, STR("\x80")), -EBADMSG);
	assert_int_equal(unpack_one(26, STR("\x02\x02")), -EBADMSG);
	assert_int_equal(unpack_one(5, STR("\x80")), -EBADMSG);
	for (int64_t s = -2; s < 12; s++) {
		assert_int_equal(unpack_one_number(5, s),
				 s >= BACKLOG && s < STATUS_END ? 0 : -EBADMSG);
		assert_int_equal(unpack_one_number(6, s),
				 s >= EXPEDITE && s < CLASS_END ? 0 : -EBADMSG);
		assert_int_equal(unpack_one_number(26, s), 0);
	}
	assert_int_equal(unpack_one_number(5, INT64_MAX), -EBADMSG);
	assert_int_equal(unpack_one_number(26, INT64_MAX), 0);
}

/* --- JSON ------------------------------------------------------------------------------------------ */

static void check_json(json_t *o, const char *want)
{
	char *got = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);

	assert_string_equal(got, want);
	free(got);
	json_decref(o);
}

static void least_json(void **state)
{
	struct task t = { .id = STR("t1"),
			  .title = STR("x"),
			  .status = READY,
			  .created_at = NOW,
			  .updated_at = NOW };

	(void)state;
	check_json(
		task_json(&t, NOW, &mem),
		"{\"id\":\"t1\",\"title\":\"x\",\"status\":\"Ready\",\"class\":\"Standard\",\"priority\":0,"
		"\"labels\":[],\"depends\":[],\"attempts\":0,\"abandoned\":0,\"fence\":0,"
		"\"created_at\":\"2023-11-14T22:13:20.000Z\",\"updated_at\":\"2023-11-14T22:13:20.000Z\","
		"\"version\":0,\"lock\":null}");
}

static struct str two[] = { { "a", 1 }, { "b", 1 } };

static struct task full_task(void)
{
	return (struct task){
		.id = STR("t1"),
		.title = STR("x"),
		.description = STR("d"),
		.acceptance = STR("ok"),
		.status = IN_PROGRESS,
		.class_rank = EXPEDITE,
		.priority = 3,
		.type = STR("bug"),
		.effort = STR("S"),
		.labels = { two, 2 },
		.due = NOW,
		.not_before = NOW + 1,
		.parent = STR("t0"),
		.depends = { two, 1 },
		.open_deps = 1,
		.canceled_deps = 2,
		.open_subs = 3,
		.assignee = STR("ann"),
		.run = STR("r1"),
		.blocker_reason = STR("why"),
		.unblock_action = STR("ask"),
		.next_check = NOW + 2,
		.summary = STR("s"),
		.attempts = 4,
		.abandoned = 5,
		.fence = 6,
		.created_at = NOW,
		.updated_at = NOW + 3,
		.started_at = NOW + 4,
		.first_started_at = NOW + 5,
		.done_at = NOW + 6,
		.version = 7,
		.extra = STR("{\"ra_score\":9}"),
		.last = { OP_DONE, STR("LASTTOKEN"), STR("LASTNEXT") },
		.last_ttl = 1234567,
		.last_expires_at = NOW + 11,
		.free_at = NOW + 7654321,
		.lock = { .holder = STR("ann"),
			  .host = STR("box"),
			  .token = STR("SECRETHASH"),
			  .acquired_at = NOW,
			  .expires_at = NOW + 1500,
			  .ttl = 2000,
			  .manual = 1,
			  .foreign = 1,
			  .pid = 8,
			  .pid_start = 9,
			  .boot_id = STR("boot") },
	};
}

static void full_json(void **state)
{
	struct task t = full_task();

	(void)state;
	check_json(
		task_json(&t, NOW, &mem),
		"{\"id\":\"t1\",\"title\":\"x\",\"description\":\"d\",\"acceptance\":\"ok\","
		"\"status\":\"In Progress\",\"class\":\"Expedite\",\"priority\":3,\"type\":\"bug\","
		"\"effort\":\"S\",\"labels\":[\"a\",\"b\"],\"due\":\"2023-11-14T22:13:20.000Z\","
		"\"not_before\":\"2023-11-14T22:13:20.001Z\",\"parent\":\"t0\",\"depends\":[\"a\"],"
		"\"open_depends\":1,\"canceled_depends\":2,\"open_subtasks\":3,\"assignee\":\"ann\","
		"\"agent_run\":\"r1\",\"blocker_reason\":\"why\",\"unblock_action\":\"ask\","
		"\"next_check\":\"2023-11-14T22:13:20.002Z\",\"summary\":\"s\",\"attempts\":4,"
		"\"abandoned\":5,\"fence\":6,\"created_at\":\"2023-11-14T22:13:20.000Z\","
		"\"updated_at\":\"2023-11-14T22:13:20.003Z\",\"started_at\":\"2023-11-14T22:13:20.004Z\","
		"\"first_started_at\":\"2023-11-14T22:13:20.005Z\",\"done_at\":\"2023-11-14T22:13:20.006Z\","
		"\"version\":7,\"extra\":{\"ra_score\":9},\"held\":true,"
		"\"lock\":{\"holder\":\"ann\",\"host\":\"box\",\"fence\":6,\"live\":true,"
		"\"acquired_at\":\"2023-11-14T22:13:20.000Z\",\"expires_at\":\"2023-11-14T22:13:21.500Z\","
		"\"expires_in\":1.5,\"ttl\":2,\"manual\":true,\"foreign\":true,\"pid\":8,\"pid_start\":9,"
		"\"boot_id\":\"boot\"}}");
}

/* An expired lock; one without expiry; one without a host. */
static void lock_as_json(void **state)
{
	struct task t = { .fence = 2,
			  .lock = { .holder = STR("ann"),
				    .token = STR("x"),
				    .acquired_at = NOW,
				    .expires_at = NOW,
				    .ttl = 1000 } };

	(void)state;
	check_json(
		lock_json(&t, NOW + 5000, &mem),
		"{\"holder\":\"ann\",\"fence\":2,\"live\":false,"
		"\"acquired_at\":\"2023-11-14T22:13:20.000Z\",\"expires_at\":\"2023-11-14T22:13:20.000Z\","
		"\"expires_in\":0,\"ttl\":1}");
	t.lock.expires_at = t.lock.acquired_at = 0;
	check_json(lock_json(&t, NOW, &mem),
		   "{\"holder\":\"ann\",\"fence\":2,\"live\":false,\"ttl\":1}");
	t.lock.holder = STR("");
	check_json(lock_json(&t, NOW, &mem), "null");
}

/* Hidden values appear nowhere in the JSON, with any other values of the task. */
static void nothing_hidden_is_shown(void **state)
{
	static const char *const secrets[] = { "SECRETHASH", "LASTTOKEN", "LASTNEXT", "1234567",
					       "last_",      "free_at",   "token" };
	struct task t = full_task();
	json_t *o = task_json(&t, NOW, &mem);
	char *text = json_dumps(o, 0);

	(void)state;
	for (size_t i = 0; i < COUNT(secrets); i++)
		assert_null(strstr(text, secrets[i]));
	free(text);
	json_decref(o);
}

/* --- events ---------------------------------------------------------------------------------------- */

static void events(void **state)
{
	struct event e = { .name = STR("claimed"),
			   .task = STR("t1"),
			   .agent = STR("ann"),
			   .run = STR("r"),
			   .text = STR("words"),
			   .fence = 3,
			   .from = READY,
			   .to = IN_PROGRESS },
		     back;
	struct buf b = BUF_MAX(4096);

	(void)state;
	event_pack(&e, &b);
	pack_str(&b, 0, STR("?"));
	pack_str(&b, 99, STR("newer"));
	assert_int_equal(event_unpack(buf_str(&b), &back), 0);
	assert_true(str_is(back.name, "claimed") && str_is(back.task, "t1") &&
		    str_is(back.agent, "ann") && str_is(back.run, "r") &&
		    str_is(back.text, "words"));
	assert_true(back.fence == 3 && back.from == READY && back.to == IN_PROGRESS && !back.at);
	back.cursor = STR("c1");
	back.at = NOW;
	check_json(
		event_json(&back, &mem),
		"{\"cursor\":\"c1\",\"at\":\"2023-11-14T22:13:20.000Z\",\"event\":\"claimed\",\"task\":\"t1\","
		"\"agent\":\"ann\",\"run\":\"r\",\"fence\":3,\"from\":\"Ready\",\"to\":\"In Progress\","
		"\"text\":\"words\"}");
	for (size_t n = 1; n < 4; n++)
		assert_int_equal(event_unpack(str_n(b.p, n), &back), -EBADMSG);
	buf_free(&b);
}

static void small_event(void **state)
{
	struct event e = { .name = STR("imported"), .at = NOW }, back;
	struct buf b = BUF_MAX(4096);

	(void)state;
	event_pack(&e, &b);
	assert_int_equal(event_unpack(buf_str(&b), &back), 0);
	check_json(event_json(&e, &mem),
		   "{\"at\":\"2023-11-14T22:13:20.000Z\",\"event\":\"imported\"}");
	pack_str(&b, 6, STR("\x80")); /* an invalid number */
	assert_int_equal(event_unpack(buf_str(&b), &back), -EBADMSG);
	assert_int_equal(event_unpack(STR(""), &back), 0);
	assert_int_equal(back.name.n, 0);
	buf_free(&b);
}

/* One field of each kind, in each part. */
static void same_or_not(void **state)
{
	struct task a = full_task(), b = a;

	(void)state;
	assert_true(task_same(&a, &b, HOT | BODY));
	b.summary = STR("another one");
	assert_true(task_same(&a, &b, HOT) && !task_same(&a, &b, BODY));
	b = a;
	b.labels.n--;
	assert_true(task_same(&a, &b, HOT) && !task_same(&a, &b, BODY));
	b = a;
	b.extra = STR("{}");
	assert_true(task_same(&a, &b, HOT) && !task_same(&a, &b, BODY));
	b = a;
	b.version++;
	assert_true(!task_same(&a, &b, HOT) && task_same(&a, &b, BODY));
}

/* The parts of a task may follow one another: a list continues across them. */
static void lists_go_on(void **state)
{
	struct str one[] = { STR("a"), STR("b"), STR("c") };
	struct task t = { .labels = { one, 3 }, .depends = { one, 1 } }, back = { 0 };
	struct str bytes = packed(&t, HOT | BODY);

	(void)state;
	assert_int_equal(task_unpack(bytes, &back, &mem), 0);
	assert_int_equal(task_unpack(bytes, &back, &mem), 0);
	assert_int_equal(back.labels.n, 6);
	assert_int_equal(back.depends.n, 2);
	assert_true(str_is(back.labels.v[0], "a") && str_is(back.labels.v[5], "c"));
}

/* A list that is longer than pawl ever writes is refused. */
static void lists_end(void **state)
{
	struct buf b = BUF_MAX(1 << 20);
	struct task t = { 0 };
	uint8_t tag = 0;

	(void)state;
	for (size_t i = 0; i < N_FIELDS; i++)
		if (field_at(&field_table[i], &t) == (void *)&t.labels)
			tag = field_table[i].tag;
	for (int i = 0; i < LIST_UNPACK_MAX; i++)
		pack_str(&b, tag, STR("l"));
	assert_int_equal(task_unpack(buf_str(&b), &t, &mem), 0);
	assert_int_equal(t.labels.n, LIST_UNPACK_MAX);
	pack_str(&b, tag, STR("l"));
	t = (struct task){ 0 };
	assert_int_equal(task_unpack(buf_str(&b), &t, &mem), -EBADMSG);
	buf_free(&b);
	arena_free(&mem);
}

static void repeated(void **state)
{
	struct task t = { .title = STR("a") }, n = { .fence = 1 }, back = { 0 };
	struct str title = packed(&t, BODY), fence = packed(&n, HOT);

	(void)state;
	title = arena_printf(&mem, "%.*s%.*s", STRF(title), STRF(title));
	fence = arena_printf(&mem, "%.*s%.*s", STRF(fence), STRF(fence));
	assert_int_equal(task_unpack(title, &back, &mem), -EBADMSG);
	assert_int_equal(task_unpack(fence, &back, &mem), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),   cmocka_unit_test(parts),
		cmocka_unit_test(unknown_tags), cmocka_unit_test(every_tag),
		cmocka_unit_test(truncated),    cmocka_unit_test(truncated_inside_a_field),
		cmocka_unit_test(garbage),      cmocka_unit_test(no_such_number),
		cmocka_unit_test(least_json),   cmocka_unit_test(full_json),
		cmocka_unit_test(lock_as_json), cmocka_unit_test(nothing_hidden_is_shown),
		cmocka_unit_test(events),       cmocka_unit_test(small_event),
		cmocka_unit_test(same_or_not),  cmocka_unit_test(lists_go_on),
		cmocka_unit_test(repeated),     cmocka_unit_test(lists_end),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
