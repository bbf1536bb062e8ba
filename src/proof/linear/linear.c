/* Searches for an order, depth first: calls that must have happened, then calls that need not have. Every "no" is certain; a
 * search that exceeds its limit, or had to guess times, is undecided. */
#include <stdlib.h>

#include "proof/history/history.h"
#include "proof/linear/linear_private.h"

/* Versions only grow: a call whose answer shows a lower version could never follow. */
static bool too_new(struct search *s, uint32_t but)
{
	for (uint32_t t = 1; t < s->m->n_tasks; t++)
		if (!s->removed[t] &&
		    model_task(s->try, t)->version != model_task(s->m, t)->version &&
		    model_task(s->try, t)->version > need_lowest(s, t, but))
			return true;
	return false;
}

static bool linear_step(struct search *s, const struct move *mv, struct buf *why)
{
	const struct part *p = part_of(s, mv->part);
	const struct model_call *c = &s->calls[mv->part];
	struct model_answer want;

	s->steps += 1 + s->size / 2048;
	memcpy(s->try, s->m, s->size);
	model_step(s->world, s->try, c, mv->now, mv->choice, &want);
	if (linear_must(p))
		return model_agrees(s->world, s->try, c, &want, p->ans, why);
	/* a call that changes nothing need not be tried: it might as well not have happened */
	return want.code != -1 && memcmp(s->try, s->m, s->size) != 0;
}

static bool try_move(struct search *s, size_t pick, bool spares)
{
	struct move mv = s->moves[pick];

	if (!linear_step(s, &mv, NULL) || too_new(s, mv.part))
		return false;
	path_push(s, &mv, pick, spares);
	if (!path_tried(s))
		return true;
	path_pop(s);
	return false;
}

static void note_dead_end(struct search *s)
{
	if (s->left >= s->least_left)
		return;
	s->least_left = s->left;
	memcpy(s->dead, s->m, s->size);
	s->dead_now = s->floor;
	s->n_dead_done = s->depth < SHOWN ? s->depth : SHOWN;
	for (size_t i = 0; i < s->n_dead_done; i++)
		s->dead_done[i] = s->path[s->depth - s->n_dead_done + i].move.part;
	s->n_moves = 0;
	moves_list_musts(s);
	s->n_dead_moves = s->n_moves < SHOWN ? s->n_moves : SHOWN;
	if (s->n_dead_moves)
		memcpy(s->dead_moves, s->moves, s->n_dead_moves * sizeof(*s->moves));
}

/* Tries the moves from `pick` on: first the calls that must happen, then the spares. true: a move
 * fits. */
static bool linear_advance(struct search *s, size_t pick, bool spares)
{
	for (;; pick = 0, spares = true) {
		moves_list(s, spares);
		for (; pick < s->n_moves && s->steps < s->limit; pick++)
			if (try_move(s, pick, spares))
				return true;
		if (spares)
			return false;
	}
}

static enum linear linear_search(struct search *s)
{
	size_t pick = 0;
	bool spares = false;

	while (s->left) {
		struct frame f;

		if (s->steps >= s->limit)
			return LINEAR_UNDECIDED;
		if (linear_advance(s, pick, spares)) {
			pick = 0;
			spares = false;
			continue;
		}
		note_dead_end(s);
		if (!s->depth)
			return s->steps >= s->limit ? LINEAR_UNDECIDED : LINEAR_NO;
		f = path_pop(s);
		pick = f.pick + 1;
		spares = f.spare;
	}
	return LINEAR_YES;
}

/* --- explaining a failure ------------------------------------------------------------------------ */

