/* Calls: each change is an act that the store runs, in one commit with others. The store may run
 * an act again, so each run starts from scratch. A call that a lock of the whole queue refuses
 * waits without holding anything, so it cannot block the holder. */
#include <errno.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "core/lease.h"
#include "core/role.h"
#include "core/validate.h"
#include "format/answer_form.h"
#include "format/request_form.h"
#include "queue/queue.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

static int queue_call_dispatch(struct act *w)
{
	if (typed_is(w->call.rq))
		return do_typed(w);
	switch (w->call.rq->op) {
	case OP_EMERGENCY_ON:
	case OP_EMERGENCY_OFF:
		return do_emergency(w);
	case OP_PAUSE:
	case OP_RESUME:
		return do_pause(w);
	case OP_CREATE:
		return do_create(w);
	case OP_TAKE:
		return do_take(w);
	case OP_DEPEND:
	case OP_UNDEPEND:
		return do_depend(w);
	case OP_REMOVE:
		return do_remove(w);
	case OP_LOCK_CLEANUP:
		return do_cleanup(w);
	case OP_ARCHIVE:
		return do_archive(w);
	case OP_UNDO:
		return do_undo(w);
	case OP_ID_CLAIM:
		return do_id(w);
	case OP_ID_INIT:
		return do_id_init(w);
	default:
		return do_change(w);
	}
}

/* Turns BAD into a refusal. */
static int queue_call_refused(struct act *w, int r)
{
	if (r == BAD && w->ans->code == SUCCESS)
		return act_refuse(w, MISCONFIGURED,
				  STR("a record that this call needs cannot be used"),
				  STR("pawl doctor names it and says how to remove it"));
	return r == BAD ? REFUSED : r;
}

/* A refused call may still commit changes. For example, a claim moves a task that was abandoned
 * too often to Needs Help. */
static int act_change(struct act *w)
{
	int r = repeat_find(w);
	bool done;

	if (!r)
		r = guard_check(w);
	if (r)
		return queue_call_refused(w, r);
	r = queue_call_refused(w, queue_call_dispatch(w));
	if (r < 0 || (r > 0 && !w->keep))
		return r;
	if (!r)
		r = identity_find(w);
	if (r < 0)
		return r;
	done = !r;
	r = act_flush(w);
	if (!r && done)
		r = undo_keep(w);
	if (!r && done)
		repeat_keep(w);
	if (!r) {
		identity_keep(w);
		guard_tidy(w);
	}
	return r || w->writes ? r : REFUSED;
}

/* The edit of the store. The store may run it again, so each run starts from scratch. */
int act_run(struct edit *e, void *ctx)
{
	struct act *w = ctx;
	int r, read;

	act_begin(w, e);
	w->began_ns = os_monotonic_ns();
	*w->ans = (struct answer){ .now = e->now, .put_off = arena_over(w->call.arena) };
	if (w->ans->put_off)
		return act_refuse(w, USAGE, STR("the calls of this commit need too much memory"),
				  STR("make fewer calls at once"));
	r = act_change(w);
	read = r < 0 ? r : read_brief(e->store, e, w->call.rq, w->ans, w->call.arena);
	return read < 0 ? read : r;
}

static struct str queue_call_hashed(struct arena *a, struct str token)
{
	return token.n ? token_hash(a, token) : token;
}

static struct act act_make(const struct policy *p, const struct request *rq, struct answer *ans,
			   struct arena *a)
{
	return (struct act){ .call = { .rq = rq,
				       .policy = p,
				       .proof = queue_call_hashed(a, rq->token),
				       .fresh = queue_call_hashed(a, rq->new_token),
				       .arena = a },
			     .ans = ans };
}

static bool queue_call_valid(struct queue *q, const struct request *rq, struct answer *ans,
			     struct arena *a)
{
	const char *fault = request_fault(rq, &q->config.policy, a);

	*ans = (struct answer){ 0 };
	if (op_flags(rq->op) & OP_READS)
		ans->now = queue_now(q); /* act_run() sets the time of a change */
	if (fault)
		answer_fail(ans, USAGE, str_c(fault), STR(""));
	return !fault && role_refuse(rq->role, role_for(rq), ans, a) == SUCCESS;
}

/* The task in the answer, if an earlier agent has worked on it; else NULL. */
static const struct task *came_back(const struct answer *ans)
{
	const struct grant *lock = ans->next ? ans->next_lock : ans->lock;
	const struct task *t = ans->next ? ans->next : ans->task;

	return lock && lock->token.n && t->attempts > 1 ? t : NULL;
}

