/* Lists the calls that may come next in the order. */
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

/* The first hint that is not before (at, task). */
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

/* The lowest version of the task that a remaining call needs. The leading calls that are done are
 * skipped, and `low` remembers it. */
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

/* The likely ones first, then by time: the search cannot go back in time. */
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
