#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"
#include "kit/scale.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static void valid(void **state)
{
	static const char *const good[] = {
		"",
		"plain",
		"\x7f",
		"\x01",
		"é",
		"€",
		"日本語",
		"😀",
		"\xc2\x80",
		"\xdf\xbf",
		"\xe0\xa0\x80",
		"\xed\x9f\xbf",
		"\xee\x80\x80",
		"\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
	};
	static const struct str bad[] = {
		STR("\0"),
		STR("a\0b"),
		STR("\x80"),
		STR("\xbf"),
		STR("\xc0\x80"),
		STR("\xc1\xbf"),
		STR("\xc2"),
		STR("\xc2 "),
		STR("\xe0\x80\x80"),
		STR("\xe0\x9f\xbf"),
		STR("\xe2\x82"),
		STR("\xed\xa0\x80"),
		STR("\xed\xbf\xbf"),
		STR("\xf0\x8f\xbf\xbf"),
		STR("\xf0\x9f\x98"),
		STR("\xf4\x90\x80\x80"),
		STR("\xf5\x80\x80\x80"),
		STR("\xff"),
		STR("\xfe"),
		STR("ok\xe2\x28\xa1"),
		STR("\xf8\x88\x80\x80\x80"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		if (!text_valid(str_c(good[i])))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < COUNT(bad); i++)
		if (text_valid(bad[i]))
			fail_msg("taken: %zu", i);
	assert_true(text_valid(str_n(NULL, 0)));
}

/* ASCII is checked eight bytes at a time. */
static void valid_anywhere(void **state)
{
	static const unsigned char odd[] = { 0, 1, 0x7f, 0x80, 0x81, 0xff };

	(void)state;
	for (size_t n = 1; n <= 20; n++)
		for (size_t at = 0; at < n; at++)
			for (size_t k = 0; k < COUNT(odd); k++) {
				char text[20];

				memset(text, 1, sizeof(text));
				text[at] = (char)odd[k];
				if (text_valid(str_n(text, n)) != (odd[k] > 0 && odd[k] < 0x80))
					fail_msg("%02x at %zu of %zu", odd[k], at, n);
			}
}

static void check_visible(struct str in, bool lines, const char *want)
{
	struct buf b = BUF_MAX(1 << 16);
	struct str got;

	text_visible(&b, in, lines);
	got = buf_str(&b);
	if (!str_is(got, want))
		fail_msg("%.*s instead of %s", STRF(got), want);
	assert_true(text_valid(got));
	buf_free(&b);
}

static void visible(void **state)
{
	static const struct {
		struct str in;
		const char *out;
	} table[] = {
		{ STR(""), "" },
		{ STR("plain, é, 日本語 😀"), "plain, é, 日本語 😀" },
		{ STR("\x1b[31mred"), "\\x1b[31mred" },
		{ STR("a\0b"), "a\\x00b" },
		{ STR("a\rb\bc\x7f"), "a\\x0db\\x08c\\x7f" },
		{ STR("\xc2\x9b"
		      "31m"),
		  "\\u{9b}31m" },
		{ STR("\xc2\x80\xc2\x9f\xc2\xa0"), "\\u{80}\\u{9f}\xc2\xa0" },
		{ STR("\x9b"
		      "31m"),
		  "\\x9b31m" },
		{ STR("a\u202eb\u202ac\u2066d\u2069"), "a\\u{202e}b\\u{202a}c\\u{2066}d\\u{2069}" },
		{ STR("\u061c\u200e\u200f"), "\\u{61c}\\u{200e}\\u{200f}" },
		{ STR("\u200b\u2060\ufeff"), "\\u{200b}\\u{2060}\\u{feff}" },
		{ STR("\u2028\u2029"), "\\u{2028}\\u{2029}" },
		{ STR("\U000e0001\U000e0041\U000e007f"), "\\u{e0001}\\u{e0041}\\u{e007f}" },
		{ STR("\u00ad\u3164\ufff9"), "\\u{ad}\\u{3164}\\u{fff9}" },
		{ STR("\u200c\u200d\ufe0f"), "\u200c\u200d\ufe0f" },
		{ STR("\u2027\u202f\u205f\u2070"), "\u2027\u202f\u205f\u2070" },
		{ STR("\xff\xfe\xc3"), "\\xff\\xfe\\xc3" },
		{ STR("\xe2\x82z"), "\\xe2\\x82z" },
		{ STR("\xed\xa0\x80"), "\\xed\\xa0\\x80" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		check_visible(table[i].in, false, table[i].out);
		check_visible(table[i].in, true, table[i].out);
		assert_string_equal(text_line(&a, table[i].in).p, table[i].out);
	}
	check_visible(STR("a\n\tb\r\n"), true, "a\n\tb\\x0d\n");
	check_visible(STR("a\n\tb"), false, "a\\x0a\\x09b");
	assert_string_equal(text_line(&a, STR("a\nb")).p, "a\\x0ab");
	arena_free(&a);
}

static void visible_keeps_cap(void **state)
{
	struct buf b = BUF_MAX(5);

	(void)state;
	text_visible(&b,
		     STR("abc\x1b"
			 "def"),
		     false);
	assert_true(b.full);
	assert_true(b.n <= 5);
	buf_free(&b);
	b = BUF_MAX(5);
	text_visible(&b, STR("abcdefg"), false);
	assert_true(b.full);
	assert_true(str_is(buf_str(&b), "abcde"));
	buf_free(&b);
}

/* From arbitrary bytes, nothing remains that a terminal could act on. */
static void visible_any_bytes(void **state)
{
	struct arena a = { 0 };

	(void)state;
	for (unsigned i = 0; i < 65536; i += SCALE(1, 7)) {
		char two[2] = { (char)(i >> 8), (char)i };
		struct str s = text_line(&a, str_n(two, 2));

		assert_true(text_valid(s));
		for (size_t j = 0; j < s.n; j++)
			assert_true((uint8_t)s.p[j] >= 0x20 && s.p[j] != 0x7f);
		if (i % 1024 == 0)
			arena_free(&a);
	}
	arena_free(&a);
}

static void width(void **state)
{
	static const struct {
		struct str s;
		size_t width;
	} table[] = {
		{ STR(""), 0 },
		{ STR("abc"), 3 },
		{ STR("é"), 1 },
		{ STR("e\u0301"), 1 },
		{ STR("日本語"), 6 },
		{ STR("한글"), 4 },
		{ STR("\u1112\u1161\u11ab"), 2 },
		{ STR("ａ"), 2 },
		{ STR("ｱ"), 1 },
		{ STR("😀"), 2 },
		{ STR("✅"), 2 },
		{ STR("🇩🇪"), 2 },
		{ STR("…"), 1 },
		{ STR("\u200b\u200d\ufe0f"), 0 },
		{ STR("─│└"), 3 },
		{ STR("ü\u0308\u0308x"), 2 },
		{ STR("\xff\xff"), 2 },
		{ STR("\x01\n"), 0 },
		{ STR("שלום"), 4 },
		{ STR("\U00020000"), 2 },
		{ STR("\U0010ffff"), 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (text_width(table[i].s) != table[i].width)
			fail_msg("%.*s: %zu", STRF(table[i].s), text_width(table[i].s));
}

static void cut(void **state)
{
	static const struct {
		const char *in;
		size_t columns;
		const char *out;
	} table[] = {
		{ "", 0, "" },
		{ "", 5, "" },
		{ "abc", 3, "abc" },
		{ "abcd", 3, "ab…" },
		{ "abc", 1, "…" },
		{ "abc", 0, "" },
		{ "日本語", 6, "日本語" },
		{ "日本語", 5, "日本…" },
		{ "日本語", 4, "日…" },
		{ "日本語", 2, "…" },
		{ "日本語", 1, "…" },
		{ "e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301" },
		{ "e\u0301e\u0301e\u0301", 2, "e\u0301…" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str s = text_cut(&a, str_c(table[i].in), table[i].columns);

		if (!str_is(s, table[i].out))
			fail_msg("%s at %zu: %.*s", table[i].in, table[i].columns, STRF(s));
		assert_true(text_width(s) <= table[i].columns);
	}
	arena_free(&a);
}

static void nearest(void **state)
{
	static const char *const commands[] = {
		"add",     "claim", "complete", "list",   "next",
		"release", "renew", "show",     "status", "watch",
	};
	static const struct {
		const char *word, *want;
	} table[] = {
		{ "clam", "claim" },    { "calim", "claim" },
		{ "clm", "claim" },     { "CLAIM", "claim" },
		{ "claimm", "claim" },  { "lst", "list" },
		{ "nxet", "next" },     { "comp", "complete" },
		{ "rel", "release" },   { "ren", "renew" },
		{ "re", "renew" },      { "stauts", "status" },
		{ "ad", "add" },        { "releese", "release" },
		{ "wach", "watch" },    { "", NULL },
		{ "x", NULL },          { "xyz", NULL },
		{ "frobnicate", NULL }, { "a", NULL },
		{ "abc", NULL },
	};
	char longest[200];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const char *got = text_nearest(str_c(table[i].word), commands, COUNT(commands));

		if (!table[i].want != !got || (got && strcmp(got, table[i].want)))
			fail_msg("%s: %s", table[i].word, got ? got : "nothing");
	}
	memset(longest, 'a', sizeof(longest));
	assert_null(text_nearest(str_n(longest, sizeof(longest)), commands, COUNT(commands)));
	assert_null(text_nearest(STR("claim"), NULL, 0));
}

static void finds_in_any_case(void **state)
{
	static const struct {
		const char *text, *part;
		bool found;
	} cases[] = {
		{ "\u00dcberweisung", "\u00fcberweis", true },
		{ "\u00fcberweisung", "\u00dcBERWEIS", true },
		{ "Stra\u00dfe", "STRASSE", true },
		{ "STRASSE", "stra\u00dfe", true },
		{ "\u041f\u0440\u0438\u0432\u0435\u0442", "\u043f\u0420\u0418",
		  true }, /* Cyrillic */
		{ "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3", "\u03c3\u03b5\u03c5\u03c2",
		  true }, /* final sigma */
		{ "\u0130stanbul", "i\u0307stanbul", true },
		{ "\u01c4", "\u01c6", true },
		{ "\U00010400", "\U00010428", true }, /* Deseret, beyond 16 bits */
		{ "\u23f0 Rest", "rEST", true },
		{ "\u212a", "k", true }, /* the Kelvin sign */
		{ "\u0390", "\u0390", true },
		{ "Uberweisung", "\u00fcberweis", false },
		{ "\u00e4", "\u00e5", false },
		{ "\u0101", "\u0102", false }, /* a neighbour in a run of pairs */
		{ "\u00e4", "", true },
		{ "", "\u00e4", false },
		{ "Plain", "PLAIN", true },
		{ "\xff\u00c4x", "\u00e4X", true }, /* not UTF-8: the byte stays */
		{ "\xc3", "\u00e4", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (text_has(str_c(cases[i].text), str_c(cases[i].part)) != cases[i].found)
			fail_msg("case %zu", i);
}

/* No text grows beyond what text_fold() allots, and the form is the same for the folded text. */
static void folds_every_character(void **state)
{
	(void)state;
	for (uint32_t c = 0x80; c < 0x110000; c += c < 0x3000 ? 1 : SCALE(1, 7)) {
		char p[5] = { 0 };
		struct arena a = { 0 };
		struct str text, folded;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		if (c < 0x800)
			p[0] = (char)(0xc0 | c >> 6), p[1] = (char)(0x80 | (c & 63));
		else if (c < 0x10000)
			p[0] = (char)(0xe0 | c >> 12), p[1] = (char)(0x80 | (c >> 6 & 63)),
			p[2] = (char)(0x80 | (c & 63));
		else
			p[0] = (char)(0xf0 | c >> 18), p[1] = (char)(0x80 | (c >> 12 & 63)),
			p[2] = (char)(0x80 | (c >> 6 & 63)), p[3] = (char)(0x80 | (c & 63));
		text = str_c(p);
		folded = text_fold(&a, text);
		assert_true(folded.n && folded.n <= 3 * text.n && text_valid(folded));
		assert_true(str_eq(text_fold(&a, folded), folded));
		arena_free(&a);
	}
}

static void quote(void **state)
{
	static const char *const table[][2] = {
		{ "", "\"\"" },
		{ "fix it", "\"fix it\"" },
		{ "\"", "\"'\"" },
		{ "an \"end\" \\\"", "\"an 'end' \\'\"" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		assert_string_equal(arena_cstr(&a, text_quote(&a, str_c(table[i][0]))),
				    table[i][1]);
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid),
		cmocka_unit_test(valid_anywhere),
		cmocka_unit_test(visible),
		cmocka_unit_test(visible_keeps_cap),
		cmocka_unit_test(visible_any_bytes),
		cmocka_unit_test(width),
		cmocka_unit_test(cut),
		cmocka_unit_test(quote),
		cmocka_unit_test(nearest),
		cmocka_unit_test(finds_in_any_case),
		cmocka_unit_test(folds_every_character),
	};

	return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
