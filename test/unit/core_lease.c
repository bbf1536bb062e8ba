/*
 * Leases at their limits, a task that passes through several hands, and a long random history. The
 * promises about tokens and fences must hold after every step of it.
 */
#include "core_kit.h"

#include "base/secret.h"
#include "core/acquire.h"
#include "format/task.h"
#include "core/lease.h"
#include "core/order.h"

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

/* --- one call ------------------------------------------------------------------------------------- */

static struct verdict act(struct task *t, struct request *r, int64_t now, struct str proof,
			  struct str fresh)
{
	struct call c = { r, &policy_default, now, proof, fresh, &mem, NULL };
	struct verdict v = { 0 };

	GIVE(r, id, t->id);
	if (!r->agent.n)
		GIVE(r, agent, STR("ann"));
	rules_apply(r->op, t, &c, &v);
	return v;
}

/* Releases a lock. locks_only: locks are files that others may write or look for. */
static enum result unlock(const struct lock *l, bool locks_only, const char *agent,
			  struct str proof, bool *gone)
{
	struct policy p = policy_default;
	struct request r = { .op = OP_LOCK_RELEASE };
	struct call c = { &r, &p, NOW, proof, STR(""), &mem, NULL };
	struct task t = { .id = STR("t1"), .status = READY, .lock = *l };
	struct verdict v = { 0 };

	p.locks_only = locks_only;
	GIVE(&r, id, t.id);
	GIVE(&r, agent, str_c(agent));
	rules_apply(r.op, &t, &c, &v);
	*gone = !t.lock.holder.n;
	return v.code;
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

static struct verdict simple(struct task *t, enum op op, int64_t now, struct str proof,
			     struct str fresh)
{
	struct request r = { .op = op };

