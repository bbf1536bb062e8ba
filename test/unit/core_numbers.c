/*
 * Numbers that are kept: in records, packed requests and answers, counters and the slots of processes that commit
 * together. A number that changes would give old data, or another version's, a new meaning. Each stands here a
 * second time, so that a change is on purpose. A new one is added here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/secret.h"
#include "core/answer.h"
#include "core/field.h"
#include "core/lock_health.h"
#include "core/index.h"
#include "core/typed.h"
#include "format/answer_form.h"
#include "format/record_form.h"
#include "format/request_form.h"
#include "store/files/files.h"
#include "store/local/combine_file.h"
#include "store/store.h"

struct pin {
	int64_t value, number;
	const char *name;
};

#define PIN(name, number)               \
	{                               \
		(name), (number), #name \
	}
#define N(list) (sizeof(list) / sizeof((list)[0]))

static void check(const struct pin *pins, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pins[i].value != pins[i].number)
			fail_msg("%s is %lld, and was %lld", pins[i].name, (long long)pins[i].value,
				 (long long)pins[i].number);
}

static void test_ops(void **state)
{
	static const struct pin pins[] = {
		PIN(OP_SHOW, 1),           PIN(OP_LIST, 2),          PIN(OP_LOG, 3),
		PIN(OP_NEXT, 4),           PIN(OP_OVERVIEW, 5),      PIN(OP_LOCKS, 6),
		PIN(OP_LOCK_STATUS, 7),    PIN(OP_ID_PEEK, 8),       PIN(OP_ID_CLAIM, 9),
		PIN(OP_CREATE, 10),        PIN(OP_TAKE, 11),         PIN(OP_CLAIM, 12),
		PIN(OP_HEARTBEAT, 13),     PIN(OP_RELEASE, 14),      PIN(OP_BLOCK, 15),
		PIN(OP_UNBLOCK, 16),       PIN(OP_ESCALATE, 17),     PIN(OP_REVIEW, 18),
		PIN(OP_APPROVE, 19),       PIN(OP_REWORK, 20),       PIN(OP_DONE, 21),
		PIN(OP_FAIL, 22),          PIN(OP_RETRY, 23),        PIN(OP_REOPEN, 24),
		PIN(OP_CANCEL, 25),        PIN(OP_REMOVE, 26),       PIN(OP_UPDATE, 27),
		PIN(OP_STATUS, 28),        PIN(OP_COMMENT, 29),      PIN(OP_DEPEND, 30),
		PIN(OP_UNDEPEND, 31),      PIN(OP_LOCK_ACQUIRE, 32), PIN(OP_LOCK_RELEASE, 33),
		PIN(OP_LOCK_BREAK, 34),    PIN(OP_LOCK_CLEANUP, 35), PIN(OP_ARCHIVE, 36),
		PIN(OP_TYPED, 37),         PIN(OP_EMERGENCY, 38),    PIN(OP_EMERGENCY_ON, 39),
		PIN(OP_EMERGENCY_OFF, 40), PIN(OP_ID_INIT, 41),      PIN(OP_PAUSE, 42),
		PIN(OP_RESUME, 43),        PIN(OP_UNDO, 44),
	};

	(void)state;
	check(pins, N(pins));
	assert_int_equal(OP_NONE, 0);
	assert_int_equal(OP_END, N(pins) + 1);
	for (size_t i = 0; i < N(pins); i++)
		assert_string_equal(op_name((enum op)pins[i].number), pins[i].name + strlen("OP_"));
}

static void test_core(void **state)
{
	static const struct pin pins[] = {
		PIN(BACKLOG, 1),
		PIN(READY, 2),
		PIN(IN_PROGRESS, 3),
		PIN(BLOCKED, 4),
		PIN(NEEDS_HELP, 5),
		PIN(REVIEW, 6),
		PIN(DONE, 7),
		PIN(FAILED, 8),
		PIN(CANCELED, 9),
		PIN(STATUS_END, 10),
		PIN(EXPEDITE, 1),
		PIN(FIXED_DATE, 2),
		PIN(STANDARD, 3),
		PIN(INTANGIBLE, 4),
		PIN(CLASS_END, 5),
		PIN(LIFE_NOT_CHECKED, 0),
		PIN(LIFE_UNKNOWN, 1),
		PIN(LIFE_ALIVE, 2),
		PIN(LIFE_DEAD, 3),
		PIN(LANE_NONE, 0),
		PIN(LANE_READY, 1),
		PIN(LANE_LATER, 2),
		PIN(LANE_WAITING, 3),
		PIN(LANE_GOING, 4),
		PIN(LANE_PARENT, 5),
		PIN(LANE_BOTH, 6),
		PIN(ANSWER_TASK, 0),
		PIN(ANSWER_TASKS, 1),
		PIN(ANSWER_EVENTS, 2),
		PIN(ANSWER_LOCKS, 3),
		PIN(ANSWER_LOCK, 4),
		PIN(ANSWER_CANDIDATES, 5),
		PIN(ANSWER_OVERVIEW, 6),
		PIN(ANSWER_ID, 7),
		PIN(ANSWER_TYPED, 8),
		PIN(TYPED_NONE, 0),
		PIN(TYPED_WRITE, 1),
		PIN(TYPED_BATCH, 2),
		PIN(TYPED_CONFIG, 3),
		PIN(TYPED_MAINTENANCE, 4),
		PIN(TYPED_SYNC, 5),
		PIN(TYPED_END, 6),
		PIN(TYPED_BIT(TYPED_MAINTENANCE), 16),
		PIN(TYPED_BIT(TYPED_SYNC), 64),
		PIN(HEALTH_BATCH, 56),
		PIN(HEALTH_IMPORT, 57),
		PIN(HEALTH_CLEAR, 58),
		PIN(HEALTH_RESTORE, 59),
		PIN(HEALTH_END, 60),
	};

	(void)state;
	check(pins, N(pins));
}

static void test_results(void **state)
{
	static const struct pin pins[] = {
		PIN(SUCCESS, 0),    PIN(LOCK_FREE, 1),      PIN(USAGE, 2),
		PIN(NO_TASKS, 10),  PIN(CONFLICT, 20),      PIN(LOST_LOCK, 21),
		PIN(API_ERROR, 30), PIN(MISCONFIGURED, 40), PIN(INCOMPLETE_SUBTASKS, 41),
		PIN(NOT_FOUND, 44), PIN(VIOLATION, 45),
	};

	(void)state;
	check(pins, N(pins));
	for (int64_t code = -1; code < 256; code++) {
		bool pinned = false;

		for (size_t i = 0; i < N(pins); i++)
			pinned |= pins[i].number == code;
		assert_int_equal(result_known(code), pinned);
	}
}

static void test_shared_files(void **state)
{
	static const struct pin pins[] = {
		PIN(SLOT_IDLE, 0),          PIN(SLOT_PENDING, 1),    PIN(SLOT_NUDGED, 2),
		PIN(SLOT_TAKEN, 3),         PIN(SLOT_DONE, 4),       PIN(COMBINE_GATE, 0),
		PIN(COMBINE_RAN, 1),        PIN(COMBINE_ALONE, 2),   PIN(COMBINE_FAULT, 3),
		PIN(COMBINE_LATE, 4),       PIN(COMBINE_UNKNOWN, 5), PIN(FILE_NONE, 0),
		PIN(FILE_TASK, 1),          PIN(FILE_LOCK, 2),       PIN(FILE_DONE, 3),
		PIN(FILE_FAILED, 4),        PIN(FILE_KINDS, 5),      PIN(STORE_BUSY, -1),
		PIN(STORE_FULL, -2),        PIN(STORE_READONLY, -3), PIN(STORE_IO, -4),
		PIN(STORE_UNREACHABLE, -5), PIN(STORE_ABSENT, -6),   PIN(STORE_FOREIGN, -7),
		PIN(STORE_NEWER, -8),       PIN(STORE_CORRUPT, -9),  PIN(STORE_UNSUPPORTED, -10),
		PIN(STORE_MOVED, -11),      PIN(STORE_OLDER, -12),
	};

	(void)state;
	check(pins, N(pins));
}

/* --- tags --------------------------------------------------------------------------------------- */

