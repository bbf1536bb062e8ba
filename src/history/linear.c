#include "history/linear.h"

#include <stdlib.h>

#include "history/model.h"
#include "history/tally.h"

#define NONE UINT32_MAX
#define SPANS 16
#define HINTS 6 /* that a task shows, beside those by spans */
#define TASKS_MAX 5000
#define SHOWN 12 /* of the calls that led to a dead end */
#define STEPS_BASE 3000000
#define STEPS_EACH 300

/* One thing to try: a call, at a time, with what selection gave. */
struct move {
	uint32_t part;
	struct model_choice choice;
	int64_t now;
	uint32_t rank, place; /* of one that need not have happened: the likely ones first */
};

/* A time that an answer shows of a task. */
struct hint {
	int64_t at;
	uint32_t task;
};

struct undo {
	uint32_t block; /* tasks first, then kept answers */
	union {
		struct model_task task;
		struct model_kept kept;
	} old;
};

struct frame {
	struct move move;
	size_t pick;    /* its place among the moves of its level */
	bool spare;     /* from the second half of the level: what may not have happened */
	size_t undo;    /* where its undos begin */
	uint64_t hash;  /* of the state before it */
	int64_t floor;  /* latest store time before it */
	int64_t latest; /* latest `sent` before it */
};

/* A state with the calls done that led to it, by their hashes. The lowest floor leaves the most open. */
struct tried {
	uint64_t a, b;
	int64_t floor;
};

/* A call that is still to come needs the version of its task not to be higher than this before it. */
struct need {
	int64_t version;
	uint32_t part, task;
};

struct search {
	const struct family *f;
	struct arena *arena;
	struct model_world *world;
	struct model *m, *try;
	size_t size;
	struct model_call *calls;
	uint32_t *seen;        /* by part: the task that its answer shows; 0: none */
	uint32_t *took;        /* by part: name of `took` */
	uint64_t *salt;        /* by part, for the hash of what is done */
	uint32_t *next, *prev; /* list of the parts still to be done; n is its head */
	uint32_t left;         /* parts that must be done */
	bool *is_done;
	uint32_t *spares; /* parts that need not be, by `sent` */
	size_t n_spares;
	bool *removed;      /* by task: perhaps, so that its versions begin anew */
	struct need *needs; /* of each task, ascending; first[t] is where task t begins */
	uint32_t *first, *low, *place; /* low: none before it is left; place: of a part, in needs */
	/* the path */
	struct frame *path;
	size_t depth, room_path;
	struct undo *undos;
	size_t n_undos, room_undos;
	uint64_t done_hash, state_hash;
	int64_t floor, latest;
	/* the level: its moves */
	bool *stuck; /* by task: a call that must come next is about it */
	struct move *moves;
	size_t n_moves, room_moves;
	int64_t ready_by;    /* the first answer among the calls that may come next */
	uint32_t past;       /* the first call that was sent after that; n: none */
	struct tried *tried; /* what was tried */
	size_t n_tried, room_tried;
	/* times that answers show, sorted; spans: how long before a time that is shown a call may have set it */
	struct hint *hints;
	int64_t *times;
	size_t n_hints;
	int64_t spans[SPANS];
	size_t n_spans;
	bool guessing;       /* not every time that matters is tried, so "no" is not sure */
	size_t steps, limit; /* of work, so that a search ends; large states count for more */
	/* the deepest point */
	size_t least_left;
	struct model *dead;
	uint32_t dead_done[SHOWN];
	size_t n_dead_done;
	struct move dead_moves[SHOWN];
	size_t n_dead_moves;
	int64_t dead_now;
};

static const struct part *part_of(const struct search *s, uint32_t i)
{
	return &s->f->parts[i];
}

static bool must(const struct part *p)
{
	return p->ans && !p->spare;
}

/* --- hashes -------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

static uint64_t block_hash(const void *p, size_t n, uint64_t salt)
{
	const char *at = p;
	uint64_t h = mix(salt + 1), word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return mix(h);
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

/* Has this state been reached with the same calls done, and no later? It is remembered. */
static bool tried_before(struct search *s)
{
	uint64_t a = mix(s->done_hash) ^ s->state_hash, b = s->done_hash + mix(s->state_hash);
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

/* --- one step, and back -------------------------------------------------------------------------- */

static void keep_old(struct search *s, const struct undo *u)
{
	if (s->n_undos == s->room_undos) {
		s->room_undos = s->room_undos ? 2 * s->room_undos : 256;
		s->undos = mem_grow(s->undos, s->room_undos * sizeof(*s->undos));
	}
	s->undos[s->n_undos++] = *u;
}

/* Takes over what the step changed in `try`. */
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
	if (!must(part_of(s, i)))
		return;
	s->next[s->prev[i]] = s->next[i];
	s->prev[s->next[i]] = s->prev[i];
	s->left--;
}

