/* The history file: written, torn, merged, read back; and the messages about malformed files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <signal.h>

#include "base/fs.h"
#include "base/backoff.h"
#include "base/secret.h"
#include "proof/check/checker.h"
#include "kit/folder.h"

static int enter(void **state)
{
	return folder_enter(state) ? 0 : -1;
}

static const struct history_head head = { .pawl = { "0.2.0", 5 },
					  .store = { "mem", 3 },
					  .seed = 42,
					  .agents = 2,
					  .tasks = 1,
					  .policy = { .lease = 100,
						      .lease_min = 1,
						      .lease_max = 1000,
						      .lock_ttl = 50,
						      .max_abandoned = 3,
						      .keep_abandoned = true } };

static struct task a_task(struct arena *a)
{
	return (struct task){ .id = STR("t1"),
			      .status = IN_PROGRESS,
			      .class_rank = STANDARD,
			      .priority = 2,
			      .fence = 3,
			      .version = 9,
			      .attempts = 1,
			      .updated_at = 77,
			      .lock = { .holder = STR("a1"),
					.token = token_hash(a, STR("secret")),
					.expires_at = 1000,
					.ttl = 100 } };
}

static struct request a_claim(void)
{
	struct request rq = { .op = OP_CLAIM };

	GIVE(&rq, id, STR("t1"));
	GIVE(&rq, agent, STR("a1"));
	GIVE(&rq, new_token, STR("secret"));
	GIVE(&rq, ttl, 100);
	return rq;
}

/* One call with an answer and one without. */
static void write_part(const char *path, struct arena *a)
{
	struct task t = a_task(a);
	struct grant g = { STR("secret"), 3, 1000, 100 };
	struct answer ans = { .now = 900, .task = &t, .lock = &g, .has_next = 1 };
	struct request rq = a_claim();
	struct history *h;

	assert_int_equal(history_open(&h, path, NULL), 0);
	history_answer(h, history_call(h, STR("a1"), &rq), &ans);
	history_call(h, STR("a1"), &rq);
	assert_int_equal(history_close(h), 0);
}

static void append(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fs_write_all(fd, str_c(text)), 0);
	close(fd);
}

static void there_and_back(void **state)
{
	const char *parts[] = { "one", "two", "driver" };
	struct arena a = { 0 };
	struct history_log log;
	struct history *h;
	struct task t = a_task(&a);
	struct str why, bytes;

	(void)state;
	write_part("one", &a);
	write_part("two", &a);
	append("two", "{\"t\":12"); /* the process was killed */
	assert_int_equal(history_open(&h, "driver", NULL), 0);
	history_event(h, "kill", STR("a1"), 12, 0);
	history_event(h, "skew", STR(""), 0, -500);
	history_final(h, STR("t1"), 950, &t);
	history_final(h, STR("t2"), 950, NULL);
	assert_int_equal(history_close(h), 0);
	assert_int_equal(history_merge("all", &head, parts, 3, &a, &why), 0);

	assert_int_equal(fs_read(&a, "all", 1 << 20, &bytes), 0);
	assert_false(str_has_nocase(bytes, STR("secret")));
	assert_int_equal(history_load(&log, "all", &why), 0);
	assert_memory_equal(&log.head.policy, &head.policy, sizeof(head.policy));
	assert_int_equal(log.head.seed, 42);
	assert_int_equal(log.n_calls, 4);
	assert_int_equal(log.n_notes, 2);
	assert_int_equal(log.notes[1].ms, -500);
	assert_int_equal(log.n_ends, 2);
	assert_null(log.ends[1].task);
	for (size_t i = 0; i < 4; i++) {
		const struct history_call *c = &log.calls[i];

		assert_int_equal(c->number, i + 1);
		assert_int_equal(c->rq->ttl, 100);
		assert_true(HAS(c->rq, ttl) && !HAS(c->rq, fence));
		assert_int_equal(c->rq->new_token.n, 16);
		assert_true(!c->ans == (i % 2 == 1));
		if (!c->ans)
			continue;
		assert_true(c->answered >= c->sent);
		assert_int_equal(c->ans->code, SUCCESS);
		assert_int_equal(c->ans->task->version, 9);
		assert_int_equal(c->ans->task->lock.expires_at, 1000);
		assert_true(str_eq(c->ans->task->lock.token, c->rq->new_token));
		assert_true(str_eq(c->ans->lock->token, c->rq->new_token));
		assert_true(c->ans->has_next && !c->ans->next);
	}
	history_free(&log);
	arena_free(&a);
}

