/* Roles: the least role of every operation, and that nobody below admin ends the live lock of another agent. */
#include "core_kit.h"

#include "core/lease.h"
#include "core/role.h"

#define MINE STR("MINE-0123456789-0123456789-01234")

static void test_names(void **state)
{
	(void)state;
	for (int r = ROLE_READER; r <= ROLE_ADMIN; r++)
		assert_int_equal(role_parse(str_c(role_name((enum role)r))), r);
	assert_int_equal(role_parse(STR("root")), ROLE_NONE);
	assert_int_equal(role_parse(STR("")), ROLE_NONE);
}

/* One line for each operation: a new one must be decided here, too. */
static const struct {
	enum op op;
	enum role need;
} table[] = {
	{ OP_SHOW, ROLE_READER },        { OP_LIST, ROLE_READER },
	{ OP_LOG, ROLE_READER },         { OP_NEXT, ROLE_READER },
	{ OP_OVERVIEW, ROLE_READER },    { OP_LOCKS, ROLE_READER },
	{ OP_LOCK_STATUS, ROLE_READER }, { OP_ID_PEEK, ROLE_READER },
	{ OP_TYPED, ROLE_READER },       { OP_EMERGENCY, ROLE_READER },
	{ OP_ID_CLAIM, ROLE_AGENT },     { OP_CREATE, ROLE_AGENT },
	{ OP_TAKE, ROLE_AGENT },         { OP_CLAIM, ROLE_AGENT },
	{ OP_HEARTBEAT, ROLE_AGENT },    { OP_RELEASE, ROLE_AGENT },
	{ OP_BLOCK, ROLE_AGENT },        { OP_ESCALATE, ROLE_AGENT },
	{ OP_REVIEW, ROLE_AGENT },       { OP_DONE, ROLE_AGENT },
	{ OP_FAIL, ROLE_AGENT },         { OP_COMMENT, ROLE_AGENT },
	{ OP_UPDATE, ROLE_AGENT },       { OP_DEPEND, ROLE_AGENT },
	{ OP_UNDEPEND, ROLE_AGENT },     { OP_STATUS, ROLE_AGENT },
	{ OP_LOCK_ACQUIRE, ROLE_AGENT }, { OP_LOCK_RELEASE, ROLE_AGENT },
	{ OP_UNBLOCK, ROLE_REVIEWER },   { OP_APPROVE, ROLE_REVIEWER },
	{ OP_REWORK, ROLE_REVIEWER },    { OP_RETRY, ROLE_REVIEWER },
	{ OP_REOPEN, ROLE_REVIEWER },    { OP_CANCEL, ROLE_REVIEWER },
	{ OP_ARCHIVE, ROLE_REVIEWER },   { OP_REMOVE, ROLE_ADMIN },
	{ OP_LOCK_BREAK, ROLE_ADMIN },   { OP_LOCK_CLEANUP, ROLE_ADMIN },
	{ OP_EMERGENCY_ON, ROLE_ADMIN }, { OP_EMERGENCY_OFF, ROLE_ADMIN },
	{ OP_ID_INIT, ROLE_ADMIN },      { OP_PAUSE, ROLE_ADMIN },
	{ OP_RESUME, ROLE_ADMIN },       { OP_UNDO, ROLE_AGENT },
};

static void test_every_operation(void **state)
{
	bool seen[OP_END] = { false };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_int_equal(role_for_op(table[i].op), table[i].need);
		seen[table[i].op] = true;
	}
	for (int op = OP_NONE + 1; op < OP_END; op++)
		assert_true(seen[op]);
}

static void test_nested(void **state)
{
	(void)state;
	for (int have = ROLE_READER; have <= ROLE_ADMIN; have++)
		for (int need = ROLE_READER; need <= ROLE_ADMIN; need++)
			assert_int_equal(role_allows((enum role)have, (enum role)need),
					 have >= need);
	assert_true(role_allows(ROLE_NONE, ROLE_ADMIN));
	assert_string_equal(role_refusal(ROLE_READER, ROLE_ADMIN, &mem).p,
			    "this call needs the role admin; your token has the role reader");
}

