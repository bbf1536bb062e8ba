/*
 * Operators: what is kept for the holder when its lock is overridden, how a refusal names the way, and records of
 * versions that kept the last holder as the assignee.
 */
#include "core_kit.h"

#include "core/lease.h"
#include "core/rules.h"

#define NEXT STR("NEXT-0123456789-0123456789-01234")

static struct request by_operator(enum op op)
{
	struct request r = { .op = op };

	GIVE(&r, id, STR("t1"));
	GIVE(&r, agent, STR("pat"));
	GIVE(&r, reason, STR("urgent"));
	GIVE(&r, force, 1);
	return r;
}

static struct call apply(struct task *t, const struct request *r)
{
	struct call c = { .rq = r, .policy = &policy_default, .now = NOW, .arena = &mem };

	rules_apply(r->op, t, &c);
	return c;
}

static void assert_fields(const struct task *t, const char *want)
{
	struct str got = STR("");

	for (size_t i = 0; i < t->over.fields.n; i++)
		got = arena_printf(&mem, "%.*s%s%.*s", STRF(got), i ? " " : "",
				   STRF(t->over.fields.v[i]));
	assert_string_equal(arena_cstr(&mem, got), want);
}

/* Fields have the names under which a task shows them, each once. */
static void names_of_fields(void **state)
{
	struct request r = by_operator(OP_UPDATE);
	struct task t = kit_held();
	struct call v;

	(void)state;
	GIVE(&r, add_labels, ((struct strs){ &(struct str){ "red", 3 }, 1 }));
	GIVE(&r, remove_labels, ((struct strs){ &(struct str){ "blue", 4 }, 1 }));
	GIVE(&r, delay, 5000);
	GIVE(&r, class_rank, EXPEDITE);
	GIVE(&r, title, STR("new"));
	GIVE(&r, assignee, STR("bo"));
	v = apply(&t, &r);
	assert_int_equal(v.code, SUCCESS);
	assert_fields(&t, "labels not_before class title assignee");
	assert_true(str_is(t.over.by, "pat") && str_is(t.over.reason, "urgent"));
	assert_true(str_eq(t.over.token, HELD) && t.over.at == NOW);
	assert_true(str_is(v.events[0].name, "overridden") &&
		    str_is(v.events[0].text, "the lock of al: urgent"));
	assert_true(str_is(t.lock.holder, "al")); /* it keeps the lock */
}

/* All that changed under one lock is kept, and nothing of an earlier lock. */
static void adds_up(void **state)
{
	struct request first = by_operator(OP_UPDATE), second = by_operator(OP_UPDATE);
	struct task t = kit_held();

	(void)state;
	GIVE(&first, title, STR("new"));
	GIVE(&first, priority, 5);
	GIVE(&second, priority, 6);
	GIVE(&second, due, 7);
	GIVE(&second, agent, STR("kim"));
	(void)apply(&t, &first);
	(void)apply(&t, &second);
	assert_fields(&t, "title priority due");
	assert_true(str_is(t.over.by, "kim"));
	t.lock.token = NEXT;
	(void)apply(&t, &second);
	assert_fields(&t, "due priority");
	lease_take(&t, &second, HELD, 1000, NOW);
	assert_true(!t.over.by.n && !t.over.fields.n && !t.over.token.n && !t.over.at);
}

static void hints(void **state)
{
	static const struct {
		enum op op;
		int64_t status;
		const char *command;
	} all[] = {
		{ OP_UPDATE, 0, "pawl update t1" },      { OP_DEPEND, 0, "pawl depend t1" },
		{ OP_UNDEPEND, 0, "pawl undepend t1" },  { OP_REMOVE, 0, "pawl remove t1" },
		{ OP_CANCEL, 0, "pawl cancel t1" },      { OP_STATUS, CANCELED, "pawl cancel t1" },
		{ OP_STATUS, BACKLOG, "pawl update t1" }
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct request r = { .op = all[i].op, .status = all[i].status };
		struct call c = { .rq = &r, .policy = &policy_default, .now = NOW, .arena = &mem };
		struct task t = kit_held();

		assert_false(rules_free(&t, &c));
		assert_int_equal(c.code, CONFLICT);
		assert_true(str_holds(c.hint, all[i].command));
		assert_true(str_holds(c.hint, "--force --reason TEXT"));
	}
}

/* Without a lock, the refusal names what an operator or a person wants. */
static void hints_without_a_lock(void **state)
{
	struct request done = { .op = OP_DONE }, release = { .op = OP_RELEASE },
		       fail = { .op = OP_FAIL };
	struct task t = kit_held();

	(void)state;
	t.lock = (struct lock){ 0 };
	assert_true(str_holds(apply(&t, &release).hint, "pawl release t1 --force"));
	assert_true(str_holds(apply(&t, &done).hint, "pawl claim t1"));
	t.status = READY;
	assert_true(str_holds(apply(&t, &done).hint, "pawl done t1 --take"));
	assert_true(str_holds(apply(&t, &fail).hint, "pawl claim t1"));
	assert_true(str_holds(apply(&t, &release).hint, "pawl claim t1"));
}

/* done --take knows itself again by the token that it took the task with. */
static void take_again(void **state)
{
	struct request r = { .op = OP_DONE };
	struct call c = {
		.rq = &r, .policy = &policy_default, .now = NOW, .fresh = NEXT, .arena = &mem
	};
	struct task t = { .id = STR("t1"), .status = READY, .version = 1 };

	(void)state;
	GIVE(&r, agent, STR("pat"));
	GIVE(&r, take, 1);
	rules_apply(OP_DONE, &t, &c);
	assert_true(c.code == SUCCESS && c.changed && !c.granted);
	assert_true(t.status == DONE && t.fence == 1 && t.version == 2 && t.attempts == 1);
	assert_true(str_is(t.last_holder, "pat") && !t.assignee.n);
	rules_apply(OP_DONE, &t, &c);
	assert_true(c.code == SUCCESS && c.repeated && !c.changed);
	c.fresh = HELD;
	rules_apply(OP_DONE, &t, &c);
	assert_int_equal(c.code, LOST_LOCK);
	c.fresh = STR("");
	rules_apply(OP_DONE, &t, &c);
	assert_int_equal(c.code, LOST_LOCK);
}

/* The version is that of the named task, not of the one that `done --claim-next` takes. */
static void version_of_the_named_task(void **state)
{
	struct request r = { .op = OP_DONE };
	struct call c = {
		.rq = &r, .policy = &policy_default, .now = NOW, .fresh = NEXT, .arena = &mem
	};
	struct task t = { .id = STR("t2"), .status = READY, .version = 1 };

	(void)state;
	GIVE(&r, agent, STR("pat"));
	GIVE(&r, if_version, 7);
	rules_apply(OP_CLAIM, &t, &c);
	assert_true(c.code == SUCCESS && c.granted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(names_of_fields, free_memory),
		cmocka_unit_test_teardown(adds_up, free_memory),
		cmocka_unit_test_teardown(hints, free_memory),
		cmocka_unit_test_teardown(hints_without_a_lock, free_memory),
		cmocka_unit_test_teardown(take_again, free_memory),
		cmocka_unit_test_teardown(version_of_the_named_task, free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
