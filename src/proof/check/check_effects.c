/* Compares each task's final state with the acknowledged calls (lost), and finds tasks on which
 * nobody can work any more (stuck). */
#include <stdlib.h>

#include "proof/check/checker_private.h"
#include "proof/model/model.h"

/* --- lost ---------------------------------------------------------------------------------------- */

struct known {
	/* the calls that showed the highest version and fence */
	const struct history_call *version, *fence;
	int64_t highest_version, highest_fence;
	bool removed; /* surely or perhaps */
};

static struct known known_of(const struct checking *x, uint32_t task)
{
	struct known k = { .highest_fence = -1 };

	for (size_t i = x->first[task]; i < x->first[task + 1]; i++) {
		const struct touch *t = &x->touches[i];

		if (t->call->rq->op == OP_REMOVE &&
		    (call_accepted(t->call) || call_unanswered(t->call)))
			k.removed = true;
		if (!t->task)
			continue;
		if (t->task->version > k.highest_version) {
			k.highest_version = t->task->version;
			k.version = t->call;
		}
		if (t->task->fence > k.highest_fence) {
			k.highest_fence = t->task->fence;
			k.fence = t->call;
		}
	}
	return k;
}

static void check_lost(struct checking *x, uint32_t task)
{
	const struct history_end *end = x->ends[task];
	struct str id = x->tasks.v[task];
	struct known k = known_of(x, task);
	size_t so_far = x->out->counts[CHECK_LOST];

	if (!k.version || model_is_guard(id))
		return;
	x->out->endless += !end;
	if (!end)
		return;
	if (!end->task) {
		if (!k.removed)
			check_add(x, CHECK_LOST, id, &k.version, 1,
				  "%.*s was acknowledged and not removed, but it is gone",
				  STRF(id));
	} else if (end->task->fence < k.highest_fence) {
		check_add(x, CHECK_LOST, id, &k.fence, 1,
			  "%.*s ends with fence %lld, but %lld was acknowledged", STRF(id),
			  (long long)end->task->fence, (long long)k.highest_fence);
	} else if (end->task->version < k.highest_version && !k.removed) {
		check_add(x, CHECK_LOST, id, &k.version, 1,
			  "%.*s ends with version %lld, but %lld was acknowledged", STRF(id),
			  (long long)end->task->version, (long long)k.highest_version);
	}
	x->spoiled[task] |= x->out->counts[CHECK_LOST] > so_far;
}

/* --- stuck --------------------------------------------------------------------------------------- */

static const struct task *end_of(const struct checking *x, struct str id)
{
	const struct history_end *e = x->ends[task_number(x, id)];

	return e ? e->task : NULL;
}

static void check_ends_stuck(struct checking *x, uint32_t task, const char *why)
{
	struct str id = x->tasks.v[task];

	x->spoiled[task] = true;
	check_add(x, CHECK_STUCK, id, NULL, 0, "%.*s ends as %s, but %s", STRF(id),
		  status_name(x->ends[task]->task->status), why);
}

static void check_depends(struct checking *x, uint32_t task)
{
	const struct task *t = x->ends[task]->task;
	int64_t open = 0;

	for (size_t i = 0; i < t->depends.n; i++) {
		const struct task *d = end_of(x, t->depends.v[i]);

		open += !d || d->status != DONE;
		if (t->status == READY && !d)
			check_ends_stuck(x, task, "waits for a task that is gone");
		else if (t->status == READY && d->status == CANCELED)
			check_ends_stuck(x, task, "waits for a task that was canceled");
	}
	if (t->status == READY && open != t->open_deps)
		check_ends_stuck(x, task, "its count of open dependencies is wrong");
}

struct waiting {
	struct checking *x;
	int64_t *open_subs;
	/* the first open sub-task of each task; the next one of the same parent */
	uint32_t *subs, *next_sub;
	uint8_t *seen; /* 1: on the current path, 2: finished */
	uint32_t *stack, *step;
};

