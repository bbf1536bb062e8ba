/* Lists the calls that may come next in the order, the likeliest first. A call may come next if no remaining call was answered
 * before it was sent. */
#include <stdlib.h>

#include "proof/linear/linear_private.h"

static void add_move(struct search *s, uint32_t part, struct model_choice choice, int64_t now)
{
	if (s->n_moves == s->room_moves) {
		s->room_moves = s->room_moves ? 2 * s->room_moves : 64;
		s->moves = mem_grow(s->moves, s->room_moves * sizeof(*s->moves));
	}
	s->moves[s->n_moves++] = (struct move){ .part = part, .choice = choice, .now = now };
}

static int64_t version_of(const struct search *s, uint32_t part)
{
	return s->seen[part] ? part_of(s, part)->ans->task->version : 0;
}

/* The likely order: by store time, then by version; a read comes after the change that it shows. */
static bool comes_before(const struct search *s, uint32_t a, uint32_t b)
{
	const struct part *x = part_of(s, a), *y = part_of(s, b);
	bool x_reads = op_flags(x->rq->op) & OP_READS, y_reads = op_flags(y->rq->op) & OP_READS;

	if (x->now != y->now)
		return x->now < y->now;
	if (version_of(s, a) != version_of(s, b))
		return version_of(s, a) < version_of(s, b);
	if (x_reads != y_reads)
		return y_reads;
	return x->answered < y->answered;
}

static bool linear_moves_selects(const struct request *rq)
{
	return rq->op == OP_TAKE || (rq->op == OP_DONE && rq->claim_next);
}

/* How many tasks can this selecting call send to Needs Help? */
static uint32_t linear_moves_worn(const struct search *s, uint32_t part, int64_t now)
{
	int64_t max = s->f->policy->max_abandoned;

	for (uint32_t t = 1; max && t < s->m->n_tasks; t++)
		if (model_task(s->m, t)->status == IN_PROGRESS &&
		    model_task(s->m, t)->abandoned + 1 >= max)
			return model_worn(s->world, s->m, &s->calls[part], now);
	return 0;
}

/* Lists the calls that must happen and that no other remaining call surely precedes. */
void moves_list_musts(struct search *s)
{
	uint32_t head = (uint32_t)s->f->n_parts;
	size_t first = s->n_moves;

	s->ready_by = INT64_MAX;
	s->past = head;
	for (uint32_t i = s->next[head]; i != head && part_of(s, i)->sent <= s->ready_by;
	     i = s->next[i]) {
		const struct part *p = part_of(s, i);
		struct model_choice choice;
		size_t at;

		if (p->answered < s->ready_by)
			s->ready_by = p->answered;
		choice = (struct model_choice){ .took = s->took[i],
						.paused = p->ans->paused != NULL };
		add_move(s, i, choice, p->now);
		for (at = s->n_moves - 1; at > first && comes_before(s, i, s->moves[at - 1].part);
		     at--)
			s->moves[at] = s->moves[at - 1];
		s->moves[at] = (struct move){ .part = i, .choice = choice, .now = p->now };
		s->past = s->next[i];
	}
	for (size_t k = first, n = s->n_moves; k < n; k++) {
		struct move mv = s->moves[k];

		if (mv.choice.took || mv.choice.paused ||
		    !linear_moves_selects(part_of(s, mv.part)->rq))
			continue;
		for (uint32_t swept = linear_moves_worn(s, mv.part, mv.now); swept; swept--)
			add_move(s, mv.part, (struct model_choice){ .swept = swept }, mv.now);
	}
}

/* The latest store time of a call that may precede one of the next calls. A read takes its time
 * first, so it may show later changes. It never shows a change from after the time of a later
 * call. */
static int64_t latest_time(const struct search *s)
{
	int64_t at = s->floor, last = s->n_hints ? s->hints[s->n_hints - 1].at : at;

	if (s->past < s->f->n_parts)
		last = part_of(s, s->past)->now;
	for (size_t i = 0; i < s->n_moves; i++) {
		const struct part *p = part_of(s, s->moves[i].part);
		int64_t until = op_flags(p->rq->op) & OP_READS && last > p->now ? last : p->now;

		at = until > at ? until : at;
	}
	return at;
}

