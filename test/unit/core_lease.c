/* Leases at their limits, and the words about a lock. test/queue and the simulator follow a task through several hands. */
#include "core_kit.h"

#include "core/lease.h"

#define TTL INT64_C(60000)
#define ONE STR("11111111111111111111111111111111")
#define TWO STR("22222222222222222222222222222222")

static void edges(void **state)
{
	struct lock l = { .holder = STR("ann"), .token = ONE, .expires_at = NOW };

	(void)state;
	assert_true(lease_live(&l, NOW - 1));
	assert_false(lease_live(&l, NOW));
	assert_false(lease_live(&l, NOW + 1));
	assert_true(lease_owned(&l, ONE, NOW - 1));
	assert_false(lease_owned(&l, ONE, NOW));
	assert_false(lease_owned(&l, TWO, NOW - 1));
	assert_false(lease_owned(&l, STR(""), NOW - 1));
	assert_false(lease_owned(&l, STR("1"), NOW - 1));
	l.expires_at = 0;
	assert_false(lease_live(&l, NOW));
	l = (struct lock){ .token = ONE, .expires_at = NOW };
	assert_false(lease_live(&l, NOW - 1)); /* no holder */
	l = (struct lock){ .holder = STR("ann"), .expires_at = NOW };
	assert_false(lease_live(&l, NOW - 1)); /* no token, and not a foreign lock */
}

static void foreign_edges(void **state)
{
	struct lock l = { .holder = STR("vim"), .foreign = 1 };

	(void)state;
	assert_true(lease_live(&l, NOW));
	assert_false(lease_owned(&l, STR(""), NOW));
	assert_false(lease_owned(&l, ONE, NOW));
	l.expires_at = NOW;
	assert_true(lease_live(&l, NOW - 1));
	assert_false(lease_live(&l, NOW));
}

static void renewal_never_shortens(void **state)
{
	struct task t = { .lock = { .holder = STR("ann"), .token = ONE, .expires_at = NOW + TTL } };

	(void)state;
	lease_renew(&t, TTL - 1, NOW);
	assert_int_equal(t.lock.expires_at, NOW + TTL);
	lease_renew(&t, TTL, NOW);
	assert_int_equal(t.lock.expires_at, NOW + TTL);
	lease_renew(&t, TTL, NOW + 1);
	assert_int_equal(t.lock.expires_at, NOW + TTL + 1);
	lease_renew(&t, 1000, NOW - 1000000); /* a clock that went back */
	assert_int_equal(t.lock.expires_at, NOW + TTL + 1);
}

/* A call that the lock of a dead process refused: what it releases, logs and counts. */
static void over_dead(void **state)
{
	static const struct {
		enum op op;
		enum status from, target, to;
		bool resume, manual;
		int64_t max;
		enum result code;
		const char *event;
		int64_t abandoned;
	} cases[] = {
		{ OP_CLAIM, IN_PROGRESS, 0, IN_PROGRESS, 0, 0, 5, SUCCESS, "abandoned", 1 },
		{ OP_CLAIM, IN_PROGRESS, 0, NEEDS_HELP, 0, 0, 1, MISCONFIGURED, "abandoned", 1 },
		{ OP_CLAIM, IN_PROGRESS, 0, IN_PROGRESS, 1, 0, 5, SUCCESS, "cleaned_up", 0 },
		{ OP_CLAIM, READY, 0, IN_PROGRESS, 0, 1, 5, SUCCESS, "cleaned_up", 0 },
		{ OP_STATUS, IN_PROGRESS, IN_PROGRESS, IN_PROGRESS, 0, 0, 5, SUCCESS, "abandoned",
		  1 },
		{ OP_UPDATE, IN_PROGRESS, READY, READY, 0, 0, 1, SUCCESS, "abandoned", 0 },
		{ OP_STATUS, IN_PROGRESS, CANCELED, CANCELED, 0, 0, 1, SUCCESS, "abandoned", 1 },
		{ OP_UPDATE, IN_PROGRESS, 0, IN_PROGRESS, 0, 0, 1, SUCCESS, "abandoned", 1 },
		{ OP_APPROVE, REVIEW, 0, DONE, 0, 1, 5, SUCCESS, "cleaned_up", 0 },
	};
	struct policy p = policy_default;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct request r = { .op = cases[i].op };
		struct task t = kit_held();
		struct call c = { .rq = &r, .policy = &p, .now = NOW, .fresh = TWO, .arena = &mem };

		GIVE(&r, agent, cases[i].resume ? STR("al") : STR("bob"));
		GIVE(&r, title, STR("new"));
		if (cases[i].target)
			GIVE(&r, status, cases[i].target);
		if (cases[i].resume)
			GIVE(&r, fence, 1);
		p.max_abandoned = cases[i].max;
		t.status = cases[i].from;
		t.lock.manual = cases[i].manual;
		t.lock.pid = 718;
		rules_apply(r.op, &t, &c);
		assert_true(c.code == CONFLICT && c.by_lock && !c.changed && t.lock.pid == 718);
		rules_apply_over_dead(r.op, &t, &c);
		assert_int_equal(c.code, cases[i].code);
		assert_true(c.changed && t.version == 3 && t.lock.pid == 0);
		assert_int_equal(t.status, cases[i].to);
		assert_int_equal(t.abandoned, cases[i].abandoned);
		assert_true(str_is(c.events[0].name, cases[i].event));
		assert_true(str_has_nocase(c.events[0].text, STR("process 718 died")));
		assert_true(c.n_events > 1);
	}
}