static void find_subs(struct waiting *w)
{
	struct checking *x = w->x;

	for (uint32_t i = 1; i < x->tasks.n; i++) {
		const struct task *t = x->ends[i] ? x->ends[i]->task : NULL;
		uint32_t parent = t ? task_number(x, t->parent) : 0;

		if (!parent || status_ended(t->status))
			continue;
		w->open_subs[parent]++;
		w->next_sub[i] = w->subs[parent];
		w->subs[parent] = i;
	}
}

/* The step-th task that `task` waits for; 0 after the last. */
static uint32_t waits_for(struct waiting *w, uint32_t task, uint32_t step)
{
	const struct task *t = w->x->ends[task] ? w->x->ends[task]->task : NULL;
	uint32_t sub;

	if (!t)
		return 0;
	if (step < t->depends.n)
		return task_number(w->x, t->depends.v[step]);
	sub = w->subs[task];
	for (uint32_t i = (uint32_t)t->depends.n; sub && i < step; i++)
		sub = w->next_sub[sub];
	return sub;
}

static void check_ends_follow(struct waiting *w, uint32_t from)
{
	size_t depth = 0;

	w->stack[0] = from;
	w->seen[from] = 1;
	for (;;) {
		uint32_t at = w->stack[depth], next = waits_for(w, at, w->step[at]++);

		if (!next) {
			w->seen[at] = 2;
			if (!depth--)
				return;
		} else if (w->seen[next] == 1 && w->x->ends[at]) {
			check_ends_stuck(w->x, at, "waits, directly or not, for itself");
		} else if (!w->seen[next]) {
			w->seen[next] = 1;
			w->stack[++depth] = next;
		}
	}
}

static void check_waiting(struct checking *x)
{
	struct arena a = { 0 };
	size_t n = x->tasks.n + 1;
	struct waiting w = { x,
			     arena_array(&a, int64_t, n),
			     arena_array(&a, uint32_t, n),
			     arena_array(&a, uint32_t, n),
			     arena_array(&a, uint8_t, n),
			     arena_array(&a, uint32_t, n),
			     arena_array(&a, uint32_t, n) };

	find_subs(&w);
	for (uint32_t i = 1; i < x->tasks.n; i++) {
		const struct task *t = x->ends[i] ? x->ends[i]->task : NULL;

		if (!t || status_ended(t->status))
			continue;
		check_depends(x, i);
		if (w.open_subs[i] != t->open_subs)
			check_ends_stuck(x, i, "its count of open sub-tasks is wrong");
		if (!w.seen[i])
			check_ends_follow(&w, i);
	}
	arena_free(&a);
}

void check_ends(struct checking *x)
{
	for (uint32_t i = 1; i < x->tasks.n; i++)
		check_lost(x, i);
	if (!x->out->endless)
		check_waiting(x);
}

/* --- twice ------------------------------------------------------------------------------------ */

/* Checks that a repeated call does not take effect twice. A repeat has the same request id or the same token. */

/* Chains of calls that have one name (a request id or a token) in common. */
struct chains {
	struct checking *x;
	struct tally names;
	size_t *first, *next; /* indexes of calls, + 1 */
};

static bool starts_work(const struct request *rq)
{
	return op_flags(rq->op) & OP_TAKES || (rq->op == OP_STATUS && rq->status == IN_PROGRESS);
}

/* The request id identifies a change; acquisitions are identified by their token. */
static struct str name_by_id(const struct history_call *c)
{
	bool counts = call_accepted(c) && !(op_flags(c->rq->op) & OP_READS) && !starts_work(c->rq);

	return counts ? c->rq->request_id : STR("");
}

static const struct task *check_twice_taken(const struct history_call *c)
{
	return c->rq->op == OP_TAKE ? c->ans->task : c->rq->claim_next ? c->ans->next : NULL;
}

/* Only for calls that select a task; others name the task. */
static struct str name_by_token(const struct history_call *c)
{
	return call_accepted(c) && check_twice_taken(c) ? c->rq->new_token : STR("");
}

