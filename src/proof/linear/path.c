/* The path of the search: steps forward, steps back, and the memory of tried states. */
#include <stdlib.h>

#include "proof/linear/linear_private.h"

/* --- hashes -------------------------------------------------------------------------------------- */

uint64_t hash_mix(uint64_t h)
{
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

static uint64_t block_hash(const void *p, size_t n, uint64_t salt)
{
	const char *at = p;
	uint64_t h = hash_mix(salt + 1), word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return hash_mix(h);
}

static uint64_t task_hash(const struct model *m, uint32_t i)
{
	return block_hash(model_task(m, i), sizeof(struct model_task), i);
}

static uint64_t kept_hash(const struct model *m, uint32_t i)
{
	return block_hash(model_kept(m, i), sizeof(struct model_kept), UINT64_C(1) << 40 | i);
}

static void tried_grow(struct search *s)
{
	size_t old = s->room_tried;
	struct tried *keys = s->tried;

	s->room_tried = old ? 2 * old : 1024;
	s->tried = mem_alloc(s->room_tried * sizeof(*s->tried));
	memset(s->tried, 0, s->room_tried * sizeof(*s->tried));
	for (size_t i = 0; i < old; i++) {
		size_t at = keys[i].a & (s->room_tried - 1);

		if (!keys[i].a)
			continue;
		while (s->tried[at].a)
			at = (at + 1) & (s->room_tried - 1);
		s->tried[at] = keys[i];
	}
	free(keys);
}

bool path_tried(struct search *s)
{
	uint64_t a = hash_mix(s->done_hash) ^ s->state_hash,
		 b = s->done_hash + hash_mix(s->state_hash);
	size_t at;

	a += !a;
	if (2 * s->n_tried >= s->room_tried)
		tried_grow(s);
	at = a & (s->room_tried - 1);
	while (s->tried[at].a && (s->tried[at].a != a || s->tried[at].b != b))
		at = (at + 1) & (s->room_tried - 1);
	if (s->tried[at].a && s->tried[at].floor <= s->floor)
		return true;
	s->n_tried += !s->tried[at].a;
	s->tried[at] = (struct tried){ a, b, s->floor };
	return false;
}

/* --- one step forward and back ------------------------------------------------------------------- */

static void keep_old(struct search *s, const struct undo *u)
{
	if (s->n_undos == s->room_undos) {
		s->room_undos = s->room_undos ? 2 * s->room_undos : 256;
		s->undos = mem_grow(s->undos, s->room_undos * sizeof(*s->undos));
	}
	s->undos[s->n_undos++] = *u;
}

/* Copies the blocks that the step changed from `try` to the state. */
static void take_over(struct search *s)
{
	struct model *m = s->m;

	for (uint32_t i = 1; i < m->n_tasks; i++) {
		struct undo u = { .block = i };

		if (memcmp(model_task(m, i), model_task(s->try, i), sizeof(u.old.task)) == 0)
			continue;
		u.old.task = *model_task(m, i);
		keep_old(s, &u);
		s->state_hash += task_hash(s->try, i) - task_hash(m, i);
		*model_task(m, i) = *model_task(s->try, i);
	}
	for (uint32_t i = 1; i < m->n_kept; i++) {
		struct undo u = { .block = m->n_tasks + i };

		if (memcmp(model_kept(m, i), model_kept(s->try, i), sizeof(u.old.kept)) == 0)
			continue;
		u.old.kept = *model_kept(m, i);
		keep_old(s, &u);
		s->state_hash += kept_hash(s->try, i) - kept_hash(m, i);
		*model_kept(m, i) = *model_kept(s->try, i);
	}
}

static void unlink_part(struct search *s, uint32_t i)
{
	s->is_done[i] = true;
	s->done_hash ^= s->salt[i];
	if (!linear_must(part_of(s, i)))
		return;
	s->next[s->prev[i]] = s->next[i];
	s->prev[s->next[i]] = s->prev[i];
	s->left--;
}

static void relink_part(struct search *s, uint32_t i)
{
	s->is_done[i] = false;
	s->done_hash ^= s->salt[i];
	if (!linear_must(part_of(s, i)))
		return;
	s->next[s->prev[i]] = i;
	s->prev[s->next[i]] = i;
	s->left++;
	if (s->seen[i] && s->place[i] < s->low[s->seen[i]])
		s->low[s->seen[i]] = s->place[i];
}

void path_push(struct search *s, const struct move *mv, size_t pick, bool spare)
{
	const struct part *p = part_of(s, mv->part);

	if (s->depth == s->room_path) {
		s->room_path = s->room_path ? 2 * s->room_path : 256;
		s->path = mem_grow(s->path, s->room_path * sizeof(*s->path));
	}
	s->path[s->depth++] = (struct frame){
		*mv, pick, spare, s->n_undos, s->state_hash, s->floor, s->latest,
	};
	take_over(s);
	unlink_part(s, mv->part);
	if (!(op_flags(p->rq->op) & OP_READS) && mv->now > s->floor)
		s->floor = mv->now;
	if (p->sent > s->latest)
		s->latest = p->sent;
}

struct frame path_pop(struct search *s)
{
	struct frame f = s->path[--s->depth];

	while (s->n_undos > f.undo) {
		const struct undo *u = &s->undos[--s->n_undos];

		if (u->block < s->m->n_tasks)
			*model_task(s->m, u->block) = u->old.task;
		else
			*model_kept(s->m, u->block - s->m->n_tasks) = u->old.kept;
	}
	relink_part(s, f.move.part);
	s->state_hash = f.hash;
	s->floor = f.floor;
	s->latest = f.latest;
	return f;
}
