/* The library as a program sees it: only pawl.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <pawl.h>
#include <pthread.h>

#include "kit/folder.h"

#define THREADS 8
#define TASKS 80

static char store[100];

static struct pawl *open_as(const char *agent)
{
	struct pawl_options o = PAWL_OPTIONS;
	struct pawl *p;
	char *error;

	o.store = store;
	o.agent = agent;
	if (pawl_open(&p, &o, &error) != PAWL_SUCCESS)
		fail_msg("%s", error);
	return p;
}

/* The answer, as JSON. */
static json_t *ask(struct pawl *p, int code, const char *command, const char *arguments)
{
	char *text;
	json_t *o;

	if (pawl_call(p, command, arguments, &text) != code)
		fail_msg("%s %s: %s", command, arguments ? arguments : "", text);
	o = json_loads(text, 0, NULL);
	assert_non_null(o);
	assert_null(strchr(text, '\n'));
	pawl_free(text);
	return o;
}

static void tell(struct pawl *p, int code, const char *command, const char *arguments)
{
	json_decref(ask(p, code, command, arguments));
}

/* A new folder for each test. */
static int setup_folder(void **state)
{
	const char *dir = folder_enter(state);

	if (!dir)
		return -1;
	snprintf(store, sizeof(store), "sqlite:%s/queue.db", dir);
	setenv("XDG_STATE_HOME", dir, 1);
	unsetenv("PAWL_STORE");
	return 0;
}

/* A new queue for each test. */
static int setup(void **state)
{
	if (setup_folder(state))
		return -1;
	setenv("TEST_STORE", store, 1);
	return system("\"$PAWL\" init -q --store \"$TEST_STORE\"");
}

static void codes_have_names(void **state)
{
	(void)state;
	assert_string_equal(pawl_code_name(PAWL_SUCCESS), "SUCCESS");
	assert_string_equal(pawl_code_name(PAWL_LOST_LOCK), "LOST_LOCK");
	assert_string_equal(pawl_code_name(77), "");
	assert_true(strlen(pawl_version()) > 0);
}

static void opens_or_says_why(void **state)
{
	struct pawl_options o = PAWL_OPTIONS;
	struct pawl *p = (struct pawl *)1;
	char *error;

	(void)state;
	o.store = "sqlite:/nowhere/at/all.db";
	assert_int_not_equal(pawl_open(&p, &o, &error), PAWL_SUCCESS);
	assert_null(p);
	assert_true(strlen(error) > 0);
	pawl_free(error);
	assert_int_not_equal(pawl_open(&p, &o, NULL), PAWL_SUCCESS);
	o.store = "mem:here";
	assert_int_equal(pawl_open(&p, &o, NULL), PAWL_MISCONFIGURED);
	o = (struct pawl_options)PAWL_OPTIONS;
	o.dir = "/";
	assert_int_equal(pawl_open(&p, &o, &error), PAWL_MISCONFIGURED);
	assert_non_null(strstr(error, "no queue here"));
	pawl_free(error);
	/* the config came with a clone */
	assert_int_equal(
		system("mkdir -p clone/.pawl && echo 'store = sqlite:../else.db' >clone/.pawl/config"),
		0);
	o.dir = "clone";
	assert_int_equal(pawl_open(&p, &o, &error), PAWL_MISCONFIGURED);
	assert_non_null(strstr(error, ".pawl/config"));
	assert_non_null(strstr(error, "pawl trust"));
	pawl_free(error);
	pawl_close(NULL);
}

/* As `pawl init`: makes the queue once, records its store, and refuses a second store in the same folder. */
static void makes_a_queue(void **state)
{
	struct pawl_options o = PAWL_OPTIONS;
	struct pawl *p = (struct pawl *)1;
	char *error = (char *)1;

	(void)state;
	assert_int_equal(system("mkdir mine"), 0);
	o.dir = "mine";
	o.store = "sqlite:mine.db";
	assert_int_equal(pawl_init(&p, &o, &error), PAWL_SUCCESS);
	assert_null(error);
	tell(p, PAWL_SUCCESS, "create", "{\"title\": \"x\"}");
	pawl_close(p);
	o.store = NULL; /* its config says it */
	assert_int_equal(pawl_init(&p, &o, NULL), PAWL_SUCCESS);
	tell(p, PAWL_SUCCESS, "show", "{\"id\": \"t1\"}");
	pawl_close(p);
	o.store = "sqlite:other.db";
	assert_int_equal(pawl_init(&p, &o, &error), PAWL_MISCONFIGURED);
	assert_null(p);
	assert_non_null(strstr(error, "already uses"));
	pawl_free(error);
	assert_int_equal(system("mkdir mine/below"), 0);
	o.dir = "mine/below";
	o.store = NULL;
	assert_int_equal(pawl_init(&p, &o, NULL), PAWL_MISCONFIGURED);
	assert_int_not_equal(system("test -e mine/below/.pawl"), 0);
	o.dir = "gone";
	assert_int_not_equal(pawl_init(&p, &o, NULL), PAWL_SUCCESS);
}

