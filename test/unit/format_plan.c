/* Markdown lists as plans: nesting, descriptions, marks, and what is not a list. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/markdown_plan.h"

static struct arena mem;

/* "LINE<UNDER title|description" for each item, with / for a newline and x for an item that is done. */
static struct str shown(const struct plan *p)
{
	struct buf b = BUF_MAX(65536);
	struct str out;

	for (size_t i = 0; i < p->n; i++) {
		const struct plan_item *it = &p->items[i];

		buf_addf(&b, "%s%zu<%zu%s %.*s", i ? "; " : "", it->line, it->under,
			 it->done ? "x" : "", STRF(it->title));
		if (it->description.n)
			buf_addc(&b, '|');
		for (size_t k = 0; k < it->description.n; k++)
			buf_addc(&b, it->description.p[k] == '\n' ? '/' : it->description.p[k]);
	}
	out = arena_str(&mem, buf_str(&b));
	buf_free(&b);
	return out;
}

static void lists(void **state)
{
	static const struct {
		const char *text, *want;
	} all[] = {
		{ "", "" },
		{ "# Plan\n\nSome words.\n", "" },
		{ "- one\n- two\n", "1<0 one; 2<0 two" },
		{ "- one\r\n- two", "1<0 one; 2<0 two" },
		{ "\xef\xbb\xbf- one", "1<0 one" },
		{ "* one\n+ two\n1. three\n2) four\n", "1<0 one; 2<0 two; 3<0 three; 4<0 four" },
		{ "- [ ] one\n- [x] two\n- [X] three\n- [-] four\n- [ ]five\n",
		  "1<0 one; 2<0x two; 3<0x three; 4<0 [-] four; 5<0 [ ]five" },
		{ "- a\n  - b\n    - c\n  - d\n- e\n", "1<0 a; 2<1 b; 3<2 c; 4<1 d; 5<0 e" },
		{ "- a\n\t- b\n\t\t- c\n", "1<0 a; 2<1 b; 3<2 c" },
		{ "- a\n - b\n", "1<0 a; 2<0 b" },
		{ "- a\n    - b\n  - c\n", "1<0 a; 2<1 b; 3<1 c" },
		{ "1. a\n   - b\n", "1<0 a; 2<1 b" },
		{ "  - a\n  - b\n", "1<0 a; 2<0 b" },
		{ "- a\n  more\n    in\n- b\n", "1<0 a|more/  in; 4<0 b" },
		{ "- a\n\n  one\n\n\n  two\n\n- b\n", "1<0 a|one///two; 8<0 b" },
		{ "- a\nlazy\n\nnot lazy\n- b\n", "1<0 a|lazy; 5<0 b" },
		{ "- a\n# Heading\n  - b\n", "1<0 a; 3<0 b" },
		{ "- a\n  ```\n  - code\n  ```\n- b\n", "1<0 a|```/- code/```; 5<0 b" },
		{ "```\n- code\n~~~\n- code\n```\n- b\n", "6<0 b" },
		{ "- a\n\n```\n- code\n```\n- b\n", "1<0 a; 6<0 b" },
		{ "---\n- a\n* * *\n***\n", "2<0 a" },
		{ "-a\n1.b\n12 c\n*\xc3\xbc*\n", "" },
		{ "- [x] a\n  - [x] b\n- c\n", "1<0x a; 2<1x b; 3<0 c" },
		{ "- a\n  - b\n  about b\n", "1<0 a; 2<1 b|about b" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct yaml_fault fault = { 0 };
		struct plan plan;
		struct str got;

		assert_int_equal(plan_read(str_c(all[i].text), &plan, &fault, &mem), 0);
		got = shown(&plan);
		if (!str_is(got, all[i].want))
			fail_msg("%s: %.*s", all[i].text, STRF(got));
	}
}

static void refused(struct str text, size_t line, const char *why)
{
	struct yaml_fault fault = { 0 };
	struct plan plan;

	assert_int_equal(plan_read(text, &plan, &fault, &mem), -EBADMSG);
	assert_int_equal(fault.line, line);
	assert_true(str_has_nocase(fault.text, str_c(why)));
}

static void faults(void **state)
{
	struct buf b = BUF_MAX(1u << 20);

	(void)state;
	refused(STR("- a\n-\n"), 2, "no title");
	refused(STR("- a\n- [ ]\n"), 2, "no title");
	refused(STR("- a\n- [x]   \n"), 2, "no title");
	refused(STR("- a\n- \xff\n"), 2, "UTF-8");
	refused(STR("- [x] a\n  - [x] b\n    - [ ] c\n"), 3, "(line 2) is marked as done");
	for (int i = 0; i <= PLAN_DEPTH; i++)
		buf_addf(&b, "%*s- x\n", 2 * i, "");
	refused(buf_str(&b), PLAN_DEPTH + 1, "32 levels");
	b.n = 0;
	for (int i = 0; i <= PLAN_ITEMS; i++)
		buf_adds(&b, STR("- x\n"));
	refused(buf_str(&b), PLAN_ITEMS + 1, "10,000");
	buf_free(&b);
}

static int free_memory(void **state)
{
	(void)state;
	arena_free(&mem);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(faults),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
