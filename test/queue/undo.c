/* undo: what it restores, to whom it is refused, and that fences, counts and links stay right. */
#include "suite.h"

#include <unistd.h>

#include "base/os.h"
#include "core/undo_rules.h"
#include "queue/queue_private.h"
#include "queue/transfer.h"

static void hinted(struct answer *ans, const char *part)
{
	if (!str_has_nocase(ans->hint, str_c(part)))
		fail_msg("'%s' is not in the hint '%.*s'", part, STRF(ans->hint));
}

/* The fields that a person sees, without the version. */
static const char *state_of(struct suite *s, const char *id)
{
	const struct task *t = show(s, id);

	return arena_printf(&s->a,
			    "%.*s|%lld|%lld|%lld|%.*s|%.*s|%.*s|%lld|%lld|%lld|%zu|%.*s|%lld",
			    STRF(t->title), (long long)t->status, (long long)t->priority,
			    (long long)t->class_rank, STRF(t->parent), STRF(t->blocker_reason),
			    STRF(t->summary), (long long)t->updated_at, (long long)t->done_at,
			    (long long)t->archived_at, t->depends.n, STRF(t->description),
			    (long long)t->abandoned)
		.p;
}

static void test_fields(void **state)
{
	struct suite *s = *state;
	const char *before;
	struct answer *ans;
	int64_t version;

	ok(s, "create id=a title=first priority=5 description=text labels=x,y");
	before = state_of(s, "a");
	version = show(s, "a")->version;
	advance(tick());
	ok(s, "update id=a title=second priority=9 description= labels=z class_rank=Expedite");
	ans = ok(s, "undo id=a");
	assert_true(str_is(ans->undone->reason, "update") && str_is(ans->undone->by, "ann"));
	assert_string_equal(state_of(s, "a"), before); /* with its place in the order */
	assert_int_equal(show(s, "a")->labels.n, 2);
	assert_int_equal(show(s, "a")->version, version + 2);
	assert_int_equal(count_events(s, "a", "undone"), 1);
	hinted(refused(s, MISCONFIGURED, "undo id=a"), "an undo cannot be undone");
}

/* A change of another agent, even a second one by its author, replaces the step that can be taken back. */
static void test_one_step(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a title=1");
	ok(s, "update id=a title=2");
	ok(s, "update id=a title=3");
	ok(s, "undo id=a");
	assert_true(str_is(show(s, "a")->title, "2"));
	refused(s, MISCONFIGURED, "undo id=a");
	ok(s, "update id=a title=4");
	ans = refused(s, CONFLICT, "undo id=a agent=bo");
	assert_true(str_has_nocase(ans->message, STR("ann: updated")));
	ok(s, "update id=a title=5 agent=bo");
	ans = refused(s, CONFLICT, "undo id=a");
	assert_true(str_has_nocase(ans->message, STR("bo: updated")));
	ok(s, "undo id=a agent=bo");
	assert_true(str_is(show(s, "a")->title, "4"));
	refused(s, NOT_FOUND, "undo id=nobody");
	refused(s, CONFLICT, "undo id=a if_version=1");
}

/* Comments, heartbeats and the counts of other tasks are no changes of the task. */
static void test_no_change(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=b");
	ok(s, "create id=a title=1 depends=b");
	ok(s, "claim id=a new_token=T agent=al");
	ok(s, "update id=a title=2 token=T agent=al");
	ok(s, "comment id=a text=hello agent=bo");
	ok(s, "heartbeat id=a token=T agent=al ttl=20t");
	ok(s, "claim id=b new_token=U");
	ok(s, "done id=b token=U");
	ok(s, "create id=c parent=a agent=bo");
	refused(s, CONFLICT,
		"undo id=a agent=al"); /* its lock is live, and another run may hold it */
	ok(s, "undo id=a token=T agent=al");
	assert_true(str_is(show(s, "a")->title, "1") && str_is(show(s, "a")->lock.holder, "al"));
	assert_true(show(s, "a")->open_subs == 1 && show(s, "a")->open_deps == 0);
	ok(s, "heartbeat id=a token=T agent=al");
	ok(s, "update id=a title=3 token=T agent=al");
	ok(s, "release id=a token=T agent=al");
	hinted(refused(s, MISCONFIGURED, "undo id=a agent=al"), "pawl claim a");
}

