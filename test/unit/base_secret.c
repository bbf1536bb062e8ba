#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/secret.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static void tokens(void **state)
{
	struct arena a = { 0 };
	struct str last = STR("");

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct str t = token_make(&a);

		assert_int_equal(t.n, TOKEN_LEN);
		assert_true(token_valid(t));
		assert_int_equal(t.p[14], '4'); /* version */
		assert_non_null(strchr("89ab", t.p[19]));
		for (size_t j = 0; j < t.n; j++)
			assert_false(t.p[j] >= 'A' && t.p[j] <= 'Z');
		assert_false(str_eq(t, last));
		last = t;
	}
	arena_free(&a);
}

static void validity(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"123e4567e89b12d3a456426614174000",
		"123e4567-e89b-12d3-a456-42661417400",
		"123e4567-e89b-12d3-a456-4266141740000",
		"123e4567-e89b-12d3-a456-42661417400g",
		"123e4567-e89b-12d3-a4564-26614174000",
		"{23e4567-e89b-12d3-a456-42661417400}",
		" 23e4567-e89b-12d3-a456-426614174000",
		"------------------------------------",
		"123e4567-e89b-12d3-a456-4266141740\xc3\xa9",
	};

	(void)state;
	assert_true(token_valid(STR("123e4567-e89b-12d3-a456-426614174000")));
	assert_true(token_valid(STR("123E4567-E89B-12D3-A456-426614174ABC")));
	for (size_t i = 0; i < COUNT(bad); i++)
		if (token_valid(str_c(bad[i])))
			fail_msg("taken: %s", bad[i]);
}

static void marks(void **state)
{
	struct secret_mark key = secret_mark_key(), other = secret_mark_key(), a, b;

	(void)state;
	assert_memory_not_equal(&key, &other, sizeof(key));
	a = secret_mark(&key, STR("pawl_secret"));
	b = secret_mark(&key, STR("pawl_secret"));
	assert_memory_equal(&a, &b, sizeof(a));
	b = secret_mark(&other, STR("pawl_secret"));
	assert_memory_not_equal(&a, &b, sizeof(a));
	b = secret_mark(&key, STR("pawl_secreu"));
	assert_memory_not_equal(&a, &b, sizeof(a));
	b = secret_mark(&key, STR(""));
	assert_memory_not_equal(&a, &b, sizeof(a));
}

static void hashes(void **state)
{
	static const unsigned char abc[] = {
		0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
		0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
		0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
	};
	struct arena a = { 0 };
	struct str h = token_hash(&a, STR("abc"));

	(void)state;
	assert_int_equal(h.n, HASH_LEN);
	assert_memory_equal(h.p, abc, HASH_LEN);
	assert_true(str_eq(token_hash(&a, STR("ABC")), h));
	assert_false(str_eq(token_hash(&a, STR("abd")), h));
	assert_string_equal(hash_hex(&a, STR("abc")).p,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(hash_hex(&a, STR("")).p,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_false(str_eq(hash_hex(&a, STR("ABC")), hash_hex(&a, STR("abc"))));
	arena_free(&a);
}

static void equality(void **state)
{
	(void)state;
	assert_true(secret_eq(STR("same"), STR("same")));
	assert_false(secret_eq(STR("same"), STR("samE")));
	assert_false(secret_eq(STR("same"), STR("same ")));
	assert_false(secret_eq(STR("same"), STR("")));
	assert_true(secret_eq(STR(""), str_n(NULL, 0)));
	assert_false(secret_eq(STR("a\0b"), STR("a\0c")));
}

static void random_numbers(void **state)
{
	unsigned seen[8] = { 0 };

	(void)state;
	for (int i = 0; i < 4000; i++) {
		uint32_t r = random_below(8);

		assert_true(r < 8);
		seen[r]++;
	}
	for (size_t i = 0; i < COUNT(seen); i++)
		assert_true(seen[i] > 300 && seen[i] < 700);
	assert_int_equal(random_below(1), 0);
	assert_int_equal(random_below(0), 0);
}

/* The second test case of RFC 4231. */
static void signatures(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_true(str_is(secret_sign(&a, STR("Jefe"), STR("what do ya want for nothing?")),
			   "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM"));
	assert_false(str_eq(secret_sign(&a, STR("Jefe"), STR("")),
			    secret_sign(&a, STR("jefe"), STR(""))));
	arena_free(&a);
}

static void base64(void **state)
{
	static const char *const bad[] = { "Y2xhaW0", "Y2xh!W0=", "Y", "=", "Y2xhaW0=x" };
	struct arena a = { 0 };
	struct str out;

	(void)state;
	assert_true(base64_bytes(STR("Y2xhaW0="), &out, &a));
	assert_true(str_is(out, "claim"));
	assert_true(base64_bytes(STR(""), &out, &a));
	assert_int_equal(out.n, 0);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(base64_bytes(str_c(bad[i]), &out, &a));
	arena_free(&a);
}

/* The hash of RFC 7693, Appendix A, but of 16 bytes: events of every queue contain it. */
static void short_hashes(void **state)
{
	static const unsigned char abc[SHORT_HASH_LEN] = { 0xcf, 0x4a, 0xb7, 0x91, 0xc6, 0x2b,
							   0x8d, 0x2b, 0x21, 0x09, 0xc9, 0x02,
							   0x75, 0x28, 0x78, 0x16 };
	unsigned char one[SHORT_HASH_LEN], other[SHORT_HASH_LEN];

	(void)state;
	hash_short(STR("abc"), one);
	assert_memory_equal(one, abc, sizeof(abc));
	hash_short(STR(""), one);
	hash_short(STR("abd"), other);
	assert_memory_not_equal(one, other, sizeof(one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens),       cmocka_unit_test(validity),
		cmocka_unit_test(hashes),       cmocka_unit_test(marks),
		cmocka_unit_test(equality),     cmocka_unit_test(random_numbers),
		cmocka_unit_test(signatures),   cmocka_unit_test(base64),
		cmocka_unit_test(short_hashes),
	};

	return cmocka_run_group_tests_name("base/secret", tests, NULL, NULL);
}
