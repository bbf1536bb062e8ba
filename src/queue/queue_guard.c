/* Locks of the whole queue, the pause and the emergency. One number has a bit for each of them,
 * and every change reads it in its own transaction, so no change can slip past a lock. A clear
 * bit means that there is no lock. A set bit may belong to an expired lease, so the change reads
 * that lock. */
#include "core/lease.h"
#include "core/rules.h"
#include "core/typed.h"
#include "core/validate.h"
#include "queue/queue_private.h"

#define GUARD_KEY STR("meta/guard")
#define EMERGENCY_BIT 1

_Static_assert(TYPED_NONE == 0, "the emergency uses the bit of TYPED_NONE");

static struct str key_of(struct str id, struct arena *a)
{
	struct str key = arena_printf(a, "lock/%.*s", STRF(id));
	char *p = (char *)key.p;

	for (size_t i = 0; i < key.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 32);
	return key;
}

static struct str id_of(enum typed kind, struct arena *a)
{
	return arena_printf(a, "@%s", typed_name(kind));
}

static int refuse_bad(struct act *w, struct str key)
{
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	return r ? r : bad_refuse(w->ans, rec, w->call.arena);
}

static int queue_guard_load(struct act *w, struct str id, struct loaded **out)
{
	struct str key = key_of(id, w->call.arena);
	int r = act_load_key(w, key, out);

	/* a bad lock counts as held, except for the call that removes it */
	if (r == BAD && !bad_handle_is(w->call.rq->id))
		return refuse_bad(w, key);
	if (r <= 0)
		return r;
	(void)str_cut(&key, '/');
	*out = act_new_key(w, key_of(id, w->call.arena), key);
	return 0;
}

/* --- refusals ------------------------------------------------------------------------------------ */

static int refuse_emergency(struct act *w)
{
	struct loaded *l;
	int r = queue_guard_load(w, EMERGENCY_ID, &l);

	if (r || !l->task.lock.holder.n)
		return r;
	emergency_refuse(&l->task, &w->call);
	w->ans->applied = 'n';
	return act_refuse(w, w->call.code, w->call.message, w->call.hint);
}

/* A call that acquires a lock of the whole queue gets CONFLICT, as for any lock. Other calls get
 * API_ERROR, because they may succeed later. */
static int refuse_barred(struct act *w, enum typed kind, const struct task *t)
{
	struct str who = typed_holder(t, w->e->now, w->call.arena);

	w->ans->barred = kind;
	w->ans->text = arena_str(w->call.arena, t->lock.holder);
	w->ans->wait_ms = t->lock.expires_at - w->e->now;
	w->ans->applied = 'n';
	return act_refuse(
		w, typed_is(w->call.rq) ? CONFLICT : API_ERROR,
		typed_is(w->call.rq) && typed_of(w->call.rq->id) != kind
			? arena_printf(w->call.arena, "%.*s must wait: %.*s", STRF(w->call.rq->id),
				       STRF(who))
			: who,
		arena_printf(w->call.arena,
			     "pawl lock typed shows these locks; if its holder is gone: pawl lock "
			     "cleanup, or pawl lock break %.*s --reason TEXT",
			     STRF(t->id)));
}

/* Does the caller hold the lock? An acquisition of the same lock passes only if it repeats the
 * call that took it. */
static bool queue_guard_mine(struct act *w, enum typed kind, const struct lock *l)
{
	bool again = typed_of(w->call.rq->id) == kind;

	return lease_owned(l, again ? w->call.fresh : w->pass[kind], w->e->now);
}

/* 0: the lock is free, belongs to the caller, or this call will clean it up. *over: its lease has expired, or its
 * process died and this commit releases it. */
static int check_one(struct act *w, enum typed kind, bool *over)
{
	struct loaded *l;
	int r = queue_guard_load(w, id_of(kind, w->call.arena), &l);

	*over = false;
	if (r)
		return r;
	*over = !lease_live(&l->task.lock, w->e->now);
	if (*over || queue_guard_mine(w, kind, &l->task.lock) ||
	    (w->call.rq->op == OP_LOCK_CLEANUP && lock_dead(&l->task.lock)))
		return 0;
	if (!lock_died_here(&l->task.lock))
		return refuse_barred(w, kind, &l->task);
	typed_died(&l->task, &w->call);
	*over = true;
	r = act_decided(w, l);
	return r ? r : act_flush(w);
}

/* If the number is damaged, every bit counts as set, so the change reads every lock. */
static int bits_get(struct act *w, int64_t *bits)
{
	int r = number_get(w, GUARD_KEY, bits);

	if (r == BAD)
		*bits = GUARD_ALL;
	return r == BAD ? 0 : r;
}

/* A pause refuses only acquisitions. Policy decides, because a repeated acquisition must not be
 * refused. */
