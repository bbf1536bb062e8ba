/*
 * Keeps each task's counts of open dependencies and sub-tasks, and searches the graph for cycles.
 * The counts are stored in the task, so a claim reads one record. A count never goes below 0, even
 * if another program stored a wrong one.
 */
#include "core/counts.h"

bool graph_sub_moved(struct task *parent, int64_t from, int64_t to)
{
	int64_t was = from && !status_ended(from), is = to && !status_ended(to);

	parent->open_subs += is - was;
	if (parent->open_subs < 0) /* another program may have stored a wrong count */
		parent->open_subs = 0;
	return is != was;
}

bool graph_dep_moved(struct task *t, int64_t from, int64_t to)
{
	int64_t was_open = from && from != DONE, is_open = to && to != DONE;
	int64_t was_dead = from == CANCELED, is_dead = to == CANCELED;

	t->open_deps += is_open - was_open;
	t->canceled_deps += is_dead - was_dead;
	if (t->open_deps < 0)
		t->open_deps = 0;
	if (t->canceled_deps < 0)
		t->canceled_deps = 0;
	return was_open != is_open || was_dead != is_dead;
}

bool graph_settle(struct task *t, struct str dep, int64_t now, struct arena *a)
{
	if (t->status != READY || !t->canceled_deps)
		return false;
	t->status = NEEDS_HELP;
	t->updated_at = now;
	t->blocker_reason = dep.n ? arena_printf(a, "its dependency %.*s was canceled", STRF(dep))
				  : STR("a dependency was canceled");
	return true;
}

static bool seen_put(struct graph_seen *s, struct str id)
{
	size_t i = str_hash(id) & (s->size - 1);

	for (; s->slots[i].p; i = (i + 1) & (s->size - 1))
		if (str_eq(s->slots[i], id))
			return false;
	s->slots[i] = id;
	s->n++;
	return true;
}

bool graph_seen_add(struct graph_seen *s, struct str id)
{
	struct graph_seen old = *s;

	if (s->n * 2 >= s->size) {
		s->size = old.size ? 2 * old.size : 64;
		s->n = 0;
		s->slots = arena_array(s->arena, struct str, s->size);
		for (size_t i = 0; i < old.size; i++)
			if (old.slots[i].p)
				seen_put(s, old.slots[i]);
	}
	return seen_put(s, id);
}

struct todo {
	struct todo *next;
	struct str id;
};

int graph_reaches(struct str from, struct str to, graph_next_fn *next, void *ctx, struct arena *a)
{
	struct graph_seen seen = { .arena = a };
	struct todo *todo = arena_new(a, struct todo);

	todo->id = from;
	graph_seen_add(&seen, from);
	while (todo) {
		struct str id = todo->id;
		struct strs waits = { 0 };
		int r;

		if (str_eq(id, to))
			return 1;
		todo = todo->next;
		r = next(ctx, id, &waits);
		if (r < 0)
			return r;
		for (size_t i = 0; i < waits.n; i++) {
			struct todo *more;

			if (!graph_seen_add(&seen, waits.v[i]))
				continue;
			more = arena_new(a, struct todo);
			*more = (struct todo){ todo, waits.v[i] };
			todo = more;
		}
	}
	return 0;
}
