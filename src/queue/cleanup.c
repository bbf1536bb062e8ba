#include "base/os.h"
#include "base/when.h"
#include "queue/queue_private.h"

bool lock_dead(const struct lock *l)
{
	return l->pid && proc_life(l->host, l->boot_id, l->pid, l->pid_start) == PROC_DEAD;
}

void lock_check(struct lock *l)
{
	static const int lives[] = {
		[PROC_UNKNOWN] = LIFE_UNKNOWN, [PROC_ALIVE] = LIFE_ALIVE, [PROC_DEAD] = LIFE_DEAD
	};

	if (l->holder.n)
		l->life = lives[proc_life(l->host, l->boot_id, l->pid, l->pid_start)];
}

static bool same_lock(const struct lock *a, const struct lock *b)
{
	return str_eq(a->holder, b->holder) && str_eq(a->host, b->host) &&
	       str_eq(a->token, b->token) && a->acquired_at == b->acquired_at &&
	       a->expires_at == b->expires_at;
}

/* After a conflict the change runs again. Skip a lock that was re-acquired after we judged it stale. */
static bool op_cleanup_reacquired(const struct act *w, const struct task *t)
{
	const struct decided *j = &w->decided;

	for (size_t i = 0; i < j->n; i++)
		if (str_eq(j->v[i].id, t->id))
			return !same_lock(&j->v[i].lock, &t->lock);
	return true;
}

static int op_cleanup_validate(struct act *w, struct strs keys)
{
	struct decided *j = &w->decided;
	int r = 0;

	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *l;

		r = act_load_key(w, keys.v[i], &l);
		if (r == BAD) {
			r = 0;
			continue;
		}
		if (r)
			break;
		j->v = arena_grow(w->call.arena, j->v, j->n, sizeof(*j->v));
		j->v[j->n++] = l->task;
	}
	j->done = !r;
	return r;
}

static void warn_of_age(struct act *w, const struct task *t)
{
	int64_t age = w->e->now - t->lock.acquired_at;

	if (!w->call.policy->warn_after || !t->lock.acquired_at || age < w->call.policy->warn_after)
		return;
	w->ans->warnings = arena_append(
		w->call.arena, w->ans->warnings,
		arena_printf(w->call.arena,
			     "%.*s has been locked by %.*s for %s; if its holder is gone: "
			     "pawl lock break %.*s --reason TEXT",
			     STRF(t->id), STRF(t->lock.holder),
			     arena_cstr(w->call.arena, duration_text(w->call.arena, age)),
			     STRF(t->id)));
}

int do_cleanup(struct act *w)
{
	struct strs held = { 0 };
	struct query q = { .held = true };
	bool again = w->decided.done;
	int r = act_keys(w, &q, &held);

	if (!r && !again)
		r = op_cleanup_validate(w, held);
	w->ans->kind = ANSWER_TASKS;
	w->ans->tasks = arena_array(w->call.arena, struct task, held.n + TYPED_END);
	for (size_t i = 0; !r && i < held.n; i++) {
		struct loaded *l;

		r = act_load_key(w, held.v[i], &l);
		if (r) {
			r = r == BAD ? 0 : r;
			continue;
		}
		if ((again && op_cleanup_reacquired(w, &l->task)) ||
		    !rules_cleanup(&l->task, &w->call, lock_dead(&l->task.lock))) {
			warn_of_age(w, &l->task);
			continue;
		}
		r = act_decided(w, l);
		w->ans->tasks[w->ans->n_tasks++] = l->task;
	}
	if (!r)
		r = guard_cleanup(w);
	w->ans->total = (int64_t)w->ans->n_tasks;
	return r;
}