static struct chains chain_up(struct checking *x,
			      struct str (*name_of)(const struct history_call *))
{
	size_t n = x->log->n_calls;
	struct chains all = { .x = x, .next = arena_array(x->arena, size_t, n + 1) };

	for (size_t i = 0; i < n; i++)
		tally_add(&all.names, name_of(x->calls[i]));
	all.first = arena_array(x->arena, size_t, all.names.n + 1);
	for (size_t i = n; i-- > 0;) {
		uint32_t name = tally_find(&all.names, name_of(x->calls[i]));

		if (!name)
			continue;
		all.next[i + 1] = all.first[name];
		all.first[name] = i + 1;
	}
	return all;
}

/* --- by request id ------------------------------------------------------------------------------- */

static void check_ids(struct checking *x)
{
	struct chains all = chain_up(x, name_by_id);

	for (uint32_t id = 1; id < all.names.n; id++)
		for (size_t i = all.first[id]; i && all.next[i]; i = all.next[i]) {
			const struct history_call *a = x->calls[i - 1],
						  *b = x->calls[all.next[i] - 1];

			/* of two concurrent calls, the one that was sent first may have taken effect last */
			if (llabs(b->ans->now - a->ans->now) >= MODEL_KEPT)
				continue;
			check_add(x, CHECK_TWICE, a->rq->id,
				  (const struct history_call *const[]){ a, b }, 2,
				  "%.*s: a call with one request id was made twice",
				  STRF(a->rq->id));
		}
	tally_free(&all.names);
}

/* --- by token ------------------------------------------------------------------------------------ */

/* Was the task seen after the call? Within one ms, the store's time does not tell. */
static bool seen_after(const struct history_call *c, int64_t now, const struct history_call *by)
{
	return now > c->ans->now ||
	       (now == c->ans->now && (!by || by == c || by->sent > c->answered));
}

/* Violation: a token took another task while this task was held under it. */
static void check_sight(struct chains *all, const struct task *t, int64_t now,
			const struct history_call *by)
{
	uint32_t token = tally_find(&all->names, t->lock.token);

	for (size_t i = all->first[token]; token && i; i = all->next[i]) {
		const struct history_call *c = all->x->calls[i - 1];
		struct str other = check_twice_taken(c)->id;

		if (str_eq_nocase(other, t->id) || !t->lock.acquired_at ||
		    c->ans->now <= t->lock.acquired_at || c->ans->now >= t->lock.expires_at ||
		    !seen_after(c, now, by))
			continue;
		check_add(all->x, CHECK_TWICE, other, (const struct history_call *const[]){ c, by },
			  by && by != c ? 2 : 1,
			  "%.*s was taken under a token that held %.*s from %lld on", STRF(other),
			  STRF(t->id), (long long)t->lock.acquired_at);
		all->first[token] = 0; /* report each token once */
		return;
	}
}

static void check_tokens(struct checking *x)
{
	struct chains all = chain_up(x, name_by_token);
	size_t n = x->first[x->tasks.n];

	for (size_t i = 0; i < n; i++) {
		const struct touch *t = &x->touches[i];

		/* a repeat by request id shows the task as it was at the first call */
		if (t->task && !(t->call->ans->repeated && t->call->rq->request_id.n))
			check_sight(&all, t->task, t->call->ans->now, t->call);
	}
	for (size_t i = 0; i < x->log->n_ends; i++)
		if (x->log->ends[i].task)
			check_sight(&all, x->log->ends[i].task, x->log->ends[i].now, NULL);
	tally_free(&all.names);
}

void check_twice(struct checking *x)
{
	check_ids(x);
	if (!x->skewed)
		check_tokens(x);
}

/* --- guard ------------------------------------------------------------------------------------ */

/* Checks that no call gets past another agent's lock of the whole queue, or an emergency. It reports only calls that were made
 * while the queue was certainly closed. */

/* A period in which the queue is certainly closed: to calls that were sent after `from` and answered
 * before `until`. */
struct closure {
	const struct history_call *by;
	struct str id;
	int64_t from, until;
	int64_t expires_at; /* store time */
};