static void test_refusal(void **state)
{
	struct answer ans = { .code = SUCCESS };

	(void)state;
	assert_int_equal(role_refuse(ROLE_ADMIN, ROLE_ADMIN, &ans, &mem), SUCCESS);
	assert_int_equal(ans.code, SUCCESS);
	assert_int_equal(role_refuse(ROLE_AGENT, ROLE_ADMIN, &ans, &mem), MISCONFIGURED);
	assert_true(str_is(ans.fault, "forbidden"));
	assert_int_equal(ans.applied, 'n');
	assert_string_equal(ans.hint.p, "ask for a token that was made with --role admin");
}

static struct request call_of(enum op op, const char *id)
{
	struct request rq = { .op = op };

	GIVE(&rq, id, str_c(id));
	GIVE(&rq, agent, STR("pat"));
	GIVE(&rq, reason, STR("because"));
	return rq;
}

static void test_force_and_typed(void **state)
{
	struct request rq = call_of(OP_UPDATE, "t1");

	(void)state;
	assert_int_equal(role_for(&rq), ROLE_AGENT);
	rq.force = 1;
	assert_int_equal(role_for(&rq), ROLE_ADMIN);
	rq = call_of(OP_LOCK_ACQUIRE, "@maintenance");
	assert_int_equal(role_for(&rq), ROLE_ADMIN);
	rq = call_of(OP_LOG, "@maintenance");
	assert_int_equal(role_for(&rq), ROLE_READER);
}

static enum role for_status(int64_t now, int64_t target, bool own)
{
	struct request rq = call_of(OP_STATUS, "t1");
	struct task t = { .id = STR("t1"), .status = now };

	GIVE(&rq, status, target);
	return role_for_task(&rq, &t, own);
}

static void test_status_is_what_it_does(void **state)
{
	(void)state;
	assert_int_equal(for_status(REVIEW, DONE, false), ROLE_REVIEWER);
	assert_int_equal(for_status(IN_PROGRESS, DONE, false), ROLE_AGENT);
	assert_int_equal(for_status(READY, IN_PROGRESS, false), ROLE_AGENT);
	assert_int_equal(for_status(REVIEW, IN_PROGRESS, false), ROLE_REVIEWER);
	assert_int_equal(for_status(BLOCKED, IN_PROGRESS, false), ROLE_REVIEWER);
	assert_int_equal(for_status(NEEDS_HELP, IN_PROGRESS, false), ROLE_REVIEWER);
	assert_int_equal(for_status(FAILED, READY, false), ROLE_REVIEWER);
	assert_int_equal(for_status(READY, CANCELED, false), ROLE_REVIEWER);
	assert_int_equal(for_status(READY, BACKLOG, false), ROLE_REVIEWER);
	assert_int_equal(for_status(READY, BACKLOG, true), ROLE_AGENT);
}

static void test_edits(void **state)
{
	static const enum op edits[] = { OP_UPDATE, OP_DEPEND, OP_UNDEPEND };
	struct task t = { .id = STR("t1"), .status = READY };

	(void)state;
	for (size_t i = 0; i < COUNT(edits); i++) {
		struct request rq = call_of(edits[i], "t1");

		assert_int_equal(role_for_task(&rq, &t, true), ROLE_AGENT);
		assert_int_equal(role_for_task(&rq, &t, false), ROLE_REVIEWER);
	}
	for (size_t i = 0; i < COUNT(table); i++) {
		struct request rq = call_of(table[i].op, "t1");

		assert_true(role_for_task(&rq, &t, false) >= table[i].need);
	}
}

