/* Locks of the whole queue: the table of which refuses which, each of their operations, and the
 * emergency. */
#include "core_kit.h"

#include "core/lease.h"
#include "core/typed.h"

#define ONE STR("11111111111111111111111111111111")
#define TWO STR("22222222222222222222222222222222")

/* --- names --------------------------------------------------------------------------------------- */

static void ids(void **state)
{
	(void)state;
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		assert_int_equal(typed_of(arena_printf(&mem, "@%s", typed_name((enum typed)k))), k);
	assert_int_equal(typed_of(STR("@Maintenance")), TYPED_MAINTENANCE);
	assert_int_equal(typed_of(STR("maintenance")), TYPED_NONE);
	assert_int_equal(typed_of(STR("@")), TYPED_NONE);
	assert_int_equal(typed_of(STR("@emergency")), TYPED_NONE);
	assert_int_equal(typed_of(STR("")), TYPED_NONE);
}

static struct request ask(enum op op, struct str id)
{
	struct request rq = { .op = op };

	GIVE(&rq, agent, STR("ann"));
	if (id.n)
		GIVE(&rq, id, id);
	return rq;
}

static void which_calls(void **state)
{
	static const enum op good[] = { OP_LOCK_ACQUIRE, OP_LOCK_RELEASE, OP_LOCK_BREAK,
					OP_LOCK_STATUS,  OP_HEARTBEAT,    OP_LOG };

	(void)state;
	for (int op = OP_NONE + 1; op < OP_END; op++) {
		struct request rq = ask((enum op)op, STR("@write")),
			       no = ask((enum op)op, STR("@nothing"));
		bool may = false;

		for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
			may |= (int)good[i] == op;
		assert_true(typed_is(&rq));
		assert_int_equal(typed_fault(&rq) == NULL, may);
		assert_non_null(typed_fault(&no));
	}
	assert_false(typed_is(&(struct request){ .op = OP_LIST }));
	assert_false(typed_is(&(struct request){ .op = OP_SHOW, .id = STR("t1") }));
}

/* --- the table ----------------------------------------------------------------------------------- */

/* doc/typed-locks.md: a row for each lock that is held; '-': the call continues. */
static const struct {
	enum typed held;
	/* of other agents, in the order write, batch, config, maintenance, sync */
	const char *steps, *locks;
} table[] = {
	{ TYPED_WRITE, "xx-xx", "xx-x-" },  { TYPED_BATCH, "-x-x-", "xx-x-" },
	{ TYPED_CONFIG, "--xx-", "--xx-" }, { TYPED_MAINTENANCE, "xxxxx", "xxxxx" },
	{ TYPED_SYNC, "-----", "----x" },
};

static void exclusion(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		for (int k = TYPED_WRITE; k < TYPED_END; k++) {
			struct request step = ask(OP_CREATE, STR("")),
				       lock = ask(OP_LOCK_ACQUIRE,
						  arena_printf(&mem, "@%s",
							       typed_name((enum typed)k)));
			unsigned bit = TYPED_BIT(table[i].held);

			GIVE(&step, part_of, k);
			assert_int_equal(!!(typed_bars(&step, &policy_default) & bit),
					 table[i].steps[k - 1] == 'x');
			assert_int_equal(!!(typed_bars(&lock, &policy_default) & bit),
					 table[i].locks[k - 1] == 'x');
		}
	}
}

static void kinds(void **state)
{
	const unsigned all = TYPED_BIT(TYPED_WRITE) | TYPED_BIT(TYPED_BATCH) |
			     TYPED_BIT(TYPED_CONFIG) | TYPED_BIT(TYPED_MAINTENANCE);
	const unsigned write = TYPED_BIT(TYPED_WRITE) | TYPED_BIT(TYPED_MAINTENANCE);
	struct policy untyped = policy_default;

	(void)state;
	untyped.untyped = true;
	for (int op = OP_NONE + 1; op < OP_END; op++) {
		struct request rq = ask((enum op)op, STR("t1"));
		bool goes_on = op_flags((enum op)op) & OP_READS || op == OP_HEARTBEAT ||
			       op == OP_EMERGENCY_ON || op == OP_EMERGENCY_OFF;

		assert_int_equal(typed_changes(&rq), !goes_on);
		assert_int_equal(typed_bars(&rq, &policy_default), goes_on                 ? 0
								   : op == OP_LOCK_CLEANUP ? all
											   : write);
		assert_int_equal(typed_bars(&rq, &untyped), goes_on ? 0 : all);
		GIVE(&rq, part_of, TYPED_END); /* from a newer pawl */
		assert_int_equal(typed_bars(&rq, &policy_default), goes_on                 ? 0
								   : op == OP_LOCK_CLEANUP ? all
											   : write);
	}
	assert_int_equal(typed_bars(&(struct request){ .op = OP_ARCHIVE }, &policy_default),
			 write | TYPED_BIT(TYPED_BATCH));
	for (int k = TYPED_WRITE; k < TYPED_END; k++) {
		struct str id = arena_printf(&mem, "@%s", typed_name((enum typed)k));
		struct request let_go = ask(OP_LOCK_RELEASE, id), broken = ask(OP_LOCK_BREAK, id),
			       taken = ask(OP_LOCK_ACQUIRE, id);

		assert_false(typed_changes(&let_go));
		assert_false(typed_changes(&broken));
		assert_true(typed_changes(&taken));
		assert_int_equal(typed_bars(&taken, &untyped),
				 k == TYPED_SYNC ? all | TYPED_BIT(k) : all);
	}
}

