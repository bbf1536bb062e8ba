/*
 * The locks of the whole queue (@write, @batch and others), the emergency and the pause. Two tables
 * say which locks refuse a change and which refuse another lock. No lock refuses a read, a
 * heartbeat or the release of a lock of the whole queue, and none keeps an operator from starting
 * or ending an emergency.
 */
#include "core/typed.h"

#include "base/when.h"
#include "core/lease.h"
#include "core/rules.h"

static const char *const names[TYPED_END] = {
	"", "write", "batch", "config", "maintenance", "sync"
};

#define W TYPED_BIT(TYPED_WRITE)
#define B TYPED_BIT(TYPED_BATCH)
#define C TYPED_BIT(TYPED_CONFIG)
#define M TYPED_BIT(TYPED_MAINTENANCE)
#define S TYPED_BIT(TYPED_SYNC)

/* The queue locks that refuse a single change of this kind. */
static const unsigned step_barred_by[TYPED_END] = {
	[TYPED_WRITE] = W | M,  [TYPED_BATCH] = W | B | M,
	[TYPED_CONFIG] = C | M, [TYPED_MAINTENANCE] = W | B | C | M,
	[TYPED_SYNC] = W | M,
};

/* The locks that refuse the acquisition of a lock of this kind. @batch also refuses @write,
 * because @write would refuse the steps of the batch. */
static const unsigned lock_barred_by[TYPED_END] = {
	[TYPED_WRITE] = W | B | M,           [TYPED_BATCH] = W | B | M, [TYPED_CONFIG] = C | M,
	[TYPED_MAINTENANCE] = W | B | C | M, [TYPED_SYNC] = S | M,
};

const char *typed_name(enum typed kind)
{
	return names[kind];
}

enum typed typed_of(struct str id)
{
	if (!str_cut_prefix(&id, STR("@")))
		return TYPED_NONE;
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (str_eq_nocase(id, str_c(names[k])))
			return (enum typed)k;
	return TYPED_NONE;
}

bool typed_is(const struct request *rq)
{
	return rq->id.n && rq->id.p[0] == '@';
}

const char *typed_fault(const struct request *rq)
{
	switch (rq->op) {
	case OP_LOCK_ACQUIRE:
	case OP_LOCK_RELEASE:
	case OP_LOCK_BREAK:
	case OP_LOCK_STATUS:
	case OP_HEARTBEAT:
	case OP_LOG:
		return typed_of(rq->id)
			       ? NULL
			       : "the locks of the whole queue are @write, @batch, @config, @maintenance and @sync";
	default:
		return "an id that begins with @ is a lock of the whole queue: lock acquire, "
		       "release, status or break it";
	}
}

/* The kind of work that the request is a step of, else the kind of the request itself. */
static enum typed kind_of(const struct request *rq)
{
	if (rq->part_of > TYPED_NONE && rq->part_of < TYPED_END)
		return (enum typed)rq->part_of;
	if (rq->op == OP_ARCHIVE && !HAS(rq, id))
		return TYPED_BATCH; /* it archives all ended tasks */
	return rq->op == OP_LOCK_CLEANUP ? TYPED_MAINTENANCE : TYPED_WRITE;
}

bool typed_changes(const struct request *rq)
{
	if (op_flags(rq->op) & OP_READS || rq->op == OP_HEARTBEAT || rq->op == OP_EMERGENCY_ON ||
	    rq->op == OP_EMERGENCY_OFF)
		return false;
	return !typed_is(rq) || rq->op == OP_LOCK_ACQUIRE;
}

unsigned typed_bars(const struct request *rq, const struct policy *p)
{
	if (!typed_changes(rq))
		return 0;
	if (p->untyped)
		return W | B | C | M | (typed_of(rq->id) == TYPED_SYNC ? S : 0);
	return typed_is(rq) ? lock_barred_by[typed_of(rq->id)] : step_barred_by[kind_of(rq)];
}

static struct str typed_process(const struct lock *l, struct arena *a)
{
	if (!l->pid)
		return STR("");
	return arena_printf(a, ", pid %lld", (long long)l->pid);
}

struct str typed_holder(const struct task *t, int64_t now, struct arena *a)
{
	const struct lock *l = &t->lock;
	struct str who = l->user.n ? l->user : STR("unknown"),
		   what = l->operation.n ? l->operation : STR("lock acquire");

	return arena_printf(a,
			    "%.*s is held by %.*s (%.*s, user %.*s on %.*s%s) since %s, for at "
			    "most another %s",
			    STRF(t->id), STRF(l->holder), STRF(what), STRF(who), STRF(l->host),
			    arena_cstr(a, typed_process(l, a)),
			    arena_cstr(a, when_text(a, l->acquired_at)),
			    arena_cstr(a, duration_text(a, l->expires_at - now)));
}

static struct str acquire_again(const struct task *t, const struct call *c)
{
	return arena_printf(c->arena, "acquire it again: pawl lock acquire %.*s", STRF(t->id));
}

