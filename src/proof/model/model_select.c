/* Selection: which tasks are eligible, and in which order. It uses none of core's code, so the checker does not repeat a
 * mistake in core. */
#include "proof/model/model_private.h"

bool model_live(const struct model_task *t, int64_t now)
{
	return t->lock.holder && t->lock.token && now < t->lock.expires_at;
}

void model_count_links(const struct model *m, uint32_t task, int64_t counts[4])
{
	const struct model_task *t = model_task(m, task);

	memset(counts, 0, 4 * sizeof(*counts));
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++) {
		int64_t status = model_task(m, t->depends[i])->status;

		counts[0] += status != DONE;
		counts[1] += status == CANCELED;
	}
	for (uint32_t i = 1; i < m->n_tasks; i++) {
		const struct model_task *sub = model_task(m, i);

		counts[2] += sub->status && sub->parent == task && sub->status != DONE &&
			     sub->status != CANCELED;
	}
}

static bool waits_for_deps(const struct model *m, const struct model_task *t)
{
	for (int i = 0; i < MODEL_DEPENDS && t->depends[i]; i++)
		if (model_task(m, t->depends[i])->status != DONE)
			return true;
	return false;
}

static bool waits_for_subs(const struct model *m, const struct model_task *t)
{
	int64_t counts[4];

	model_count_links(m, (uint32_t)(t - model_task(m, 0)), counts);
	return counts[2] > 0;
}

static bool has_label(const struct model_task *t, uint32_t label)
{
	for (int i = 0; i < MODEL_LABELS; i++)
		if (t->labels[i] == label)
			return true;
	return false;
}

static bool passed_over(const struct model_world *w, const struct model_task *t,
			const struct model_call *c)
{
	for (size_t i = 0; !c->rq->explain && i < c->rq->except.n; i++)
		if (str_eq_nocase(c->rq->except.v[i], model_text(w, MODEL_TEXT, t->spelled)))
			return true;
	return false;
}

static bool asked_for(const struct model_task *t, const struct model_call *c)
{
	return (!c->rq->class_rank || t->class_rank == c->rq->class_rank) &&
	       (!c->type || t->type == c->type) && (!c->label || has_label(t, c->label)) &&
	       (!c->assignee || t->assignee == c->assignee);
}

/* The time from which the task is eligible without a change to it; -1: time alone is not enough. */
static int64_t offered_from(const struct model_world *w, const struct model *m,
			    const struct model_call *c, const struct model_task *t)
{
	int64_t lock_ends = t->lock.holder ? t->lock.expires_at : 0;

	if (!asked_for(t, c) || passed_over(w, t, c))
		return -1;
	if (!w->policy.offer_parents && waits_for_subs(m, t))
		return -1;
	if (t->status == IN_PROGRESS && !w->policy.keep_abandoned)
		return t->lock.holder ? lock_ends : t->free_at;
	if (t->status != READY || (!w->policy.ignore_depends && waits_for_deps(m, t)))
		return -1;
	return lock_ends > t->not_before ? lock_ends : t->not_before;
}

bool model_offered(const struct model_world *w, const struct model *m, const struct model_call *c,
		   uint32_t task, int64_t now)
{
	int64_t from = offered_from(w, m, c, model_task(m, task));

	return from >= 0 && from <= now;
}

static bool model_select_digit(struct str s)
{
	return s.n && s.p[0] >= '0' && s.p[0] <= '9';
}

/* Cuts the number at the start of *s: its digits without leading zeros. */
static struct str cut_number(struct str *s, bool *zeros)
{
	struct str n = { s->p, 0 };
	size_t length;

	for (; model_select_digit(*s); *s = str_n(s->p + 1, s->n - 1), n.n++)
		;
	for (length = n.n; n.n && n.p[0] == '0'; n = str_n(n.p + 1, n.n - 1))
		;
	*zeros |= n.n ? n.n < length : length > 1;
	return n;
}

static char model_select_small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int compare_small(struct str a, struct str b)
{
	size_t i = 0;

	while (i < a.n && i < b.n && model_select_small(a.p[i]) == model_select_small(b.p[i]))
		i++;
	if (i == a.n || i == b.n)
		return (a.n > b.n) - (a.n < b.n);
	return (unsigned char)model_select_small(a.p[i]) -
	       (unsigned char)model_select_small(b.p[i]);
}

/* Compares runs of digits as numbers, all else as bytes in lower case. Of equal ids, the one without superfluous zeros comes
 * first. */
int model_id_cmp(struct str a, struct str b)
{
	const struct str id[2] = { a, b };
	bool zeros[2] = { false, false };

	while (a.n && b.n) {
		struct str x, y;

		if (!model_select_digit(a) || !model_select_digit(b)) {
			if (model_select_small(a.p[0]) != model_select_small(b.p[0]))
				return (unsigned char)model_select_small(a.p[0]) -
				       (unsigned char)model_select_small(b.p[0]);
			a = str_n(a.p + 1, a.n - 1);
			b = str_n(b.p + 1, b.n - 1);
			continue;
		}
		x = cut_number(&a, &zeros[0]);
		y = cut_number(&b, &zeros[1]);
		if (x.n != y.n)
			return x.n < y.n ? -1 : 1;
		if (str_cmp(x, y))
			return str_cmp(x, y);
	}
	if (a.n || b.n)
		return a.n ? 1 : -1;
	return zeros[0] != zeros[1] ? zeros[0] - zeros[1] : compare_small(id[0], id[1]);
}

