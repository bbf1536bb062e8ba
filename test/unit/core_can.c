/* The ways that are open to a caller. test/queue/can.c compares all of them with the queue. */
#include "core_kit.h"

#include "core/answer.h"
#include "core/role.h"
#include "core/lease.h"
#include "core/order.h"

/* "claim, comment": the names of the ways, in their order. */
static const char *named(uint64_t can)
{
	struct str out = STR("");

	for (int i = 1; i < ACTION_END; i++)
		if (can & ACTION_BIT(i))
			out = arena_printf(&mem, "%.*s%s%s", STRF(out), out.n ? ", " : "",
					   action_name(i));
	return arena_cstr(&mem, out);
}

static const char *can(const struct task *t, enum role role, bool holder)
{
	const struct can_caller by = { .role = role, .agent = STR("pat"), .holder = holder };
	const struct call c = { .policy = &policy_default, .now = NOW };

	return named(can_do(t, &by, &c));
}

static struct task in(enum status status)
{
	return (struct task){ .id = STR("t1"), .title = STR("x"), .status = status, .version = 1 };
}

static void test_roles(void **state)
{
	struct task t = in(REVIEW);

	(void)state;
	assert_string_equal(can(&t, ROLE_READER, false), "");
	assert_string_equal(can(&t, ROLE_AGENT, false), "comment");
	assert_string_equal(can(&t, ROLE_REVIEWER, false),
			    "approve, rework, cancel, update, depend, comment, lock acquire");
	assert_string_equal(
		can(&t, ROLE_ADMIN, false),
		"approve, rework, cancel, update, depend, comment, remove, lock acquire");
	assert_string_equal(can(&t, ROLE_NONE, false), can(&t, ROLE_ADMIN, false));
}

static void test_ready(void **state)
{
	struct str dep = STR("t2");
	struct task t = in(READY);

	(void)state;
	assert_string_equal(can(&t, ROLE_AGENT, false),
			    "claim, done --take, comment, lock acquire");
	t.depends = (struct strs){ &dep, 1 };
	assert_string_equal(can(&t, ROLE_REVIEWER, false),
			    "claim, done --take, cancel, update, update --status backlog, depend, "
			    "undepend, comment, lock acquire");
}

static void test_held(void **state)
{
	struct task t = kit_held();

	(void)state;
	assert_string_equal(can(&t, ROLE_REVIEWER, false), "comment");
	assert_string_equal(can(&t, ROLE_ADMIN, false),
			    "cancel --force, update --force, depend --force, comment, remove "
			    "--force, lock break");
	assert_string_equal(
		can(&t, ROLE_AGENT, true),
		"heartbeat, done, review, release, block, escalate, fail, update, depend, "
		"comment, lock release");
	t.open_subs = 1;
	assert_string_equal(can(&t, ROLE_AGENT, true),
			    "heartbeat, release, block, escalate, fail, update, depend, comment, "
			    "lock release");
}

/* The lock that `block` leaves keeps nobody away, and neither does an expired one. */
static void test_not_held(void **state)
{
	struct task t = kit_held();

	(void)state;
	assert_true(lease_held(&t, NOW));
	t.status = BLOCKED;
	assert_false(lease_held(&t, NOW));
	assert_string_equal(can(&t, ROLE_REVIEWER, false),
			    "unblock, cancel, update, update --status ready, depend, comment");
	t.lock.manual = 1;
	assert_true(lease_held(&t, NOW));
	t.status = IN_PROGRESS;
	t.lock.manual = 0;
	t.lock.expires_at = NOW;
	assert_false(lease_held(&t, NOW));
	assert_string_equal(
		can(&t, ROLE_ADMIN, true),
		"claim, release --force, cancel, update, update --status ready, depend, "
		"comment, remove, lock acquire, lock break");
}

static void test_paused(void **state)
{
	const struct can_caller by = { .agent = STR("pat") };
	struct task pause = { .id = STR("@pause"), .lock.holder = STR("pat") }, t = in(READY);
	const struct call c = { .policy = &policy_default, .now = NOW, .paused = &pause };

	(void)state;
	assert_string_equal(named(can_do(&t, &by, &c)),
			    "cancel, update, update --status backlog, depend, comment, remove");
}

