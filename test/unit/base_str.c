#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "format/pack.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static void compares(void **state)
{
	(void)state;
	assert_true(str_eq(STR(""), str_n(NULL, 0)));
	assert_true(str_eq(STR("a\0b"), STR("a\0b")));
	assert_false(str_eq(STR("a\0b"), STR("a\0c")));
	assert_true(str_is(STR("abc"), "abc"));
	assert_true(str_is(STR(""), NULL));
	assert_true(str_cmp(STR("a"), STR("b")) < 0);
	assert_true(str_cmp(STR("a"), STR("aa")) < 0);
	assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
	assert_int_equal(str_cmp(STR("a"), STR("a")), 0);
	assert_int_equal(str_cmp(STR(""), str_n(NULL, 0)), 0);
	assert_true(str_eq_nocase(STR("AbZ"), STR("aBz")));
	assert_false(str_eq_nocase(STR("@"), STR("`")));
	assert_false(str_eq_nocase(STR("Ä"), STR("ä")));
}

static void finds(void **state)
{
	(void)state;
	assert_true(str_starts(STR("abc"), STR("ab")));
	assert_true(str_starts(STR("abc"), STR("")));
	assert_false(str_starts(STR("ab"), STR("abc")));
	assert_true(str_ends(STR("abc"), STR("bc")));
	assert_false(str_ends(STR("bc"), STR("abc")));
	assert_true(str_has_nocase(STR("Hello World"), STR("WORLD")));
	assert_true(str_has_nocase(STR("x"), STR("")));
	assert_false(str_has_nocase(STR("worl"), STR("world")));
}

static void trims_and_cuts(void **state)
{
	struct str s = STR("a,b,,c");

	(void)state;
	assert_true(str_is(str_trim(STR(" \t\r\n a b \n")), "a b"));
	assert_true(str_is(str_trim(STR(" \n")), ""));
	assert_true(str_is(str_cut(&s, ','), "a"));
	assert_true(str_is(str_cut(&s, ','), "b"));
	assert_true(str_is(str_cut(&s, ','), ""));
	assert_true(str_is(str_cut(&s, ','), "c"));
	assert_int_equal(s.n, 0);
	assert_true(str_is(str_cut(&s, ','), ""));
	s = STR("end,");
	assert_true(str_is(str_cut(&s, ','), "end"));
	assert_int_equal(s.n, 0);
}

static void numbers(void **state)
{
	static const char *const bad[] = {
		"",
		"-",
		"+1",
		" 1",
		"1 ",
		"1x",
		"x",
		"0x1",
		"1.0",
		"--1",
		"9223372036854775808",
		"18446744073709551616",
		"99999999999999999999999",
		"1e3",
	};
	int64_t v = 0;

	(void)state;
	assert_true(str_to_i64(STR("0"), &v) && v == 0);
	assert_true(str_to_i64(STR("-0"), &v) && v == 0);
	assert_true(str_to_i64(STR("007"), &v) && v == 7);
	assert_true(str_to_i64(STR("-42"), &v) && v == -42);
	assert_true(str_to_i64(STR("9223372036854775807"), &v) && v == INT64_MAX);
	assert_true(str_to_i64(STR("-9223372036854775807"), &v) && v == -INT64_MAX);
	v = 5;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (str_to_i64(str_c(bad[i]), &v))
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(v, 5);
}

static void lists(void **state)
{
	struct str v[] = { STR("a"), STR("b"), STR("a") };
	struct strs list = { v, 3 }, none = { 0 }, more, less, copy;
	struct arena a = { 0 };

	(void)state;
	assert_true(strs_have(list, STR("b")));
	assert_false(strs_have(list, STR("c")));
	assert_false(strs_have(none, STR("")));
	copy = arena_strs(&a, list);
	assert_true(strs_eq(copy, list));
	assert_ptr_not_equal(copy.v[0].p, v[0].p);
	more = arena_append(&a, list, STR("c"));
	assert_int_equal(more.n, 4);
	assert_true(str_is(more.v[3], "c"));
	assert_int_equal(list.n, 3);
	assert_false(strs_eq(more, list));
	less = arena_without(&a, list, STR("a"));
	assert_int_equal(less.n, 1);
	assert_true(str_is(less.v[0], "b"));
	assert_true(strs_eq(arena_without(&a, none, STR("x")), none));
	arena_free(&a);
}