static void relink_part(struct search *s, uint32_t i)
{
	s->is_done[i] = false;
	s->done_hash ^= s->salt[i];
	if (!must(part_of(s, i)))
		return;
	s->next[s->prev[i]] = i;
	s->prev[s->next[i]] = i;
	s->left++;
	if (s->seen[i] && s->place[i] < s->low[s->seen[i]])
		s->low[s->seen[i]] = s->place[i];
}

static void push(struct search *s, const struct move *mv, size_t pick, bool spare)
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

static struct frame pop(struct search *s)
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

/* --- what may come next -------------------------------------------------------------------------- */

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

/* The likely order: by store time, then by version; a look after the change that made it. */
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

static bool selects(const struct request *rq)
{
	return rq->op == OP_TAKE || (rq->op == OP_DONE && rq->claim_next);
}

/* Is there a task that a selecting call would send to Needs Help? */
static uint32_t worn(const struct search *s, uint32_t part, int64_t now)
{
	int64_t max = s->f->policy->max_abandoned;

	for (uint32_t t = 1; max && t < s->m->n_tasks; t++)
		if (model_task(s->m, t)->status == IN_PROGRESS &&
		    model_task(s->m, t)->abandoned + 1 >= max)
			return model_worn(s->world, s->m, &s->calls[part], now);
	return 0;
}

/* The parts that must be done and that nothing left is surely before. */
static void list_musts(struct search *s)
{
	uint32_t head = (uint32_t)s->f->n_parts;
	size_t first = s->n_moves;

	s->ready_by = INT64_MAX;
	s->past = head;
	for (uint32_t i = s->next[head]; i != head && part_of(s, i)->sent <= s->ready_by;
	     i = s->next[i]) {
		const struct part *p = part_of(s, i);
		size_t at;

		if (p->answered < s->ready_by)
			s->ready_by = p->answered;
		add_move(s, i, (struct model_choice){ .took = s->took[i] }, p->now);
		for (at = s->n_moves - 1; at > first && comes_before(s, i, s->moves[at - 1].part);
		     at--)
			s->moves[at] = s->moves[at - 1];
		s->moves[at] =
			(struct move){ .part = i, .choice = { .took = s->took[i] }, .now = p->now };
		s->past = s->next[i];
	}
	for (size_t k = first, n = s->n_moves; k < n; k++) {
		struct move mv = s->moves[k];

		if (mv.choice.took || !selects(part_of(s, mv.part)->rq))
			continue;
		for (uint32_t swept = worn(s, mv.part, mv.now); swept; swept--)
			add_move(s, mv.part, (struct model_choice){ .swept = swept }, mv.now);
	}
}

/* The latest store time at which a call may have happened that comes before one of the next. A look takes its
 * time first and may see what came after, but nothing that came after the time of a later call. */
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

/* The first hint that is not before this one. */
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

/* Does an answer show this time of this task? */
static bool is_hint(const struct search *s, int64_t at, uint32_t task)
{
	size_t i = hint_from(s, at, task);

	return i < s->n_hints && s->hints[i].at == at && s->hints[i].task == task;
}

/* When might a call have happened whose answer nobody saw? What a change leaves behind are times. */
static size_t guess_times(struct search *s)
{
	int64_t from = s->floor, to = latest_time(s), *out = s->times;
	size_t n = 0;

	if (s->f->skewed && s->n_hints) {
		from = s->hints[0].at;
		to = s->hints[s->n_hints - 1].at;
	}
	for (size_t i = hint_from(s, from, 0); i < s->n_hints && s->hints[i].at <= to; i++)
		if (!n || out[n - 1] != s->hints[i].at)
			out[n++] = s->hints[i].at;
	out[n++] = to;
	return n + model_times(s->m, from, to, out + n, 2 * s->m->n_tasks + s->m->n_kept + 2);
}

/* The lowest version that a call about the task still needs; what is done is skipped for good. */
static int64_t lowest_need(struct search *s, uint32_t task, uint32_t but)
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

/* Could anything that nobody was told of have happened to the task here? */
static bool has_room(struct search *s, uint32_t task)
{
	return s->removed[task] || model_task(s->m, task)->version < lowest_need(s, task, NONE);
}

/* What changes no task may still have kept its answer, for whoever sends it again. */
static bool may_have_happened(struct search *s, const struct model_call *c)
{
	if (!c->id)
		return !selects(c->rq);
	return c->request || has_room(s, c->id);
}

/* About a task that waits for it, and at a time that the task shows: that is likely. */
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
	if (!selects(c->rq))
		return;
	for (uint32_t t = 1; !spare && t < s->m->n_tasks; t++)
		if (model_task(s->m, t)->status && has_room(s, t))
			add_spare(s, i, (struct model_choice){ .took = t }, now);
	for (uint32_t n = worn(s, i, now); n; n--)
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

