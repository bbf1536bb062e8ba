/* How the prompt treats a line: its words, the completions of a word, and whether the history may
 * keep it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/cli/cli.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static struct str joined(struct strs list)
{
	struct str out = STR("");

	for (size_t i = 0; i < list.n; i++)
		out = arena_printf(&arena, "%.*s%s%.*s", STRF(out), i ? "|" : "", STRF(list.v[i]));
	return out;
}

static void splits(void **state)
{
	static const struct {
		const char *line, *words;
		size_t last;
		bool open;
	} table[] = {
		{ "", "", 0, false },
		{ "  \t ", "", 4, false },
		{ "claim t1", "claim|t1", 6, false },
		{ " claim  t1 ", "claim|t1", 11, false },
		{ "create 'two words' -d \"and 'more'\"", "create|two words|-d|and 'more'", 22,
		  false },
		{ "create \"say \\\"hi\\\" \\n\"", "create|say \"hi\" \\n", 7, false },
		{ "create 'a\\b'", "create|a\\b", 7, false },
		{ "create two\\ words", "create|two words", 7, false },
		{ "create ''", "create|", 7, false },
		{ "a'b'\"c\"d", "abcd", 0, false },
		{ "$HOME `x` *.c ~ a;b | c", "$HOME|`x`|*.c|~|a;b|||c", 22, false },
		{ "create 'half", "create|half", 7, true },
		{ "create \"half", "create|half", 7, true },
		{ "create half\\", "create|half", 7, true },
		{ "create 'is it' \\", "create|is it|", 15, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct words w;

		words_split(&w, str_c(table[i].line), &arena);
		if (!str_is(joined(w.list), table[i].words) || w.last != table[i].last ||
		    w.open != table[i].open)
			fail_msg("%s: %s, last %zu, open %d", table[i].line,
				 arena_cstr(&arena, joined(w.list)), w.last, w.open);
	}
}

static struct strs some_values(void *ctx, const char *kind, struct arena *a)
{
	struct strs list = { 0 };

	++*(int *)ctx;
	if (strcmp(kind, "ids") != 0) {
		list = arena_append(a, list, arena_printf(a, "%s-1", kind));
		return arena_append(a, list, STR("two words \\ 'and' \"more\""));
	}
	list = arena_append(a, list, STR("t1"));
	list = arena_append(a, list, STR("t12"));
	return arena_append(a, list, STR("Parser"));
}

static void completes_words(void **state)
{
	static const struct {
		const char *line, *found;
	} table[] = {
		{ "cla", "claim" },
		{ "pawl cla", "claim" },
		{ "loc", "lock" },
		{ "exi", "exit" },
		{ "lock ac", "acquire" },
		{ "lock c", "check|cleanup" },
		{ "config prof", "profile" },
		{ "config profile t", "testing" },
		{ "claim t", "t1|t12" },
		{ "claim par", "Parser" },
		{ "claim x", "" },
		{ "--json claim t", "t1|t12" },
		{ "--agent claim claim t", "t1|t12" },
		{ "claim t1 --tt", "--ttl" },
		{ "claim t1 --jso", "--json" },
		{ "claim --ttl 5m t12", "t12" },
		{ "claim -t 5m t12", "t12" },
		{ "create x --depends Pa", "Parser" },
		{ "create x --id t", "" },
		{ "create --class exp", "expedite" },
		{ "list --color al", "always" },
		{ "create x --priority m", "medium" },
		{ "next --label lab", "labels-1" },
		{ "create x --label tw", "two\\ words\\ \\\\\\ \\'and\\'\\ \\\"more\\\"" },
		{ "update t1 --remove-label lab", "labels-1" },
		{ "list --holder ho", "holders-1" },
		{ "list --queue q", "queues-1" },
		{ "list --color=al", "" },
		{ "status t1 rev", "review" },
		{ "help cla", "claim" },
		{ "lock acquire @m", "@maintenance" },
		{ "claim @", "" },
		{ "config get lock.t", "lock.ttl|lock.timeout|lock.typed" },
		{ "config set max", "max_abandoned" },
		{ "claim 't", "" },
		{ "run t1 -- cla", "" },
		{ "nonsense t", "" },
		{ "version x", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str line = str_c(table[i].line);
		int asked = 0;
		size_t from;
		struct str found = joined(complete_line(line, &from, some_values, &asked, &arena));

		if (!str_eq_nocase(found, str_c(table[i].found)))
			fail_msg("%s: %.*s", table[i].line, STRF(found));
		assert_true(from <= line.n);
		assert_true(from == line.n || line.p[from] != ' ');
	}
}

/* All completions if nothing is typed yet. */
static void completes_from_nothing(void **state)
{
	struct strs found;
	int asked = 0;
	size_t from;

	(void)state;
	found = complete_line(STR(""), &from, some_values, &asked, &arena);
	assert_true(found.n > 30 && strs_have(found, STR("claim")) &&
		    strs_have(found, STR("lock")));
	assert_int_equal(asked, 0);
	found = complete_line(STR("claim "), &from, some_values, &asked, &arena);
	assert_int_equal(found.n, 3);
	assert_int_equal(from, 6);
}

static void keeps_no_secret(void **state)
{
	static const char *const secret[] = {
		"done t1 --token 11111111-1111-4111-8111-111111111111",
		"done t1 --token=x",
		"done t1 --claim-next --next-token x",
		"comment t1 'it was 11111111-1111-4111-8111-111111111111'",
		"list --store postgres://me:pass@host/db",
		"config set store postgres://host/db?password=x",
	};
	static const char *const plain[] = { "claim t1",
					     "create 'Fix the token refresh'",
					     "list --store postgres://me@host/db",
					     "list --store sqlite:/a:b@c.db",
					     "create 'see http://x/y' -d a:b@c",
					     "create 'the password check'" };

	(void)state;
	for (size_t i = 0; i < COUNT(secret); i++)
		if (!recall_secret(str_c(secret[i])))
			fail_msg("kept: %s", secret[i]);
	for (size_t i = 0; i < COUNT(plain); i++)
		if (recall_secret(str_c(plain[i])))
			fail_msg("not kept: %s", plain[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(splits, teardown),
		cmocka_unit_test_teardown(completes_words, teardown),
		cmocka_unit_test_teardown(completes_from_nothing, teardown),
		cmocka_unit_test_teardown(keeps_no_secret, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