/* An older program knows fewer options: the fields beyond its size are ignored. */
static void knows_older_options(void **state)
{
	struct pawl_options o = PAWL_OPTIONS;
	struct pawl *p;

	(void)state;
	o.store = store;
	o.agent = "\n not looked at";
	o.size = offsetof(struct pawl_options, agent);
	assert_int_equal(pawl_open(&p, &o, NULL), PAWL_SUCCESS);
	pawl_close(p);
}

static void is_found_as_the_program_finds_it(void **state)
{
	struct pawl *p;

	(void)state;
	setenv("PAWL_STORE", store, 1);
	assert_int_equal(pawl_open(&p, NULL, NULL), PAWL_SUCCESS);
	tell(p, PAWL_SUCCESS, "create", "{\"title\": \"x\"}");
	pawl_close(p);
	unsetenv("PAWL_STORE");
}

static void calls_commands(void **state)
{
	struct pawl *p = open_as("al");
	json_t *o;

	(void)state;
	o = ask(p, PAWL_SUCCESS, "create",
		"{\"title\": \"A task\", \"label\": [\"a\", \"b\"], \"priority\": 7, \"delay\": null}");
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "task"), "id")),
			    "t1");
	assert_int_equal(json_array_size(json_object_get(json_object_get(o, "task"), "labels")), 2);
	json_decref(o);
	tell(p, PAWL_SUCCESS, "create",
	     "{\"title\": \"Another\", \"depends\": \"t1\", \"extra\": {\"k\": 1}}");
	o = ask(p, PAWL_SUCCESS, "list", "{\"status\": [\"ready\"], \"limit\": 1}");
	assert_int_equal(json_integer_value(json_object_get(o, "total")), 2);
	assert_int_equal(json_integer_value(json_object_get(o, "count")), 1);
	json_decref(o);
	tell(p, PAWL_SUCCESS, "lock acquire", "{\"id\": \"t1\", \"ttl\": 60}");
	tell(p, PAWL_SUCCESS, "lock release", "{\"id\": \"t1\"}");
	tell(p, PAWL_SUCCESS, "list", NULL);
	assert_int_equal(pawl_call(p, "list", NULL, NULL), PAWL_SUCCESS);
	assert_string_equal(pawl_message(p), "");
	pawl_close(p);
}

static struct pawl *open_hasty(const char *agent)
{
	struct pawl_options o = PAWL_OPTIONS;
	struct pawl *p;

	o.store = store;
	o.agent = agent;
	o.timeout_ms = 30;
	assert_int_equal(pawl_open(&p, &o, NULL), PAWL_SUCCESS);
	return p;
}

/* Another agent's @batch keeps out changes of many tasks, and only those; its holder continues. */
static void waits_for_a_batch(void **state)
{
	static const char *const steps[][2] = {
		{ "batch add", "{\"title\": [\"a\", \"b\"]}" },
		{ "batch add", "{\"title\": [\"a\", \"b\"], \"keep_going\": true}" },
		{ "import", "{\"file\": [\"tasks.json\"], \"update\": true}" },
		{ "archive", NULL },
		{ "clear", "{\"force\": true}" },
		{ "restore", "{\"file\": [\"backup.pawl\"], \"force\": true}" },
	};
	struct pawl *boss = open_hasty("boss"), *al = open_hasty("al");

	(void)state;
	tell(al, PAWL_SUCCESS, "create", "{\"title\": \"one\"}");
	tell(al, PAWL_SUCCESS, "export", "{\"output\": \"tasks.json\"}");
	tell(al, PAWL_SUCCESS, "backup", "{\"file\": \"backup.pawl\"}");
	tell(boss, PAWL_SUCCESS, "lock acquire", "{\"id\": \"@batch\"}");
	tell(al, PAWL_SUCCESS, "create", "{\"title\": \"single\"}");
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		tell(al, PAWL_API_ERROR, steps[i][0], steps[i][1]);
		assert_non_null(strstr(pawl_message(al), "@batch is held by boss"));
		tell(boss, PAWL_SUCCESS, steps[i][0], steps[i][1]);
	}
	tell(boss, PAWL_SUCCESS, "lock release", "{\"id\": \"@batch\"}");
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		tell(al, PAWL_SUCCESS, steps[i][0], steps[i][1]);
	pawl_close(al);
	pawl_close(boss);
}