static void linear_explain(struct search *s, struct dead_end *end, struct arena *a)
{
	struct buf text = BUF_MAX(1 << 16), why = BUF_MAX(1 << 12);

	end->n_done = s->n_dead_done;
	end->done = arena_array(a, const struct part *, end->n_done);
	for (size_t i = 0; i < end->n_done; i++)
		end->done[i] = part_of(s, s->dead_done[i]);
	end->n_stuck = s->n_dead_moves;
	end->stuck = arena_array(a, const struct part *, end->n_stuck);
	memcpy(s->m, s->dead, s->size);
	for (size_t i = 0; i < end->n_stuck; i++) {
		end->stuck[i] = part_of(s, s->dead_moves[i].part);
		if (!why.n)
			(void)linear_step(s, &s->dead_moves[i], &why);
	}
	for (uint32_t i = 1; i < s->m->n_tasks && i <= 8; i++) {
		if (i > 1)
			buf_adds(&text, STR("; "));
		model_print(s->world, s->m, i, s->dead_now, &text);
	}
	buf_addf(&text, " (at %lld)", (long long)s->dead_now);
	end->state = arena_str(a, buf_str(&text));
	end->why = arena_str(a, buf_str(&why));
	buf_free(&text);
	buf_free(&why);
}

/* --- all ----------------------------------------------------------------------------------------- */

enum linear linear_check(const struct family *f, struct dead_end *end, struct arena *a)
{
	struct arena own = { 0 };
	struct search s = { .f = f, .arena = &own };
	enum linear r;

	if (!search_fits(f))
		return LINEAR_UNDECIDED;
	search_set_up(&s);
	r = linear_search(&s);
	if (r == LINEAR_NO && s.guessing)
		r = LINEAR_UNDECIDED;
	if (end && r == LINEAR_NO)
		linear_explain(&s, end, a);
	free(s.path);
	free(s.undos);
	free(s.moves);
	free(s.tried);
	arena_free(&own);
	return r;
}

/* --- setup ------------------------------------------------------------------------------------ */

/* Prepares a search: names, times that may matter, versions that calls need. A missing time could turn a correct history into
 * a violation, so if there are too many spans, the search counts as guessing. */

#define HINTS 6 /* times that a task shows, besides those computed from spans */
#define TASKS_MAX 5000
#define STEPS_BASE 3000000
#define STEPS_EACH 300

/* --- does the family fit? ------------------------------------------------------------------------ */

struct room {
	struct str depends[MODEL_DEPENDS], labels[MODEL_LABELS];
};

static bool all_fit(struct str *have, size_t room, struct strs list, bool fold)
{
	for (size_t i = 0; i < list.n; i++) {
		size_t k = 0;

		while (k < room && have[k].n &&
		       !(fold ? str_eq_nocase(have[k], list.v[i]) : str_eq(have[k], list.v[i])))
			k++;
		if (k == room)
			return false;
		have[k] = list.v[i];
	}
	return true;
}

bool search_fits(const struct family *f)
{
	struct tally tasks = { .fold = true };
	struct room *rooms = mem_alloc((f->n_tasks + 1) * sizeof(*rooms));
	bool good = f->n_tasks <= TASKS_MAX;

	memset(rooms, 0, (f->n_tasks + 1) * sizeof(*rooms));
	for (size_t i = 0; i < f->n_tasks; i++)
		tally_add(&tasks, f->tasks[i]);
	for (size_t i = 0; good && i < f->n_parts; i++) {
		const struct part *p = &f->parts[i];
		uint32_t task = tally_find(&tasks, p->rq->id.n ? p->rq->id : p->took);
		struct room *r = &rooms[task], none = { 0 };

		r = task ? r : &none;
		good = all_fit(r->depends, MODEL_DEPENDS, p->rq->depends, true) &&
		       all_fit(r->labels, MODEL_LABELS, p->rq->labels, false) &&
		       all_fit(r->labels, MODEL_LABELS, p->rq->add_labels, false);
	}
	free(rooms);
	tally_free(&tasks);
	return good;
}

