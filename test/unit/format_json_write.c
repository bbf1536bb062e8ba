/* Compares json_write() with jansson on random values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/backoff.h"
#include "format/json.h"

#define VALUES 5000
#define DEPTH 4

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	return seeded_below(&seed, n);
}

/* Control characters, quotes, and characters of one to four bytes; also NUL and DEL. */
static json_t *random_text(void)
{
	static const char *const parts[] = { "a",
					     "Task 1",
					     "\"",
					     "\\",
					     "/",
					     "\b",
					     "\f",
					     "\n",
					     "\r",
					     "\t",
					     " ",
					     "\x01",
					     "\x1f",
					     "\x7f",
					     "\xc3\xa9",
					     "<&>'",
					     "",
					     "\xe2\x80\xa8",
					     "\xf0\x9f\x98\x80" };
	struct buf b = BUF_MAX(1000);
	json_t *text;

	for (uint32_t n = below(6); n; n--) {
		uint32_t i = below(sizeof(parts) / sizeof(*parts) + 1);

		if (i < sizeof(parts) / sizeof(*parts))
			buf_adds(&b, str_c(parts[i]));
		else
			buf_addc(&b, '\0');
	}
	text = json_stringn(b.n ? b.p : "", b.n);
	buf_free(&b);
	assert_non_null(text);
	return text;
}

static json_t *random_number(void)
{
	static const double reals[] = { 0, -0.0, 1, 0.1, 1e300, -2.5e-7, 1.0 / 3, 123456789.25 };
	static const int64_t whole[] = { 0, 1, -1, 10, INT64_MAX, INT64_MIN, 1700000000000 };

	if (below(2))
		return json_real(reals[below(sizeof(reals) / sizeof(*reals))]);
	return json_integer(whole[below(sizeof(whole) / sizeof(*whole))]);
}

static json_t *random_value(int depth)
{
	json_t *v, *key;

	switch (below(depth ? 7 : 5)) {
	case 0:
		return json_null();
	case 1:
		return json_boolean(below(2));
	case 2:
		return random_number();
	case 5:
		v = json_array();
		for (uint32_t n = below(4); n; n--)
			json_array_append_new(v, random_value(depth - 1));
		return v;
	case 6:
		v = json_object();
		for (uint32_t n = below(4); n; n--) {
			key = random_text();
			json_object_set_new(v, json_string_value(key), random_value(depth - 1));
			json_decref(key);
		}
		return v;
	default:
		return random_text();
	}
}

static void writes_what_jansson_writes(void **state)
{
	(void)state;
	for (int i = 0; i < VALUES; i++) {
		json_t *v = random_value(DEPTH);
		struct buf b = BUF_MAX(1 << 20);
		char *want = json_dumps(v,
					JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

		json_write(v, &b);
		assert_non_null(want);
		assert_string_equal(b.p, want);
		assert_int_equal(b.n, strlen(want));
		free(want);
		buf_free(&b);
		json_decref(v);
	}
}

/* The server relies on it: an answer that does not fit is told in another way. */
static void stops_at_the_limit(void **state)
{
	json_t *v = json_pack("{s:s, s:[i, i]}", "text", "a long enough text", "list", 1, 2);
	struct buf b = BUF_MAX(20);

	(void)state;
	json_write(v, &b);
	assert_true(b.full);
	assert_true(b.n <= 20);
	buf_free(&b);
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_jansson_writes),
		cmocka_unit_test(stops_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