static void test_arguments(void **state)
{
	static const int tags[] = {
#define ARG(tag, kind, name) tag,
#include "core/request.def"
#undef ARG
	};
	static const struct pin pins[] = {
		PIN(ARG_id, 1),          PIN(ARG_agent, 2),           PIN(ARG_run, 3),
		PIN(ARG_host, 4),        PIN(ARG_token, 5),           PIN(ARG_explicit, 6),
		PIN(ARG_new_token, 7),   PIN(ARG_request_id, 8),      PIN(ARG_pid, 9),
		PIN(ARG_pid_start, 10),  PIN(ARG_boot_id, 11),        PIN(ARG_ttl, 12),
		PIN(ARG_fence, 13),      PIN(ARG_title, 20),          PIN(ARG_description, 21),
		PIN(ARG_acceptance, 22), PIN(ARG_type, 23),           PIN(ARG_effort, 24),
		PIN(ARG_labels, 25),     PIN(ARG_add_labels, 26),     PIN(ARG_remove_labels, 27),
		PIN(ARG_due, 28),        PIN(ARG_not_before, 29),     PIN(ARG_delay, 30),
		PIN(ARG_parent, 31),     PIN(ARG_depends, 32),        PIN(ARG_extra, 33),
		PIN(ARG_status, 34),     PIN(ARG_class_rank, 35),     PIN(ARG_priority, 36),
		PIN(ARG_reason, 37),     PIN(ARG_unblock_action, 38), PIN(ARG_next_check, 39),
		PIN(ARG_summary, 40),    PIN(ARG_text, 41),           PIN(ARG_force, 50),
		PIN(ARG_if_absent, 51),  PIN(ARG_claim_next, 52),     PIN(ARG_explain, 53),
		PIN(ARG_older_than, 54), PIN(ARG_statuses, 55),       PIN(ARG_holder, 56),
		PIN(ARG_limit, 57),      PIN(ARG_after, 58),          PIN(ARG_label, 59),
		PIN(ARG_all, 60),        PIN(ARG_from, 61),           PIN(ARG_expired_after, 62),
		PIN(ARG_append, 43),     PIN(ARG_if_version, 64),     PIN(ARG_except, 65),
		PIN(ARG_since, 66),      PIN(ARG_until, 67),          PIN(ARG_log_view, 68),
		PIN(ARG_part_of, 70),    PIN(ARG_user, 71),           PIN(ARG_operation, 72),
		PIN(ARG_queue_id, 73),   PIN(ARG_view, 80),           PIN(ARG_changed_since, 81),
		PIN(ARG_assignee, 42),   PIN(ARG_take, 63),           PIN(ARG_mode, 74),
	};

	(void)state;
	assert_int_equal(ARG_END, N(pins));
	for (size_t i = 0; i < N(pins); i++)
		if (tags[pins[i].value] != pins[i].number)
			fail_msg("the tag of %s is not %lld", pins[i].name,
				 (long long)pins[i].number);
}

