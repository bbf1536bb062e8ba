/*
 * Each call reads and sends the list of refs, so the store keeps it short. When a change moves the base
 * anyway, it also hangs idle tasks on the base, and afterwards removes their refs.
 * Until then the ref counts. A ref is removed only if it still names the commit that was hung: a process that
 * has moved it since keeps it.
 */
#include "store/git/git.h"

#define COMPACT_MAX 64 /* tasks in one change */

static bool git_compact_idle(struct git *s, const struct git_head *h)
{
	const struct record *r = mem_queue_get(&s->view.q, h->key, s->now);

	return r && r->ix.lane == LANE_NONE && !r->ix.holder.n;
}

/* A process hung this task on the base, but did not remove the ref. */
static bool is_appended(const struct git_view *v, const struct git_head *h)
{
	return h->linked == v->refresh && git_oid_equal(&h->link, &h->oid);
}

static bool git_compact_taken(struct strs keys, struct str key)
{
	return strs_have(keys, key);
}

void git_compact_plan(struct git *s, struct strs busy, struct git_compact *out, struct arena *a)
{
	const struct git_view *v = &s->view;

	*out = (struct git_compact){ 0 };
	if (v->n_refs < s->refs_wanted)
		return;
	out->v = arena_array(a, const struct git_head *, COMPACT_MAX);
	for (size_t i = 0; i < v->n && out->n < COMPACT_MAX; i++) {
		const struct git_head *h = v->heads[i];

		if (!h->on_base && !h->bad && !git_compact_taken(busy, h->key) &&
		    (is_appended(v, h) || git_compact_idle(s, h)))
			out->v[out->n++] = h;
	}
}

/* A ref that cannot be removed now is removed by a later change. */
void git_compact_finish(struct git *s, const struct git_compact *f, struct arena *a)
{
	struct git_move *moves = arena_array(a, struct git_move, f->n);

	for (size_t i = 0; i < f->n; i++)
		moves[i] =
			(struct git_move){ git_ref_of(a, f->v[i]->key), f->v[i]->oid, { { 0 } } };
	if (f->n && s->transport->drop)
		s->transport->drop(s, moves, f->n);
}