static void refuses_what_is_wrong(void **state)
{
	static const char *const bad[][2] = {
		{ "frobnicate", NULL },
		{ "lock", NULL },
		{ "claim me", "{\"id\": \"t1\"}" },
		{ "init", NULL },
		{ "run", "{\"command\": [\"true\"]}" },
		{ "setup", "{\"client\": \"claude\"}" },
		{ "claim", NULL },
		{ "claim", "{}" },
		{ "claim", "[]" },
		{ "claim", "{" },
		{ "claim", "\"t1\"" },
		{ "claim", "{\"id\": \"../x\"}" },
		{ "claim", "{\"id\": [\"t1\"]}" },
		{ "claim", "{\"id\": true}" },
		{ "claim", "{\"id\": \"t1\", \"ttl\": \"soon\"}" },
		{ "claim", "{\"id\": \"t1\", \"no_such\": 1}" },
		{ "claim", "{\"id\": \"t1\", \"agent\": \"eve\"}" },
		{ "next", "{\"claim\": \"yes\"}" },
		{ "create", "{\"title\": \"x\", \"extra\": [1]}" },
		{ "", NULL },
		{ NULL, NULL },
	};
	struct pawl *p = open_as("al");

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (pawl_call(p, bad[i][0], bad[i][1], NULL) != PAWL_USAGE)
			fail_msg("%zu: %s %s is not refused", i, bad[i][0], bad[i][1]);
		assert_true(strlen(pawl_message(p)) > 0);
	}
	tell(p, PAWL_NOT_FOUND, "show", "{\"id\": \"nope\"}");
	assert_non_null(strstr(pawl_message(p), "nope"));
	assert_true(strlen(pawl_hint(p)) > 0);
	tell(p, PAWL_SUCCESS, "list", NULL);
	assert_string_equal(pawl_message(p), "");
	pawl_close(p);
}

static void takes_keeps_and_finishes(void **state)
{
	struct pawl *p = open_as("al"), *q = open_as("bo");
	struct pawl_lock *l, *none;
	double left;

	(void)state;
	assert_int_equal(pawl_next(p, NULL, &l), PAWL_NO_TASKS);
	assert_null(l);
	tell(p, PAWL_SUCCESS, "create", "{\"title\": \"x\"}");
	assert_int_equal(pawl_next(p, "{\"ttl\": \"10m\"}", &l), PAWL_SUCCESS);
	assert_string_equal(pawl_lock_id(l), "t1");
	assert_int_equal(pawl_lock_fence(l), 1);
	assert_int_equal(strlen(pawl_lock_token(l)), 36);
	assert_non_null(strstr(pawl_lock_task(l), "\"title\":\"x\""));
	left = pawl_lock_left(l);
	assert_true(left > 500 && left <= 600);
	assert_int_equal(pawl_claim(q, "t1", NULL, &none), PAWL_CONFLICT);
	assert_null(none);
	assert_non_null(strstr(pawl_message(q), "al"));
	assert_int_equal(pawl_heartbeat(p, l), PAWL_SUCCESS);
	assert_int_equal(pawl_review(p, l, NULL), PAWL_USAGE);
	assert_int_equal(pawl_done(p, l, "\xff"), PAWL_USAGE);
	assert_int_equal(pawl_done(p, l, "did it"), PAWL_SUCCESS);
	/* the answer may have been lost: a repeat gets the same */
	assert_int_equal(pawl_done(p, l, "did it"), PAWL_SUCCESS);
	assert_int_equal(pawl_heartbeat(p, l), PAWL_LOST_LOCK);
	assert_true(pawl_lock_left(l) == 0);
	pawl_lock_free(l);
	pawl_lock_free(NULL);
	pawl_close(p);
	pawl_close(q);
}

static void ends_a_lock_in_each_way(void **state)
{
	struct pawl *p = open_as("al"), *boss = open_as("boss");
	struct pawl_lock *l;

	(void)state;
	tell(p, PAWL_SUCCESS, "create", "{\"title\": \"x\"}");
	assert_int_equal(pawl_claim(p, "t1", "{\"ttl\": 60}", &l), PAWL_SUCCESS);
	assert_int_equal(pawl_release(p, l, NULL), PAWL_SUCCESS);
	pawl_lock_free(l);
	assert_int_equal(pawl_claim(p, "t1", NULL, &l), PAWL_SUCCESS);
	assert_int_equal(pawl_fail(p, l, "broken"), PAWL_SUCCESS);
	pawl_lock_free(l);
	assert_int_equal(pawl_claim(p, "t1", NULL, &l), PAWL_SUCCESS);
	assert_int_equal(pawl_lock_fence(l), 3);
	tell(boss, PAWL_SUCCESS, "lock break", "{\"id\": \"t1\", \"reason\": \"r\"}");
	assert_int_equal(pawl_done(p, l, NULL), PAWL_LOST_LOCK);
	assert_true(strlen(pawl_message(p)) > 0);
	pawl_lock_free(l);
	assert_int_equal(pawl_claim(p, NULL, NULL, &l), PAWL_USAGE);
	assert_int_equal(pawl_claim(p, "t1", "[]", &l), PAWL_USAGE);
	assert_int_equal(pawl_claim(p, "t1", NULL, &l), PAWL_SUCCESS);
	assert_int_equal(pawl_review(p, l, "look"), PAWL_SUCCESS);
	pawl_lock_free(l);
	pawl_close(p);
	pawl_close(boss);
}

