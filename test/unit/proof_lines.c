/* The lines that a driver prints, and the words of its command. A driver may print anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/backoff.h"
#include "proof/drive/drive.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static bool parsed(enum drive_verb verb, const char *line, struct drive_answer *out)
{
	return drive_parse(verb, str_c(line), out);
}

static void test_answers(void **state)
{
	struct drive_answer a;

	(void)state;
	assert_true(parsed(DRIVE_CREATE, "ok TASK-1", &a) && str_is(a.id, "TASK-1"));
	assert_true(parsed(DRIVE_NEXT, "ok k1 7 1000", &a) && str_is(a.id, "k1"));
	assert_true(a.fence == 7 && a.lease == 1000 && !a.renews);
	assert_true(parsed(DRIVE_NEXT, "ok k1 - -", &a) && !a.fence && !a.lease);
	assert_true(parsed(DRIVE_NEXT, "ok k1 0 1000+", &a) && a.lease == 1000 && a.renews);
	assert_true(parsed(DRIVE_NEXT, "none", &a) && a.word == DRIVE_NONE);
	assert_true(parsed(DRIVE_HEARTBEAT, "ok -", &a) && !a.lease);
	assert_true(parsed(DRIVE_HEARTBEAT, "refused the lock is lost", &a));
	assert_true(a.word == DRIVE_REFUSED && str_is(a.why, "the lock is lost"));
	assert_true(parsed(DRIVE_DONE, "ok", &a) && a.word == DRIVE_OK);
	assert_true(parsed(DRIVE_DONE, "repeated", &a) && a.word == DRIVE_REPEATED);
	assert_true(parsed(DRIVE_DONE, "error", &a) && a.word == DRIVE_ERROR && !a.why.n);
	assert_true(parsed(DRIVE_SHOW, "ok held 3", &a) && a.state == DRIVE_HELD && a.fence == 3);
	assert_true(parsed(DRIVE_SHOW, "ok done -", &a) && a.state == DRIVE_ENDED);
	assert_true(parsed(DRIVE_SHOW, "gone", &a) && a.word == DRIVE_GONE);
}

static void test_hostile(void **state)
{
	static const struct {
		enum drive_verb verb;
		const char *line;
	} cases[] = {
		{ DRIVE_NEXT, "" },
		{ DRIVE_NEXT, " " },
		{ DRIVE_NEXT, "ok" },
		{ DRIVE_NEXT, "ok " },
		{ DRIVE_NEXT, " ok k1 1 1" },
		{ DRIVE_NEXT, "ok  k1 1 1" },
		{ DRIVE_NEXT, "ok k1 1" },
		{ DRIVE_NEXT, "ok k1 1 1 " },
		{ DRIVE_NEXT, "ok k1 1 1 1" },
		{ DRIVE_NEXT, "OK k1 1 1" },
		{ DRIVE_NEXT, "ok k1 -1 1" },
		{ DRIVE_NEXT, "ok k1 +1 1" },
		{ DRIVE_NEXT, "ok k1 1 0" },
		{ DRIVE_NEXT, "ok k1 1 +" },
		{ DRIVE_NEXT, "ok k1 1 -+" },
		{ DRIVE_NEXT, "ok k1 1 1.5" },
		{ DRIVE_NEXT, "ok k1 0x1 1" },
		{ DRIVE_NEXT, "ok k1 1 99999999999999999999999999" },
		{ DRIVE_NEXT, "ok k1 9223372036854775808 1" },
		{ DRIVE_NEXT, "ok k1 1 31536000001" },
		{ DRIVE_NEXT, "ok k1\t1 1" },
		{ DRIVE_NEXT, "ok k1 1 1\r" },
		{ DRIVE_NEXT, "ok k\x1b[31m 1 1" },
		{ DRIVE_NEXT, "ok k\xff 1 1" },
		{ DRIVE_NEXT, "ok k\xc0\x80 1 1" },
		{ DRIVE_NEXT, "none left" },
		{ DRIVE_NEXT, "none " },
		{ DRIVE_NEXT, "nonesuch" },
		{ DRIVE_NEXT, "repeated" },
		{ DRIVE_NEXT, "gone" },
		{ DRIVE_CREATE, "none" },
		{ DRIVE_CREATE, "ok a b" },
		{ DRIVE_HEARTBEAT, "ok" },
		{ DRIVE_HEARTBEAT, "repeated" },
		{ DRIVE_DONE, "ok 1" },
		{ DRIVE_DONE, "none" },
		{ DRIVE_DONE, "ok " },
		{ DRIVE_SHOW, "ok open" },
		{ DRIVE_SHOW, "ok opened 1" },
		{ DRIVE_SHOW, "refused no" },
		{ DRIVE_SHOW, "Traceback (most recent call last):" },
	};
	struct drive_answer a;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (parsed(cases[i].verb, cases[i].line, &a))
			fail_msg("accepted: '%s'", cases[i].line);
	assert_false(drive_parse(DRIVE_DONE, str_n("ok\0", 3), &a));
}

static void test_limits(void **state)
{
	char line[2 * DRIVE_LINE_MAX];
	struct drive_answer a;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "ok ", 3);
	assert_true(drive_parse(DRIVE_CREATE, str_n(line, 3 + DRIVE_ID_MAX), &a));
	assert_false(drive_parse(DRIVE_CREATE, str_n(line, 4 + DRIVE_ID_MAX), &a));
	memcpy(line, "error ", 6);
	assert_true(drive_parse(DRIVE_CREATE, str_n(line, DRIVE_LINE_MAX - 1), &a));
	assert_false(drive_parse(DRIVE_CREATE, str_n(line, DRIVE_LINE_MAX), &a));
}

/* Lines made from pieces of lines: whatever is accepted keeps every limit. */
static void test_random(void **state)
{
	static const char *const pieces[] = { "ok",       " ",    "none",  "refused", "error",
					      "repeated", "gone", "k1",    "-",       "+",
					      "1",        "0",    "99999", "\n",      "\x7f",
					      "\xf0\x9f", "open", "done" };
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		enum drive_verb verb = (enum drive_verb)seeded_below(&seed, DRIVE_SHOW + 1);
		struct buf line = BUF_MAX(100);
		struct drive_answer a;

		for (uint32_t n = seeded_below(&seed, 9); n; n--)
			buf_adds(&line, str_c(pieces[seeded_below(&seed, COUNT(pieces))]));
		if (drive_parse(verb, buf_str(&line), &a)) {
			assert_true(a.fence >= 0 && a.lease >= 0 && a.id.n <= DRIVE_ID_MAX);
			assert_true(!memchr(line.p, '\n', line.n) && !memchr(line.p, 0x7f, line.n));
			assert_true(a.word != DRIVE_OK || a.id.n > 0 ||
				    (verb != DRIVE_NEXT && verb != DRIVE_CREATE));
		}
		buf_free(&line);
	}
}

