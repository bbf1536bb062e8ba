#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/run_private.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

/* The output for these bytes, which arrive in pieces of `piece` bytes. */
static char *relayed(const char *bytes, size_t n, size_t piece)
{
	struct buf out = BUF_MAX(1u << 20);
	struct lines l = { 0 };

	for (size_t at = 0; at < n; at += piece)
		lines_add(&l, STR("t1"), str_n(bytes + at, n - at < piece ? n - at : piece), &out);
	lines_end(&l, STR("t1"), &out);
	buf_addc(&out, '\0');
	return out.p;
}

static void test_lines(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "a\nb\n", "t1 | a\nt1 | b\n" },
		{ "no newline", "t1 | no newline\n" },
		{ "\n\n", "t1 | \nt1 | \n" },
		{ "dos\r\nunix\n", "t1 | dos\nt1 | unix\n" },
		{ "1%\r2%\r\n", "t1 | 1%\nt1 | 2%\n" },
		{ "a\tb\n", "t1 | a\tb\n" },
		{ "\x1b[1;31mred\x1b[0m x\n", "t1 | \x1b[1;31mred\x1b[0m x\x1b[0m\n" },
		{ "\x1b[38:5:9mred\n", "t1 | \x1b[38:5:9mred\x1b[0m\n" },
		{ "\x1b[m\n", "t1 | \x1b[m\x1b[0m\n" },
		{ "\x1b[2J\x1b[5A\x1b[?25l\n", "t1 | \\x1b[2J\\x1b[5A\\x1b[?25l\n" },
		{ "\x1b[\n\x1b", "t1 | \\x1b[\nt1 | \\x1b\n" },
		{ "\x1b]0;owned\a\b\x7f\n", "t1 | \\x1b]0;owned\\x07\\x08\\x7f\n" },
		{ "\x1b\x1b[0m\n", "t1 | \\x1b\x1b[0m\x1b[0m\n" },
		{ "\xc2\x9b"
		  "5A\xff\xe2\x80\xae\n",
		  "t1 | \\u{9b}5A\\xff\\u{202e}\n" },
		{ "日本語\n", "t1 | 日本語\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t piece = 1; piece < 8; piece++) {
			char *out = relayed(cases[i].in, strlen(cases[i].in), piece);

			assert_string_equal(out, cases[i].out);
			free(out);
		}
}

/* A long line is broken, between two characters, and loses none. */
static void test_long_line(void **state)
{
	size_t n = 3 * LINES_MAX;
	char *in = malloc(n + 1), *out, *at;

	(void)state;
	for (size_t shift = 0; shift < 3; shift++) {
		struct buf joined = BUF_MAX(1u << 20);

		for (size_t i = 0; i < n; i++)
			in[i] = i < shift ? 'x' : "€"[(i - shift) % 3];
		n -= (n - shift) % 3;
		out = relayed(in, n, 100);
		assert_null(strstr(out, "\\x"));
		for (at = out; *at;) {
			char *end = strchr(at, '\n');

			assert_memory_equal(at, "t1 | ", 5);
			assert_true((size_t)(end - at) <= LINES_MAX + 5);
			buf_add(&joined, at + 5, (size_t)(end - at) - 5);
			at = end + 1;
		}
		assert_int_equal(joined.n, n);
		assert_memory_equal(joined.p, in, n);
		buf_free(&joined);
		free(out);
		n = 3 * LINES_MAX;
	}
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_long_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