static void test_archive(void **state)
{
	struct request rq = { .op = OP_ARCHIVE, .older_than = 1000 };
	struct call c = { .rq = &rq, .policy = &policy_default, .now = NOW, .arena = &mem };
	struct task t = in(DONE);

	(void)state;
	assert_string_equal(can(&t, ROLE_REVIEWER, false), "reopen, archive, update, comment");
	t.archived_at = NOW;
	assert_string_equal(can(&t, ROLE_REVIEWER, false), "reopen, update, comment");
	t = kit_held();
	t.status = DONE;
	t.lock.expires_at = NOW;
	assert_string_equal(can(&t, ROLE_REVIEWER, false), "reopen, update, comment");
	/* too young, by the time of the last change */
	t = in(FAILED);
	t.updated_at = NOW - 999;
	rules_apply(OP_ARCHIVE, &t, &c);
	assert_true(c.code == SUCCESS && c.repeated && !c.changed && !t.archived_at);
	/* another program ended it, by a clock that is ahead */
	t = in(DONE);
	t.done_at = NOW + 5;
	rq.older_than = -10;
	rules_apply(OP_ARCHIVE, &t, &c);
	assert_true(c.changed && t.archived_at == NOW + 5 && t.version == 2);
	t = in(REVIEW);
	rules_apply(OP_ARCHIVE, &t, &c);
	assert_int_equal(c.code, MISCONFIGURED);
}

/* Each operation that changes one task has a way, except `status`, which chooses among them. */
static void test_table(void **state)
{
	uint64_t ops = 0;

	(void)state;
	for (int i = 1; i < ACTION_END; i++) {
		assert_non_null(action_name(i));
		ops |= UINT64_C(1) << action_op(i);
		assert_int_equal(action_op(action_plain(i)), action_op(i));
		assert_int_equal(action_forces(i), strstr(action_name(i), "--force") != NULL);
		assert_int_equal(action_plain(i) != i, strstr(action_name(i), "--force") ||
							       strstr(action_name(i), "--take"));
	}
	assert_string_equal(action_name(action_find(OP_UPDATE, READY)), "update --status ready");
	assert_string_equal(action_name(action_find(OP_CANCEL, 0)), "cancel");
	assert_int_equal(action_find(OP_CREATE, 0), ACTION_END);
	assert_null(action_name(0));
	assert_null(action_name(ACTION_END));
	for (int op = OP_NONE + 1; op < OP_END; op++) {
		bool changes = op_flags((enum op)op) & OP_TASK &&
			       !(op_flags((enum op)op) & OP_READS);

		if ((changes && op != OP_STATUS) || op == OP_ARCHIVE)
			assert_true(ops >> op & 1);
	}
}

static void test_targets(void **state)
{
	static const struct {
		const char *name;
		enum status to;
	} targets[] = {
		{ "claim", IN_PROGRESS },
		{ "approve", DONE },
		{ "rework", IN_PROGRESS },
		{ "retry", READY },
		{ "comment", 0 },
		{ "update", 0 },
		{ "cancel --force", CANCELED },
		{ "update --status backlog", BACKLOG },
	};

	(void)state;
	for (size_t k = 0; k < COUNT(targets); k++)
		for (int i = 1; i < ACTION_END; i++)
			if (!strcmp(action_name(i), targets[k].name))
				assert_int_equal(action_to(i), targets[k].to);
}

/* The bytes of the keys sort as index_cmp() does. */
static void test_order_key(void **state)
{
	static const char *const ids[] = { "a2", "a10", "b1", "t01", "t1", "A3" };
	struct task v[COUNT(ids) * 16];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(ids); i++)
		for (int k = 0; k < 16; k++)
			v[n++] = (struct task){ .id = str_c(ids[i]),
						.class_rank = k & 1 ? STANDARD : EXPEDITE,
						.priority = k & 2 ? 1000 : 2,
						.due = k & 4 ? NOW : 0,
						.updated_at = k & 8 ? NOW : 1 };
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			struct index a, b;
			int by_key = str_cmp(order_key(&v[i], &mem), order_key(&v[k], &mem)),
			    by_index;

			order_index(&v[i], &a, &mem);
			order_index(&v[k], &b, &mem);
			by_index = index_cmp(&a, &b);
			assert_int_equal((by_key > 0) - (by_key < 0),
					 (by_index > 0) - (by_index < 0));
		}
}

static void test_count(void **state)
{
	struct task t = in(READY);

	(void)state;
	assert_int_equal(answer_tasks(&(struct answer){ .code = SUCCESS }), 0);
	assert_int_equal(answer_tasks(&(struct answer){ .task = &t }), 1);
	assert_int_equal(answer_tasks(&(struct answer){ .tasks = &t, .n_tasks = 3 }), 3);
}

#define TEST(f) cmocka_unit_test_teardown(f, free_memory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_roles),     TEST(test_ready),   TEST(test_held),  TEST(test_not_held),
		TEST(test_paused),    TEST(test_archive), TEST(test_table), TEST(test_targets),
		TEST(test_order_key), TEST(test_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
