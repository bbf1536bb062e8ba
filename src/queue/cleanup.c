#include "base/proc.h"
#include "queue/work.h"

bool lock_dead(const struct lock *l)
{
	return l->pid && proc_life(l->host, l->boot_id, l->pid, l->pid_start) == PROC_DEAD;
}

void lock_look(struct lock *l)
{
	static const int lives[] = {
		[PROC_UNKNOWN] = LIFE_UNKNOWN, [PROC_ALIVE] = LIFE_ALIVE, [PROC_DEAD] = LIFE_DEAD
	};

	if (l->holder.n)
		l->life = lives[proc_life(l->host, l->boot_id, l->pid, l->pid_start)];
}

int do_cleanup(struct work *w)
{
	struct strs held = { 0 };
	struct query q = { .held = true };
	int r = work_keys(w, &q, &held);

	w->ans->kind = ANSWER_TASKS;
	w->ans->tasks = arena_array(w->arena, struct task, held.n + TYPED_END);
	for (size_t i = 0; !r && i < held.n; i++) {
		struct verdict v = { 0 };
		struct loaded *l;

		r = work_load_key(w, held.v[i], &l);
		if (r || !rules_cleanup(&l->task, &w->call, lock_dead(&l->task.lock), &v))
			continue;
		r = work_verdict(w, l, &v);
		w->ans->tasks[w->ans->n_tasks++] = l->task;
	}
	if (!r)
		r = guard_cleanup(w);
	w->ans->total = (int64_t)w->ans->n_tasks;
	return r;
}
