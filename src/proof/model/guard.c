/* Locks of the whole queue and the emergency (doc/typed-locks.md). */
#include "proof/model/model_private.h"

enum { NONE, WRITE, BATCH, CONFIG, MAINTENANCE, EMERGENCY, PAUSE };

_Static_assert(EMERGENCY == MODEL_EMERGENCY && PAUSE == MODEL_PAUSE, "two names for one");

static const char *const names[MODEL_GUARDS] = { "",        "@write",       "@batch",
						 "@config", "@maintenance", "@emergency",
						 "@pause" };

#define W 1 << WRITE
#define B 1 << BATCH
#define C 1 << CONFIG
#define M 1 << MAINTENANCE

/* The table of doc/typed-locks.md. A row is a kind of step, or an acquisition; it lists the locks
 * of others that refuse it. */
static const unsigned steps[] = { [WRITE] = W | M,
				  [BATCH] = W | B | M,
				  [CONFIG] = C | M,
				  [MAINTENANCE] = W | B | C | M };
static const unsigned locks[] = { [WRITE] = W | B | M,
				  [BATCH] = W | B | M,
				  [CONFIG] = C | M,
				  [MAINTENANCE] = W | B | C | M };

struct str model_guard(int i)
{
	return str_c(names[i]);
}

static int kind_of(struct str id)
{
	int k = MAINTENANCE;

	while (k && !str_eq_nocase(id, str_c(names[k])))
		k--;
	return k;
}

bool model_guarded(const struct request *rq)
{
	if (op_flags(rq->op) & OP_READS || rq->op == OP_HEARTBEAT || rq->op == OP_EMERGENCY_ON ||
	    rq->op == OP_EMERGENCY_OFF)
		return false;
	return !model_is_guard(rq->id) || rq->op == OP_LOCK_ACQUIRE;
}

bool model_bars(const struct policy *p, struct str lock, const struct request *rq)
{
	unsigned by = steps[WRITE];

	if (!model_guarded(rq))
		return false;
	if (model_is_guard(rq->id))
		by = locks[kind_of(rq->id)];
	else if (rq->part_of > NONE && rq->part_of < EMERGENCY)
		by = steps[rq->part_of];
	else if (rq->op == OP_ARCHIVE && !HAS(rq, id))
		by = steps[BATCH];
	else if (rq->op == OP_LOCK_CLEANUP)
		by = steps[MAINTENANCE];
	return p->untyped || by & 1u << kind_of(lock);
}

/* A repeat of the call that took the lock, or a call of its holder. */
static bool may_pass(const struct step *s, int kind, const struct model_task *lock)
{
	bool again = kind_of(s->rq->id) == kind;

	return step_held_by(s, lock, again ? s->c->new_token : s->c->pass);
}

static struct model_task *step_guard(const struct step *s, int i)
{
	return step_task(s, s->w->guards[i]);
}

bool step_kept_out(const struct step *s)
{
	if (!s->w->guards[EMERGENCY] || !model_guarded(s->rq))
		return false;
	if (step_guard(s, EMERGENCY)->lock.holder) {
		s->want->code = API_ERROR;
		return true;
	}
	for (int k = WRITE; k <= MAINTENANCE; k++) {
		const struct model_task *lock = step_guard(s, k);

		if (!model_live(lock, s->now) ||
		    !model_bars(&s->w->policy, str_c(names[k]), s->rq) || may_pass(s, k, lock))
			continue;
		s->want->code = model_is_guard(s->rq->id) ? CONFLICT : API_ERROR;
		s->want->wait_ms = lock->lock.expires_at - s->now;
		return true;
	}
	return false;
}

bool step_paused(const struct step *s)
{
	return s->w->guards[PAUSE] ? step_guard(s, PAUSE)->lock.holder : s->choice.paused;
}

static void open_up(const struct step *s, struct model_task *t)
{
	step_unlock(s, t);
	step_changed(s, t);
}

static enum result give_back(const struct step *s, struct model_task *t)
{
	s->want->repeated = !model_live(t, s->now);
	if (s->want->repeated)
		return SUCCESS;
	if (!step_own(s, t))
		return LOST_LOCK;
	open_up(s, t);
	return SUCCESS;
}

static enum result break_open(const struct step *s, struct model_task *t)
{
	s->want->repeated = !t->lock.holder;
	if (t->lock.holder)
		open_up(s, t);
	return SUCCESS;
}

static enum result model_guard_declare(const struct step *s, struct model_task *t, bool on)
{
	s->want->repeated = on == (t->lock.holder != 0);
	if (s->want->repeated)
		return SUCCESS;
	t->lock = (struct model_lock){ 0 };
	if (on) {
		t->lock.holder = s->c->agent;
		t->lock.acquired_at = s->now;
		t->reason = model_name(s->w, MODEL_TEXT, s->rq->reason);
	}
	step_changed(s, t);
	return SUCCESS;
}

static enum result model_guard_apply(const struct step *s, struct model_task *t)
{
	switch (s->rq->op) {
	case OP_LOCK_ACQUIRE:
		return step_lock_acquire(s, t);
	case OP_HEARTBEAT:
		return step_heartbeat(s, t);
	case OP_LOCK_RELEASE:
		return give_back(s, t);
	case OP_LOCK_BREAK:
		return break_open(s, t);
	default:
		return model_guard_declare(s, t,
					   s->rq->op == OP_EMERGENCY_ON || s->rq->op == OP_PAUSE);
	}
}

void step_about_guard(const struct step *s)
{
	struct model_task *t = step_task(s, s->c->id);
	bool grants = s->rq->op == OP_LOCK_ACQUIRE || s->rq->op == OP_HEARTBEAT;

	s->want->code = model_guard_apply(s, t);
	if (s->rq->op == OP_PAUSE || s->rq->op == OP_RESUME) {
		s->want->paused = t->lock.holder != 0;
		return;
	}
	step_show(s, s->c->id);
	if (s->want->code == SUCCESS && grants)
		step_grant(s, t, &s->want->lock);
}

void step_cleanup_guards(const struct step *s)
{
	if (!s->w->guards[EMERGENCY])
		return;
	for (int k = WRITE; k <= MAINTENANCE; k++) {
		struct model_task *t = step_guard(s, k);

		if (!step_ran_out(s, t) || s->now - t->lock.expires_at < s->rq->older_than)
			continue;
		open_up(s, t);
		s->want->touched++;
	}
}
