/*
 * Answers that a server sent. Each member has its limits, and a success has all that callers use without a test of their
 * own.
 */
#include "core_kit.h"

#include "base/when.h"
#include "core/validate.h"
#include "core/typed.h"

#define BAD_TEXT STR("\xff")
#define UUID STR("01234567-89ab-4def-8123-456789abcdef")

static struct task task = { .id = { "t1", sizeof("t1") - 1 },
			    .status = READY,
			    .class_rank = STANDARD };
static struct task other = { .id = { "t2", sizeof("t2") - 1 },
			     .status = READY,
			     .class_rank = STANDARD };
static struct task write_lock = { .id = { "@write", sizeof("@write") - 1 } };
static struct task emergency = { .id = { "@emergency", sizeof("@emergency") - 1 } };

static struct str filled(size_t n)
{
	char *p = arena_alloc(&mem, n + 1);

	memset(p, 'x', n);
	return str_n(p, n);
}

static void refused(struct answer ans)
{
	assert_non_null(answer_fault(&ans, &mem));
}

static void accepted(struct answer ans)
{
	assert_null(answer_fault(&ans, &mem));
}

/* --- members ---------------------------------------------------------------------------------------- */

static void words(void **state)
{
	(void)state;
	accepted((struct answer){ .fault = STR("unreachable"), .queue_id = UUID });
	accepted((struct answer){ .fault = STR("two-words") });
	refused((struct answer){ .fault = STR("{") });
	refused((struct answer){ .fault = STR("\x1b[2J") });
	refused((struct answer){ .fault = STR("x; touch y") });
	refused((struct answer){ .fault = STR("A") });
	refused((struct answer){ .fault = filled(NAME_MAX_BYTES + 1) });
	refused((struct answer){ .queue_id = STR("a\nb") });
	refused((struct answer){ .message = filled(3 * TEXT_MAX) });
	refused((struct answer){ .came_back = &(struct notice){ .by = BAD_TEXT } });
	refused((struct answer){ .undone = &(struct notice){ .by = BAD_TEXT } });
	assert_true(word_valid(STR("a queue")));
	assert_false(word_valid(STR("a\nqueue")));
	assert_false(word_valid(STR("a\x7fqueue")));
	assert_false(word_valid(filled(NAME_MAX_BYTES + 1)));
	assert_false(word_valid(BAD_TEXT));
}

static void numbers(void **state)
{
	struct answer counts = { .counts = { [READY] = -1 } },
		      archived = { .archived = { [DONE] = -1 } };

	(void)state;
	accepted((struct answer){ .now = WHEN_MAX, .total = EXACT_MAX, .barred = TYPED_SYNC });
	refused(counts);
	refused(archived);
	refused((struct answer){ .now = -1 });
	refused((struct answer){ .now = WHEN_MAX + 1 });
	refused((struct answer){ .total = -1 });
	refused((struct answer){ .total = EXACT_MAX + 1 });
	refused((struct answer){ .held = -1 });
	refused((struct answer){ .waiting = -1 });
	refused((struct answer){ .ended = -1 });
	refused((struct answer){ .wait_ms = -1 });
	refused((struct answer){ .barred = -1 });
	refused((struct answer){ .barred = TYPED_END });
	refused((struct answer){ .repeated = -1 });
	refused((struct answer){ .repeated = REPEATED_MAYBE + 1 });
}