static void write_all(struct queue *q, struct change *changes, struct act *acts, size_t n)
{
	int r;

	if (!n)
		return;
	r = q->store->ops->modify(q->store, changes, n);
	for (size_t i = 0; i < n; i++) {
		struct answer *ans = acts[i].ans;

		acts[i].ended_ns = os_monotonic_ns();
		acts[i].failed = r < 0 || changes[i].rc < 0;

		if (acts[i].failed) {
			*ans = (struct answer){ .now = ans->now };
			fault_answer(&q->err, ans, acts[i].call.arena);
		} else if (!(acts[i].call.rq->view & VIEW_BRIEF) && came_back(ans) &&
			   !arena_over(acts[i].call.arena)) {
			read_past(q->store, came_back(ans), ans, acts[i].call.arena);
		}
	}
}

/* --- waiting for locks of the whole queue ------------------------------------------------------------ */

static int64_t monotonic_ms(void)
{
	return os_monotonic_ns() / 1000000;
}

/* Keeps the acts that a lock of the whole queue refused, and moves them to the front. */
static size_t keep_barred(struct change *changes, struct act *acts, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!acts[i].ans->barred)
			continue;
		acts[kept] = acts[i];
		changes[kept] = (struct change){ .fn = act_run,
						 .ctx = &acts[kept],
						 .wants = changes[i].wants };
		kept++;
	}
	return kept;
}

/* Does the caller hold the lock that refused the act? If so, sets w->pass, once. */
static bool has_pass(struct queue *q, struct act *w)
{
	int64_t kind = w->ans->barred;
	struct str token;

	const struct str *own = w->call.rq ? w->call.rq->pass
					   : NULL; /* a bulk change has no request */

	if ((!q->config.pass && !own) || w->pass[kind].n)
		return false;
	token = own ? own[kind]
		    : q->config.pass(q->config.pass_ctx, (enum typed)kind, w->call.arena);
	w->pass[kind] = queue_call_hashed(w->call.arena, token);
	return token.n > 0;
}

static bool any_pass(struct queue *q, struct act *acts, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= has_pass(q, &acts[i]);
	return any;
}

#define DEATH_POLL_MS 500

/* Returns the time until the lock may be free; 0: it is free. A process that dies wakes nobody, so
 * its lock is read again from time to time. It only reads, so it does not take the
 * gate. This matters because every commit by the lock's holder wakes us. */
static int64_t held_for(struct queue *q, const struct act *w)
{
	struct arena a = { 0 };
	struct task t;
	int64_t now = queue_now(q), ms = 0;

	if (guard_kind(q->store, (enum typed)w->ans->barred, &t, &a) == 0 &&
	    lease_live(&t.lock, now) && !lock_died_here(&t.lock))
		ms = t.lock.expires_at - now;
	if (t.lock.pid && ms > DEATH_POLL_MS)
		ms = DEATH_POLL_MS;
	arena_free(&a);
	return ms;
}

/* Waits until the lock is gone, by reads only. false: the timeout has passed. */
static bool wait_until_free(struct queue *q, const struct act *w, int64_t deadline)
{
	int64_t left, held;

	while ((left = deadline - monotonic_ms()) > 0 && (held = held_for(q, w)) > 0)
		queue_wait(q, held < left ? held : left);
	return left > 0;
}

static void tell_waited(struct act *acts, size_t n, int64_t ms)
{
	for (size_t i = 0; i < n; i++) {
		struct answer *ans = acts[i].ans;

		ans->message = arena_printf(
			acts[i].call.arena, "%.*s; waited %s", STRF(ans->message),
			arena_cstr(acts[i].call.arena, duration_text(acts[i].call.arena, ms)));
	}
}

bool guard_wait(struct queue *q, struct act *w, int64_t *deadline)
{
	int64_t timeout = q->store->env.opt.timeout_ms;

	if (has_pass(q, w))
		return true;
	if (q->config.impatient)
		return false;
	if (!*deadline) {
		*deadline = monotonic_ms() + timeout;
		queue_wake_fd(q);
	}
	if (wait_until_free(q, w, *deadline))
		return true;
	tell_waited(w, 1, timeout);
	return false;
}

/* A waiting call holds nothing, because the refusal ended its transaction. It opens the wake
 * descriptor before it reads the lock, so it cannot miss a change in between. */
static void write_in_turn(struct queue *q, struct change *changes, struct act *acts, size_t n)
{
	int64_t timeout = q->store->env.opt.timeout_ms, deadline = 0, asked = os_monotonic_ns();

	for (;;) {
		write_all(q, changes, acts, n);
		health_count(q->store, acts, n, asked);
		n = keep_barred(changes, acts, n);
		if (!n)
			return;
		if (any_pass(q, acts, n))
			continue;
		if (q->config.impatient)
			return;
		if (!deadline) {
			deadline = monotonic_ms() + timeout;
			queue_wake_fd(q);
		}
		if (!wait_until_free(q, &acts[0], deadline)) {
			tell_waited(acts, n, timeout);
			health_count_failed(q->store, acts, n, asked);
			return;
		}
	}
}

