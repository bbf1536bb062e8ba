/*
 * YAML as JSON values survives a round trip. Unsupported YAML is refused with its line, and yields
 * no value.
 */
#include "core_kit.h"

#include "format/yaml.h"

static int collect(void *ctx, struct str key, json_t *value, size_t line)
{
	assert_true(line > 0);
	json_object_set(ctx, arena_cstr(&mem, key), value);
	return str_is(key, "stop") ? 7 : 0;
}

static void reads(void **state)
{
	static const struct {
		const char *text, *want;
	} all[] = {
		{ "", "{}" },
		{ "# only a remark\n", "{}" },
		{ "{}", "{}" },
		{ "a: 1\nb: two words\nc:\n", "{\"a\":1,\"b\":\"two words\",\"c\":null}" },
		{ "a: ~\nb: Null\nc: \"\"\n", "{\"a\":null,\"b\":null,\"c\":\"\"}" },
		{ "a: true\nb: FALSE\nc: 'true'\n", "{\"a\":true,\"b\":false,\"c\":\"true\"}" },
		{ "a: -1\nb: 1.5\nc: 1e3\nd: 007\n",
		  "{\"a\":-1,\"b\":1.5,\"c\":1000.0,\"d\":\"007\"}" },
		{ "a: 99999999999999999999\n", "{\"a\":\"99999999999999999999\"}" },
		{ "a: !!str 5\n", "{\"a\":\"5\"}" },
		{ "a: 2026-02-13 02:35\n", "{\"a\":\"2026-02-13 02:35\"}" },
		{ "a: [112, b, [c]]\n", "{\"a\":[112,\"b\",[\"c\"]]}" },
		{ "a:\n  - x: 1\n    y: 2\n  - z\n", "{\"a\":[{\"x\":1,\"y\":2},\"z\"]}" },
		{ "a: |\n  one\n  two\n", "{\"a\":\"one\\ntwo\\n\"}" },
		{ "a: \"\\u263a \\x41\"\n", "{\"a\":\"\u263a A\"}" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct yaml_fault fault = { 0 };
		json_t *o = json_object();
		char *text;

		if (yaml_read(str_c(all[i].text), collect, o, &fault, &mem))
			fail_msg("%s: %zu: %.*s", all[i].text, fault.line, STRF(fault.text));
		text = json_dumps(o, JSON_COMPACT);
		assert_string_equal(text, all[i].want);
		free(text);
		json_decref(o);
	}
}

static void faults(void **state)
{
	static const struct {
		const char *text;
		size_t line;
		const char *want;
	} all[] = {
		{ "a: &x 1\nb: *x\n", 2, "aliases" },
		{ "a: 1\n? *x\n", 2, "aliases" },
		{ "a: &x [*x]\n", 1, "aliases" },
		{ "a: 1\nb: 2\na: 3\n", 3, "the key a occurs twice" },
		{ "a: {b: 1, b: 2}\n", 1, "twice" },
		{ "- a\n", 1, "not a mapping" },
		{ "words\n", 1, "not a mapping" },
		{ "? [a]\n: b\n", 1, "a key is a word" },
		{ "a: 1\n--- \nb: 2\n", 2, "more than one document" },
		{ "a: \"x\\0y\"\n", 1, "NUL" },
		{ "\"a\\0\": 1\n", 1, "NUL" },
		{ "\"\": 1\n", 1, "1 to 128 bytes" },
		{ "a: 1\nb: [1, 2\n", 3, "expected ',' or ']'" },
		{ "a: 1\nb: x: y\n", 2, "mapping values are not allowed" },
		{ "a: 1\n\tb: 2\n", 2, "tab" },
		{ "a: \"open\n", 2, "end of stream" },
		{ "a: 1\nb: \x01\n", 2, "control characters" },
		{ "a: 1\nb: \xff\n", 2, "UTF-8" },
		{ "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", 1,
		  "deep" },
		{ "a: 1\nb: {c: {d: *e}}\n", 2, "aliases" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct yaml_fault fault = { 0 };
		json_t *o = json_object();

		if (yaml_read(str_c(all[i].text), collect, o, &fault, &mem) != -EBADMSG ||
		    fault.line != all[i].line || !str_holds(fault.text, all[i].want))
			fail_msg("%s: %zu: %.*s", all[i].text, fault.line, STRF(fault.text));
		json_decref(o);
	}
}

static void stops(void **state)
{
	struct yaml_fault fault;
	json_t *o = json_object();

	(void)state;
	assert_int_equal(yaml_read(STR("a: 1\nstop: 2\nb: 3\n"), collect, o, &fault, &mem), 7);
	assert_int_equal(json_object_size(o), 2);
	json_decref(o);
}

/* The form that people see. */
static void form(void **state)
{
	static const struct {
		const char *json, *want;
	} all[] = {
		{ "\"Fix the parser\"", "k: Fix the parser\n" },
		{ "\"2026-02-13T02:35:00.000Z\"", "k: 2026-02-13T02:35:00.000Z\n" },
		{ "\"\"", "k: \"\"\n" },
		{ "\"5\"", "k: \"5\"\n" },
		{ "\"null\"", "k: \"null\"\n" },
		{ "\"No\"", "k: \"No\"\n" },
		{ "\"a: b\"", "k: \"a: b\"\n" },
		{ "\"end:\"", "k: \"end:\"\n" },
		{ "\"end \"", "k: \"end \"\n" },
		{ "\"- x\"", "k: \"- x\"\n" },
		{ "\"\u263a \\\"q\\\" \\\\\"", "k: \"\u263a \\\"q\\\" \\\\\"\n" },
		{ "\"a\\tb\\u0001\\u0085\\u2028\\ufeff\\uffff\\u007f\"",
		  "k: \"a\\tb\\x01\\x85\\u2028\\ufeff\\uffff\\x7f\"\n" },
		{ "[1, \"b\", [], {}]", "k: [1, b, [], {}]\n" },
		{ "{\"a\": {\"b\": null}, \"c\": 1.5}", "k: {a: {b: null}, c: 1.5}\n" },
		{ "[{\"a\": 1}, 2]", "k:\n  - {a: 1}\n  - 2\n" },
		{ "\"one\\n\\ntwo\\n\"", "k: |\n  one\n\n  two\n" },
		{ "\"one\\ntwo\"", "k: |-\n  one\n  two\n" },
		{ "\"one\\n\\n\"", "k: \"one\\n\\n\"\n" },
		{ "\"one \\ntwo\"", "k: \"one \\ntwo\"\n" },
		{ "\"one\\ntwo \"", "k: \"one\\ntwo \"\n" },
		{ "\" one\\ntwo\"", "k: \" one\\ntwo\"\n" },
		{ "\"one\\r\\ntwo\"", "k: \"one\\x0d\\ntwo\"\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		json_t *v = json_loads(all[i].json, JSON_DECODE_ANY, NULL);
		struct buf b = BUF_MAX(1000);

		assert_non_null(v);
		yaml_add(&b, STR("k"), v);
		assert_string_equal(b.p, all[i].want);
		json_decref(v);
		buf_free(&b);
	}
}

static json_t *some_text(uint64_t *seed)
{
	static const char *const pieces[] = { "a",
					      "Z",
					      "7",
					      " ",
					      "\n",
					      "\t",
					      ":",
					      "#",
					      "-",
					      "'",
					      "\"",
					      "\\",
					      "{",
					      "]",
					      ",",
					      "&",
					      "*",
					      "%",
					      "\xc3\xa9",
					      "|",
					      "\r",
					      "\xc2\x85",
					      "\x1",
					      "no",
					      "~",
					      "\xef\xbb\xbf",
					      "!",
					      "?",
					      "\xf0\x9f\x98\x80",
					      "\xe2\x80\xa8",
					      "---",
					      "...",
					      "@" };
	struct buf b = BUF_MAX(1000);
	json_t *o;

	for (uint32_t n = kit_random(seed, 12); n; n--)
		buf_adds(&b, str_c(pieces[kit_random(seed, COUNT(pieces))]));
	o = json_stringn(b.n ? b.p : "", b.n);
	buf_free(&b);
	return o;
}

/* Texts that other programs would misread are quoted. */
static void quoted(void **state)
{
	static const char *const texts[] = { "no", "Off", "10_2", "14:30", "007", "1e3", "null" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct buf b = BUF_MAX(100), want = BUF_MAX(100);
		json_t *v = json_string(texts[i]);

		yaml_add(&b, STR("k"), v);
		buf_addf(&want, "k: \"%s\"\n", texts[i]);
		assert_string_equal(b.p, want.p);
		json_decref(v);
		buf_free(&b);
		buf_free(&want);
	}
}

static json_t *some_value(uint64_t *seed, int depth)
{
	json_t *o, *key;

	switch (kit_random(seed, depth > 4 ? 5 : 9)) {
	case 0:
		return json_integer(INT64_MIN + kit_random(seed, 3));
	case 1:
		return json_real((double)kit_random(seed, 1000) / 7);
	case 2:
		return kit_random(seed, 2) ? json_null() : json_boolean(kit_random(seed, 2));
	case 5:
	case 6:
		o = json_array();
		for (uint32_t n = kit_random(seed, 4); n; n--)
			json_array_append_new(o, some_value(seed, depth + 1));
		return o;
	case 7:
	case 8:
		o = json_object();
		for (uint32_t n = kit_random(seed, 4); n; n--) {
			key = some_text(seed);
			json_object_set_new(o,
					    json_string_length(key) ? json_string_value(key) : "k",
					    some_value(seed, depth + 1));
			json_decref(key);
		}
		return o;
	default:
		return some_text(seed);
	}
}

static void round_trip(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		json_t *v = some_value(&seed, 0), *key = some_text(&seed), *o = json_object();
		struct str k = str_c(json_string_length(key) ? json_string_value(key) : "key");
		struct buf b = BUF_MAX(1 << 20);
		struct yaml_fault fault;

		assert_true(yaml_able(v) && yaml_able_key(k));
		yaml_add(&b, k, v);
		yaml_add(&b, STR("a last one, behind it"), v);
		if (yaml_read(buf_str(&b), collect, o, &fault, &mem))
			fail_msg("%s: %zu: %.*s", b.p, fault.line, STRF(fault.text));
		if (!json_equal(json_object_get(o, k.p), v))
			fail_msg("%s", b.p);
		json_decref(v);
		json_decref(key);
		json_decref(o);
		buf_free(&b);
	}
}

static void unable(void **state)
{
	json_t *deep = json_array(), *key = json_object(), *bytes = json_array();
	char name[YAML_KEY_MAX + 2];

	(void)state;
	for (int i = 0; i < YAML_DEPTH - 2; i++) {
		assert_true(yaml_able(deep));
		deep = json_pack("[o]", deep);
	}
	assert_true(yaml_able(deep));
	deep = json_pack("[o]", deep);
	assert_false(yaml_able(deep));
	memset(name, 'k', sizeof(name));
	name[YAML_KEY_MAX + 1] = '\0';
	json_object_set_new(key, name, json_true());
	assert_false(yaml_able(key));
	json_array_append_new(bytes, json_stringn("a\0b", 3));
	assert_false(yaml_able(bytes));
	assert_false(yaml_able_key(STR("")));
	json_decref(deep);
	json_decref(key);
	json_decref(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(reads, free_memory),
		cmocka_unit_test_teardown(faults, free_memory),
		cmocka_unit_test_teardown(stops, free_memory),
		cmocka_unit_test_teardown(form, free_memory),
		cmocka_unit_test_teardown(round_trip, free_memory),
		cmocka_unit_test(quoted),
		cmocka_unit_test_teardown(unable, free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