static void locks(void **state)
{
	const struct grant bad[] = {
		{ .token = BAD_TEXT }, { .token = filled(NAME_MAX_BYTES + 1) }, { .fence = -1 },
		{ .expires_at = -1 },  { .expires_at = WHEN_MAX + 1 },          { .ttl = -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct grant g = bad[i], good = { .ttl = 1 };

		refused((struct answer){ .lock = &g });
		refused((struct answer){ .lock = &good, .next_lock = &g });
		accepted((struct answer){ .lock = &good, .next_lock = &good });
	}
}

static void lists(void **state)
{
	struct event event = { .name = STR("comment"), .cursor = STR("a\nb") };
	struct candidate candidate = { .id = STR("t1"), .place = -1 };
	struct str ids[] = { STR("../x") };
	struct standing standing = { .on = { ids, 1 } };

	(void)state;
	refused((struct answer){ .events = &event, .n_events = 1 });
	refused((struct answer){ .candidates = &candidate, .n_candidates = 1 });
	refused((struct answer){ .tasks = &task, .n_tasks = 1, .standing = &standing });
	ids[0] = STR("t3");
	accepted((struct answer){ .tasks = &task, .n_tasks = 1, .standing = &standing });
	accepted((struct answer){
		.task = &task, .n_allowed = 1, .allowed = &(struct allowed){ .position = 1 } });
	refused((struct answer){
		.task = &task, .n_allowed = 1, .allowed = &(struct allowed){ .position = -1 } });
	refused((struct answer){ .task = &task,
				 .n_allowed = 1,
				 .allowed = &(struct allowed){ .why = STR("\xff") } });
}

static void link_is(struct task_link link, bool good)
{
	struct related r = { .links = &link, .n_links = 1 };

	(good ? accepted : refused)((struct answer){ .related = &r });
}

static void attempt_is(struct task_attempt attempt, bool good)
{
	struct related r = { .attempts = &attempt, .n_attempts = 1 };

	(good ? accepted : refused)((struct answer){ .related = &r });
}

static void relations(void **state)
{
	struct event past = { .name = STR("released"), .cursor = STR("a\nb") };
	struct related r = { .more = { [LINK_DEPENDENT] = -1 } },
		       brief = { .history = &past, .n_history = 1 };

	(void)state;
	refused((struct answer){ .related = &r });
	refused((struct answer){ .related = &brief });
	past.cursor = STR("");
	accepted((struct answer){ .related = &brief });
	link_is((struct task_link){ .id = STR("t1") }, true);
	link_is((struct task_link){ .id = STR("../x") }, false);
	link_is((struct task_link){ .id = STR("t1"), .title = BAD_TEXT }, false);
	link_is((struct task_link){ .id = STR("t1"), .holder = BAD_TEXT }, false);
	attempt_is((struct task_attempt){ .agent = STR("ann") }, true);
	attempt_is((struct task_attempt){ .agent = BAD_TEXT }, false);
	attempt_is((struct task_attempt){ .outcome = BAD_TEXT }, false);
	attempt_is((struct task_attempt){ .text = BAD_TEXT }, false);
	attempt_is((struct task_attempt){ .at = -1 }, false);
	attempt_is((struct task_attempt){ .ended_at = -1 }, false);
	attempt_is((struct task_attempt){ .fence = -1 }, false);
}

/* --- the answer to a request -------------------------------------------------------------------------- */

static struct request request(enum op op, struct str id)
{
	struct request rq = { .op = op };

	if (id.n)
		GIVE(&rq, id, id);
	return rq;
}

static bool fits(enum op op, struct str id, struct answer ans)
{
	struct request rq = request(op, id);

	return !reply_fault(&rq, &ans, &mem);
}

static void kinds(void **state)
{
	static const struct {
		enum op op;
		enum answer_kind kind;
	} all[] = {
		{ OP_LIST, ANSWER_TASKS },         { OP_ARCHIVE, ANSWER_TASKS },
		{ OP_LOCK_CLEANUP, ANSWER_TASKS }, { OP_LOG, ANSWER_EVENTS },
		{ OP_LOCKS, ANSWER_LOCKS },        { OP_OVERVIEW, ANSWER_OVERVIEW },
		{ OP_TYPED, ANSWER_TYPED },        { OP_PAUSE, ANSWER_TASK },
	};
	struct request explain = { .op = OP_NEXT, .explain = 1 };

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		assert_true(fits(all[i].op, STR(""), (struct answer){ .kind = all[i].kind }));
		assert_false(fits(all[i].op, STR(""), (struct answer){ .kind = ANSWER_ID }));
		assert_false(fits(all[i].op, STR(""),
				  (struct answer){ .code = API_ERROR, .kind = ANSWER_ID }));
	}
	for (int op = 0; op < OP_END; op++) /* a refusal may have no kind */
		assert_true(fits(op, STR(""), (struct answer){ .code = API_ERROR }));
	assert_null(reply_fault(&explain, &(struct answer){ .kind = ANSWER_CANDIDATES }, &mem));
	assert_non_null(reply_fault(&explain, &(struct answer){ .task = &task }, &mem));
	assert_non_null(reply_fault(&explain, &(struct answer){ .now = -1 }, &mem));
}

static void codes(void **state)
{
	(void)state;
	assert_true(fits(OP_NEXT, STR(""), (struct answer){ .code = NO_TASKS }));
	assert_true(fits(OP_TAKE, STR(""), (struct answer){ .code = NO_TASKS }));
	assert_false(fits(OP_SHOW, STR("t1"), (struct answer){ .code = NO_TASKS }));
	assert_false(fits(OP_LOCK_STATUS, STR("t1"),
			  (struct answer){ .code = LOCK_FREE, .kind = ANSWER_LOCK }));
}