/* --- times --------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct hint *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

static void add_hint(struct search *s, uint32_t task, int64_t at)
{
	if (at > 0)
		s->hints[s->n_hints++] = (struct hint){ at, task };
}

static void add_span(struct search *s, int64_t span)
{
	for (size_t i = 0; i < s->n_spans; i++)
		if (s->spans[i] == span)
			return;
	if (s->n_spans < SPANS)
		s->spans[s->n_spans++] = span;
	else
		s->guessing = true;
}

static void find_spans(struct search *s)
{
	add_span(s, s->f->policy->lease);
	add_span(s, s->f->policy->lock_ttl);
	for (size_t i = 0; i < s->f->n_parts; i++) {
		const struct request *rq = s->f->parts[i].rq;

		if (s->f->parts[i].ans)
			continue;
		if (HAS(rq, ttl))
			add_span(s, rq->ttl);
		if (HAS(rq, delay))
			add_span(s, rq->delay);
	}
}

static void hints_of(struct search *s, const struct task *t)
{
	uint32_t task = model_find(s->world, MODEL_TASK, t->id);

	add_hint(s, task, t->updated_at);
	add_hint(s, task, t->created_at);
	add_hint(s, task, t->done_at);
	add_hint(s, task, t->archived_at);
	add_hint(s, task, t->lock.acquired_at);
	add_hint(s, task, t->lock.expires_at ? t->lock.expires_at - t->lock.ttl : 0);
	for (size_t i = 0; i < s->n_spans; i++) {
		add_hint(s, task, t->lock.expires_at ? t->lock.expires_at - s->spans[i] : 0);
		add_hint(s, task, t->not_before ? t->not_before - s->spans[i] : 0);
	}
}

static size_t shown_by(const struct answer *ans)
{
	return ans ? (ans->task != NULL) + (ans->next != NULL) + ans->n_tasks : 0;
}

static void hints_of_answer(struct search *s, const struct answer *ans)
{
	if (ans->task)
		hints_of(s, ans->task);
	if (ans->next)
		hints_of(s, ans->next);
	for (size_t i = 0; i < ans->n_tasks; i++)
		hints_of(s, &ans->tasks[i]);
}

static void find_hints(struct search *s)
{
	size_t shown = 0, n = 0;

	if (!s->n_spares)
		return;
	find_spans(s);
	for (size_t i = 0; i < s->f->n_parts; i++)
		shown += shown_by(s->f->parts[i].ans);
	s->hints = arena_array(s->arena, struct hint,
			       shown * (HINTS + 2 * s->n_spans) + s->f->n_parts);
	for (size_t i = 0; i < s->f->n_parts; i++) {
		if (s->f->parts[i].ans)
			hints_of_answer(s, s->f->parts[i].ans);
		/* the store may have forgotten the request id at that moment */
		if (s->f->parts[i].ans && s->calls[i].request)
			add_hint(s, s->calls[i].id, s->f->parts[i].now - MODEL_KEPT);
	}
	if (s->n_hints)
		qsort(s->hints, s->n_hints, sizeof(*s->hints), by_time);
	for (size_t i = 0; i < s->n_hints; i++)
		if (!n || by_time(&s->hints[i], &s->hints[n - 1]) != 0)
			s->hints[n++] = s->hints[i];
	s->n_hints = n;
	s->times = arena_array(s->arena, int64_t, n + 2 * s->m->n_tasks + s->m->n_kept + 4);
}

/* --- versions ------------------------------------------------------------------------------------ */

/* Does the call surely create a new version of the task that it shows? */
static bool makes_version(const struct part *p)
{
	enum op op = p->rq->op;

	return p->ans->code == SUCCESS && !p->ans->repeated && !p->ans->existed &&
	       !(op_flags(op) & OP_READS) && op != OP_COMMENT && op != OP_DEPEND &&
	       op != OP_UNDEPEND;
}

static int by_need(const void *a, const void *b)
{
	const struct need *x = a, *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->version > y->version) - (x->version < y->version);
}