/* A call that is refused for another reason, too, releases nothing and keeps its first refusal. */
static void over_dead_refused(void **state)
{
	const struct task pause = { .lock.holder = STR("pat"), .lock.acquired_at = NOW };
	struct request r = { .op = OP_CLAIM };
	struct call c = { .rq = &r,
			  .policy = &policy_default,
			  .now = NOW,
			  .fresh = TWO,
			  .arena = &mem,
			  .paused = &pause };
	struct task t = kit_held();

	(void)state;
	GIVE(&r, agent, STR("bob"));
	rules_apply(r.op, &t, &c);
	rules_apply_over_dead(r.op, &t, &c);
	assert_true(c.code == CONFLICT && c.by_lock && !c.by_pause && !c.changed && !c.n_events);
	assert_true(str_eq(t.lock.token, HELD) && t.version == 2 && !t.abandoned);
}

static void time_of_a_renewal(void **state)
{
	(void)state;
	assert_int_equal(lease_renew_in(900000), 300000);
	assert_int_equal(lease_renew_in(303), 101);
	assert_int_equal(lease_renew_in(300), 100);
	assert_int_equal(lease_renew_in(0), 100);
	assert_int_equal(lease_renew_in(-900000), 100);
}

/* --- one call ------------------------------------------------------------------------------------- */

/* Releases a lock. locks_only: locks are files that others may write or look for. */
static enum result unlock(const struct lock *l, bool locks_only, const char *agent,
			  struct str proof, bool *gone)
{
	struct policy p = policy_default;
	struct request r = { .op = OP_LOCK_RELEASE };
	struct call c = {
		.rq = &r, .policy = &p, .now = NOW, .proof = proof, .fresh = STR(""), .arena = &mem
	};
	struct task t = { .id = STR("t1"), .status = READY, .lock = *l };

	p.locks_only = locks_only;
	GIVE(&r, id, t.id);
	GIVE(&r, agent, str_c(agent));
	rules_apply(r.op, &t, &c);
	*gone = !t.lock.holder.n;
	return c.code;
}