/* Calls of holders have other ways back. */
static void test_holders(void **state)
{
	static const struct {
		const char *call, *way;
	} all[] = {
		{ "done id=a token=T summary=s", "pawl reopen a" },
		{ "review id=a token=T summary=s", "pawl rework a" },
		{ "block id=a token=T reason=r unblock_action=u", "pawl unblock a" },
		{ "escalate id=a token=T reason=r", "pawl unblock a" },
		{ "fail id=a token=T reason=r", "pawl retry a" },
		{ "release id=a token=T", "pawl claim a" },
	};
	struct suite *s = *state;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		ok(s, "create id=a");
		hinted(refused(s, MISCONFIGURED, "undo id=a"), "pawl remove a");
		ok(s, "claim id=a new_token=T");
		hinted(refused(s, MISCONFIGURED, "undo id=a"), "pawl release a");
		ok(s, "%s", all[i].call);
		hinted(refused(s, MISCONFIGURED, "undo id=a"), all[i].way);
		ok(s, "remove id=a");
	}
	ok(s, "create id=b");
	ok(s, "lock_acquire id=b new_token=T");
	hinted(refused(s, MISCONFIGURED, "undo id=b"), "pawl lock release b");
	ok(s, "lock_release id=b token=T");
	hinted(refused(s, MISCONFIGURED, "undo id=b"), "pawl lock acquire b");
}

/* Each operation that changes the status, from a task that got there by work. */
static void test_statuses(void **state)
{
	static const struct {
		const char *work, *call, *name;
	} all[] = {
		{ "review id=a token=T summary=s", "approve id=a", "approve" },
		{ "review id=a token=T summary=s", "status id=a status=Done", "approve" },
		{ "review id=a token=T summary=s", "rework id=a reason=r", "rework" },
		{ "block id=a token=T reason=r unblock_action=u", "unblock id=a", "unblock" },
		{ "block id=a token=T reason=r unblock_action=u", "update id=a status=Ready",
		  "update" },
		{ "escalate id=a token=T reason=r", "status id=a status=Ready", "update" },
		{ "fail id=a token=T reason=r", "retry id=a", "retry" },
		{ "fail id=a token=T reason=r", "archive id=a", "archive" },
		{ "fail id=a token=T reason=r", "cancel id=a reason=q", "cancel" },
		{ "done id=a token=T summary=s", "reopen id=a reason=r", "reopen" },
		{ "done id=a token=T summary=s", "archive", "archive" },
		{ "release id=a token=T", "cancel id=a reason=r", "cancel" },
		{ "release id=a token=T", "update id=a status=Backlog", "update" },
	};
	struct suite *s = *state;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *before;
		int64_t fence;

		ok(s, "create id=p");
		ok(s, "create id=a parent=p");
		ok(s, "create id=d depends=a");
		ok(s, "claim id=a new_token=T");
		ok(s, "%s", all[i].work);
		before = state_of(s, "a");
		fence = show(s, "a")->fence;
		advance(tick());
		ok(s, "%s", all[i].call);
		assert_true(str_is(ok(s, "undo id=a")->undone->reason, all[i].name));
		assert_string_equal(state_of(s, "a"), before);
		assert_int_equal(show(s, "a")->fence, fence);
		assert_int_equal(show(s, "p")->open_subs, show(s, "a")->status != DONE);
		assert_int_equal(show(s, "d")->open_deps, show(s, "a")->status != DONE);
		assert_int_equal(show(s, "d")->canceled_deps, 0);
		expect_status(s, "d", READY); /* also after a cancel */
		ok(s, "remove id=d");
		ok(s, "remove id=a");
		ok(s, "remove id=p");
	}
}