static void pools(void **state)
{
	struct arena_pool pool = { .most = 1 << 20 };
	struct arena a = { .pool = &pool }, b = { .pool = &pool }, small = { .pool = &pool };

	(void)state;
	arena_alloc(&small, 100);
	arena_alloc(&a, 600000);
	assert_false(arena_over(&a));
	arena_alloc(&b, 600000); /* the first that finds it full continues */
	assert_false(arena_over(&b));
	arena_alloc(&b, 600000);
	assert_false(arena_over(&b));
	arena_count(&a, 1);
	assert_true(arena_over(&a));
	arena_alloc(&small, 20000);
	assert_false(arena_over(&small));
	assert_true(pool.held == a.held + b.held + small.held);
	arena_free(&b);
	assert_true(arena_over(&a)); /* and so it is told */
	arena_free(&a);
	a.pool = &pool;
	arena_count(&a, 2 << 20); /* it has become the first */
	assert_false(arena_over(&a));
	arena_free(&a);
	arena_free(&small);
	assert_true(pool.held == 0 && !pool.first);
}

static void parts_of_a_pool(void **state)
{
	struct arena_pool whole = { .most = 6 << 20 };
	struct arena_pool one = { .most = SIZE_MAX, .whole = &whole }, two = one;
	struct arena a = { .pool = &one }, b = { .pool = &two };

	(void)state;
	arena_count(&a, 2 << 20);
	assert_false(arena_over(&a));
	arena_count(&a, 1 << 20); /* as much as the whole has left */
	assert_true(arena_over(&a));
	arena_count(&b, 1 << 20);
	assert_false(arena_over(&b));
	arena_count(&b, 1 << 20);
	assert_true(arena_over(&b));
	arena_free(&a);
	arena_free(&b);
	assert_true(whole.held == 0 && one.held == 0 && two.held == 0);
	arena_pool_add(&one, 5);
	assert_true(whole.held == 5);
	arena_pool_drop(&one, 5);
	assert_true(whole.held == 0);
}

