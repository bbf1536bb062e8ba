/* Runs selection.vectors; that file explains its format. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"

#define FILE_MAX (1u << 20)

struct runner {
	struct suite *s;
	struct str rest; /* the rest of the file */
	int line;
	struct str name; /* of the current case */
	struct str expected;
	int expects;
};

static const char *vectors_path(struct arena *a)
{
	const char *source = getenv("PAWL_SOURCE");

	return arena_printf(a, "%s/test/queue/selection.vectors", source ? source : ".").p;
}

#define FAIL(x, fmt, ...) \
	fail_msg("selection.vectors:%d (%.*s): " fmt, (x)->line, STRF((x)->name), __VA_ARGS__)

static int64_t ticks(struct runner *x, struct str text)
{
	int64_t n;

	text.n -= str_ends(text, STR("t"));
	if (!str_to_i64(text, &n))
		FAIL(x, "how long is %.*s?", STRF(text));
	return n * tick();
}

static void set_policy(struct runner *x, struct str words)
{
	struct policy *p = &x->s->config.policy;

	while (words.n) {
		struct str value = str_cut(&words, ' '), key = str_cut(&value, '=');

		if (str_is(key, "abandoned"))
			p->keep_abandoned = str_is(value, "keep");
		else if (str_is(key, "depends"))
			p->ignore_depends = str_is(value, "ignore");
		else if (str_is(key, "subtasks"))
			p->offer_parents = str_is(value, "offer");
		else if (str_is(key, "handback"))
			p->handback = ticks(x, value);
		else if (!str_is(key, "max_abandoned") || !str_to_i64(value, &p->max_abandoned))
			FAIL(x, "no such policy: %.*s", STRF(key));
	}
	reopen(x->s);
}

static void make_task(struct runner *x, struct str words)
{
	struct str id = str_cut(&words, ' ');

	ok(x->s, "create id=%.*s %.*s", STRF(id), STRF(words));
}

static void make_tasks(struct runner *x, struct str words)
{
	struct request rqs[32] = { 0 };
	struct answer answers[32];
	size_t n = 0;

	while (words.n) {
		struct str id = str_cut(&words, ' ');

		assert_in_range(n, 0, 31);
		rqs[n++] = parse(x->s, arena_printf(&x->s->a, "create id=%.*s", STRF(id)).p);
	}
	queue_call_many(x->s->q, rqs, answers, n, &x->s->a);
	for (size_t i = 0; i < n; i++)
		if (answers[i].code != SUCCESS)
			FAIL(x, "%.*s", STRF(answers[i].message));
}

static void let_pass(struct runner *x, struct str text)
{
	advance(ticks(x, text));
}

static bool by_filter(struct str words)
{
	return str_has_nocase(words, STR(":"));
}

static void expect(struct runner *x, struct str words)
{
	struct str want = words, filter = by_filter(words) ? str_cut(&want, ':') : STR("");
	struct answer *ans = ok(x->s, "next explain=1 %.*s", STRF(filter));
	struct answer *next = call(x->s, "next %.*s", STRF(filter));
	const char *have = ids(x->s, ans);
	struct str first;

	want = str_trim(want);
	if (!str_is(want, have))
		FAIL(x, "eligible are '%s', not '%.*s'", have, STRF(want));
	for (size_t i = 0, place = 0; i < ans->n_candidates; i++)
		if (ans->candidates[i].place !=
		    (ans->candidates[i].eligible ? (int64_t)++place : 0))
			FAIL(x, "%.*s stands at the wrong place", STRF(ans->candidates[i].id));
	if (!filter.n)
		x->expected = want;
	first = str_cut(&want, ' ');
	if (next->code != (first.n ? SUCCESS : NO_TASKS) ||
	    (first.n && !str_eq(next->task->id, first)))
		FAIL(x, "next does not show '%.*s'", STRF(first));
	x->expects++;
}

static void why(struct runner *x, struct str words)
{
	struct answer *ans = ok(x->s, "next explain=1");
	struct str id = str_cut(&words, ' ');

	for (size_t i = 0; i < ans->n_candidates; i++)
		if (str_eq(ans->candidates[i].id, id)) {
			if (!str_has_nocase(ans->candidates[i].why, words))
				FAIL(x, "%.*s: %.*s", STRF(id), STRF(ans->candidates[i].why));
			return;
		}
	FAIL(x, "%.*s is not among the candidates", STRF(id));
}

/* At the end of a case the tasks are taken in the order of the last `expect`. */
static void take_all(struct runner *x)
{
	struct str want = x->expected;
	int n = 0;

	while (want.n) {
		struct str id = str_cut(&want, ' ');
		struct answer *ans = call(x->s, "take new_token=take-%d", n++);

		if (ans->code != SUCCESS || !str_eq(ans->task->id, id))
			FAIL(x, "%.*s is not what is taken", STRF(id));
	}
	assert_int_equal(call(x->s, "take new_token=take-last")->code, NO_TASKS);
	x->expected = STR("");
}

static void begin(struct runner *x, void **state, struct str name)
{
	if (x->name.n)
		take_all(x);
	suite_teardown(state);
	suite_setup(state);
	x->s = *state;
	x->name = name;
}

static void run_line(struct runner *x, void **state, struct str line)
{
	struct str word = str_cut(&line, ' ');

	if (str_is(word, "case"))
		begin(x, state, line);
	else if (str_is(word, "policy"))
		set_policy(x, line);
	else if (str_is(word, "task"))
		make_task(x, line);
	else if (str_is(word, "tasks"))
		make_tasks(x, line);
	else if (str_is(word, "do"))
		ok(x->s, "%.*s", STRF(line));
	else if (str_is(word, "after"))
		let_pass(x, line);
	else if (str_is(word, "expect"))
		expect(x, line);
	else if (str_is(word, "why"))
		why(x, line);
	else
		FAIL(x, "what is '%.*s'?", STRF(word));
}

static void test_vectors(void **state)
{
	struct arena a = { 0 };
	struct runner x = { .s = unless_served(state, "it sets the policy in its own process") };

	if (fs_read(&a, vectors_path(&a), FILE_MAX, &x.rest) < 0)
		fail_msg("cannot read %s", vectors_path(&a));
	while (x.rest.n) {
		struct str line = str_trim(str_cut(&x.rest, '\n'));

		x.line++;
		if (line.n && line.p[0] != '#')
			run_line(&x, state, line);
	}
	take_all(&x);
	print_message("%d expectations\n", x.expects);
	assert_true(x.expects > 40);
	arena_free(&a);
}

int selection_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_vectors),
	};

	return cmocka_run_group_tests_name("selection", tests, NULL, NULL);
}