/* A lock that a cancel ended does not come back, and its token stays stale. */
static void test_locks(void **state)
{
	struct suite *s = *state;
	int64_t fence;

	ok(s, "create id=a");
	fence = ok(s, "claim id=a new_token=T agent=al")->lock->fence;
	ok(s, "cancel id=a reason=r force=1 agent=pat");
	ok(s, "undo id=a agent=pat");
	expect_status(s, "a", IN_PROGRESS);
	assert_int_equal(show(s, "a")->lock.holder.n, 0);
	refused(s, LOST_LOCK, "done id=a token=T agent=al");
	refused(s, LOST_LOCK, "cancel id=a reason=r token=T explicit=1 agent=al");
	assert_int_equal(ok(s, "take new_token=U")->lock->fence, fence + 1);
	/* the holder's own cancel is not repeated after its undo */
	ok(s, "cancel id=a reason=r token=U");
	ok(s, "undo id=a token=U");
	expect_status(s, "a", IN_PROGRESS);
	refused(s, LOST_LOCK, "cancel id=a reason=r token=U explicit=1");
}

/* Over the lock of another agent, an undo needs what the change needed. */
static void test_override(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=a title=1");
	ok(s, "claim id=a new_token=T agent=al");
	ok(s, "update id=a title=2 force=1 reason=urgent agent=pat");
	hinted(refused(s, CONFLICT, "undo id=a agent=pat"), "pawl undo a");
	refused(s, USAGE, "undo id=a agent=pat force=1");
	ok(s, "undo id=a agent=pat force=1 reason=oops");
	assert_true(str_is(show(s, "a")->title, "1"));
	ans = ok(s, "heartbeat id=a token=T agent=al");
	assert_true(str_is(ans->changed->reason, "oops") &&
		    str_is(ans->changed->fields.v[0], "title"));
	assert_int_equal(count_events(s, "a", "overridden"), 2);
	ok(s, "update id=a title=3 force=1 reason=urgent agent=pat");
	refused(s, LOST_LOCK, "undo id=a token=U explicit=1 agent=pat");
}

static void test_links(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=p");
	ok(s, "create id=q");
	ok(s, "create id=b");
	ok(s, "create id=c");
	ok(s, "create id=a parent=p depends=b,c");
	ok(s, "undepend id=a depends=b");
	ok(s, "undo id=a");
	t = show(s, "a");
	assert_true(t->depends.n == 2 && str_is(t->depends.v[0], "b") && t->open_deps == 2);
	ok(s, "depend id=a depends=q");
	ok(s, "undo id=a");
	assert_true(show(s, "a")->depends.n == 2 && show(s, "a")->open_deps == 2);
	ok(s, "update id=a parent=q");
	ok(s, "undo id=a");
	assert_true(str_is(show(s, "a")->parent, "p"));
	assert_true(show(s, "p")->open_subs == 1 && show(s, "q")->open_subs == 0);
	/* links that are impossible by now */
	ok(s, "undepend id=a depends=b");
	ok(s, "depend id=b depends=a");
	refused(s, MISCONFIGURED, "undo id=a");
	ok(s, "undepend id=b depends=a");
	ok(s, "remove id=b");
	refused(s, NOT_FOUND, "undo id=a");
	ok(s, "update id=a parent=");
	ok(s, "remove id=p");
	refused(s, NOT_FOUND, "undo id=a");
}

/* The dependents that a cancel sent to Needs Help get their status back, unless somebody decided meanwhile. */
static void test_dependents_of_a_cancel(void **state)
{
	struct suite *s = *state;
	const char *before;

	ok(s, "create id=a");
	ok(s, "create id=x");
	ok(s, "create id=kept depends=a");
	ok(s, "create id=moved depends=a");
	ok(s, "create id=both depends=a,x");
	before = state_of(s, "kept");
	advance(tick());
	ok(s, "cancel id=a reason=r");
	expect_status(s, "kept", NEEDS_HELP);
	ok(s, "update id=moved title=new agent=bo");
	ok(s, "cancel id=x reason=r agent=bo");
	assert_int_equal(ok(s, "undo id=a")->warnings.n, 2);
	assert_string_equal(state_of(s, "kept"), before);
	expect_status(s, "moved", NEEDS_HELP);
	expect_status(s, "both", NEEDS_HELP);
	assert_int_equal(show(s, "moved")->open_deps, 1);
	assert_int_equal(show(s, "both")->canceled_deps, 1);
}