static void typed_lost(struct call *c, const struct task *t)
{
	if (lease_live(&t->lock, c->now))
		refuse(c, LOST_LOCK,
		       arena_printf(c->arena, "%s, and %s",
				    c->proof.n ? "this token is stale" : "this call has no token",
				    arena_cstr(c->arena, typed_holder(t, c->now, c->arena))),
		       STR("pawl lock typed shows these locks; if you hold this one, pass its --token"));
	else
		refuse(c, LOST_LOCK,
		       arena_printf(c->arena, "nobody holds %.*s any more", STRF(t->id)),
		       acquire_again(t, c));
}

static void typed_take(struct task *t, struct call *c)
{
	const struct request *rq = c->rq;

	if (lease_owned(&t->lock, c->fresh, c->now)) {
		c->repeated = c->granted = true;
		return;
	}
	lease_take(t, rq, c->fresh, HAS(rq, ttl) ? rq->ttl : c->policy->lock_ttl, c->now);
	t->lock.manual = 1;
	t->lock.user = rq->user;
	t->lock.operation = rq->operation;
	t->description = rq->description;
	c->granted = true;
	call_edited(c, t);
	call_event(c, t, "locked", 0, rq->description.n ? rq->description : rq->operation);
	c->events[c->n_events - 1].expires = t->lock.expires_at;
}

static void typed_renew(struct task *t, struct call *c)
{
	if (!lease_owned(&t->lock, c->proof, c->now)) {
		typed_lost(c, t);
		return;
	}
	lease_renew(t, HAS(c->rq, ttl) ? c->rq->ttl : t->lock.ttl, c->now);
	t->version++;
	c->changed = c->granted = true;
}

/* Unlike a task, a queue lock is not reserved for its last holder. */
static void typed_clear(struct task *t, struct call *c, const char *event, struct str text)
{
	lease_clear(t, c->now);
	t->free_at = 0;
	call_edited(c, t);
	call_event(c, t, event, 0, text);
}

static void give_up(struct task *t, struct call *c)
{
	if (!lease_live(&t->lock, c->now))
		c->repeated = true;
	else if (!lease_owned(&t->lock, c->proof, c->now))
		typed_lost(c, t);
	else
		typed_clear(t, c, "unlocked", c->rq->reason);
}

static void break_it(struct task *t, struct call *c)
{
	struct str holder = t->lock.holder;

	if (!holder.n)
		c->repeated = true;
	else
		typed_clear(t, c, "lock_broken",
			    arena_printf(c->arena, "the lock of %.*s: %.*s", STRF(holder),
					 STRF(c->rq->reason)));
}

void typed_died(struct task *t, struct call *c)
{
	struct str text = process_died(&t->lock, c->arena);

	call_reset(c);
	typed_clear(t, c, "cleaned_up", text);
}

void typed_apply(struct task *t, struct call *c)
{
	call_reset(c);
	switch (c->rq->op) {
	case OP_LOCK_ACQUIRE:
		typed_take(t, c);
		return;
	case OP_HEARTBEAT:
		typed_renew(t, c);
		return;
	case OP_LOCK_RELEASE:
		give_up(t, c);
		return;
	default:
		break_it(t, c);
	}
}

/* --- the emergency and the pause ------------------------------------------------------------------------------- */

static void typed_declare(struct task *t, struct call *c, bool on, const char *event)
{
	const struct request *rq = c->rq;

	call_reset(c);
	if (on == (t->lock.holder.n > 0)) {
		c->repeated = true;
		return;
	}
	t->lock = (struct lock){ 0 };
	if (on) {
		t->lock.holder = rq->agent;
		t->lock.host = rq->host;
		t->lock.user = rq->user;
		t->lock.acquired_at = c->now;
		t->blocker_reason = rq->reason;
		t->summary = rq->text;
	}
	call_edited(c, t);
	call_event(c, t, event, 0, rq->reason);
}

void emergency_apply(struct task *t, struct call *c)
{
	bool on = c->rq->op == OP_EMERGENCY_ON;

	typed_declare(t, c, on, on ? "emergency_on" : "emergency_off");
}

void pause_apply(struct task *t, struct call *c)
{
	bool on = c->rq->op == OP_PAUSE;

	typed_declare(t, c, on, on ? "queue_paused" : "queue_resumed");
}

struct str pause_text(const struct task *t, struct arena *a)
{
	return arena_printf(a, "the queue is paused: %.*s paused it at %s%s%.*s",
			    STRF(t->lock.holder), arena_cstr(a, when_text(a, t->lock.acquired_at)),
			    t->blocker_reason.n ? ": " : "", STRF(t->blocker_reason));
}

bool pause_concerns(const struct request *rq)
{
	return op_flags(rq->op) & OP_TAKES && !typed_is(rq);
}

void emergency_refuse(const struct task *t, struct call *c)
{
	refuse(c, API_ERROR,
	       arena_printf(c->arena,
			    "the queue is read-only: %.*s declared an emergency at %s: %.*s",
			    STRF(t->lock.holder),
			    arena_cstr(c->arena, when_text(c->arena, t->lock.acquired_at)),
			    STRF(t->blocker_reason)),
	       STR("pawl emergency status shows it; pawl emergency off ends it"));
}