static bool check_guard_happened(const struct history_call *c)
{
	return call_accepted(c) || call_unanswered(c);
}

static bool is_of(const struct history_call *c, struct str id)
{
	return str_eq_nocase(model_about(c->rq), id);
}

/* Could the call have reopened the queue? A cleanup ends a dead process's lock before its lease
 * expires. */
static bool check_guard_opens(const struct history_call *c, const struct closure *x)
{
	const struct request *rq = c->rq;

	if (!check_guard_happened(c) || (!call_unanswered(c) && call_before(c, x->by)))
		return false;
	if (rq->op == OP_LOCK_CLEANUP)
		return HAS(x->by->rq, pid);
	if (rq->op == OP_LOCK_RELEASE)
		return is_of(c, x->id) && str_eq(rq->token, x->by->rq->new_token);
	return (rq->op == OP_LOCK_BREAK || rq->op == OP_EMERGENCY_OFF || rq->op == OP_RESUME) &&
	       is_of(c, x->id);
}

static bool check_guard_closes(const struct history_call *c, struct closure *out)
{
	bool emergency = c->rq->op == OP_EMERGENCY_ON || c->rq->op == OP_PAUSE;

	*out = (struct closure){ c, model_about(c->rq), c->answered, HISTORY_NEVER, INT64_MAX };
	if (!call_accepted(c) || !model_is_guard(out->id))
		return false;
	if (!emergency && c->ans->lock)
		out->expires_at = c->ans->lock->expires_at;
	return emergency || (c->rq->op == OP_LOCK_ACQUIRE && c->ans->lock);
}

/* Was the task's lock acquired after `at`? A history may lack that time; then a new lease shows it. */
static bool check_guard_acquired(const struct task *t, const struct grant *lock, int64_t at)
{
	if (!t || !lock)
		return false;
	return (t->lock.acquired_at ? t->lock.acquired_at : lock->expires_at - lock->ttl) > at;
}

static bool past_pause(const struct closure *by, const struct history_call *c)
{
	const struct answer *ans = c->ans;
	bool resumes = c->rq->op == OP_CLAIM && HAS(c->rq, fence);

	if (ans->repeated || resumes || model_is_guard(c->rq->id) || c->rq->op == OP_HEARTBEAT)
		return false;
	return check_guard_acquired(ans->task, ans->lock, by->by->ans->now) ||
	       check_guard_acquired(ans->next, ans->next_lock, by->by->ans->now);
}

static bool kept_out(const struct checking *x, const struct closure *by,
		     const struct history_call *c)
{
	if (by->by->rq->op == OP_EMERGENCY_ON)
		return model_guarded(c->rq);
	if (by->by->rq->op == OP_PAUSE)
		return past_pause(by, c);
	return !x->skewed && c->ans->now < by->expires_at && !str_eq(c->agent, by->by->agent) &&
	       model_bars(&x->log->head.policy, by->id, c->rq);
}

static void check_closure(struct checking *x, struct closure *by)
{
	for (size_t i = 0; i < x->log->n_calls; i++)
		if (x->calls[i]->sent < by->until && check_guard_opens(x->calls[i], by))
			by->until = x->calls[i]->sent;
	for (size_t i = 0; i < x->log->n_calls && x->calls[i]->sent < by->until; i++) {
		const struct history_call *c = x->calls[i];

		if (c->sent <= by->from || c->answered >= by->until || !call_accepted(c) ||
		    !kept_out(x, by, c))
			continue;
		check_add(x, CHECK_CLOSED, c->rq->id,
			  (const struct history_call *const[]){ by->by, c }, 2,
			  "%.*s kept others out, but %s succeeded", STRF(by->id),
			  op_name(c->rq->op));
		return;
	}
}

void check_guards(struct checking *x)
{
	struct closure by;

	for (size_t i = 0; i < x->log->n_calls; i++)
		if (check_guard_closes(x->calls[i], &by))
			check_closure(x, &by);
}