static void test_approval(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "create id=d depends=a");
	ok(s, "claim id=a new_token=T agent=al");
	ok(s, "review id=a token=T summary=s agent=al");
	ok(s, "approve id=a");
	ok(s, "undo id=a");
	expect_status(s, "a", REVIEW);
	advance(tick());
	ok(s, "approve id=a");
	ok(s, "claim id=d new_token=D agent=al");
	refused(s, CONFLICT, "undo id=a");
	ok(s, "release id=d token=D agent=al");
	assert_true(str_has_nocase(refused(s, CONFLICT, "undo id=a")->message, STR("d waited")));
	ok(s, "remove id=d");
	ok(s, "undo id=a");
	advance(tick());
	ok(s, "approve id=a");
	ok(s, "claim id=p new_token=P agent=al");
	assert_true(str_has_nocase(refused(s, CONFLICT, "undo id=a")->message, STR("p waited")));
}

/* Work that is open again below the task keeps it from ending a second time. */
static void test_open_subtasks(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a");
	ok(s, "claim id=a new_token=T");
	ok(s, "done id=a token=T");
	ok(s, "reopen id=a reason=r");
	ok(s, "create id=sub parent=a agent=bo");
	refused(s, INCOMPLETE_SUBTASKS, "undo id=a");
	ok(s, "cancel id=sub reason=r agent=bo");
	ok(s, "undo id=a");
	expect_status(s, "a", DONE);
}

static void test_remove(void **state)
{
	struct suite *s = *state;
	const char *before;

	ok(s, "create id=A title=first description=text");
	for (int i = 0; i < 3; i++) {
		ok(s, "claim id=a new_token=T");
		ok(s, "release id=a token=T");
	}
	ok(s, "comment id=a text=hello");
	before = state_of(s, "a");
	ok(s, "remove id=a");
	refused(s, CONFLICT, "undo id=a agent=bo");
	refused(s, CONFLICT, "undo id=a if_version=1");
	assert_true(str_is(ok(s, "undo id=a")->task->id, "A"));
	assert_string_equal(state_of(s, "a"), before);
	assert_int_equal(show(s, "a")->fence, 3);
	assert_int_equal(count_events(s, "a", "comment"), 1);
	assert_int_equal(ok(s, "claim id=a new_token=T")->lock->fence, 4);
	ok(s, "remove id=a force=1 reason=r agent=pat");
	ok(s, "undo id=a agent=pat");
	expect_status(s, "a", IN_PROGRESS);
	refused(s, LOST_LOCK, "done id=a token=T");
	assert_int_equal(ok(s, "take new_token=U")->lock->fence, 5);
	/* a fence that grew meanwhile */
	ok(s, "release id=a token=U");
	ok(s, "remove id=a");
	ok(s, "create id=a agent=bo");
	refused(s, CONFLICT, "undo id=a");
	ok(s, "claim id=a new_token=V agent=bo");
	ok(s, "release id=a token=V agent=bo");
	ok(s, "remove id=a agent=bo");
	refused(s, CONFLICT, "undo id=a");
	ok(s, "undo id=a agent=bo");
	assert_int_equal(ok(s, "claim id=a new_token=W")->lock->fence, 7);
}

static void test_remove_by_force(void **state)
{
	struct suite *s = *state;
	const char *ready, *back;

	ok(s, "create id=p");
	ok(s, "create id=base");
	ok(s, "create id=a parent=p depends=base");
	ok(s, "create id=ready depends=a");
	ok(s, "create id=back depends=a status=Backlog");
	ok(s, "create id=moved depends=a");
	ok(s, "create id=lost depends=a");
	ok(s, "create id=ended depends=a");
	ok(s, "create id=sub parent=a");
	ok(s, "create id=other parent=a");
	ready = state_of(s, "ready");
	back = state_of(s, "back");
	advance(tick());
	ok(s, "remove id=a force=1");
	ok(s, "unblock id=moved agent=bo");
	ok(s, "remove id=lost agent=bo");
	ok(s, "cancel id=ended reason=r agent=bo");
	ok(s, "update id=other parent=base agent=bo");
	assert_int_equal(ok(s, "undo id=a")->warnings.n, 4);
	assert_string_equal(state_of(s, "ready"), ready);
	assert_string_equal(state_of(s, "back"), back);
	assert_int_equal(show(s, "ready")->open_deps, 1);
	/* the link is back, the status is what bo made of it */
	expect_status(s, "moved", IN_PROGRESS);
	assert_int_equal(show(s, "moved")->open_deps, 1);
	assert_int_equal(show(s, "ended")->depends.n, 0);
	assert_true(str_is(show(s, "sub")->parent, "a") &&
		    str_is(show(s, "other")->parent, "base"));
	assert_int_equal(show(s, "a")->open_subs, 1);
	assert_int_equal(show(s, "p")->open_subs, 1);
	assert_true(str_is(show(s, "a")->parent, "p") && show(s, "a")->open_deps == 1);
}