static int check_pause(struct act *w)
{
	struct loaded *l;
	int r;

	if (!(w->guard & GUARD_PAUSE) || !pause_concerns(w->call.rq))
		return 0;
	r = queue_guard_load(w, PAUSE_ID, &l);
	if (!r && l->task.lock.holder.n)
		w->call.paused = &l->task;
	return r;
}

void guard_keys(const struct request *rq, struct wants *out, struct arena *a)
{
	if (typed_changes(rq))
		out->keys = arena_append(a, out->keys, GUARD_KEY);
	if (typed_of(rq->id) != TYPED_NONE)
		out->keys = arena_append(a, out->keys, key_of(rq->id, a));
}

int guard_check(struct act *w)
{
	unsigned bars = typed_bars(w->call.rq, w->call.policy);
	int r;

	w->guard = w->guard_was = 0;
	if (!typed_changes(w->call.rq))
		return 0;
	r = bits_get(w, &w->guard_was);
	w->guard = w->guard_was;
	if (!r && w->guard & EMERGENCY_BIT)
		r = refuse_emergency(w);
	for (int k = TYPED_WRITE; !r && k < TYPED_END; k++) {
		bool over;

		if (!(w->guard & bars & TYPED_BIT(k)))
			continue;
		r = check_one(w, (enum typed)k, &over);
		if (over)
			w->guard &= ~(int64_t)TYPED_BIT(k);
	}
	return r ? r : check_pause(w);
}

void guard_tidy(struct act *w)
{
	if (!w->writes || w->guard == w->guard_was)
		return;
	if (w->guard)
		number_put(w, GUARD_KEY, w->guard);
	else
		edit_drop(w->e, GUARD_KEY); /* reading a missing record is cheapest */
}

/* --- acquire, release, emergency --------------------------------------------------------------------- */

static int set_bit(struct act *w, int64_t bit, bool on)
{
	int64_t bits;
	int r = bits_get(w, &bits);

	if (r)
		return r;
	w->guard_was = bits;
	w->guard = on ? bits | bit : bits & ~bit;
	return 0;
}

int do_typed(struct act *w)
{
	enum typed kind = typed_of(w->call.rq->id);
	struct loaded *l;
	int r = queue_guard_load(w, w->call.rq->id, &l);

	if (r)
		return r;
	typed_apply(&l->task, &w->call);
	r = act_decided(w, l);
	if (!r)
		r = set_bit(w, TYPED_BIT(kind), l->task.lock.holder.n > 0);
	act_answer(w, l);
	if (w->call.granted)
		w->ans->lock = act_grant(w, l);
	return r;
}

int do_emergency(struct act *w)
{
	struct loaded *l;
	int r = queue_guard_load(w, EMERGENCY_ID, &l);

	if (r)
		return r;
	emergency_apply(&l->task, &w->call);
	r = act_decided(w, l);
	if (!r)
		r = set_bit(w, EMERGENCY_BIT, w->call.rq->op == OP_EMERGENCY_ON);
	act_answer(w, l);
	return r;
}

int do_pause(struct act *w)
{
	struct loaded *l;
	int r = queue_guard_load(w, PAUSE_ID, &l);

	if (r)
		return r;
	pause_apply(&l->task, &w->call);
	r = act_decided(w, l);
	if (!r)
		r = set_bit(w, GUARD_PAUSE, w->call.rq->op == OP_PAUSE);
	if (l->task.lock.holder.n)
		pause_tell(&l->task, w->ans, w->call.arena);
	return r;
}

void pause_tell(const struct task *pause, struct answer *ans, struct arena *a)
{
	ans->paused = arena_new(a, struct notice);
	*ans->paused = (struct notice){ .by = pause->lock.holder,
					.reason = pause->blocker_reason,
					.at = pause->lock.acquired_at };
}

int guard_cleanup(struct act *w)
{
	int r = 0;

	for (int k = TYPED_WRITE; !r && k < TYPED_END; k++) {
		struct loaded *l;

		r = queue_guard_load(w, id_of((enum typed)k, w->call.arena), &l);
		if (r || !rules_cleanup(&l->task, &w->call, lock_dead(&l->task.lock)))
			continue;
		r = act_decided(w, l);
		w->guard &= ~(int64_t)TYPED_BIT(k);
		w->ans->tasks[w->ans->n_tasks++] = l->task;
	}
	return r;
}

/* --- for readers --------------------------------------------------------------------------------- */

int guard_read(struct store *s, struct str id, struct task *out, struct arena *a)
{
	struct record rec;
	int r = s->ops->get(s, key_of(id, a), &rec, a);

	*out = (struct task){ .id = id };
	return r < 0 ? r : r ? 0 : task_of(&rec, out, a);
}

int guard_kind(struct store *s, enum typed kind, struct task *out, struct arena *a)
{
	return guard_read(s, id_of(kind, a), out, a);
}
