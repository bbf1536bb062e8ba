/*
 * A task as JSON with all its fields survives a round trip, also through text and with arbitrary
 * bytes. Values of the wrong type are refused.
 */
#include "core_kit.h"

#include "format/record_form.h"

static struct str some_bytes(uint64_t *seed)
{
	size_t n = kit_random(seed, 20);
	bool text = kit_random(seed, 2);
	char *p = arena_alloc(&mem, n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)(text ? 'a' + kit_random(seed, 26) : kit_random(seed, 256));
	return str_n(p, n);
}

static struct task some_task(uint64_t *seed)
{
	struct task t = { 0 };

	for (size_t i = 0; i < COUNT(kit_fields); i++) {
		void *p = (char *)&t + kit_fields[i].offset;

		if (kit_random(seed, 3) == 0)
			continue;
		if (kit_fields[i].kind == KIT_STR)
			*(struct str *)p = some_bytes(seed);
		else if (kit_fields[i].kind == KIT_NUMBER)
			*(int64_t *)p = kit_random(seed, 2) ? INT64_MAX
							    : -(int64_t)kit_random(seed, 99);
		else
			*(struct strs *)p = arena_append(&mem, *(struct strs *)p, some_bytes(seed));
	}
	t.status = kit_random(seed, STATUS_END);
	t.class_rank = kit_random(seed, CLASS_END);
	return t;
}

static void round_trip(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct task t = some_task(&seed), back = { 0 };
		json_t *o = task_fields_json(&t), *again;
		char *text = json_dumps(o, 0);

		assert_non_null(text);
		again = json_loads(text, 0, NULL);
		assert_non_null(again);
		assert_int_equal(task_fields_parse(again, &back, &mem), 0);
		assert_int_equal(task_diff(&t, &back, "through text"), 0);
		json_decref(o);
		json_decref(again);
		free(text);
	}
}

static void nothing(void **state)
{
	struct task none = { 0 };
	json_t *o = task_fields_json(&none);

	(void)state;
	assert_int_equal(json_object_size(o), 0);
	json_decref(o);
}

static void odd(void **state)
{
	static const struct {
		const char *text;
		int want;
	} all[] = {
		{ "{}", 0 },
		{ "{\"unknown\": 1}", 0 },
		{ "[]", -EBADMSG },
		{ "{\"title\": 5}", -EBADMSG },
		{ "{\"title\": \"x\"}", 0 },
		{ "{\"title\": {}}", -EBADMSG },
		{ "{\"title\": {\"hex\": 5}}", -EBADMSG },
		{ "{\"title\": {\"hex\": \"0\"}}", -EBADMSG },
		{ "{\"title\": {\"hex\": \"0g\"}}", -EBADMSG },
		{ "{\"title\": {\"hex\": \"g0\"}}", -EBADMSG },
		{ "{\"title\": {\"hex\": \"0/\"}}", -EBADMSG },
		{ "{\"title\": {\"hex\": \"0F\"}}", -EBADMSG },
		{ "{\"title\": {\"hex\": \"00ff9a\"}}", 0 },
		{ "{\"labels\": \"x\"}", -EBADMSG },
		{ "{\"labels\": [5]}", -EBADMSG },
		{ "{\"labels\": [\"a\", {\"hex\": \"ff\"}]}", 0 },
		{ "{\"status\": 5}", -EBADMSG },
		{ "{\"status\": \"Lost\"}", -EBADMSG },
		{ "{\"status\": \"Ready\", \"class\": \"Expedite\"}", 0 },
		{ "{\"class\": \"Poor\"}", -EBADMSG },
		{ "{\"fence\": \"5\"}", -EBADMSG },
		{ "{\"fence\": 5}", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		json_t *o = json_loads(all[i].text, 0, NULL);
		struct task t = { 0 };

		assert_non_null(o);
		if (task_fields_parse(o, &t, &mem) != all[i].want)
			fail_msg("%s", all[i].text);
		json_decref(o);
	}
	assert_int_equal(task_fields_parse(NULL, &(struct task){ 0 }, &mem), -EBADMSG);
}

static void titles(void **state)
{
	char text[TITLE_MAX + 10];

	(void)state;
	assert_true(str_is(title_from(STR(""), STR("t1")), "t1"));
	assert_true(str_is(title_from(STR(" \n "), STR("t1")), "t1"));
	assert_true(str_is(title_from(STR("  One  \nTwo"), STR("t1")), "One"));
	memset(text, 'x', sizeof(text));
	assert_int_equal(title_from(str_n(text, sizeof(text)), STR("t1")).n, TITLE_MAX);
	memcpy(text + TITLE_MAX - 1, "\xc3\xa9", 2);
	assert_int_equal(title_from(str_n(text, sizeof(text)), STR("t1")).n, TITLE_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(round_trip, free_memory),
		cmocka_unit_test_teardown(nothing, free_memory),
		cmocka_unit_test_teardown(odd, free_memory),
		cmocka_unit_test_teardown(titles, free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