/* Finds the first hint that is not before (at, task). */
static size_t hint_from(const struct search *s, int64_t at, uint32_t task)
{
	size_t low = 0, high = s->n_hints;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct hint *h = &s->hints[mid];

		if (h->at < at || (h->at == at && h->task < task))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Does an answer show this time for this task? */
static bool is_hint(const struct search *s, int64_t at, uint32_t task)
{
	size_t i = hint_from(s, at, task);

	return i < s->n_hints && s->hints[i].at == at && s->hints[i].task == task;
}

/* The times at which an unanswered call may have happened. A change leaves its time in the task, so
 * the times that later answers show are the candidates. */
static size_t guess_times(struct search *s)
{
	int64_t from = s->floor, to = latest_time(s), *out = s->times;
	size_t n = 0;

	if ((s->f->skewed || s->f->late) && s->n_hints)
		from = s->hints[0].at;
	if (s->f->skewed && s->n_hints)
		to = s->hints[s->n_hints - 1].at;
	for (size_t i = hint_from(s, from, 0); i < s->n_hints && s->hints[i].at <= to; i++)
		if (!n || out[n - 1] != s->hints[i].at)
			out[n++] = s->hints[i].at;
	out[n++] = to;
	return n + model_times(s->m, from, to, out + n, 2 * s->m->n_tasks + s->m->n_kept + 2);
}

/* Finds the lowest version of the task that a remaining call needs. It skips leading calls that are
 * done, and `low` remembers how many. */
int64_t need_lowest(struct search *s, uint32_t task, uint32_t but)
{
	uint32_t at = s->low[task];

	while (at < s->first[task + 1] && s->is_done[s->needs[at].part])
		at++;
	s->low[task] = at;
	while (at < s->first[task + 1] &&
	       (s->needs[at].part == but || s->is_done[s->needs[at].part]))
		at++;
	return at < s->first[task + 1] ? s->needs[at].version : INT64_MAX;
}

/* Could an unanswered call have changed the task at this point? */
static bool has_room(struct search *s, uint32_t task)
{
	return s->removed[task] || model_task(s->m, task)->version < need_lowest(s, task, NONE);
}

/* A call that changes no task may still have stored its answer, which a repeat would get. */
static bool may_have_happened(struct search *s, const struct model_call *c)
{
	if (!c->id)
		return !linear_moves_selects(c->rq);
	return c->request || has_room(s, c->id);
}

/* A move is likely if a call that must come next waits for its task, and if an answer shows its
 * time. */
static void add_spare(struct search *s, uint32_t part, struct model_choice choice, int64_t now)
{
	uint32_t task = choice.took ? choice.took : s->calls[part].id;
	struct move *mv;

	add_move(s, part, choice, now);
	mv = &s->moves[s->n_moves - 1];
	mv->rank = !s->stuck[task] + !(task && is_hint(s, now, task));
	mv->place = (uint32_t)s->n_moves;
}

static void spare_moves(struct search *s, uint32_t i, int64_t now)
{
	const struct model_call *c = &s->calls[i];
	bool makes = c->rq->op == OP_CREATE && !HAS(c->rq, id), spare = part_of(s, i)->spare;

	for (uint32_t t = 1; makes && t < s->m->n_tasks; t++)
		if (!model_task(s->m, t)->status &&
		    model_makes(model_text(s->world, MODEL_TASK, t)))
			add_spare(s, i, (struct model_choice){ .took = t }, now);
	if (!makes && !spare && may_have_happened(s, c))
		add_spare(s, i, (struct model_choice){ 0 }, now);
	if (!linear_moves_selects(c->rq))
		return;
	for (uint32_t t = 1; !spare && t < s->m->n_tasks; t++)
		if (model_task(s->m, t)->status && has_room(s, t))
			add_spare(s, i, (struct model_choice){ .took = t }, now);
	for (uint32_t n = linear_moves_worn(s, i, now); n; n--)
		add_spare(s, i, (struct model_choice){ .swept = n }, now);
}

static void find_stuck(struct search *s)
{
	memset(s->stuck, 0, s->m->n_tasks * sizeof(*s->stuck));
	for (size_t i = 0; i < s->n_moves; i++) {
		uint32_t part = s->moves[i].part;

		s->stuck[s->seen[part] ? s->seen[part] : s->calls[part].id] = true;
	}
	s->stuck[0] = false;
}

/* Likely moves first, then by time, because the search cannot go back in time. */
static int by_rank(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->now != y->now)
		return x->now < y->now ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* Lists the calls that need not have happened. */
static void list_spares(struct search *s)
{
	size_t n = s->n_spares ? guess_times(s) : 0, low = 0, high = s->n_spares;

	find_stuck(s);
	s->n_moves = 0;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (part_of(s, s->spares[mid])->sent <= s->ready_by)
			low = mid + 1;
		else
			high = mid;
	}
	/* the latest calls first */
	while (low-- > 0) {
		uint32_t i = s->spares[low];
		const struct part *p = part_of(s, i);

		if (s->is_done[i] || (p->ans && p->answered < s->latest))
			continue;
		if (p->ans)
			spare_moves(s, i, p->now);
		for (size_t t = 0; !p->ans && t < n; t++)
			spare_moves(s, i, s->times[t]);
	}
	if (s->n_moves)
		qsort(s->moves, s->n_moves, sizeof(*s->moves), by_rank);
}

void moves_list(struct search *s, bool spares)
{
	s->n_moves = 0;
	moves_list_musts(s);
	if (spares)
		list_spares(s);
}

/* --- path ------------------------------------------------------------------------------------- */

/* The search's path: steps forward, steps back, and the memory of tried states. A step back must restore the state, the hashes
 * and the list of remaining calls exactly. */

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
