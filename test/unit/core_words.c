/*
 * The words that people use: statuses, classes, priorities, ids; and the table of results.
 */
#include "core_kit.h"

#include "core/result.h"
#include "core/rules.h"

static void statuses(void **state)
{
	static const struct {
		const char *text;
		int64_t status;
	} all[] = {
		{ "Backlog", BACKLOG },
		{ "READY", READY },
		{ "In Progress", IN_PROGRESS },
		{ "in-progress", IN_PROGRESS },
		{ "IN_PROGRESS", IN_PROGRESS },
		{ "in progress", IN_PROGRESS },
		{ "InProgress", IN_PROGRESS },
		{ "inprogress", IN_PROGRESS },
		{ "Blocked", BLOCKED },
		{ "needs-help", NEEDS_HELP },
		{ "NEEDS_HELP", NEEDS_HELP },
		{ "needshelp", NEEDS_HELP },
		{ "review", REVIEW },
		{ "dOnE", DONE },
		{ "failed", FAILED },
		{ "Canceled", CANCELED },
		{ "cancelled", CANCELED },
		{ "TODO", READY },
		{ "todo", READY },
		{ "pending", READY },
		{ "PENDING", READY },
		{ "Implementing", IN_PROGRESS },
		{ "Postponed", BACKLOG },
		{ "", 0 },
		{ "In  Progress", 0 },
		{ "In Progres", 0 },
		{ "In Progress ", 0 },
		{ "inprogressx", 0 },
		{ "inprogres", 0 },
		{ "read", 0 },
		{ "readyy", 0 },
		{ "none", 0 },
		{ "to-do", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++)
		assert_int_equal(status_parse(str_c(all[i].text)), all[i].status);
	assert_int_equal(status_parse(STR("Ready\0")), 0);
}

static void names_read_back(void **state)
{
	(void)state;
	for (int64_t s = BACKLOG; s < STATUS_END; s++) {
		assert_int_equal(status_parse(str_c(status_name(s))), s);
		assert_int_equal(status_ended(s), s == DONE || s == CANCELED);
	}
	for (int64_t c = EXPEDITE; c < CLASS_END; c++)
		assert_int_equal(class_parse(str_c(class_name(c))), c);
	assert_string_equal(status_name(0), "none");
	assert_string_equal(status_name(-1), "none");
	assert_string_equal(status_name(STATUS_END), "none");
	assert_string_equal(class_name(0), "Standard"); /* missing = 3 */
	assert_string_equal(class_name(-1), "Standard");
	assert_string_equal(class_name(CLASS_END), "Standard");
}

static void classes(void **state)
{
	(void)state;
	assert_int_equal(class_parse(STR("EXPEDITE")), EXPEDITE);
	assert_int_equal(class_parse(STR("fixed-date")), FIXED_DATE);
	assert_int_equal(class_parse(STR("FIXED_DATE")), FIXED_DATE);
	assert_int_equal(class_parse(STR("fixeddate")), FIXED_DATE);
	assert_int_equal(class_parse(STR("standard")), STANDARD);
	assert_int_equal(class_parse(STR("Intangible")), INTANGIBLE);
	assert_int_equal(class_parse(STR("urgent")), 0);
	assert_int_equal(class_parse(STR("")), 0);
}

static void priorities(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: not a valid word */
	} all[] = {
		{ "high", 3 },    { "HIGH", 3 },
		{ "medium", 2 },  { "Low", 1 },
		{ "0", 0 },       { "2", 2 },
		{ "1000", 1000 }, { "1001", -1 },
		{ "-1", -1 },     { "", -1 },
		{ "1.5", -1 },    { "highest", -1 },
		{ " 1", -1 },     { "99999999999999999999", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		int64_t got;

		assert_int_equal(priority_parse(str_c(all[i].text), &got), all[i].want >= 0);
		if (all[i].want >= 0)
			assert_int_equal(got, all[i].want);
	}
}

static void good_ids(void **state)
{
	static const char *const good[] = { "t1",       "T",        "9",    "a.b",
					    "A-b_c.d",  "x.locked", "done", "lock",
					    "a.lock.b", "task",     "a-.b", "Zz09" };
	char longest[ID_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_null(id_fault(str_c(good[i])));
	memset(longest, 'a', sizeof(longest));
	assert_null(id_fault(str_n(longest, sizeof(longest))));
}

static void bad_ids(void **state)
{
	static const char *const bad[] = {
		"",         ".",      "-a", "_a",  ".a",     "a b",    "a/b",
		"../a",     "a..b",   "a.", "a..", "a.lock", "a.LOCK", "a.done",
		"a.Failed", "a.task", "é",  "a\n", "a:b",    "a@b",    "a`",
		"a[",       "a{",     "[a", "{a",  "/a",     ":a",     "@a",
	};
	char longer[ID_MAX + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_non_null(id_fault(str_c(bad[i])));
	memset(longer, 'a', sizeof(longer));
	assert_non_null(id_fault(str_n(longer, sizeof(longer))));
	assert_non_null(id_fault(STR("a\0b")));
	assert_non_null(id_fault(STR("a\0")));
}

static void numbers(void **state)
{
	static const struct {
		const char *id, *numbered;
		int64_t number;
	} ids[] = {
		{ "109", "t109", -1 },
		{ "10_2", "t10_2", -1 },
		{ "t109", "t109", 109 },
		{ "t10_2", "t10_2", 10 },
		{ "t7_words", "t7_words", 7 },
		{ "t", "t", -1 },
		{ "tea", "tea", -1 },
		{ "T5", "T5", -1 },
		{ "t5a", "t5a", -1 },
		{ "t1000000000000000", "t1000000000000000", 1000000000000000 },
		{ "t1000000000000001", "t1000000000000001", -1 },
		{ "t99999999999999999999", "t99999999999999999999", -1 },
		{ "-x", "-x", -1 },
		{ "", "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(ids); i++) {
		assert_true(str_is(id_numbered(&mem, str_c(ids[i].id)), ids[i].numbered));
		assert_int_equal(id_number(str_c(ids[i].id)), ids[i].number);
	}
}

static void keys(void **state)
{
	(void)state;
	assert_true(str_is(task_key(&mem, STR("T1-aZ.[")), "task/t1-az.["));
	assert_true(str_eq(task_key(&mem, STR("ABC")), task_key(&mem, STR("abc"))));
}

static void results(void **state)
{
	static const struct {
		enum result r;
		const char *name;
		int exit, http;
	} all[] = {
		{ SUCCESS, "SUCCESS", 0, 200 },
		{ LOCK_FREE, "LOCK_FREE", 1, 200 },
		{ USAGE, "USAGE", 2, 400 },
		{ NO_TASKS, "NO_TASKS", 10, 200 },
		{ CONFLICT, "CONFLICT", 20, 409 },
		{ LOST_LOCK, "LOST_LOCK", 21, 409 },
		{ API_ERROR, "API_ERROR", 30, 503 },
		{ MISCONFIGURED, "MISCONFIGURED", 40, 422 },
		{ INCOMPLETE_SUBTASKS, "INCOMPLETE_SUBTASKS", 41, 422 },
		{ NOT_FOUND, "NOT_FOUND", 44, 404 },
		{ VIOLATION, "VIOLATION", 45, 422 },
	};
	int known = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		assert_int_equal(all[i].r, all[i].exit);
		assert_string_equal(result_name(all[i].r), all[i].name);
		assert_int_equal(result_http(all[i].r), all[i].http);
		assert_true(strlen(result_text(all[i].r)) > 3);
	}
	for (int64_t i = -300; i < 300; i++)
		known += result_known(i);
	assert_int_equal(known, COUNT(all));
	assert_false(result_known(INT64_C(1) << 32)); /* not truncated to an int */
}

static void events_fit(void **state)
{
	(void)state;
	assert_true(rules_event_fits(STR("done"), IN_PROGRESS, DONE));
	assert_true(rules_event_fits(STR("done"), READY, DONE)); /* under a manual lock */
	assert_false(rules_event_fits(STR("done"), REVIEW, DONE));
	assert_false(rules_event_fits(STR("done"), IN_PROGRESS, FAILED));
	assert_false(rules_event_fits(STR("done"), 0, 0));
	assert_true(rules_event_fits(STR("reopened"), CANCELED, READY));
	assert_false(rules_event_fits(STR("approved"), READY, DONE));
	assert_true(rules_event_fits(STR("claimed"), READY, IN_PROGRESS));
	assert_true(rules_event_fits(STR("claimed"), 0, 0)); /* it was In Progress already */
	assert_false(rules_event_fits(STR("claimed"), REVIEW, IN_PROGRESS));
	assert_false(rules_event_fits(STR("claimed"), READY, DONE));
	assert_true(rules_event_fits(STR("resumed"), 0, 0));
	assert_true(rules_event_fits(STR("needs_help"), BACKLOG, NEEDS_HELP));
	assert_false(rules_event_fits(STR("needs_help"), DONE, NEEDS_HELP));
	assert_true(rules_event_fits(STR("comment"), 0, 0));
	assert_true(rules_event_fits(STR("of a newer pawl"), DONE, READY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses), cmocka_unit_test(names_read_back),
		cmocka_unit_test(classes),  cmocka_unit_test(priorities),
		cmocka_unit_test(good_ids), cmocka_unit_test(bad_ids),
		cmocka_unit_test(numbers),  cmocka_unit_test(keys),
		cmocka_unit_test(results),  cmocka_unit_test(events_fit),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