void queue_call_many(struct queue *q, const struct request *rqs, struct answer *answers, size_t n,
		     struct arena *a)
{
	struct act *acts = arena_array(a, struct act, n);
	struct change *changes = arena_array(a, struct change, n);
	size_t writes = 0;

	if (q->remote) {
		q->far->call(q->remote, rqs, answers, n, a);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!queue_call_valid(q, &rqs[i], &answers[i], a))
			continue;
		if (op_flags(rqs[i].op) & OP_READS) {
			queue_read(q->store, &q->config.policy, &rqs[i], &answers[i], a);
			continue;
		}
		acts[writes] = act_make(&q->config.policy, &rqs[i], &answers[i], a);
		changes[writes] = (struct change){ .fn = act_run,
						   .ctx = &acts[writes],
						   .wants = act_wants(q, &acts[writes]) };
		writes++;
	}
	write_in_turn(q, changes, acts, writes);
}

/* Runs one act of queue_call_all(). If the queue refuses it, the store rolls back all of the acts. */
struct strict_act {
	struct act act;
	bool *refused;
	struct request own;          /* the request, with the parent's id, known only now */
	const struct answer *parent; /* of the call that creates the parent; NULL: none */
};

static int strict_run(struct edit *e, void *ctx)
{
	struct strict_act *s = ctx;
	int r;

	if (s->parent) {
		GIVE(&s->own, parent, s->parent->task->id);
		s->act.call.rq = &s->own;
	}
	r = act_run(e, &s->act);

	if (r <= 0 || s->act.ans->code == SUCCESS)
		return r;
	*s->refused = true;
	return STORE_UNSUPPORTED;
}

static size_t first_refused(const struct answer *answers, size_t n)
{
	size_t i = 0;

	while (i < n && answers[i].code == SUCCESS)
		i++;
	return i;
}

/* All acts meet the same locks, so they share the pass. Otherwise each would cost an attempt. */
static bool wait_together(struct queue *q, struct strict_act *acts, size_t n, size_t bad,
			  int64_t *deadline)
{
	bool again = guard_wait(q, &acts[bad].act, deadline);

	for (size_t i = 0; again && i < n; i++)
		if (i != bad)
			memcpy(acts[i].act.pass, acts[bad].act.pass, sizeof(acts[i].act.pass));
	return again;
}

size_t queue_call_all(struct queue *q, const struct request *rqs, const size_t *under,
		      struct answer *answers, size_t n, struct arena *a)
{
	struct strict_act *acts = arena_array(a, struct strict_act, n);
	struct change *changes = arena_array(a, struct change, n);
	int64_t deadline = 0, asked = os_monotonic_ns();
	bool refused;
	size_t bad = 0;
	int r = 0;

	if (q->remote)
		return q->far->call_all(q->remote, rqs, under, answers, n, a);
	for (size_t i = 0; i < n; i++) {
		if (!queue_call_valid(q, &rqs[i], &answers[i], a))
			return i;
		acts[i] = (struct strict_act){
			.act = act_make(&q->config.policy, &rqs[i], &answers[i], a),
			.refused = &refused,
			.own = rqs[i],
			.parent = under && under[i] ? &answers[under[i] - 1] : NULL,
		};
		acts[i].act.joined = i > 0;
		changes[i] = (struct change){ .fn = strict_run,
					      .ctx = &acts[i],
					      .wants = act_wants(q, &acts[i].act) };
	}
	do {
		refused = false;
		r = q->store->ops->modify(q->store, changes, n);
		bad = refused ? first_refused(answers, n) : 0;
	} while (refused && answers[bad].barred && wait_together(q, acts, n, bad, &deadline));
	acts[bad].act.began_ns = acts[0].act.began_ns;
	health_count_bulk(q, &acts[bad].act, HEALTH_BATCH, asked, r < 0 && !refused);
	if (r >= 0)
		return n;
	if (refused)
		return bad;
	answers[0] = (struct answer){ 0 };
	fault_answer(&q->err, &answers[0], a);
	return 0;
}

void queue_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a)
{
	queue_call_many(q, rq, ans, 1, a);
}

/* --- attempts --------------------------------------------------------------------------------- */

void attempts_begin(struct attempts *t, int64_t ms)
{
	int64_t now = os_boot_ms();

	t->end = ms > INT64_MAX - now ? INT64_MAX : now + ms;
	t->next = now;
}