/* A manual lock lets its holder edit the task, so an agent gets one only where it could claim the task as well. */
static void test_manual_locks(void **state)
{
	struct request rq = call_of(OP_LOCK_ACQUIRE, "t1");

	(void)state;
	for (int s = BACKLOG; s < STATUS_END; s++) {
		struct task t = { .id = STR("t1"), .status = s };

		assert_int_equal(role_for_task(&rq, &t, false),
				 s == READY || s == IN_PROGRESS ? ROLE_AGENT : ROLE_REVIEWER);
		assert_int_equal(role_for_task(&rq, &t, true), ROLE_AGENT);
	}
}

static enum role for_parent(int64_t status, bool manual, const char *agent, int64_t now)
{
	struct task t = kit_held();

	t.status = status;
	t.lock.manual = manual;
	return role_for_parent(&t, str_c(agent), now);
}

/* A sub-task keeps the holder from completing its task. */
static void test_subtasks(void **state)
{
	struct task held = kit_held();
	int64_t later = held.lock.expires_at;

	(void)state;
	assert_int_equal(for_parent(IN_PROGRESS, false, "pat", NOW), ROLE_REVIEWER);
	assert_int_equal(for_parent(READY, true, "pat", NOW), ROLE_REVIEWER);
	assert_int_equal(for_parent(BLOCKED, true, "pat", NOW), ROLE_REVIEWER);
	assert_int_equal(for_parent(BLOCKED, false, "pat", NOW), ROLE_AGENT);
	assert_int_equal(for_parent(IN_PROGRESS, false, "pat", later), ROLE_AGENT);
	assert_int_equal(role_for_parent(&held, held.lock.holder, NOW), ROLE_AGENT);
}

/* Does a call that a reviewer may make end the lock of al? */
static bool reviewer_ends(enum op op, int64_t status, int64_t target, bool manual, bool force)
{
	struct task t = kit_held();
	struct request rq = call_of(op, "t1");
	struct call c = { .rq = &rq, .policy = &policy_default, .now = NOW, .arena = &mem };

	t.status = status;
	t.lock.manual = manual;
	GIVE(&rq, new_token, STR("unused here"));
	GIVE(&rq, text, STR("words"));
	GIVE(&rq, unblock_action, STR("help"));
	GIVE(&rq, priority, 3);
	if (target)
		GIVE(&rq, status, target);
	if (force)
		GIVE(&rq, force, 1);
	c.fresh = MINE;
	if (!role_allows(ROLE_REVIEWER, role_for_task(&rq, &t, false)))
		return false;
	rules_apply(op, &t, &c);
	return !str_eq(t.lock.token, HELD);
}

static bool one_task_change(enum op op)
{
	unsigned f = op_flags(op);

	return f & OP_TASK && !(f & OP_READS) && op != OP_REMOVE && op != OP_DEPEND &&
	       op != OP_UNDEPEND;
}

/* The lock that `block` leaves behind protects nothing, so Blocked is not among the statuses. */
static void test_only_admins_end_locks(void **state)
{
	static const int64_t statuses[] = {
		READY, IN_PROGRESS, NEEDS_HELP, REVIEW, BACKLOG, FAILED
	};
	size_t tried = 0;

	(void)state;
	for (int op = OP_NONE + 1; op < OP_END; op++)
		for (size_t i = 0; one_task_change((enum op)op) && i < COUNT(statuses); i++)
			for (int k = 0; k < 4; k++, tried++)
				for (int64_t to = op == OP_STATUS; to < STATUS_END; to++) {
					if (op != OP_STATUS && to)
						break;
					if (reviewer_ends((enum op)op, statuses[i], to, k & 1,
							  k & 2))
						fail_msg("%s from %s to %s ends it",
							 op_name((enum op)op),
							 status_name(statuses[i]), status_name(to));
				}
	assert_true(tried > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test_teardown(test_nested, free_memory),
		cmocka_unit_test_teardown(test_refusal, free_memory),
		cmocka_unit_test(test_force_and_typed),
		cmocka_unit_test(test_status_is_what_it_does),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_manual_locks),
		cmocka_unit_test(test_subtasks),
		cmocka_unit_test_teardown(test_only_admins_end_locks, free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