/* A task that is both parent and dependent of the removed one. */
static void test_remove_double_link(void **state)
{
	struct suite *s = *state;
	struct task *t;

	ok(s, "create id=p");
	ok(s, "create id=a parent=p");
	ok(s, "depend id=p depends=a");
	advance(tick());
	ok(s, "remove id=a force=1 reason=r");
	expect_status(s, "p", NEEDS_HELP);
	ok(s, "undo");
	t = expect_status(s, "p", READY);
	assert_true(t->open_subs == 1 && t->open_deps == 1 && t->depends.n == 1);
	assert_true(str_is(show(s, "a")->parent, "p"));
}

/* What the removed task was linked with is gone or in the way. */
static void test_remove_without_links(void **state)
{
	struct suite *s = *state;
	struct answer *ans;

	ok(s, "create id=p");
	ok(s, "create id=base");
	ok(s, "create id=a depends=base parent=p");
	ok(s, "remove id=a");
	ok(s, "remove id=p agent=bo");
	ok(s, "remove id=base");
	hinted(refused(s, MISCONFIGURED, "undo id=a"), "pawl undo base");
	ok(s, "undo id=base");
	ok(s, "remove id=base agent=bo");
	ans = ok(s, "undo id=a");
	assert_int_equal(ans->warnings.n, 2);
	expect_status(s, "a", NEEDS_HELP);
	assert_true(show(s, "a")->depends.n == 0 && !show(s, "a")->parent.n);
	/* a cycle over tasks that were linked meanwhile */
	ok(s, "create id=b");
	ok(s, "create id=m depends=b");
	ok(s, "create id=z depends=m");
	ok(s, "remove id=m force=1");
	ok(s, "depend id=b depends=z");
	refused(s, MISCONFIGURED, "undo id=m");
	ok(s, "undepend id=b depends=z");
	ok(s, "undo id=m");
	ok(s, "create id=top");
	ok(s, "create id=mid parent=top");
	ok(s, "create id=low parent=mid");
	ok(s, "remove id=mid force=1");
	ok(s, "depend id=low depends=top");
	refused(s, MISCONFIGURED, "undo id=mid");
	ok(s, "undepend id=low depends=top");
	ok(s, "undo id=mid");
	assert_int_equal(show(s, "top")->open_subs, 1);
	assert_int_equal(show(s, "mid")->open_subs, 1);
}

static void test_without_id(void **state)
{
	struct suite *s = *state;

	refused(s, MISCONFIGURED, "undo");
	ok(s, "create id=a title=1");
	ok(s, "create id=b title=1");
	refused(s, MISCONFIGURED, "undo");
	ok(s, "update id=b title=2");
	advance(tick());
	ok(s, "update id=a title=2");
	advance(tick());
	ok(s, "update id=b title=3 agent=bo");
	assert_true(str_is(ok(s, "undo")->task->id, "a"));
	refused(s, MISCONFIGURED, "undo"); /* bo's change replaced that of b */
	ok(s, "update id=a title=5");
	ok(s, "claim id=a new_token=T agent=bo");
	refused(s, CONFLICT, "undo");
	refused(s, USAGE, "undo if_version=1");
}