static void test_fields(void **state)
{
	static const struct {
		int tag;
		const char *name;
	} pins[] = {
		{ 1, "id" },
		{ 2, "title" },
		{ 3, "description" },
		{ 4, "acceptance" },
		{ 5, "status" },
		{ 6, "class" },
		{ 7, "priority" },
		{ 8, "type" },
		{ 9, "effort" },
		{ 10, "labels" },
		{ 11, "due" },
		{ 12, "not_before" },
		{ 13, "parent" },
		{ 14, "depends" },
		{ 15, "open_depends" },
		{ 16, "canceled_depends" },
		{ 17, "open_subtasks" },
		{ 18, "assignee" },
		{ 19, "agent_run" },
		{ 20, "blocker_reason" },
		{ 21, "unblock_action" },
		{ 22, "next_check" },
		{ 23, "summary" },
		{ 24, "attempts" },
		{ 25, "abandoned" },
		{ 26, "fence" },
		{ 27, "created_at" },
		{ 28, "updated_at" },
		{ 29, "started_at" },
		{ 30, "first_started_at" },
		{ 31, "done_at" },
		{ 32, "version" },
		{ 33, "extra" },
		{ 34, "archived_at" },
		{ 40, "holder" },
		{ 41, "host" },
		{ 42, "token" },
		{ 43, "acquired_at" },
		{ 44, "expires_at" },
		{ 45, "ttl" },
		{ 46, "manual" },
		{ 47, "foreign" },
		{ 48, "pid" },
		{ 49, "pid_start" },
		{ 50, "boot_id" },
		{ 51, "user" },
		{ 52, "operation" },
		{ 53, "life" },
		{ 54, "mode" },
		{ 60, "last_op" },
		{ 61, "last_token" },
		{ 62, "last_next" },
		{ 63, "last_ttl" },
		{ 64, "free_at" },
		{ 65, "last_holder" },
		{ 66, "changed_by" },
		{ 67, "changed_reason" },
		{ 68, "changed_fields" },
		{ 69, "changed_token" },
		{ 70, "changed_at" },
		{ 71, "last_expires_at" },
		{ 72, "chain" },
	};

	(void)state;
	assert_int_equal(N_FIELDS, N(pins));
	for (size_t i = 0; i < N(pins); i++) {
		size_t k = 0;

		while (k < N_FIELDS && strcmp(field_table[k].name, pins[i].name) != 0)
			k++;
		assert_true(k < N_FIELDS);
		assert_int_equal(field_table[k].tag, pins[i].tag);
	}
}