/* --- operations on such a lock ------------------------------------------------------------------- */

static struct call apply(struct task *t, enum op op, struct str proof, struct str fresh,
			 int64_t now)
{
	struct request *rq = arena_new(&mem, struct request);
	struct call c = { .rq = rq,
			  .policy = &policy_default,
			  .now = now,
			  .proof = proof,
			  .fresh = fresh,
			  .arena = &mem };

	*rq = ask(op, t->id);
	GIVE(rq, reason, STR("why"));
	GIVE(rq, host, STR("box"));
	typed_apply(t, &c);
	return c;
}

#define NONE STR("")

static void life_of_a_lock(void **state)
{
	struct task t = { .id = STR("@batch") };
	struct call v = apply(&t, OP_LOCK_ACQUIRE, NONE, ONE, NOW);

	(void)state;
	assert_true(v.granted && v.changed && !v.repeated);
	assert_true(str_is(v.events[0].name, "locked"));
	assert_int_equal(t.fence, 1);
	assert_int_equal(t.lock.expires_at, NOW + policy_default.lock_ttl);
	v = apply(&t, OP_LOCK_ACQUIRE, NONE, ONE, NOW + 1);
	assert_true(v.granted && v.repeated && !v.changed);
	v = apply(&t, OP_HEARTBEAT, TWO, NONE, NOW + 1);
	assert_int_equal(v.code, LOST_LOCK);
	v = apply(&t, OP_HEARTBEAT, NONE, NONE, NOW + 1);
	assert_int_equal(v.code, LOST_LOCK);
	v = apply(&t, OP_HEARTBEAT, ONE, NONE, NOW + 1000);
	assert_true(v.granted && t.lock.expires_at == NOW + 1000 + policy_default.lock_ttl);
	v = apply(&t, OP_LOCK_RELEASE, TWO, NONE, NOW + 1000);
	assert_int_equal(v.code, LOST_LOCK);
	v = apply(&t, OP_LOCK_RELEASE, ONE, NONE, NOW + 1000);
	assert_true(v.changed && !t.lock.holder.n && str_is(v.events[0].name, "unlocked"));
	assert_int_equal(t.free_at, 0);
	v = apply(&t, OP_LOCK_RELEASE, ONE, NONE, NOW + 1000);
	assert_true(v.repeated && v.code == SUCCESS);
	v = apply(&t, OP_HEARTBEAT, ONE, NONE, NOW + 1000);
	assert_int_equal(v.code, LOST_LOCK);
	assert_true(str_is(v.hint, "acquire it again: pawl lock acquire @batch"));
}

static void ttl_and_words(void **state)
{
	struct task t = { .id = STR("@write") };
	struct request rq = ask(OP_LOCK_ACQUIRE, STR("@write"));
	struct call c = { .rq = &rq,
			  .policy = &policy_default,
			  .now = NOW,
			  .fresh = ONE,
			  .proof = ONE,
			  .arena = &mem };
	struct str text;

	(void)state;
	GIVE(&rq, ttl, 5000);
	GIVE(&rq, host, STR("box"));
	GIVE(&rq, description, STR("moving house"));
	typed_apply(&t, &c);
	assert_true(str_is(c.events[0].text, "moving house"));
	assert_int_equal(t.lock.expires_at, NOW + 5000);
	text = typed_holder(&t, NOW, &mem);
	assert_true(str_has_nocase(
		text, STR("@write is held by ann (lock acquire, user unknown on box)")));
	t.lock.operation = STR("import");
	t.lock.user = STR("root");
	t.lock.pid = 7;
	text = typed_holder(&t, NOW, &mem);
	assert_true(str_has_nocase(text, STR("ann (import, user root on box, pid 7)")));
	rq.op = OP_HEARTBEAT;
	typed_apply(&t, &c);
	assert_int_equal(t.lock.expires_at, NOW + 5000);
}

