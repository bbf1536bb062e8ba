#include "proof/linear/linear_private.h"

#include <stdlib.h>

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

/* Tries the moves from `pick` on, the calls that must happen first, then the spares. true: one
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