/* --- bytes -------------------------------------------------------------------------------------- */

static struct arena mem;

static void assert_bytes(struct buf *b, const char *hash)
{
	assert_string_equal(arena_cstr(&mem, hash_hex(&mem, buf_str(b))), hash);
	buf_free(b);
}

/* A value of its own in every place: a tag that moves makes other bytes. */
static void test_packed(void **state)
{
	struct str words[] = { STR("w1"), STR("w2") };
	struct task t = { .id = STR("t1"), .title = STR("x"), .status = READY, .fence = 7 };
	struct grant g = { STR("token"), 11, 12, 13 }, h = { STR("other"), 14, 15, 16 };
	struct event e = { STR("claimed"),
			   STR("t1"),
			   STR("al"),
			   STR("r"),
			   STR("text"),
			   3,
			   READY,
			   IN_PROGRESS,
			   STR("{}"),
			   STR(""),
			   STR("0123456789abcdef"),
			   18,
			   STR("c9"),
			   17 };
	struct candidate c = { STR("t2"), STR("title"), STR("why"), 1, 4 };
	struct answer ans = {
		.code = CONFLICT,
		.kind = ANSWER_LOCK,
		.now = 21,
		.message = STR("message"),
		.hint = STR("hint"),
		.applied = '?',
		.repeated = 1,
		.existed = 2,
		.warnings = { words, 2 },
		.task = &t,
		.next = &t,
		.has_next = 3,
		.lock = &g,
		.next_lock = &h,
		.tasks = &t,
		.n_tasks = 1,
		.total = 22,
		.events = &e,
		.n_events = 1,
		.candidates = &c,
		.n_candidates = 1,
		.counts = { 0, 31, 32, 33, 34, 35, 36, 37, 38, 39 },
		.held = 40,
		.text = STR("answer"),
		.wait_ms = 41,
		.queue_id = STR("id"),
		.barred = TYPED_BATCH,
	};
	struct request rq = { .op = OP_CLAIM };
	struct buf b = BUF_MAX(1 << 16);

	(void)state;
	answer_pack(&ans, &b);
	assert_bytes(&b, "a71dcb612c51354e15db19e2888e416b614ddc8fbd62f7f25e30c6e0156e31a0");
	event_pack(&e, &b);
	assert_bytes(&b, "2f43c0e4fa571aab579c9bcbd67a183f32f404735b27296d76361aa6a8470a1d");
	GIVE(&rq, id, STR("t1"));
	GIVE(&rq, ttl, 900000);
	GIVE(&rq, labels, ((struct strs){ words, 2 }));
	GIVE(&rq, depends, ((struct strs){ 0 }));
	request_pack(&rq, &b);
	assert_bytes(&b, "e11d239322f9a5a54ab8700fd8a1c4e49375d5c84d6e473a0c1e06353b12704c");
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
		cmocka_unit_test(test_ops),       cmocka_unit_test(test_core),
		cmocka_unit_test(test_results),   cmocka_unit_test(test_shared_files),
		cmocka_unit_test(test_arguments), cmocka_unit_test(test_fields),
		cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