static void no_overwriting(void **state)
{
	struct arena a = { 0 };
	struct history *h;
	struct str why;

	(void)state;
	append("there", "mine");
	assert_int_equal(history_open(&h, "there", NULL), -EEXIST);
	assert_int_equal(history_merge("there", &head, NULL, 0, &a, &why), -EEXIST);
	assert_true(why.n > 0);
	arena_free(&a);
}

static void bad_part(void **state)
{
	const char *parts[] = { "part" };
	struct arena a = { 0 };
	struct str why;

	(void)state;
	append("part", "{\"t\":1,\"call\":4294967297,\"x\":1}\nnonsense\n");
	assert_int_equal(history_merge("all", &head, parts, 1, &a, &why), -EBADMSG);
	assert_true(str_has_nocase(why, STR("part, line 2")));
	assert_false(fs_exists("all"));
	append("back", "{\"t\":2,\"event\":\"x\"}\n{\"t\":1,\"event\":\"y\"}\n");
	parts[0] = "back";
	assert_int_equal(history_merge("all", &head, parts, 1, &a, &why), -EBADMSG);
	assert_true(str_has_nocase(why, STR("back, line 2: it is earlier")));
	parts[0] = "missing";
	assert_int_equal(history_merge("all", &head, parts, 1, &a, &why), -ENOENT);
	arena_free(&a);
}

/* Parts whose lines alternate; one part is empty. */
static void in_turns(void **state)
{
	const char *parts[] = { "p0", "p1", "p2", "p3" };
	struct arena a = { 0 };
	struct history_log log;
	struct str why;
	uint64_t random = 5;

	(void)state;
	append("p3", "");
	for (int t = 1; t <= 300; t++)
		append(parts[seeded_below(&random, 3)],
		       arena_printf(&a, "{\"t\":%d,\"event\":\"e%d\"}\n", t, t).p);
	assert_int_equal(history_merge("all", &head, parts, 4, &a, &why), 0);
	assert_int_equal(history_load(&log, "all", &why), 0);
	assert_int_equal(log.n_notes, 300);
	for (int i = 0; i < 300; i++)
		assert_int_equal(log.notes[i].at, i + 1);
	history_free(&log);
	arena_free(&a);
}

/* A file that is not a history is not read to its end. */
static void too_long(void **state)
{
	struct history_log log;
	struct str why;

	(void)state;
	assert_int_equal(history_load(&log, "/dev/zero", &why), -EBADMSG);
	assert_true(str_has_nocase(why, STR("line 1: it is longer than 16 MiB")));
	history_free(&log);
}