static void arenas(void **state)
{
	struct arena a = { 0 };
	struct str s;

	(void)state;
	for (size_t n = 0; n < 70000; n = n * 2 + 1) {
		char *p = arena_alloc(&a, n);

		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
	s = arena_printf(&a, "%d %s", 42, "x");
	assert_true(str_is(s, "42 x"));
	assert_int_equal(s.p[s.n], '\0');
	s = arena_str(&a, STR("a\0b"));
	assert_int_equal(s.n, 3);
	assert_memory_equal(s.p, "a\0b\0", 4);
	assert_string_equal(arena_cstr(&a, str_n(NULL, 0)), "");
	arena_free(&a);
	assert_null(a.head);
	arena_free(&a);
}

static void buffers(void **state)
{
	struct buf b = BUF_MAX(1000);

	(void)state;
	buf_adds(&b, STR("ab"));
	buf_addc(&b, 'c');
	buf_addf(&b, "%d", 7);
	buf_add(&b, NULL, 0);
	assert_true(str_is(buf_str(&b), "abc7"));
	assert_int_equal(b.p[b.n], '\0');
	buf_addf(&b, "%500d", 1);
	assert_int_equal(b.n, 504);
	assert_false(b.full);
	buf_free(&b);
	assert_int_equal(b.n, 0);
	assert_int_equal(b.max, 1000);
	buf_addc(&b, 'x');
	assert_true(str_is(buf_str(&b), "x"));
	buf_free(&b);
}

static void buffer_cap(void **state)
{
	struct buf b = BUF_MAX(4), none = { 0 };

	(void)state;
	buf_adds(&b, STR("abcd"));
	assert_false(b.full);
	buf_addc(&b, 'e');
	assert_true(b.full);
	assert_true(str_is(buf_str(&b), "abcd"));
	buf_free(&b);
	buf_adds(&b, STR("abc"));
	buf_adds(&b, STR("de"));
	assert_true(b.full);
	assert_true(str_is(buf_str(&b), "abc"));
	buf_addc(&b, 'd'); /* would fit, but something is already missing */
	assert_true(str_is(buf_str(&b), "abc"));
	buf_free(&b);
	assert_false(b.full);
	buf_addf(&none, "%s", "x");
	assert_true(none.full);
	buf_free(&none);
}

static void packs(void **state)
{
	static const int64_t numbers_[] = {
		0, 1, -1, 63, 64, -64, -65, 127, 128, 300, 1770373800123, INT64_MAX, INT64_MIN
	};
	struct buf b = BUF_MAX(1 << 20);
	struct unpack u;
	struct str value;
	uint8_t tag;
	int64_t v;

	(void)state;
	for (size_t i = 0; i < COUNT(numbers_); i++)
		pack_int(&b, (uint8_t)i, numbers_[i]);
	pack_str(&b, 200, STR(""));
	pack_str(&b, 255, STR("a\0b"));
	u.rest = buf_str(&b);
	for (size_t i = 0; i < COUNT(numbers_); i++) {
		assert_int_equal(unpack_next(&u, &tag, &value), 1);
		assert_int_equal(tag, i);
		assert_int_equal(unpack_int(value, &v), 0);
		assert_true(v == numbers_[i]);
	}
	assert_int_equal(unpack_next(&u, &tag, &value), 1);
	assert_int_equal(tag, 200);
	assert_int_equal(value.n, 0);
	assert_int_equal(unpack_next(&u, &tag, &value), 1);
	assert_int_equal(tag, 255);
	assert_true(str_eq(value, STR("a\0b")));
	assert_int_equal(unpack_next(&u, &tag, &value), 0);
	assert_int_equal(unpack_next(&u, &tag, &value), 0);
	buf_free(&b);
}

static void pack_bytes(void **state)
{
	struct buf b = BUF_MAX(1 << 20);
	char big[300] = { 0 };

	(void)state;
	pack_int(&b, 1, 1);
	pack_int(&b, 2, -1);
	pack_str(&b, 3, STR("hi"));
	assert_true(str_eq(buf_str(&b), STR("\x01\x01\x02\x02\x01\x01\x03\x02hi")));
	buf_free(&b);
	pack_str(&b, 4, str_n(big, sizeof(big)));
	assert_int_equal(b.n, 303);
	assert_memory_equal(b.p, "\x04\xac\x02", 3);
	buf_free(&b);
}

/* Every prefix of a packed record, in memory of exactly that size: it ends between fields or is
 * refused. */
static void unpack_truncated(void **state)
{
	struct buf b = BUF_MAX(1 << 20);
	char big[200] = { 0 };
	size_t ends = 0;

	(void)state;
	pack_int(&b, 1, 123456789);
	pack_str(&b, 2, STR("text"));
	pack_str(&b, 3, str_n(big, sizeof(big)));
	for (size_t n = 0; n <= b.n; n++) {
		char *p = malloc(n ? n : 1);
		struct unpack u = { str_n(p, n) };
		struct str value;
		uint8_t tag;
		int r;

		memcpy(p, b.p, n);
		while ((r = unpack_next(&u, &tag, &value)) == 1)
			assert_true(value.p >= p && value.p + value.n <= p + n);
		assert_true(r == 0 || r == -EBADMSG);
		ends += r == 0;
		free(p);
	}
	assert_int_equal(ends, 4);
	buf_free(&b);
}

static void unpack_hostile(void **state)
{
	static const struct str bad[] = {
		STR("\x01"),
		STR("\x01\x80"),
		STR("\x01\x05"
		    "abcd"),
		STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
		    "a"),
		STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		STR("\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"),
	};
	static const struct str no_int[] = {
		STR(""),
		STR("\x80"),
		STR("\x01\x01"),
		STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	};
	struct str value;
	uint8_t tag;
	int64_t v = 5;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct unpack u = { bad[i] };

		assert_int_equal(unpack_next(&u, &tag, &value), -EBADMSG);
	}
	for (size_t i = 0; i < COUNT(no_int); i++)
		assert_int_equal(unpack_int(no_int[i], &v), -EBADMSG);
	assert_int_equal(v, 5);
}