void attempts_after(struct attempts *t, int64_t wait_ms)
{
	t->next = os_boot_ms() +
		  (wait_ms > 0 && wait_ms < ATTEMPTS_MAX_MS ? wait_ms : ATTEMPTS_MAX_MS);
	if (t->next > t->end)
		t->next = t->end;
}

bool attempts_over(const struct attempts *t)
{
	return os_boot_ms() >= t->end;
}

int64_t attempts_left(const struct attempts *t)
{
	int64_t left = t->next - os_boot_ms();

	return left > 0 ? left : 0;
}

/* --- relay ------------------------------------------------------------------------------------ */

/*
 * Packs a call so that another process can run it for us. Tokens do not leave this process, only
 * their hashes. This process puts the token back into the answer.
 */

/* Tags that no argument of a request uses: request_unpack() skips them. */
#define ROW(tag, kind, when, member, ...)                                                \
	{                                                                                \
		tag, SHAPE_##kind, SHAPE_##when, .offset = offsetof(struct act, member), \
						 ##__VA_ARGS__                           \
	}
#define PASS(kind) ROW(203 + TYPED_##kind, STR, SOME, pass[TYPED_##kind])

static const struct shape_member members[] = {
	ROW(200, STR, ALWAYS, call.proof),
	ROW(201, STR, ALWAYS, call.fresh),
	ROW(199, ONE, NEEDED, call.policy, .of = &policy_shape),
	PASS(WRITE),
	PASS(BATCH),
	PASS(CONFIG),
	PASS(MAINTENANCE),
	PASS(SYNC),
};
static const struct shape act_shape = SHAPE_AMONG(members, act, 199);

#define TOKENS (UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_new_token)

static void relay_pack(const struct change *c, struct buf *out)
{
	const struct act *w = c->ctx;
	struct request rq;

	/* The owner must run a change that is not a call, that needs a role check, or whose answer
	 * has a brief, which seldom fits into a slot. */
	if (c->fn != act_run || w->call.rq->role || w->call.rq->view & VIEW_BRIEF) {
		out->full = true;
		return;
	}
	rq = *w->call.rq;
	shape_pack(&act_shape, SHAPE_ALL, w, out);
	rq.has &= ~TOKENS;
	request_pack(&rq, out);
}

static bool is_hash(struct str s)
{
	return !s.n || s.n == HASH_LEN;
}

/* Hashes are stored in locks, so each must be empty or have the right length. */
static bool relay_hashes(const struct act *w)
{
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (!is_hash(w->pass[k]))
			return false;
	return is_hash(w->call.proof) && is_hash(w->call.fresh);
}

/* Checks the call again, because other processes may have changed the bytes. */
static int relay_adopt(struct str bytes, struct change *out, struct arena *a)
{
	struct act *w = arena_new(a, struct act);
	struct request *rq = arena_new(a, struct request);

	if (shape_unpack(&act_shape, SHAPE_ALL, bytes, w, a) || !policy_sane(w->call.policy) ||
	    !relay_hashes(w) || request_unpack(bytes, rq, a))
		return -EBADMSG;
	rq->has &= ~TOKENS;
	rq->token = rq->new_token = STR("");
	if (w->call.fresh.n)
		GIVE(rq, new_token, STR("its owner's"));
	if (op_flags(rq->op) & OP_READS || rq->view & VIEW_BRIEF ||
	    request_fault(rq, w->call.policy, a))
		return -EBADMSG;
	w->call.rq = rq;
	w->ans = arena_new(a, struct answer);
	w->call.arena = a;
	*out = (struct change){ .fn = act_run, .ctx = w };
	return 0;
}

static void relay_report(const struct change *c, struct buf *out)
{
	const struct act *w = c->ctx;

	answer_pack(w->ans, out);
}

static int relay_accept(struct change *c, struct str bytes)
{
	struct act *w = c->ctx;
	struct answer *ans = w->ans;

	w->began_ns = os_monotonic_ns();
	w->handed = true;
	if (answer_unpack(arena_str(w->call.arena, bytes), ans, w->call.arena) ||
	    answer_fault(ans, w->call.arena))
		return -EBADMSG;
	if (ans->lock && ans->lock->token.n)
		ans->lock->token = w->call.rq->new_token;
	if (ans->next_lock && ans->next_lock->token.n)
		ans->next_lock->token = w->call.rq->new_token;
	return 0;
}

static const struct wants *relay_wants(const struct change *c, struct arena *a)
{
	return act_reads(c->ctx, a);
}

const struct relay queue_relay = { relay_pack, relay_adopt, relay_report, relay_wants,
				   relay_accept };