/* A full disk: the error is reported and stays. */
static void full(void **state)
{
	struct rlimit old, small = { 300, 300 };
	struct request rq = a_claim();
	struct history *h;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(history_open(&h, "part", NULL), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	history_call(h, STR("a1"), &rq);
	assert_int_equal(history_error(h), 0);
	history_call(h, STR("a1"), &rq);
	history_call(h, STR("a1"), &rq);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_true(history_error(h) < 0);
	assert_true(history_close(h) < 0);
}

#define HEADER(ignore)                                                                              \
	"{\"pawl_history\":1,\"pawl\":\"0\",\"store\":\"mem\",\"seed\":1,\"agents\":1,\"tasks\":1," \
	"\"policy\":{\"lease\":1,\"lease_min\":1,\"lease_max\":1,\"lock_ttl\":1,"                   \
	"\"max_abandoned\":1,\"keep_abandoned\":false,\"ignore_depends\":" ignore "}}\n"
#define GOOD HEADER("false")
#define CALL \
	"{\"t\":5,\"call\":1,\"agent\":\"a\",\"pid\":1,\"request\":{\"op\":\"SHOW\",\"id\":\"t1\"}}\n"

static void malformed(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "empty" },
		{ "x", "line 1" },
		{ "{}\n", "line 1: this is not the header" },
		{ "{\"pawl_history\":2}\n", "format 2" },
		{ HEADER("1"), "line 1: ignore_depends: true or false" },
		{ GOOD "[]\n", "line 2: an object" },
		{ GOOD "{\"t\":1}\n", "neither call" },
		{ GOOD "x\n" CALL, "line 2: not JSON" },
		{ GOOD "{\"t\":-1,\"event\":\"kill\"}\n", "negative" },
		{ GOOD "{\"t\":\"1\",\"event\":\"kill\"}\n", "t: a whole number" },
		{ GOOD CALL CALL, "line 3: call 1: the number is used already" },
		{ GOOD "{\"t\":1,\"answer\":9,\"code\":\"SUCCESS\",\"now\":1}\n", "no such call" },
		{ GOOD CALL "{\"t\":1,\"answer\":1,\"code\":\"SUCCESS\",\"now\":1}\n",
		  "earlier than its call" },
		{ GOOD CALL "{\"t\":9,\"answer\":1,\"code\":\"WHAT\",\"now\":1}\n", "no WHAT" },
		{ GOOD CALL "{\"t\":9,\"answer\":1,\"code\":\"SUCCESS\"}\n", "now is missing" },
		{ GOOD CALL "{\"t\":9,\"answer\":1,\"code\":\"SUCCESS\",\"now\":1,\"new\":1}\n",
		  "new is unknown" },
		{ GOOD CALL "{\"t\":9,\"answer\":1,\"code\":\"SUCCESS\",\"now\":1,\"task\":{}}\n",
		  "id is missing" },
		{ GOOD
		  "{\"t\":5,\"call\":1,\"agent\":\"a\",\"pid\":1,\"request\":{\"op\":\"FLY\"}}\n",
		  "op is missing or unknown" },
		{ GOOD
		  "{\"t\":5,\"call\":1,\"agent\":\"a\",\"pid\":1,\"request\":{\"op\":\"SHOW\"}}\n",
		  "SHOW needs an id" },
		{ GOOD
		  "{\"t\":5,\"call\":1,\"agent\":\"a\",\"pid\":1,\"request\":{\"op\":\"TAKE\",\"x\":1}}\n",
		  "no argument x" },
		{ GOOD "{\"t\":5,\"final\":\"t1\",\"now\":1}\n", "task is missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct history_log log;
		struct str why;

		if (history_parse(&log, str_c(cases[i].text), &why) != -EBADMSG)
			fail_msg("case %zu was taken", i);
		if (!str_has_nocase(why, str_c(cases[i].why)))
			fail_msg("case %zu: %.*s", i, STRF(why));
		history_free(&log);
	}
}

static void torn(void **state)
{
	struct history_log log;
	struct str why;

	(void)state;
	for (size_t cut = 1; cut < sizeof(CALL) - 1; cut++) {
		struct str text = str_n(GOOD CALL, sizeof(GOOD CALL) - 1 - cut);

		assert_int_equal(history_parse(&log, text, &why), 0);
		assert_int_equal(log.n_calls, cut == 1);
		assert_true(log.torn == (cut != 1));
		history_free(&log);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(there_and_back, enter, folder_leave),
		cmocka_unit_test_setup_teardown(no_overwriting, enter, folder_leave),
		cmocka_unit_test_setup_teardown(bad_part, enter, folder_leave),
		cmocka_unit_test_setup_teardown(full, enter, folder_leave),
		cmocka_unit_test_setup_teardown(in_turns, enter, folder_leave),
		cmocka_unit_test(too_long),
		cmocka_unit_test(malformed),
		cmocka_unit_test(torn),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