bool model_before(const struct model_world *w, const struct model_task *a,
		  const struct model_task *b)
{
	if (a->class_rank != b->class_rank)
		return a->class_rank < b->class_rank;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->due != b->due)
		return a->due && (!b->due || a->due < b->due);
	if (a->updated_at != b->updated_at)
		return a->updated_at < b->updated_at;
	return model_id_cmp(model_text(w, MODEL_TEXT, a->spelled),
			    model_text(w, MODEL_TEXT, b->spelled)) < 0;
}

uint32_t model_first(const struct model_world *w, const struct model *m, const struct model_call *c,
		     int64_t now)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < m->n_tasks; i++)
		if (model_offered(w, m, c, i, now) &&
		    (!best || model_before(w, model_task(m, i), model_task(m, best))))
			best = i;
	return best;
}

int64_t model_wait(const struct model_world *w, const struct model *m, const struct model_call *c,
		   int64_t now)
{
	int64_t first = 0;

	for (uint32_t i = 1; i < m->n_tasks; i++) {
		int64_t from = offered_from(w, m, c, model_task(m, i));

		if (from > now && (!first || from < first))
			first = from;
	}
	return first ? first - now : 0;
}

struct str model_next_id(const struct model_world *w, const struct model *m, int64_t *counter,
			 struct arena *a)
{
	for (int64_t n = m->counter + 1;; n++) {
		struct str id = arena_printf(a, "t%lld", (long long)n);
		uint32_t name = model_find(w, MODEL_TASK, id);

		if (name && model_task(m, name)->status)
			continue;
		*counter = n;
		return id;
	}
}

bool model_makes(struct str id)
{
	int64_t n;

	return (str_cut_prefix(&id, STR("t")) || str_cut_prefix(&id, STR("T"))) &&
	       str_to_i64(id, &n) && id.p[0] >= '1' && id.p[0] <= '9';
}

/* --- take ------------------------------------------------------------------------------------- */

/* Calls that take the first task in order. A partial world cannot know that task: it checks the caller's choice instead. */

/* The live task that an earlier call took with this token. */
static uint32_t taken_before(const struct step *s)
{
	for (uint32_t i = 1; i < s->m->n_tasks; i++)
		if (step_held_by(s, model_task(s->m, i), s->c->new_token))
			return i;
	return 0;
}

/* Takes the first task in order. Tasks that were abandoned too often go to Needs Help on the way.
 * 0: none. */
static uint32_t take_first(const struct step *s)
{
	uint32_t swept = 0, task;

	for (;;) {
		task = model_first(s->w, s->m, s->c, s->now);
		if (!s->w->whole && !s->choice.took && swept == s->choice.swept)
			break;
		if (!task)
			break;
		if (!step_worn(s, step_task(s, task)))
			break;
		(void)step_abandon(s, step_task(s, task));
		swept++;
	}
	if (s->w->whole || (task && task == s->choice.took)) {
		if (task)
			(void)step_claim(s, step_task(s, task));
		return task;
	}
	if (s->choice.took || swept != s->choice.swept)
		s->want->code = -1;
	s->want->elsewhere = 1;
	s->want->none_left = !task;
	return 0;
}

void step_take(const struct step *s)
{
	uint32_t task = taken_before(s);

	if (task)
		s->want->repeated = 1;
	else if (step_paused(s))
		s->want->paused = 1;
	else
		task = take_first(s);
	if (s->want->paused) {
		s->want->code = NO_TASKS;
		s->want->elsewhere = !s->w->whole; /* a repeat holds a task of another world */
	} else if (task) {
		step_show(s, task);
		step_grant(s, step_task(s, task), &s->want->lock);
	} else if (s->want->code == SUCCESS && (s->w->whole || s->want->none_left)) {
		s->want->code = NO_TASKS;
		s->want->wait_ms = model_wait(s->w, s->m, s->c, s->now);
	}
}

static uint32_t next_again(const struct step *s, uint32_t task)
{
	uint32_t next = step_task(s, task)->last_next;
	const struct model_task *t = step_task(s, next);

	return next && t->status && model_live(t, s->now) && t->lock.holder == s->c->agent ? next
											   : 0;
}

void step_claim_next(const struct step *s, uint32_t task)
{
	uint32_t next;

	if (s->want->repeated)
		next = next_again(s, task);
	else if (!(next = taken_before(s)) && step_paused(s))
		s->want->paused = 1;
	else if (!next)
		next = take_first(s);
	if (!s->want->repeated)
		step_task(s, task)->last_next = next;
	s->want->has_next = 1;
	s->want->next_id = next;
	if (!next && (s->want->repeated || s->want->paused) && !s->w->whole)
		s->want->elsewhere = s->want->none_left = 1;
	if (!next)
		return;
	s->want->next = *step_task(s, next);
	model_count_links(s->m, next, s->want->next_counts);
	step_grant(s, step_task(s, next), &s->want->next_lock);
}

uint32_t model_worn(const struct model_world *w, const struct model *m, const struct model_call *c,
		    int64_t now)
{
	struct model_answer want;
	uint32_t n = 0, task;
	struct arena a = { 0 };
	struct step s = { NULL, model_copy(m, &a), c, c->rq, now, { 0 }, &want };
	struct model_world copy = *w;

	s.w = &copy;
	if (c->rq->op == OP_DONE) /* the tasks that wait for this one are eligible next */
		step_task(&s, c->id)->status = DONE;
	while ((task = model_first(w, s.m, c, now)) && step_worn(&s, step_task(&s, task))) {
		(void)step_abandon(&s, step_task(&s, task));
		n++;
	}
	arena_free(&a);
	return n;
}

/* --- guard ------------------------------------------------------------------------------------ */

/* Locks of the whole queue, the emergency and the pause, from the table in doc/typed-locks.md; not from core's code. */

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

/* Is this a repeat of the call that took the lock, or a call by the lock's holder? */
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
