/* undo: which changes can be taken back, what the refusals say, what an undo restores and what it never touches. */
#include "core_kit.h"

#include "core/role.h"
#include "core/undo_rules.h"

#define DIGEST STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
#define OTHER STR("OTHER-123456789-0123456789-01234")

static struct request by(const char *agent)
{
	struct request r = { .op = OP_UNDO };

	GIVE(&r, id, STR("t1"));
	GIVE(&r, agent, str_c(agent));
	return r;
}

static struct call call_of(const struct request *r)
{
	return (struct call){ .rq = r, .policy = &policy_default, .now = NOW, .arena = &mem };
}

static struct undo record(enum op op, struct task *was)
{
	return (struct undo){ .op = op,
			      .at = NOW - 5000,
			      .agent = STR("al"),
			      .digest = op == OP_REMOVE ? STR("") : DIGEST,
			      .was = was };
}

static struct task plain(void)
{
	struct task t = kit_held();

	t.status = READY;
	t.lock = (struct lock){ 0 };
	return t;
}

static void operations(void **state)
{
	static const enum op undoable[] = { OP_UNBLOCK, OP_APPROVE,  OP_REWORK, OP_RETRY,
					    OP_REOPEN,  OP_CANCEL,   OP_REMOVE, OP_UPDATE,
					    OP_DEPEND,  OP_UNDEPEND, OP_ARCHIVE };
	struct request r = { .op = OP_STATUS };
	size_t n = 0;

	(void)state;
	for (int op = OP_NONE + 1; op < OP_END; op++) {
		struct request one = { .op = (enum op)op };

		if (op != OP_STATUS)
			n += undo_op(&one, READY) == (enum op)op;
	}
	assert_int_equal(n, COUNT(undoable));
	for (size_t i = 0; i < COUNT(undoable); i++) {
		struct request one = { .op = undoable[i] };

		assert_int_equal(undo_op(&one, READY), undoable[i]);
	}
	r.status = DONE;
	assert_int_equal(undo_op(&r, REVIEW), OP_APPROVE);
	assert_int_equal(undo_op(&r, IN_PROGRESS), OP_NONE);
}

/* A heartbeat and the counts of other tasks are no changes; everything else is. */
static void comparison(void **state)
{
	struct task t = kit_held(), same = t, c;

	(void)state;
	same.version += 7;
	same.open_deps = same.canceled_deps = same.open_subs = 3;
	same.lock.expires_at += 1000;
	same.lock.host = STR("elsewhere");
	same.lock.boot_id = STR("boot");
	same.lock.pid = same.lock.pid_start = 5;
	c = undo_compared(&same);
	t = undo_compared(&t);
	assert_int_equal(task_diff(&t, &c, "compared"), 0);
	same.fence++;
	c = undo_compared(&same);
	assert_int_not_equal(task_diff(&t, &c, "as it must: fence"), 0);
}

static const char *fault(struct undo u)
{
	return undo_fault(&u, STR("task/t1"), &mem);
}

static void hostile_records(void **state)
{
	struct task was = plain(), bad = plain();
	struct undo good = record(OP_UPDATE, &was), u;
	struct undo_other fine = { .id = STR("t2"), .digest = DIGEST, .status = READY }, o;

	(void)state;
	assert_null(fault(good));
	assert_null(fault(record(OP_REMOVE, &was)));
#define BAD(member, value) \
	u = good;          \
	u.member = value;  \
	assert_non_null(fault(u));
	BAD(op, OP_NONE)
	BAD(op, OP_END)
	BAD(op, OP_CLAIM)
	BAD(role, -1)
	BAD(role, ROLE_ADMIN + 1)
	BAD(at, -1)
	BAD(at, INT64_MAX)
	BAD(agent, STR(""))
	BAD(agent, arena_printf(&mem, "%0201d", 0))
	BAD(agent, STR("\xff"))
	BAD(digest, STR("0123"))
	BAD(digest, arena_printf(&mem, "%064d/", 0))
	BAD(digest, STR("Z123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"))
	BAD(was, NULL)
	u = record(OP_REMOVE, &was);
	u.digest = DIGEST;
	assert_non_null(fault(u));
	bad.id = STR("t2");
	assert_true(str_holds(str_c(fault(record(OP_UPDATE, &bad))), "id"));
	u = good;
	u.others = &o;
	u.n_others = 1;
	o = fine;
	assert_null(fault(u));
	o.link = UNDO_PARENT;
	assert_null(fault(u));
#define BAD_OTHER(member, value) \
	o = fine;                \
	o.member = value;        \
	assert_non_null(fault(u));
	BAD_OTHER(id, STR("../x"))
	BAD_OTHER(digest, STR("x"))
	BAD_OTHER(blocker_reason, STR("\xff"))
	BAD_OTHER(blocker_reason, arena_printf(&mem, "%0*d", TEXT_MAX + 1, 0))
	BAD_OTHER(status, 0)
	BAD_OTHER(status, STATUS_END)
	BAD_OTHER(updated_at, -1)
	BAD_OTHER(link, -1)
	BAD_OTHER(link, UNDO_LINK_END)
	o = fine;
	u.n_others = UNDO_OTHERS_MAX + 1;
	assert_non_null(fault(u));
}