/* The likely ones first, then by time: who goes on at a later one cannot go back. */
static int by_rank(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->now != y->now)
		return x->now < y->now ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* What need not have happened. */
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
	/* the latest first */
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

static void list_moves(struct search *s, bool spares)
{
	s->n_moves = 0;
	list_musts(s);
	if (spares)
		list_spares(s);
}

/* --- trying -------------------------------------------------------------------------------------- */

/* Versions only grow: a call that saw a lower one can never come any more. */
static bool too_new(struct search *s, uint32_t but)
{
	for (uint32_t t = 1; t < s->m->n_tasks; t++)
		if (!s->removed[t] &&
		    model_task(s->try, t)->version != model_task(s->m, t)->version &&
		    model_task(s->try, t)->version > lowest_need(s, t, but))
			return true;
	return false;
}

static bool step(struct search *s, const struct move *mv, struct buf *why)
{
	const struct part *p = part_of(s, mv->part);
	const struct model_call *c = &s->calls[mv->part];
	struct model_answer want;

	s->steps += 1 + s->size / 2048;
	memcpy(s->try, s->m, s->size);
	model_step(s->world, s->try, c, mv->now, mv->choice, &want);
	if (must(p))
		return model_agrees(s->world, s->try, c, &want, p->ans, why);
	/* what changes nothing may as well not have happened */
	return want.code != -1 && memcmp(s->try, s->m, s->size) != 0;
}

static bool try_move(struct search *s, size_t pick, bool spares)
{
	struct move mv = s->moves[pick];

	if (!step(s, &mv, NULL) || too_new(s, mv.part))
		return false;
	push(s, &mv, pick, spares);
	if (!tried_before(s))
		return true;
	pop(s);
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
	list_musts(s);
	s->n_dead_moves = s->n_moves < SHOWN ? s->n_moves : SHOWN;
	if (s->n_dead_moves)
		memcpy(s->dead_moves, s->moves, s->n_dead_moves * sizeof(*s->moves));
}

/* From the given move on: did one go through? Both halves of a level are tried. */
static bool advance(struct search *s, size_t pick, bool spares)
{
	for (;; pick = 0, spares = true) {
		list_moves(s, spares);
		for (; pick < s->n_moves && s->steps < s->limit; pick++)
			if (try_move(s, pick, spares))
				return true;
		if (spares)
			return false;
	}
}

static enum linear search(struct search *s)
{
	size_t pick = 0;
	bool spares = false;

	while (s->left) {
		struct frame f;

		if (s->steps >= s->limit)
			return LINEAR_UNDECIDED;
		if (advance(s, pick, spares)) {
			pick = 0;
			spares = false;
			continue;
		}
		note_dead_end(s);
		if (!s->depth)
			return s->steps >= s->limit ? LINEAR_UNDECIDED : LINEAR_NO;
		f = pop(s);
		pick = f.pick + 1;
		spares = f.spare;
	}
	return LINEAR_YES;
}

/* --- setting up ---------------------------------------------------------------------------------- */

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
	s->hints = arena_array(s->arena, struct hint, shown * (HINTS + 2 * s->n_spans));
	for (size_t i = 0; i < s->f->n_parts; i++)
		if (s->f->parts[i].ans)
			hints_of_answer(s, s->f->parts[i].ans);
	if (s->n_hints)
		qsort(s->hints, s->n_hints, sizeof(*s->hints), by_time);
	for (size_t i = 0; i < s->n_hints; i++)
		if (!n || by_time(&s->hints[i], &s->hints[n - 1]) != 0)
			s->hints[n++] = s->hints[i];
	s->n_hints = n;
	s->times = arena_array(s->arena, int64_t, n + 2 * s->m->n_tasks + s->m->n_kept + 4);
}

/* Does the call surely make a new version of the task that it shows? */
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

		if (must(p) && s->seen[i])
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
		s->salt[i] = mix(i + 0x9e37) * UINT64_C(0x9e3779b97f4a7c15);
		/* by request id a task is shown as it was */
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
		if (!must(part_of(s, i))) {
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

static void set_up(struct search *s)
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

/* --- what went wrong ----------------------------------------------------------------------------- */

static void explain(struct search *s, struct dead_end *end, struct arena *a)
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
			(void)step(s, &s->dead_moves[i], &why);
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

/* The model has room for so many depends and labels on a task. */
static bool fits(const struct family *f)
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

enum linear linear_check(const struct family *f, struct dead_end *end, struct arena *a)
{
	struct arena own = { 0 };
	struct search s = { .f = f, .arena = &own };
	enum linear r;

	if (!fits(f))
		return LINEAR_UNDECIDED;
	set_up(&s);
	r = search(&s);
	if (r == LINEAR_NO && s.guessing)
		r = LINEAR_UNDECIDED;
	if (end && r == LINEAR_NO)
		explain(&s, end, a);
	free(s.path);
	free(s.undos);
	free(s.moves);
	free(s.tried);
	arena_free(&own);
	return r;
}