static void files_as_locks(void **state)
{
	const struct lock foreign = { .holder = STR("vim"), .foreign = 1 },
			  over = { .holder = STR("ann"), .token = ONE, .expires_at = NOW },
			  nobody = { 0 };
	bool gone;

	(void)state;
	assert_int_equal(unlock(&foreign, true, "vim", STR(""), &gone), SUCCESS);
	assert_true(gone);
	assert_int_equal(unlock(&foreign, true, "ann", STR(""), &gone), LOST_LOCK);
	assert_false(gone);
	assert_int_equal(unlock(&foreign, false, "vim", STR(""), &gone), LOST_LOCK);
	assert_false(gone);
	assert_int_equal(unlock(&over, true, "ann", ONE, &gone), SUCCESS);
	assert_true(gone);
	assert_int_equal(unlock(&over, true, "ann", TWO, &gone), SUCCESS);
	assert_false(gone);
	assert_int_equal(unlock(&over, true, "ann", STR(""), &gone), SUCCESS);
	assert_false(gone);
	assert_int_equal(unlock(&over, false, "ann", ONE, &gone), SUCCESS);
	assert_false(gone);
	assert_int_equal(unlock(&nobody, true, "ann", STR(""), &gone), SUCCESS);
}

static struct call act(struct task *t, struct request *r, struct str proof, struct str fresh)
{
	struct call c = { .rq = r,
			  .policy = &policy_default,
			  .now = NOW,
			  .proof = proof,
			  .fresh = fresh,
			  .arena = &mem };

	GIVE(r, id, t->id);
	GIVE(r, agent, STR("ann"));
	rules_apply(r->op, t, &c);
	return c;
}

static struct call claim(struct task *t)
{
	return act(t, &(struct request){ .op = OP_CLAIM }, STR(""), ONE);
}

static void first_claim(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	struct request resume = { .op = OP_CLAIM };

	(void)state;
	GIVE(&resume, fence, 1);
	assert_true(str_is(act(&t, &resume, STR(""), ONE).message, "t1 was never claimed"));
	assert_int_equal(claim(&t).code, SUCCESS);
	assert_int_equal(t.first_started_at, NOW);
}

/* Only a heartbeat that names a process moves the lock to it. */
static void heartbeat_without_a_process(void **state)
{
	struct task t = kit_held();
	struct request r = { .op = OP_HEARTBEAT };

	(void)state;
	t.lock.pid = 7;
	assert_int_equal(act(&t, &r, HELD, STR("")).code, SUCCESS);
	assert_int_equal(t.lock.pid, 7);
}

static void says_who_where_and_since_when(void **state)
{
	struct task t = { .id = STR("t1"),
			  .status = READY,
			  .lock = { .holder = STR("vim"), .foreign = 1 } };

	(void)state;
	assert_true(str_is(claim(&t).message, "t1 is held by vim until it is removed"));
	t.lock.acquired_at = NOW;
	t.lock.host = STR("box");
	assert_true(str_is(
		claim(&t).message,
		"t1 is held by vim since 2023-11-14T22:13:20.000Z on box until it is removed"));
}

static struct str warning_of(int64_t deps, int64_t subs)
{
	struct task t = { .id = STR("t1"), .status = READY, .open_deps = deps, .open_subs = subs };

	return claim(&t).warning;
}

/* `next` would not have offered the task. */
static void warns_of_open_tasks(void **state)
{
	(void)state;
	assert_int_equal(warning_of(0, 0).n, 0);
	assert_true(str_is(warning_of(1, 0), "t1 depends on 1 task not done yet"));
	assert_true(str_is(warning_of(2, 0), "t1 depends on 2 tasks not done yet"));
	assert_true(str_is(warning_of(0, 1), "t1 has 1 open sub-task"));
	assert_true(str_is(warning_of(0, 2), "t1 has 2 open sub-tasks"));
	assert_true(str_is(warning_of(1, 2),
			   "t1 depends on 1 task not done yet and has 2 open sub-tasks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges),
		cmocka_unit_test(foreign_edges),
		cmocka_unit_test(renewal_never_shortens),
		cmocka_unit_test_teardown(over_dead, free_memory),
		cmocka_unit_test_teardown(over_dead_refused, free_memory),
		cmocka_unit_test(time_of_a_renewal),
		cmocka_unit_test(files_as_locks),
		cmocka_unit_test(first_claim),
		cmocka_unit_test(heartbeat_without_a_process),
		cmocka_unit_test(says_who_where_and_since_when),
		cmocka_unit_test(warns_of_open_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