static void broken(void **state)
{
	struct task t = { .id = STR("@config") };
	struct call v = apply(&t, OP_LOCK_BREAK, NONE, NONE, NOW);

	(void)state;
	assert_true(v.repeated);
	apply(&t, OP_LOCK_ACQUIRE, NONE, ONE, NOW);
	v = apply(&t, OP_LOCK_BREAK, NONE, NONE, NOW);
	assert_true(v.changed && !t.lock.holder.n && t.fence == 1);
	assert_true(str_is(v.events[0].text, "the lock of ann: why"));
	apply(&t, OP_LOCK_ACQUIRE, NONE, TWO, NOW);
	assert_int_equal(t.fence, 2);
}

/* --- the emergency ------------------------------------------------------------------------------- */

static struct call declare(struct task *t, enum op op)
{
	struct request rq = ask(op, NONE);
	struct call c = { .rq = &rq, .policy = &policy_default, .now = NOW, .arena = &mem };

	GIVE(&rq, reason, STR("fire"));
	emergency_apply(t, &c);
	return c;
}

static void emergency(void **state)
{
	struct task t = { .id = EMERGENCY_ID };
	struct call v = declare(&t, OP_EMERGENCY_OFF);

	(void)state;
	assert_true(v.repeated && !v.changed);
	v = declare(&t, OP_EMERGENCY_ON);
	assert_true(v.changed && str_is(v.events[0].name, "emergency_on"));
	assert_true(declare(&t, OP_EMERGENCY_ON).repeated);
	v = (struct call){ .arena = &mem };
	emergency_refuse(&t, &v);
	assert_int_equal(v.code, API_ERROR);
	assert_true(str_has_nocase(v.message, STR("ann")) &&
		    str_has_nocase(v.message, STR("fire")));
	v = declare(&t, OP_EMERGENCY_OFF);
	assert_true(v.changed && !t.lock.holder.n && str_is(v.events[0].name, "emergency_off"));
}

static struct call pause(struct task *t, enum op op, struct str reason)
{
	struct request rq = ask(op, NONE);
	struct call c = { .rq = &rq, .policy = &policy_default, .now = NOW, .arena = &mem };

	GIVE(&rq, reason, reason);
	pause_apply(t, &c);
	return c;
}

static void pauses(void **state)
{
	struct task t = { .id = PAUSE_ID };
	struct call v = pause(&t, OP_RESUME, NONE);

	(void)state;
	assert_true(v.repeated && !v.changed);
	v = pause(&t, OP_PAUSE, STR("lunch"));
	assert_true(v.changed && str_is(v.events[0].name, "queue_paused"));
	assert_true(str_has_nocase(pause_text(&t, &mem), STR("ann paused it at ")));
	assert_true(str_ends(pause_text(&t, &mem), STR(": lunch")));
	assert_true(pause(&t, OP_PAUSE, NONE).repeated);
	v = pause(&t, OP_RESUME, NONE);
	assert_true(v.changed && !t.lock.holder.n && str_is(v.events[0].name, "queue_resumed"));
	(void)pause(&t, OP_PAUSE, NONE);
	assert_true(str_ends(pause_text(&t, &mem), STR("Z")));
}

/* Only what acquires the lock of a task. */
static void paused_calls(void **state)
{
	struct request rq = { .op = OP_LOCK_ACQUIRE };

	(void)state;
	GIVE(&rq, id, STR("t1"));
	assert_true(pause_concerns(&rq));
	GIVE(&rq, id, STR("@write"));
	assert_false(pause_concerns(&rq));
	for (int i = OP_SHOW; i < OP_END; i++) {
		enum op op = (enum op)i;
		bool takes = op == OP_TAKE || op == OP_CLAIM || op == OP_DONE || op == OP_STATUS ||
			     op == OP_LOCK_ACQUIRE;

		rq = (struct request){ .op = op };
		assert_int_equal(pause_concerns(&rq), takes);
	}
}

/* A lock of a process that died is released, with its fence kept, and the log says why. */
static void died(void **state)
{
	struct request rq = ask(OP_CREATE, STR(""));
	struct call c = { .rq = &rq, .policy = &policy_default, .now = NOW, .arena = &mem };
	struct task t = kit_held();

	(void)state;
	t.id = STR("@write");
	t.lock.pid = 718;
	typed_died(&t, &c);
	assert_true(c.changed && !t.lock.holder.n && t.fence == 1 && !t.free_at);
	assert_true(str_is(c.events[0].text, "the lock of al: process 718 died"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ids, free_memory),
		cmocka_unit_test_teardown(died, free_memory),
		cmocka_unit_test(which_calls),
		cmocka_unit_test_teardown(exclusion, free_memory),
		cmocka_unit_test_teardown(kinds, free_memory),
		cmocka_unit_test_teardown(life_of_a_lock, free_memory),
		cmocka_unit_test_teardown(ttl_and_words, free_memory),
		cmocka_unit_test_teardown(broken, free_memory),
		cmocka_unit_test_teardown(emergency, free_memory),
		cmocka_unit_test_teardown(pauses, free_memory),
		cmocka_unit_test(paused_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