static void find_needs(struct search *s)
{
	size_t n = 0;

	s->needs = arena_array(s->arena, struct need, s->f->n_parts);
	s->place = arena_array(s->arena, uint32_t, s->f->n_parts);
	s->first = arena_array(s->arena, uint32_t, s->m->n_tasks + 2);
	s->low = arena_array(s->arena, uint32_t, s->m->n_tasks + 2);
	for (uint32_t i = 0; i < s->f->n_parts; i++) {
		const struct part *p = part_of(s, i);

		if (linear_must(p) && s->seen[i])
			s->needs[n++] = (struct need){ p->ans->task->version - makes_version(p), i,
						       s->seen[i] };
	}
	if (n)
		qsort(s->needs, n, sizeof(*s->needs), by_need);
	for (size_t i = 0; i < n; i++) {
		s->place[s->needs[i].part] = (uint32_t)i;
		s->first[s->needs[i].task + 1]++;
	}
	for (uint32_t t = 1; t <= s->m->n_tasks; t++)
		s->first[t] += s->first[t - 1];
	memcpy(s->low, s->first, (s->m->n_tasks + 1) * sizeof(*s->low));
}

/* --- all ----------------------------------------------------------------------------------------- */

static void name_parts(struct search *s)
{
	const struct family *f = s->f;

	for (size_t i = 0; i < f->n_tasks; i++)
		model_name(s->world, MODEL_TASK, f->tasks[i]);
	for (size_t i = 0; i < f->n_parts; i++) {
		const struct part *p = &f->parts[i];
		const struct task *t = p->ans ? p->ans->task : NULL;

		s->calls[i] = model_call_of(s->world, p->rq);
		s->took[i] = model_find(s->world, MODEL_TASK, p->took);
		s->salt[i] = hash_mix(i + 0x9e37) * UINT64_C(0x9e3779b97f4a7c15);
		/* a repeat by request id shows the task as it was at the first call */
		if (t && !(p->ans->repeated && p->rq->request_id.n))
			s->seen[i] = model_find(s->world, MODEL_TASK, t->id);
	}
}

static void find_removed(struct search *s)
{
	s->removed = arena_array(s->arena, bool, s->m->n_tasks);
	s->stuck = arena_array(s->arena, bool, s->m->n_tasks);
	for (size_t i = 0; i < s->f->n_parts; i++)
		if (s->calls[i].rq->op == OP_REMOVE)
			s->removed[s->calls[i].id] = true;
}

static void link_parts(struct search *s)
{
	uint32_t n = (uint32_t)s->f->n_parts, last = n;

	for (uint32_t i = 0; i < n; i++) {
		if (!linear_must(part_of(s, i))) {
			s->spares[s->n_spares++] = i;
			continue;
		}
		s->next[last] = i;
		s->prev[i] = last;
		last = i;
		s->left++;
	}
	s->next[last] = n;
	s->prev[n] = last;
}

void search_set_up(struct search *s)
{
	size_t n = s->f->n_parts;

	s->world = model_world_new(s->arena, s->f->policy, false);
	s->calls = arena_array(s->arena, struct model_call, n);
	s->seen = arena_array(s->arena, uint32_t, n);
	s->took = arena_array(s->arena, uint32_t, n);
	s->salt = arena_array(s->arena, uint64_t, n);
	s->next = arena_array(s->arena, uint32_t, n + 1);
	s->prev = arena_array(s->arena, uint32_t, n + 1);
	s->is_done = arena_array(s->arena, bool, n);
	s->spares = arena_array(s->arena, uint32_t, n);
	name_parts(s);
	link_parts(s);
	s->m = model_new(s->world, s->arena, 0, 0);
	s->try = model_copy(s->m, s->arena);
	s->dead = model_copy(s->m, s->arena);
	s->size = model_size(s->m);
	s->least_left = SIZE_MAX;
	s->limit = STEPS_BASE + STEPS_EACH * n;
	find_removed(s);
	find_hints(s);
	find_needs(s);
}
