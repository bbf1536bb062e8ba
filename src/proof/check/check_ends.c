/* Compares each task's final state with the acknowledged calls (lost), and finds tasks on which nobody can work any more
 * (stuck). A finding is certain: no order of concurrent calls explains it. */
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
