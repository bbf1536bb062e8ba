/*
 * linear_part: what the files of the search share. linear_setup.c prepares it, linear_moves.c says what may
 * come next, linear_path.c goes a step and takes it back, linear.c searches.
 */
#ifndef HISTORY_LINEAR_PART_H
#define HISTORY_LINEAR_PART_H

#include "proof/linear/linear.h"
#include "proof/model/model.h"

#define NONE UINT32_MAX
#define SPANS 16
#define SHOWN 12 /* of the calls that led to a dead end */

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

static inline const struct part *part_of(const struct search *s, uint32_t i)
{
	return &s->f->parts[i];
}

static inline bool must(const struct part *p)
{
	return p->ans && !p->spare;
}

/* linear_setup.c */

/* The model has room for so many tasks, and so many depends and labels on each. */
bool search_fits(const struct family *f);
void search_set_up(struct search *s);

/* linear_moves.c */

/* What must be done and may come next. */
void moves_list_musts(struct search *s);
/* The same, or (spares) what need not have happened and may come next. */
void moves_list(struct search *s, bool spares);
/* The lowest version of the task that a call still needs, other than `but`. */
int64_t need_lowest(struct search *s, uint32_t task, uint32_t but);

/* linear_path.c */

uint64_t hash_mix(uint64_t h);
/* The move that made `try` of the state. */
void path_push(struct search *s, const struct move *mv, size_t pick, bool spare);
struct frame path_pop(struct search *s);
/* Has this state been reached with the same calls done, and no later? It is remembered. */
bool path_tried(struct search *s);

#endif
