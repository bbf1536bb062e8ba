/* The parser of the command line, by tables: the lines that it understands, and the messages for
 * those that it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/cli/cli.h"

#define WORDS_MAX 16
#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* '|' separates words, so that they may contain blanks. */
static struct parsed *run(const char *line)
{
	struct parsed *p = arena_new(&arena, struct parsed);
	const char *argv[WORDS_MAX + 1] = { "pawl" };
	struct str rest = str_c(line);
	int argc = 1;

	while (rest.n && argc < WORDS_MAX)
		argv[argc++] = arena_cstr(&arena, str_cut(&rest, '|'));
	if (str_ends(str_c(line), STR("|")))
		argv[argc++] = "";
	parse(p, argc, argv, &arena);
	return p;
}

static void understands(void **state)
{
	static const struct {
		const char *line, *command;
	} table[] = {
		{ "claim|t1", "claim" },
		{ "--json|claim|t1", "claim" },
		{ "claim|--json|t1", "claim" },
		{ "claim|t1|--ttl|5m", "claim" },
		{ "claim|t1|--ttl=5m", "claim" },
		{ "claim|t1|-t|5m", "claim" },
		{ "claim|t1|-t5m", "claim" },
		{ "claim|--|t1", "claim" },
		{ "claim|-jq|t1", "claim" },
		{ "-C|/tmp|list", "list" },
		{ "lock|acquire|t1", "lock acquire" },
		{ "lock|--json|check|t1", "lock check" },
		{ "lock", "lock list" },
		{ "config", "config list" },
		{ "config|set|lease|5m", "config set" },
		{ "create|a title", "create" },
		{ "create|--title|a title", "create" },
		{ "create|x|--description|--nothing-like-that", "create" },
		{ "create|x|--description=--json", "create" },
		{ "create|x|--label|a,b|--label|c", "create" },
		{ "create|--|--title", "create" },
		{ "depend|t1|t2|t3", "depend" },
		{ "status", "status" },
		{ "status|t1|IN_PROGRESS", "status" },
		{ "list|--status|ready,blocked|--status|done", "list" },
		{ "help|lock|acquire", "help" },
		{ "update|t1|--due=", "update" },
		{ "update|t1|--label=", "update" },
		{ "next|--claim|--wait|30s|--json|--json", "next" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct parsed *p = run(table[i].line);

		if (p->code != SUCCESS)
			print_error("%s: %.*s\n", table[i].line, STRF(p->message));
		assert_int_equal(p->code, SUCCESS);
		assert_non_null(p->command);
		assert_string_equal(p->command->name, table[i].command);
	}
}

static void refuses(void **state)
{
	/* message and hint must contain these words */
	static const struct {
		const char *line, *message, *hint;
	} table[] = {
		{ "clam", "no command 'clam'", "pawl claim" },
		{ "rm", "no command 'rm'", "pawl remove" },
		{ "lock|chek", "no command 'lock chek'", "pawl lock check" },
		{ "xyzzy", "no command 'xyzzy'", "pawl help" },
		{ "id", "only the first word", "pawl help id" },
		{ "claim", "needs ID", "pawl claim t1" },
		{ "claim|t1|t2", "does not take 't2'", "quotes" },
		{ "claim|t1|--tll|5", "no option --tll", "--ttl" },
		{ "claim|t1|-x", "no option -x", "pawl help claim" },
		{ "--ttl|5m|claim|t1", "before the command", "pawl help" },
		{ "claim|t1|--ttl", "--ttl needs a value", "pawl help claim" },
		{ "claim|t1|--ttl|--json", "--json follows", "--ttl=--json" },
		{ "claim|t1|--ttl|5x", "not a duration", "" },
		{ "claim|t1|--ttl|99999999999999999999d", "not a duration", "" },
		{ "claim|t1|--ttl|5m|-t|6m", "twice", "" },
		{ "claim|t1|--json=yes", "takes no value", "" },
		{ "claim|t1|--resume|0", "not 1 or more", "" },
		{ "claim|t1|--token|abc", "UUID", "" },
		{ "claim|a/b", "letters, digits", "" },
		{ "claim|t1.lock", "does not end in", "" },
		{ "find", "needs TEXT", "pawl find" },
		{ "create|", "may not be empty", "" },
		{ "create|  ", "may not be empty", "" },
		{ "create|a|--title|b", "twice", "" },
		{ "create|a\xff", "UTF-8", "" },
		{ "create|a|--priority|1001", "0 to 1000", "" },
		{ "create|a|--priority|-1", "0 to 1000", "" },
		{ "create|a|--due|2026-02-30", "not a time", "" },
		{ "create|a|--due=", "not a time", "" },
		{ "create|a|--label|b,,c", "may not be empty", "" },
		{ "update|t1|--label|b,,c", "may not be empty", "" },
		{ "create|a|--label|b\nc", "one line", "" },
		{ "create|a|--class|fast", "Expedite", "" },
		{ "create|a|--extra|[]", "not a JSON object", "" },
		{ "create|a|--extra|{", "not JSON", "" },
		{ "create|a|--extra|{\x1b", "\\x1b", "" },
		{ "list|--status|nope", "Needs-Help", "" },
		{ "list|--limit|-1", "0 or more", "" },
		{ "block|t1|--reason|x", "--unblock-action", "pawl block" },
		{ "block|t1|--reason=|--unblock-action|x", "may not be empty", "" },
		{ "review|t1", "--summary", "pawl review" },
		{ "completion|tcsh", "bash zsh fish", "" },
		{ "--json|--porcelain|list", "one of them", "" },
		{ "--format|xml|list", "text json porcelain", "" },
		{ "--color|never|--no-color|list", "one of them", "" },
		{ "--agent|a|list|--agent|b", "twice", "" },
		{ "--agent=|list", "may not be empty", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct parsed *p = run(table[i].line);

		if (p->code != USAGE || !strstr(p->message.p, table[i].message) ||
		    (p->hint.n && !strstr(p->hint.p, table[i].hint)))
			print_error("%s: %.*s (%.*s)\n", table[i].line, STRF(p->message),
				    STRF(p->hint));
		assert_int_equal(p->code, USAGE);
		assert_non_null(strstr(p->message.p, table[i].message));
		if (*table[i].hint)
			assert_non_null(strstr(p->hint.p, table[i].hint));
	}
}

static void fills_in(void **state)
{
	const struct args *a =
		run("create|x|--label|a, b|--label|c|--label|a|-p|high|--delay|2h|--due|2026-02-06")
			->args;
	const struct parsed *p;

	(void)state;
	assert_int_equal(a->rq.op, OP_CREATE);
	assert_int_equal(a->rq.labels.n, 3);
	assert_true(str_is(a->rq.labels.v[1], "b"));
	assert_int_equal(a->rq.priority, 3);
	assert_int_equal(a->rq.delay, 7200000);
	assert_int_equal(a->rq.due, INT64_C(1770336000000)); /* that day, in any time zone */
	assert_true(HAS(&a->rq, title) && HAS(&a->rq, due) && !HAS(&a->rq, parent));

	a = run("list|-s|ready,Needs_Help|--status|TODO")->args;
	assert_int_equal(a->rq.statuses, STATUS_BIT(READY) | STATUS_BIT(NEEDS_HELP));
	a = run("update|t1|--due=|--label=|--parent=")->args;
	assert_true(HAS(&a->rq, due) && HAS(&a->rq, labels) && HAS(&a->rq, parent));
	assert_int_equal(a->rq.due, 0);
	assert_int_equal(a->rq.labels.n, 0);
	a = run("depend|t1|t2|t3,t4")->args;
	assert_int_equal(a->rq.depends.n, 3);
	a = run("next|--claim|--wait|90")->args;
	assert_int_equal(a->seen & 1, 1);
	assert_int_equal(a->wait, 90000);
	p = run("--agent|bob|list|--store=sqlite:/x|-q");
	assert_true(str_is(p->global.agent, "bob") && str_is(p->global.store, "sqlite:/x") &&
		    p->global.quiet);
	a = run("--request-id|r1|create|x")->args; /* said before the command is known */
	assert_true(HAS(&a->rq, request_id) && str_is(a->rq.request_id, "r1"));
	assert_true(HAS(&a->rq, title));
}

static void knows_the_format_of_a_refusal(void **state)
{
	(void)state;
	assert_true(run("clam|--json")->json);
	assert_true(run("clam|--format|json")->json);
	assert_true(run("clam|--format=porcelain")->porcelain);
	assert_false(run("clam|--|--json")->json);
}

static void limits_lengths(void **state)
{
	char *title = arena_alloc(&arena, TITLE_MAX + 10),
	     *text = arena_alloc(&arena, TEXT_MAX + 10);
	const char *argv[] = { "pawl", "create", title, "--description", text };
	struct parsed p;

	(void)state;
	memset(title, 'x', TITLE_MAX);
	memset(text, 'x', TEXT_MAX);
	parse(&p, 5, argv, &arena);
	assert_int_equal(p.code, SUCCESS);
	title[TITLE_MAX] = 'x';
	parse(&p, 5, argv, &arena);
	assert_int_equal(p.code, USAGE);
	title[TITLE_MAX] = '\0';
	text[TEXT_MAX] = 'x';
	parse(&p, 5, argv, &arena);
	assert_int_equal(p.code, USAGE);
}

static void helps_with_anything(void **state)
{
	(void)state;
	assert_int_equal(run("claim|--help")->code, SUCCESS);
	assert_int_equal(run("lock|-h")->code, SUCCESS);
	assert_string_equal(run("lock|-h")->prefix, "lock");
	assert_null(run("")->command);
	assert_int_equal(run("--version")->global.version, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(understands, teardown),
		cmocka_unit_test_teardown(refuses, teardown),
		cmocka_unit_test_teardown(fills_in, teardown),
		cmocka_unit_test_teardown(knows_the_format_of_a_refusal, teardown),
		cmocka_unit_test_teardown(limits_lengths, teardown),
		cmocka_unit_test_teardown(helps_with_anything, teardown),
	};

	return cmocka_run_group_tests_name("cli parse", tests, NULL, NULL);
}