struct pair {
	struct str text;
	int64_t number;
};

static void unpack_by_shape(void **state)
{
	static const struct shape_member members[] = {
		{ 1, SHAPE_STR, SHAPE_ALWAYS, .offset = offsetof(struct pair, text) },
		{ 2, SHAPE_INT, SHAPE_ALWAYS, .offset = offsetof(struct pair, number) },
	};
	static const struct shape shape = SHAPE_OF(members, pair);
	struct pair from = { STR("new"), -7 }, to = { 0 };
	struct buf b = BUF_MAX(100);

	(void)state;
	shape_pack(&shape, SHAPE_ALL, &from, &b);
	pack_str(&b, 3, STR("of a newer pawl"));
	pack_str(&b, 0, STR("no tag"));
	assert_int_equal(shape_unpack(&shape, SHAPE_ALL, buf_str(&b), &to, NULL), 0);
	assert_true(str_is(to.text, "new"));
	assert_int_equal(to.number, -7);
	assert_int_equal(shape_unpack(&shape, SHAPE_ALL, str_n(b.p, b.n - 1), &to, NULL), -EBADMSG);
	pack_str(&b, 1, STR("again"));
	assert_int_equal(shape_unpack(&shape, SHAPE_ALL, buf_str(&b), &to, NULL), -EBADMSG);
	b.n = 0;
	pack_str(&b, 2, STR("no number"));
	assert_int_equal(shape_unpack(&shape, SHAPE_ALL, buf_str(&b), &to, NULL), -EBADMSG);
	buf_free(&b);
}

static void hashes(void **state)
{
	(void)state;
	assert_true(str_hash(STR("")) == 0xcbf29ce484222325u);
	assert_true(str_hash(STR("a")) == 0xaf63dc4c8601ec8cu);
	assert_true(str_hash(STR("foobar")) == 0x85944171f73967e8u);
}

/* Stored files have these sums. */
static void sums(void **state)
{
	(void)state;
	assert_true(str_sum(0, "", 0) == 0);
	assert_true(str_sum(1, "pawl", 4) == 0xd5f6a2af34f3c5b2u);
	/* a word that is the same in both byte orders */
	assert_true(str_sum(7, "abcddcbatail", 12) == 0x65710566642940f5u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares),
		cmocka_unit_test(finds),
		cmocka_unit_test(trims_and_cuts),
		cmocka_unit_test(numbers),
		cmocka_unit_test(lists),
		cmocka_unit_test(arenas),
		cmocka_unit_test(pools),
		cmocka_unit_test(parts_of_a_pool),
		cmocka_unit_test(buffers),
		cmocka_unit_test(buffer_cap),
		cmocka_unit_test(packs),
		cmocka_unit_test(pack_bytes),
		cmocka_unit_test(unpack_truncated),
		cmocka_unit_test(unpack_hostile),
		cmocka_unit_test(unpack_by_shape),
		cmocka_unit_test(hashes),
		cmocka_unit_test(sums),
	};

	return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