static void roles(void **state)
{
	struct task was = plain();
	struct undo u = record(OP_APPROVE, &was);

	(void)state;
	assert_int_equal(undo_role(&u), ROLE_REVIEWER); /* a record cannot lower it */
	u.role = ROLE_ADMIN;
	assert_int_equal(undo_role(&u), ROLE_ADMIN);
}

static struct call refusal(const char *agent, const struct undo *u, bool same,
			   const struct event *last)
{
	static struct request r;
	struct undo_facts f = { .same = same, .last = last };
	struct task t = plain();
	struct call c;

	r = by(agent);
	c = call_of(&r);
	assert_false(undo_allowed(&t, u, &f, false, &c));
	return c;
}

static void refusals(void **state)
{
	struct task was = plain();
	struct undo u = record(OP_UPDATE, &was);
	struct event bo = { .name = STR("claimed"), .agent = STR("bo"), .at = NOW },
		     done = { .name = STR("done"), .agent = STR("al") },
		     updated = { .name = STR("updated"), .agent = STR("al") };
	struct call c = refusal("al", &u, false, &bo);

	(void)state;
	assert_int_equal(c.code, CONFLICT);
	assert_true(str_holds(c.message, "after your update (bo: claimed at "));
	c = refusal("al", &u, false, NULL);
	assert_int_equal(c.code, CONFLICT);
	assert_true(str_holds(c.message, "does not say"));
	c = refusal("al", &u, false, &done);
	assert_int_equal(c.code, MISCONFIGURED);
	assert_true(str_holds(c.message, "your last call on t1 (done)"));
	assert_true(str_holds(c.hint, "pawl reopen t1 --reason TEXT"));
	c = refusal("bo", &u, true, &updated);
	assert_int_equal(c.code, CONFLICT);
	assert_true(str_holds(c.message, "not yours (al: updated at "));
	c = refusal("al", NULL, false, &updated);
	assert_int_equal(c.code, MISCONFIGURED);
	assert_true(str_holds(c.hint, "30 days"));
	c = refusal("al", NULL, false, NULL);
	assert_int_equal(c.code, MISCONFIGURED);
	assert_true(str_holds(c.message, "no change of t1"));
	c = refusal("bo", &u, true, NULL);
	assert_int_equal(c.code, MISCONFIGURED);
}

/* Another agent's live lock protects the task from an undo, as from any change. */
static void locks(void **state)
{
	struct task was = plain(), t = kit_held();
	struct undo u = record(OP_UPDATE, &was);
	struct undo_facts f = { .same = true };
	struct request r = by("al");
	struct call c = call_of(&r);

	(void)state;
	assert_false(undo_allowed(&t, &u, &f, false, &c));
	assert_int_equal(c.code, CONFLICT);
	assert_true(str_holds(c.hint, "pawl undo t1"));
	c = call_of(&r);
	assert_true(undo_allowed(&t, &u, &f, true, &c)); /* it is not there, so nobody holds it */
	c.proof = HELD;
	assert_true(undo_allowed(&t, &u, &f, false, &c));
	GIVE(&r, force, 1);
	GIVE(&r, reason, STR("urgent"));
	c = call_of(&r);
	assert_true(undo_allowed(&t, &u, &f, false, &c));
}

static void restores(void **state)
{
	struct task was = plain(), t = kit_held(), now;
	struct undo u = record(OP_UPDATE, &was);
	struct undo_facts f = { .same = true };
	struct request r = by("al");
	struct call c = call_of(&r);

	(void)state;
	was.title = STR("before");
	was.status = BACKLOG;
	was.updated_at = 5;
	was.fence = 9;
	was.parent = STR("p");
	was.last.op = OP_REVIEW;
	was.lock = (struct lock){ .holder = STR("bo"), .token = OTHER, .expires_at = NOW + 1 };
	t.open_deps = 2;
	t.depends = (struct strs){ &(struct str){ "t9", 2 }, 1 };
	t.free_at = 77;
	now = t;
	undo_apply(&t, &u, &f, &c);
	assert_true(str_is(t.title, "before") && t.status == BACKLOG && t.updated_at == 5);
	assert_true(t.version == now.version + 1 && t.fence == now.fence);
	assert_true(t.open_deps == 2 && t.depends.n == 1 && !t.parent.n && t.free_at == 77);
	assert_true(str_is(t.lock.holder, "al") && str_eq(t.lock.token, HELD));
	assert_int_equal(t.last.op, OP_REVIEW);
	assert_true(c.changed && c.n_events == 1 && str_is(c.events[0].name, "undone"));
	assert_true(str_is(c.events[0].text, "update"));
	assert_int_equal(c.events[0].from, IN_PROGRESS);
	assert_int_equal(c.events[0].to, BACKLOG);
}