static void *drain(void *arg)
{
	struct pawl *p = open_as("worker");
	struct pawl_lock *l;
	int *done = arg, code;

	while ((code = pawl_next(p, NULL, &l)) == PAWL_SUCCESS) {
		if (pawl_heartbeat(p, l) == PAWL_SUCCESS && pawl_done(p, l, NULL) == PAWL_SUCCESS)
			++*done;
		pawl_lock_free(l);
	}
	if (code != PAWL_NO_TASKS)
		print_error("%s: %s\n", pawl_code_name(code), pawl_message(p));
	pawl_close(p);
	return code == PAWL_NO_TASKS ? arg : NULL;
}

/* One handle for each thread, all with the same name, opened at the same time: each task is done
 * once. */
static void serves_threads(void **state)
{
	struct pawl *p = open_as("al");
	int done[THREADS] = { 0 }, sum = 0;
	pthread_t threads[THREADS];
	void *well;
	json_t *o;

	(void)state;
	for (int i = 0; i < TASKS; i++)
		tell(p, PAWL_SUCCESS, "create", "{\"title\": \"x\"}");
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, drain, &done[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &well), 0);
		assert_non_null(well);
		sum += done[i];
	}
	assert_int_equal(sum, TASKS);
	o = ask(p, PAWL_SUCCESS, "list", "{\"status\": \"done\", \"limit\": 1}");
	assert_int_equal(json_integer_value(json_object_get(o, "total")), TASKS);
	json_decref(o);
	pawl_close(p);
}

static void *make_and_add(void *arg)
{
	struct pawl_options o = PAWL_OPTIONS;
	struct pawl *p;
	char *error;

	o.dir = arg;
	if (pawl_init(&p, &o, &error) != PAWL_SUCCESS) {
		print_error("%s\n", error);
		pawl_free(error);
		return NULL;
	}
	if (pawl_call(p, "create", "{\"title\": \"x\"}", NULL) != PAWL_SUCCESS) {
		print_error("%s\n", pawl_message(p));
		pawl_close(p);
		return NULL;
	}
	return p;
}

/* All threads make the same queue at once. Each passes its handle on to another thread, which uses and closes it. */
static void makes_one_queue_in_threads(void **state)
{
	pthread_t threads[THREADS];
	void *p;
	json_t *o;

	(void)state;
	assert_int_equal(system("mkdir shared"), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_and_add, "shared"), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &p), 0);
		assert_non_null(p);
		tell(p, PAWL_SUCCESS, "create", "{\"title\": \"y\"}");
		if (i == THREADS - 1) {
			o = ask(p, PAWL_SUCCESS, "list", "{\"limit\": 1}");
			assert_int_equal(json_integer_value(json_object_get(o, "total")),
					 2 * THREADS);
			json_decref(o);
		}
		pawl_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_have_names),
		cmocka_unit_test_setup_teardown(serves_threads, setup, folder_leave),
		cmocka_unit_test_setup_teardown(makes_one_queue_in_threads, setup_folder,
						folder_leave),
		cmocka_unit_test_setup_teardown(opens_or_says_why, setup, folder_leave),
		cmocka_unit_test_setup_teardown(makes_a_queue, setup_folder, folder_leave),
		cmocka_unit_test_setup_teardown(knows_older_options, setup, folder_leave),
		cmocka_unit_test_setup_teardown(is_found_as_the_program_finds_it, setup,
						folder_leave),
		cmocka_unit_test_setup_teardown(calls_commands, setup, folder_leave),
		cmocka_unit_test_setup_teardown(waits_for_a_batch, setup, folder_leave),
		cmocka_unit_test_setup_teardown(refuses_what_is_wrong, setup, folder_leave),
		cmocka_unit_test_setup_teardown(takes_keeps_and_finishes, setup, folder_leave),
		cmocka_unit_test_setup_teardown(ends_a_lock_in_each_way, setup, folder_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