	GIVE(&r, reason, STR("because"));
	GIVE(&r, unblock_action, STR("ask"));
	return act(t, &r, now, proof, fresh);
}

static void heartbeat_at_the_edge(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	int64_t ends = NOW + policy_default.lease;

	(void)state;
	assert_int_equal(simple(&t, OP_CLAIM, NOW, STR(""), ONE).code, SUCCESS);
	assert_int_equal(t.lock.expires_at, ends);
	assert_int_equal(t.first_started_at, NOW);
	assert_int_equal(simple(&t, OP_HEARTBEAT, ends, ONE, STR("")).code, LOST_LOCK);
	assert_int_equal(t.lock.expires_at, ends);
	assert_int_equal(simple(&t, OP_HEARTBEAT, ends - 1, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.lock.expires_at, ends - 1 + policy_default.lease);
	assert_int_equal(t.updated_at, NOW); /* a heartbeat is not an edit */
	assert_int_equal(t.version, 2);
}

/* A restarted holder records its new process. */
static void heartbeat_moves(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	struct request r = { .op = OP_HEARTBEAT };

	(void)state;
	simple(&t, OP_CLAIM, NOW, STR(""), ONE);
	t.lock.pid = 7;
	assert_int_equal(act(&t, &r, NOW, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.lock.pid, 7);
	GIVE(&r, pid, 8);
	GIVE(&r, pid_start, 9);
	GIVE(&r, boot_id, STR("here"));
	GIVE(&r, host, STR("there"));
	assert_int_equal(act(&t, &r, NOW, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.lock.pid, 8);
	assert_int_equal(t.lock.pid_start, 9);
	assert_true(str_is(t.lock.boot_id, "here"));
	assert_true(str_is(t.lock.host, "there"));
}

static void says_who_where_and_since_when(void **state)
{
	struct task t = { .id = STR("t1"),
			  .status = READY,
			  .lock = { .holder = STR("vim"), .foreign = 1 } };

	(void)state;
	assert_true(str_is(simple(&t, OP_CLAIM, NOW, STR(""), ONE).message,
			   "t1 is held by vim until it is removed"));
	t.lock.acquired_at = NOW;
	t.lock.host = STR("box");
	assert_true(str_is(
		simple(&t, OP_CLAIM, NOW, STR(""), ONE).message,
		"t1 is held by vim since 2023-11-14T22:13:20.000Z on box until it is removed"));
}

static void warns_of_dependencies(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY, .open_deps = 1 }, u = t;

	(void)state;
	u.open_deps = 2;
	assert_true(str_is(simple(&t, OP_CLAIM, NOW, STR(""), ONE).warning,
			   "t1 depends on 1 task not done yet"));
	assert_true(str_is(simple(&u, OP_CLAIM, NOW, STR(""), ONE).warning,
			   "t1 depends on 2 tasks not done yet"));
}

static void shorter_heartbeat(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	struct request r = { .op = OP_HEARTBEAT };

	(void)state;
	simple(&t, OP_CLAIM, NOW, STR(""), ONE);
	GIVE(&r, ttl, 1000);
	assert_int_equal(act(&t, &r, NOW + 5, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.lock.expires_at, NOW + policy_default.lease);
	GIVE(&r, ttl, 24 * 3600 * 1000);
	assert_int_equal(act(&t, &r, NOW + 5, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.lock.expires_at, NOW + 5 + 24 * 3600 * 1000);
}

static struct str token_of(int i)
{
	return arena_printf(&mem, "%032d", i);
}

/* Each expired lease counts; the fifth sends the task to Needs Help; unblock resets the count. */
static void worn_out(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	int64_t now = NOW;
	struct verdict v;

	(void)state;
	for (int i = 0; i < 5; i++, now += policy_default.lease) {
		v = simple(&t, OP_CLAIM, now, STR(""), token_of(i));
		assert_int_equal(v.code, SUCCESS);
		assert_int_equal(v.n_events, i ? 2 : 1);
		assert_int_equal(t.abandoned, i);
		assert_int_equal(t.fence, i + 1);
		assert_int_equal(t.version, i + 1);
	}
	v = simple(&t, OP_CLAIM, now, STR(""), token_of(9));
	assert_int_equal(v.code, MISCONFIGURED);
	assert_true(v.changed && !v.granted);
	assert_int_equal(t.status, NEEDS_HELP);
	assert_int_equal(t.fence, 5);
	assert_int_equal(t.abandoned, 5);
	assert_int_equal(t.lock.holder.n, 0);
	assert_true(str_holds(t.blocker_reason, "abandoned 5 times"));
	assert_int_equal(simple(&t, OP_UNBLOCK, now, STR(""), STR("")).code, SUCCESS);
	assert_int_equal(t.abandoned, 0);
	assert_int_equal(t.first_started_at, NOW);
}

/* A holder may resume after its lease expired if nobody took the task; that does not count as
 * abandoned. */
static void resumes(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	struct request r = { .op = OP_CLAIM };
	int64_t now = NOW + policy_default.lease;

	(void)state;
	GIVE(&r, fence, 1);
	simple(&t, OP_CLAIM, NOW, STR(""), ONE);
	assert_int_equal(act(&t, &r, now - 1, STR(""), TWO).code, CONFLICT);
	assert_int_equal(act(&t, &r, now, STR(""), TWO).code, SUCCESS);
	assert_int_equal(t.fence, 2);
	assert_int_equal(t.abandoned, 0);
	assert_true(act(&t, &r, now, STR(""), TWO).repeated); /* the same call again */
	assert_int_equal(t.fence, 2);
	assert_int_equal(act(&t, &r, now + policy_default.lease, STR(""), ONE).code, LOST_LOCK);
}

static void waits_for_the_one_who_knows_it(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	int64_t at, now = NOW + 10;

	(void)state;
	simple(&t, OP_CLAIM, NOW, STR(""), ONE);
	assert_int_equal(simple(&t, OP_LOCK_RELEASE, now, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.status, IN_PROGRESS);
	assert_int_equal(order_offer(&t, &at), OFFER_LATER);
	assert_int_equal(at, now + policy_default.lease);
	assert_true(simple(&t, OP_LOCK_RELEASE, now, ONE, STR("")).repeated);
	simple(&t, OP_CLAIM, now, STR(""), TWO); /* claimed by name: at once */
	assert_int_equal(t.fence, 2);
	assert_int_equal(t.abandoned, 0);
	/* the lease expired: if broken now, the task is eligible at once */
	now = t.lock.expires_at;
	assert_int_equal(simple(&t, OP_LOCK_BREAK, now, STR(""), STR("")).code, SUCCESS);
	assert_int_equal(order_offer(&t, &at), OFFER_NOW);
}

static struct str warning_of(int64_t deps, int64_t subs)
{
	struct task t = { .id = STR("t1"), .status = READY, .open_deps = deps, .open_subs = subs };

	return simple(&t, OP_CLAIM, NOW, STR(""), ONE).warning;
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

static void handed_back(void **state)
{
	struct policy reserved = policy_default;
	struct task t = { .status = IN_PROGRESS, .last_ttl = 1000 };
	const struct lock lock = { .holder = STR("ann"), .token = ONE, .expires_at = NOW + 1 };

	(void)state;
	t.lock = lock;
	lease_hand_back(&t, &policy_default, NOW);
	assert_true(!t.lock.holder.n && t.free_at == 0);
	reserved.handback = 500;
	t.lock = lock;
	lease_hand_back(&t, &reserved, NOW);
	assert_true(!t.lock.holder.n && t.free_at == NOW + 500);
	t.lock = lock;
	lease_hand_back(&t, &reserved, NOW + 1); /* others may have had it already */
	assert_true(!t.lock.holder.n && t.free_at == 0);
}

static void manual_lock_put_to_work(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	struct verdict v = simple(&t, OP_LOCK_ACQUIRE, NOW, STR(""), ONE);

	(void)state;
	assert_true(v.granted);
	assert_int_equal(t.lock.expires_at, NOW + 300 * 1000);
	assert_int_equal(t.status, READY);
	assert_int_equal(t.attempts, 0);
	assert_int_equal(simple(&t, OP_BLOCK, NOW, ONE, STR("")).code, SUCCESS);
	assert_int_equal(t.status, BLOCKED);
	assert_int_equal(t.lock.manual, 0);
	assert_int_equal(simple(&t, OP_HEARTBEAT, NOW, ONE, STR("")).code, MISCONFIGURED);
	assert_int_equal(simple(&t, OP_LOCK_ACQUIRE, NOW, STR(""), TWO).code, CONFLICT);
	assert_int_equal(simple(&t, OP_UNBLOCK, NOW, STR(""), STR("")).code, SUCCESS);
	assert_true(str_is(t.blocker_reason, "because") && str_is(t.unblock_action, "ask"));
}

/* `unblock` with the holder's own token is its last result; `status ID in-progress` after it is a
 * claim. */
static void claim_after_unblock(void **state)
{
	struct task t = { .id = STR("t1"), .status = READY };
	struct request r = { .op = OP_STATUS };
	struct verdict v;

	(void)state;
	simple(&t, OP_CLAIM, NOW, STR(""), ONE);
	simple(&t, OP_BLOCK, NOW, ONE, STR(""));
	assert_int_equal(simple(&t, OP_UNBLOCK, NOW, ONE, STR("")).code, SUCCESS);
	assert_true(simple(&t, OP_UNBLOCK, NOW, ONE, STR("")).repeated);
	GIVE(&r, status, IN_PROGRESS);
	v = act(&t, &r, NOW, ONE, TWO);
	assert_true(v.granted && !v.repeated);
	assert_int_equal(t.fence, 2);
	/* a fence is valid only for `claim --resume` */
	simple(&t, OP_BLOCK, NOW, TWO, STR(""));
	GIVE(&r, fence, 1);
	assert_true(act(&t, &r, NOW, TWO, ONE).granted);
	assert_int_equal(t.fence, 3);
	assert_int_equal(t.version, 6);
}

/* --- a random history ------------------------------------------------------------------------------ */

#define STEPS SCALE(100000, 20000)
#define AGENTS 5
#define KEPT 8 /* tokens that are remembered, and tried again when they are stale */

static const enum op tried[] = {
	OP_CLAIM,   OP_CLAIM,   OP_CLAIM,        OP_HEARTBEAT,    OP_HEARTBEAT,
	OP_RELEASE, OP_BLOCK,   OP_UNBLOCK,      OP_ESCALATE,     OP_REVIEW,
	OP_APPROVE, OP_REWORK,  OP_DONE,         OP_FAIL,         OP_RETRY,
	OP_REOPEN,  OP_CANCEL,  OP_UPDATE,       OP_STATUS,       OP_STATUS,
	OP_STATUS,  OP_COMMENT, OP_LOCK_ACQUIRE, OP_LOCK_RELEASE, OP_LOCK_BREAK,
};

struct history {
	uint64_t seed;
	struct task t;
	int64_t now;
	char tokens[KEPT][40]; /* by fence */
	int made;
	int64_t completed; /* the fence of the last completion */
	int counts[OP_END];
};

struct step {
	struct request rq;
	struct call c;
	char proof[40], fresh[40];
	struct task was;
	struct verdict v;
};

static uint32_t roll(struct history *h, uint32_t n)
{
	return kit_random(&h->seed, n);
}

static void some_token(struct history *h, char *out)
{
	/* usually the lock's own; otherwise most calls would be refused */
	int64_t fence = roll(h, 3) ? h->t.fence : (int64_t)roll(h, KEPT);

	snprintf(out, 40, "%s", roll(h, 8) ? h->tokens[fence % KEPT] : "");
}

static void some_call(struct history *h, struct step *s, struct arena *a)
{
	static const char *const names[AGENTS] = { "ann", "bob", "cat", "dan", "eve" };
	struct request *r = &s->rq;

	memset(s, 0, sizeof(*s));
	r->op = tried[roll(h, COUNT(tried))];
	GIVE(r, agent, str_c(names[roll(h, AGENTS)]));
	GIVE(r, reason, STR("because"));
	GIVE(r, text, STR("remark"));
	if (r->op == OP_STATUS || (r->op == OP_UPDATE && roll(h, 2)))
		GIVE(r, status, 1 + roll(h, STATUS_END - 1));
	if (roll(h, 4) == 0)
		GIVE(r, ttl, 1000 + roll(h, 100000));
	if (r->op == OP_CLAIM && roll(h, 6) == 0)
		GIVE(r, fence, h->t.fence - roll(h, 2));
	some_token(h, s->proof);
	r->explicit = s->proof[0] && roll(h, 2);
	if (roll(h, 10) == 0)
		some_token(h, s->fresh);
	if (!s->fresh[0])
		snprintf(s->fresh, sizeof(s->fresh), "%032d", ++h->made);
	s->c = (struct call){
		r, &policy_default, h->now, str_c(s->proof), str_c(s->fresh), a, NULL
	};
	s->was = h->t;
}

static bool takes(const struct step *s)
{
	return s->rq.op == OP_CLAIM || s->rq.op == OP_LOCK_ACQUIRE ||
	       (s->rq.op == OP_STATUS && s->rq.status == IN_PROGRESS);
}

/* Acquired: granted to a token that had no live lock before. Or its lock was taken away by the
 * unblock or rework at the start of `status ID in-progress`. */
static bool acquired(const struct step *s)
{
	int64_t from = s->was.status;
	bool cleared = s->rq.op == OP_STATUS &&
		       (from == BLOCKED || from == NEEDS_HELP || from == REVIEW);

	return takes(s) && s->v.granted && !s->v.repeated &&
	       (cleared || !lease_owned(&s->was.lock, s->c.fresh, s->c.now));
}

static void check_fence(struct history *h, const struct step *s)
{
	bool grown = acquired(s);

	assert_int_equal(h->t.fence, s->was.fence + grown);
	if (!grown)
		return;
	/* a live lock may be replaced only on a Blocked task */
	assert_true(!lease_live(&s->was.lock, s->c.now) ||
		    (s->was.status == BLOCKED && s->rq.op == OP_STATUS) ||
		    lease_owned(&s->was.lock, s->c.proof, s->c.now));
	snprintf(h->tokens[h->t.fence % KEPT], 40, "%s", s->fresh);
	assert_true(lease_owned(&h->t.lock, s->c.fresh, s->c.now));
}

static void check_change(const struct history *h, const struct step *s)
{
	assert_int_equal(h->t.version, s->was.version + s->v.changed);
	if (!s->v.changed)
		assert_memory_equal(&h->t, &s->was, sizeof(h->t));
	if (s->v.code != SUCCESS)
		assert_true(!s->v.granted && s->v.message.n);
	assert_in_range(h->t.status, BACKLOG, CANCELED);
	assert_true(s->v.n_events <= VERDICT_EVENTS);
	if (h->t.status != s->was.status)
		assert_true(s->v.n_events > 0);
	assert_true(h->t.attempts >= s->was.attempts);
}

/* A call with a token that is not the live lock's changes nothing. */
static void check_stale(const struct step *s)
{
	bool needs = op_flags(s->rq.op) & OP_HELD && s->rq.op != OP_STATUS;

	if (takes(s) || !s->rq.explicit || lease_owned(&s->was.lock, s->c.proof, s->c.now))
		return;
	assert_false(s->v.changed || s->v.granted);
	assert_int_equal(s->v.n_events, 0);
	if (needs && s->v.code == SUCCESS)
		assert_true(s->v.repeated);
}

static void check_tokens(const struct history *h, const struct step *s)
{
	int live = 0;

	for (int i = 0; i < KEPT; i++)
		live += h->tokens[i][0] && lease_owned(&h->t.lock, str_c(h->tokens[i]), s->c.now) &&
			i == h->t.fence % KEPT;
	assert_true(live <= 1);
	assert_int_equal(live, lease_live(&h->t.lock, s->c.now));
}

static void check_completion(struct history *h, const struct step *s)
{
	bool done = h->t.status == DONE && s->was.status != DONE && s->was.status != REVIEW;

	if (!done)
		return;
	assert_true(lease_owned(&s->was.lock, s->c.proof, s->c.now));
	assert_true(h->t.fence > h->completed); /* one completion for each fence */
	h->completed = h->t.fence;
	assert_int_equal(h->t.done_at, s->c.now);
}

/* Never lost: the task is claimable now or later, waits for a person, or has ended. */
static void check_not_lost(const struct history *h)
{
	int64_t at;
	enum offer offer = order_offer(&h->t, &at);

	if (h->t.status == READY || h->t.status == IN_PROGRESS)
		assert_int_not_equal(offer, OFFER_NONE);
	assert_true(at <= h->now + policy_default.lease_max);
}

/* Between two calls a store writes the task and reads it again. */
static void store_and_load(struct history *h, struct arena *to)
{
	struct buf b = BUF_MAX(1 << 20);
	struct task t = { 0 };

	task_pack(&h->t, HOT | BODY, &b);
	assert_int_equal(task_unpack(arena_str(to, buf_str(&b)), &t, to), 0);
	assert_int_equal(task_diff(&h->t, &t, "stored"), 0);
	h->t = t;
	buf_free(&b);
}

static void run_history(uint64_t seed)
{
	struct history h = { .seed = seed, .now = NOW, .t = { .id = STR("t1"), .status = READY } };
	struct arena mems[2] = { { 0 }, { 0 } };
	struct step s;

	for (int i = 0; i < STEPS; i++) {
		struct arena *a = &mems[i % 2], *b = &mems[(i + 1) % 2];

		some_call(&h, &s, a);
		rules_apply(s.rq.op, &h.t, &s.c, &s.v);
		check_change(&h, &s);
		check_stale(&s);
		check_fence(&h, &s);
		check_tokens(&h, &s);
		check_completion(&h, &s);
		check_not_lost(&h);
		h.counts[s.rq.op] += s.v.changed || s.v.n_events;
		h.now += roll(&h, 20) ? roll(&h, 20000) : roll(&h, 1200000);
		arena_free(b);
		store_and_load(&h, b);
	}
	for (size_t i = 0; i < COUNT(tried); i++) /* each of them succeeded at least once */
		assert_true(h.counts[tried[i]] > SCALE(20, 2));
	assert_true(h.t.fence > SCALE(1000, 200));
	arena_free(&mems[0]);
	arena_free(&mems[1]);
}

static void random_history(void **state)
{
	(void)state;
	run_history(20260206);
}

static void other_random_history(void **state)
{
	(void)state;
	run_history(UINT64_C(0x9e3779b97f4a7c15));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges),
		cmocka_unit_test(foreign_edges),
		cmocka_unit_test(renewal_never_shortens),
		cmocka_unit_test(heartbeat_at_the_edge),
		cmocka_unit_test(heartbeat_moves),
		cmocka_unit_test(shorter_heartbeat),
		cmocka_unit_test(files_as_locks),
		cmocka_unit_test(says_who_where_and_since_when),
		cmocka_unit_test(warns_of_dependencies),
		cmocka_unit_test(worn_out),
		cmocka_unit_test(resumes),
		cmocka_unit_test(waits_for_the_one_who_knows_it),
		cmocka_unit_test(warns_of_open_tasks),
		cmocka_unit_test(handed_back),
		cmocka_unit_test(manual_lock_put_to_work),
		cmocka_unit_test(claim_after_unblock),
		cmocka_unit_test(random_history),
		cmocka_unit_test(other_random_history),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}