static void presence(void **state)
{
	static const enum op ids[] = { OP_ID_PEEK, OP_ID_CLAIM, OP_ID_INIT };
	static const enum op with_task[] = { OP_SHOW, OP_CREATE, OP_UPDATE,
					     OP_DONE, OP_NEXT,   OP_UNDO };
	static const enum op with_lock[] = { OP_TAKE, OP_CLAIM, OP_LOCK_ACQUIRE, OP_HEARTBEAT };
	static const enum op emergencies[] = { OP_EMERGENCY, OP_EMERGENCY_ON, OP_EMERGENCY_OFF };
	struct grant lock = { .ttl = 1 };
	struct request status = request(OP_STATUS, STR("t1"));

	(void)state;
	for (size_t i = 0; i < COUNT(ids); i++) {
		assert_false(fits(ids[i], STR(""), (struct answer){ .kind = ANSWER_ID }));
		assert_true(fits(ids[i], STR(""),
				 (struct answer){ .kind = ANSWER_ID, .text = STR("t7") }));
	}
	for (size_t i = 0; i < COUNT(with_task); i++) {
		assert_false(fits(with_task[i], STR("t1"), (struct answer){ 0 }));
		assert_true(fits(with_task[i], STR("t1"), (struct answer){ .task = &task }));
	}
	for (size_t i = 0; i < COUNT(with_lock); i++) {
		assert_false(fits(with_lock[i], STR("t1"), (struct answer){ .lock = &lock }));
		assert_false(fits(with_lock[i], STR("t1"), (struct answer){ .task = &task }));
		assert_true(fits(with_lock[i], STR("t1"),
				 (struct answer){ .task = &task, .lock = &lock }));
	}
	for (size_t i = 0; i < COUNT(emergencies); i++) {
		assert_false(fits(emergencies[i], STR(""), (struct answer){ 0 }));
		assert_false(fits(emergencies[i], STR(""), (struct answer){ .task = &task }));
		assert_true(fits(emergencies[i], STR(""), (struct answer){ .task = &emergency }));
	}
	status.status = DONE;
	assert_null(reply_fault(&status, &(struct answer){ .task = &task }, &mem));
	status.status = IN_PROGRESS;
	assert_non_null(reply_fault(&status, &(struct answer){ .task = &task }, &mem));
	assert_false(fits(OP_DONE, STR("t1"), (struct answer){ .task = &task, .next = &other }));
	assert_true(fits(OP_DONE, STR("t1"),
			 (struct answer){ .task = &task, .next = &other, .next_lock = &lock }));
	assert_false(
		fits(OP_DONE, STR("t1"),
		     (struct answer){ .task = &task, .next = &write_lock, .next_lock = &lock }));
}

static void ids(void **state)
{
	struct answer list = { .kind = ANSWER_TASKS, .tasks = &task, .n_tasks = 1 };
	struct answer locked = { .kind = ANSWER_TASKS, .tasks = &write_lock, .n_tasks = 1 };
	struct grant lock = { .ttl = 1 };

	(void)state;
	assert_true(fits(OP_SHOW, STR("T1"), (struct answer){ .task = &task }));
	assert_false(fits(OP_SHOW, STR("t1"), (struct answer){ .task = &other }));
	assert_false(fits(OP_SHOW, STR("t1"), (struct answer){ .task = &write_lock }));
	assert_false(
		fits(OP_UPDATE, STR("t1"), (struct answer){ .code = CONFLICT, .task = &other }));
	assert_true(fits(OP_CREATE, STR(""), (struct answer){ .task = &other }));
	assert_false(fits(OP_CREATE, STR("t1"), (struct answer){ .task = &other }));
	assert_true(fits(OP_UNDO, STR(""), (struct answer){ .task = &other }));
	assert_false(fits(OP_UNDO, STR("t1"), (struct answer){ .task = &other }));
	assert_false(fits(OP_TAKE, STR(""), (struct answer){ .task = &write_lock, .lock = &lock }));
	assert_true(fits(OP_LOCK_ACQUIRE, STR("@write"),
			 (struct answer){ .task = &write_lock, .lock = &lock }));
	assert_true(fits(OP_LIST, STR(""), list));
	assert_false(fits(OP_LIST, STR(""), locked));
	assert_true(fits(OP_LOCK_CLEANUP, STR(""), locked));
	assert_true(fits(OP_LOCK_CLEANUP, STR(""), list));
	locked.kind = list.kind = ANSWER_TYPED;
	assert_true(fits(OP_TYPED, STR(""), locked));
	assert_false(fits(OP_TYPED, STR(""), list));
	locked.kind = ANSWER_TASKS;
	locked.tasks = &emergency;
	assert_false(fits(OP_LOCK_CLEANUP, STR(""), locked));
}

static void tokens(void **state)
{
	struct request rq = request(OP_CLAIM, STR("t1"));
	struct grant own = { .token = UUID }, none = { .ttl = 1 }, strange = { .token = STR("x") };
	struct answer ans = { .task = &task, .lock = &own, .next_lock = &none };

	(void)state;
	GIVE(&rq, new_token, UUID);
	assert_null(reply_fault(&rq, &ans, &mem));
	ans.next_lock = &strange;
	assert_non_null(reply_fault(&rq, &ans, &mem));
	ans.next_lock = NULL;
	ans.lock = &strange;
	assert_non_null(reply_fault(&rq, &ans, &mem));
}

#define TEST(f) cmocka_unit_test_teardown(f, free_memory)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(words), TEST(numbers),   TEST(locks),
					    TEST(lists), TEST(relations), TEST(kinds),
					    TEST(codes), TEST(presence),  TEST(ids),
					    TEST(tokens) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