static void test_command(void **state)
{
	static const struct {
		const char *command, *words; /* words end with |; NULL: refused */
	} cases[] = {
		{ "a", "a|" },
		{ "  a  b\t c ", "a|b|c|" },
		{ "a 'b c' d", "a|b c|d|" },
		{ "a \"b c\"d", "a|b cd|" },
		{ "a '' \"\"", "a|||" },
		{ "a b\\ c", "a|b c|" },
		{ "a '\\' b", "a|\\|b|" },
		{ "a \"\\\"\\\\\\n\"", "a|\"\\\\n|" },
		{ "a $HOME `id` *.c ; b > c & | ~", "a|$HOME|`id`|*.c|;|b|>|c|&|||~|" },
		{ "it\"'\"s", "it's|" },
		{ "", NULL },
		{ " ", NULL },
		{ "''", NULL },
		{ "a 'b", NULL },
		{ "a \"b", NULL },
		{ "a \\", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct arena arena = { 0 };
		const char *why;
		char *const *words = drive_split(str_c(cases[i].command), &arena, &why);
		struct buf joined = BUF_MAX(200);

		assert_true(!words == !cases[i].words && !words == !!why);
		for (size_t n = 0; words && words[n]; n++)
			buf_addf(&joined, "%s|", words[n]);
		if (words)
			assert_true(str_is(buf_str(&joined), cases[i].words));
		buf_free(&joined);
		arena_free(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_limits),  cmocka_unit_test(test_random),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