/* The calls of one `edit` are one change. */
static void test_edit(void **state)
{
	struct suite *s = *state;
	struct request rqs[3];
	struct answer answers[3];
	const char *before;

	ok(s, "create id=b");
	ok(s, "create id=c");
	ok(s, "create id=a title=1 depends=b");
	before = state_of(s, "a");
	advance(tick());
	rqs[0] = parse(s, "update id=a title=2");
	rqs[1] = parse(s, "undepend id=a depends=b");
	rqs[2] = parse(s, "depend id=a depends=c");
	assert_int_equal(queue_call_all(s->q, rqs, NULL, answers, 3, &s->a), 3);
	assert_true(str_is(ok(s, "undo id=a")->undone->reason, "update"));
	assert_string_equal(state_of(s, "a"), before);
	assert_true(str_is(show(s, "a")->depends.v[0], "b"));
	/* two calls of one batch about different tasks are two changes */
	rqs[0] = parse(s, "update id=a title=3");
	rqs[1] = parse(s, "update id=b title=3");
	assert_int_equal(queue_call_all(s->q, rqs, NULL, answers, 2, &s->a), 2);
	ok(s, "undo id=a");
	assert_true(str_is(show(s, "b")->title, "3"));
	ok(s, "undo id=b");
}

/* Another program damages the record, as a hostile store would. */
static int damage(struct edit *e, void *ctx)
{
	static struct record rec;

	rec = (struct record){ .key = str_c(ctx), .hot = STR("\1\1"), .body_changed = true };
	edit_put(e, &rec);
	return 0;
}

static void damage_record(struct suite *s, const char *key)
{
	struct change c = { .fn = damage, .ctx = (void *)key };

	assert_int_equal(s->q->store->ops->modify(s->q->store, &c, 1), 0);
}

/* Calls that were made together are kept as one update: it is still an approval that others relied on. */
static void test_edit_with_approval(void **state)
{
	struct suite *s = *state;
	struct request rqs[2];
	struct answer answers[2];

	ok(s, "create id=a title=1");
	ok(s, "create id=d depends=a");
	ok(s, "claim id=a new_token=T agent=al");
	ok(s, "review id=a token=T summary=s agent=al");
	rqs[0] = parse(s, "update id=a title=2");
	rqs[1] = parse(s, "approve id=a");
	assert_int_equal(queue_call_all(s->q, rqs, NULL, answers, 2, &s->a), 2);
	ok(s, "claim id=d new_token=D agent=al");
	refused(s, CONFLICT, "undo id=a");
	expect_status(s, "a", DONE);
}

static void test_edit_over_damage(void **state)
{
	struct suite *s = unless_served(state, "it writes to the store");
	struct request rqs[2];
	struct answer answers[2];

	ok(s, "create id=a title=1");
	ok(s, "create id=b title=1");
	ok(s, "update id=a title=2");
	damage_record(s, "undo/a");
	rqs[0] = parse(s, "update id=b title=2");
	rqs[1] = parse(s, "update id=a title=3");
	assert_int_equal(queue_call_all(s->q, rqs, NULL, answers, 2, &s->a), 2);
	assert_int_equal(answers[1].code, SUCCESS);
	ok(s, "undo id=a");
	assert_true(str_is(show(s, "a")->title, "2"));
}

/* The step of an earlier task with this id ends with the damaged task. */
static void test_removed_damage(void **state)
{
	struct suite *s = unless_served(state, "it writes to the store");

	ok(s, "create id=a title=1");
	ok(s, "remove id=a");
	ok(s, "create id=a title=2 agent=bo");
	damage_record(s, "task/a");
	ok(s, "remove id=a force=1 agent=bo");
	refused(s, NOT_FOUND, "undo id=a");
}

/* Nobody waits for a process that died, and what it left is counted. */
static void test_dead_holder(void **state)
{
	struct suite *s = *state;
	struct str host = os_hostname(&s->a), here = proc_here(&s->a);
	int64_t starts[] = { os_process_start(getpid()), 1 };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		ok(s, "create id=a%zu title=1", i);
		ok(s,
		   "claim id=a%zu new_token=T%zu agent=bo pid=%d pid_start=%lld host=%.*s boot_id=%.*s",
		   i, i, (int)getpid(), (long long)starts[i], STRF(host), STRF(here));
		ok(s, "update id=a%zu title=2 force=1 reason=r", i);
	}
	refused(s, CONFLICT, "undo id=a0");
	ok(s, "heartbeat id=a0 token=T0 agent=bo");
	ok(s, "undo id=a1");
	expect_status(s, "a1", IN_PROGRESS);
	assert_true(str_is(show(s, "a1")->title, "1") && !show(s, "a1")->lock.holder.n);
	assert_true(show(s, "a1")->abandoned == 1 && show(s, "a1")->fence == 1);
	assert_int_equal(count_events(s, "a1", "abandoned"), 1);
	refused(s, LOST_LOCK, "heartbeat id=a1 token=T1 agent=bo");
	ok(s, "claim id=a1 new_token=U agent=cy");
}

