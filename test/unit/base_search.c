/* search_key(): every place in lists of every small size, with few looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"

static const char *const words[] = { "a", "aa", "b", "c", "ca", "d", "f", "g", "ga", "h", "i" };
static size_t seen_n, checks;

static struct str word_at(const void *list, size_t i)
{
	assert_ptr_equal(list, words);
	assert_true(i < seen_n);
	checks++;
	return str_c(words[i]);
}

static void check(const char *key)
{
	bool found;
	size_t want = 0, i;

	while (want < seen_n && str_cmp(str_c(words[want]), str_c(key)) < 0)
		want++;
	checks = 0;
	i = search_key(words, seen_n, str_c(key), word_at, &found);
	assert_int_equal(i, want);
	assert_int_equal(found, want < seen_n && str_is(str_c(words[want]), key));
	assert_true(checks <= 4);
}

static void test_places(void **state)
{
	static const char *const others[] = { "", "A", "ab", "az", "cb", "e", "hh", "z" };

	(void)state;
	for (seen_n = 0; seen_n <= sizeof(words) / sizeof(*words); seen_n++) {
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			check(words[i]);
		for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
			check(others[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_places) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