/* A lock that the change ended stays ended, and any agent may claim the task at once. */
static void no_lock_comes_back(void **state)
{
	struct task was = kit_held(), t = plain();
	struct undo u = record(OP_CANCEL, &was);
	struct undo_facts f = { .same = true };
	struct request r = by("al");
	struct call c = call_of(&r);

	(void)state;
	t.status = CANCELED;
	t.free_at = NOW + 1000;
	GIVE(&r, reason, STR("wrong task"));
	undo_apply(&t, &u, &f, &c);
	assert_true(t.status == IN_PROGRESS && !t.lock.holder.n && !t.lock.token.n && !t.free_at);
	assert_true(str_is(c.events[0].text, "cancel: wrong task"));
	t = kit_held();
	t.free_at = 3;
	u.op = OP_UPDATE;
	c = call_of(&r);
	undo_apply(&t, &u, &f, &c);
	assert_true(t.lock.holder.n && t.free_at == 3);
}

static void holder_is_told(void **state)
{
	struct task was = kit_held(), t = kit_held();
	struct undo u = record(OP_UPDATE, &was);
	struct undo_facts f = { .same = true, .fields = { &(struct str){ "title", 5 }, 1 } };
	struct request r = by("pat");
	struct call c = call_of(&r);

	(void)state;
	GIVE(&r, force, 1);
	GIVE(&r, reason, STR("oops"));
	undo_apply(&t, &u, &f, &c);
	assert_true(str_is(t.over.by, "pat") && str_is(t.over.fields.v[0], "title"));
	assert_true(str_eq(t.over.token, HELD) && str_is(c.events[0].name, "overridden"));
}

static void restores_removed(void **state)
{
	struct task was = kit_held(), t = { 0 };
	struct undo u = record(OP_REMOVE, &was);

	(void)state;
	was.fence = 4;
	was.open_deps = was.open_subs = was.canceled_deps = 1;
	was.parent = STR("p");
	was.depends = (struct strs){ &(struct str){ "t9", 2 }, 1 };
	was.last.op = OP_DONE;
	was.over.by = STR("pat");
	was.last_ttl = 60;
	undo_restore(&t, &u, 7);
	assert_true(t.fence == 7 && t.version == was.version + 1 && str_is(t.id, "t1"));
	assert_true(!t.lock.holder.n && !t.free_at && !t.last.op && !t.over.by.n);
	assert_true(!t.parent.n && !t.depends.n && !t.open_deps && !t.open_subs &&
		    !t.canceled_deps);
	assert_true(str_is(t.last_holder, "al") && t.last_ttl == 60);
	undo_restore(&t, &u, 3); /* a fence never goes back */
	assert_int_equal(t.fence, 4);
}

static void others(void **state)
{
	struct task t = plain();
	struct undo_other o = { .status = BACKLOG, .updated_at = 8, .blocker_reason = STR("why") };
	struct request r = by("al");
	struct call c = call_of(&r);

	(void)state;
	undo_other(&t, &o, &c);
	assert_true(t.status == BACKLOG && t.updated_at == 8 && str_is(t.blocker_reason, "why"));
	assert_true(t.version == 3 && c.changed);
}

static void relied_on(void **state)
{
	struct task was = plain(), t = plain(), waited = plain();
	struct undo u = record(OP_APPROVE, &was);
	struct request r = by("al");
	struct call c = call_of(&r);

	(void)state;
	assert_false(undo_relied_on(&waited, &u));
	waited.started_at = u.at - 1;
	assert_false(undo_relied_on(&waited, &u));
	waited.started_at = u.at;
	assert_true(undo_relied_on(&waited, &u));
	waited.started_at = 0;
	waited.done_at = u.at;
	assert_true(undo_relied_on(&waited, &u));
	waited.id = STR("t2");
	undo_refuse_relied(&c, &t, &waited);
	assert_int_equal(c.code, CONFLICT);
	assert_true(str_holds(c.message, "t2 waited for t1") && str_holds(c.message, "by al"));
}

static void unfinished(void **state)
{
	static const struct {
		enum status was, is;
		int64_t subs;
		bool unfinished, unapproves;
	} all[] = { { DONE, READY, 1, true, false },         { CANCELED, READY, 1, true, false },
		    { REVIEW, IN_PROGRESS, 1, true, false }, { DONE, READY, 0, false, false },
		    { READY, READY, 1, false, false },       { DONE, DONE, 1, false, false },
		    { REVIEW, DONE, 1, false, true },        { REVIEW, DONE, 0, false, true } };

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct task t = plain(), was = plain();
		struct undo u = record(OP_UPDATE, &was); /* the operation does not decide */

		was.status = all[i].was;
		t.status = all[i].is;
		t.open_subs = all[i].subs;
		assert_int_equal(undo_unfinished(&t, &u), all[i].unfinished);
		assert_int_equal(undo_unapproves(&t, &u), all[i].unapproves);
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, free_memory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(operations),      TEST(comparison),
		TEST(hostile_records), TEST(roles),
		TEST(refusals),        TEST(locks),
		TEST(restores),        TEST(no_lock_comes_back),
		TEST(holder_is_told),  TEST(restores_removed),
		TEST(others),          TEST(relied_on),
		TEST(unfinished),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