static void test_repeat(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a title=1");
	ok(s, "update id=a title=2");
	ok(s, "undo id=a request_id=r1");
	ok(s, "update id=a title=3");
	assert_true(ok(s, "undo id=a request_id=r1")->repeated);
	assert_true(str_is(show(s, "a")->title, "3"));
	/* a repeated change keeps no second step */
	ok(s, "update id=a title=4 request_id=r2");
	ok(s, "undo id=a");
	assert_true(ok(s, "update id=a title=4 request_id=r2")->repeated);
	refused(s, MISCONFIGURED, "undo id=a");
	assert_true(str_is(show(s, "a")->title, "3"));
}

static void test_expiry(void **state)
{
	struct suite *s = *state;

	if (!clock_is_ours())
		skip_because("the store's own clock does not pass 30 days");
	ok(s, "create id=a title=1");
	ok(s, "update id=a title=2");
	advance(UNDO_KEPT_MS - 1);
	ok(s, "undo id=a");
	ok(s, "update id=a title=3");
	advance(UNDO_KEPT_MS);
	hinted(refused(s, MISCONFIGURED, "undo id=a"), "30 days");
	refused(s, MISCONFIGURED, "undo");
}

static void test_guards(void **state)
{
	struct suite *s = *state;

	ok(s, "create id=a title=1");
	ok(s, "update id=a title=2");
	ok(s, "emergency_on reason=r");
	refused(s, API_ERROR, "undo id=a");
	ok(s, "emergency_off");
	ok(s, "pause");
	ok(s, "undo id=a");
	ok(s, "resume");
}

/* A cleared queue gives nothing back. */
static void test_clear(void **state)
{
	struct suite *s = unless_served(state, "it clears the queue by a function of its own");
	struct answer ans = { 0 };
	int64_t n;

	ok(s, "create id=a");
	ok(s, "create id=b");
	ok(s, "update id=a title=2");
	ok(s, "remove id=b");
	assert_int_equal(queue_clear(s->q, true, STR("ann"), STR(""), &n, &ans, &s->a), SUCCESS);
	refused(s, NOT_FOUND, "undo id=b");
	refused(s, NOT_FOUND, "undo id=a");
	refused(s, MISCONFIGURED, "undo");
}

int undo_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_fields),
		QUEUE_TEST(test_one_step),
		QUEUE_TEST(test_no_change),
		QUEUE_TEST(test_holders),
		QUEUE_TEST(test_statuses),
		QUEUE_TEST(test_locks),
		QUEUE_TEST(test_override),
		QUEUE_TEST(test_links),
		QUEUE_TEST(test_dependents_of_a_cancel),
		QUEUE_TEST(test_approval),
		QUEUE_TEST(test_open_subtasks),
		QUEUE_TEST(test_remove),
		QUEUE_TEST(test_remove_by_force),
		QUEUE_TEST(test_remove_double_link),
		QUEUE_TEST(test_remove_without_links),
		QUEUE_TEST(test_without_id),
		QUEUE_TEST(test_edit),
		QUEUE_TEST(test_edit_with_approval),
		QUEUE_TEST(test_edit_over_damage),
		QUEUE_TEST(test_removed_damage),
		QUEUE_TEST(test_dead_holder),
		QUEUE_TEST(test_repeat),
		QUEUE_TEST(test_expiry),
		QUEUE_TEST(test_guards),
		QUEUE_TEST(test_clear),
	};

	return cmocka_run_group_tests_name("undo", tests, NULL, NULL);
}
