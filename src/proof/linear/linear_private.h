/*
 * linear_part: declarations that the files of the search share. linear.c prepares the search,
 * linear_moves.c lists the calls that may come next, linear_moves.c makes a step and undoes it, linear.c searches.
 */
#ifndef PROOF_LINEAR_LINEAR_PRIVATE_H
#define PROOF_LINEAR_LINEAR_PRIVATE_H

#include "proof/linear/linear.h"
#include "proof/model/model.h"

#define NONE UINT32_MAX
#define SPANS 16
#define SHOWN 12 /* how many of the calls before a dead end are reported */

/* One step to try: a call, at a time, with the outcome of its selection. */
struct move {
	uint32_t part;
	struct model_choice choice;
	int64_t now;
	uint32_t rank, place; /* for a call that need not have happened: a lower rank is likelier */
};

/* A time that an answer shows for a task. */
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
	size_t pick;    /* its index among the moves of its level */
	bool spare;     /* a spare: a call that need not have happened */
	size_t undo;    /* index of its first undo */
	uint64_t hash;  /* of the state before the step */
	int64_t floor;  /* latest store time before the step */
	int64_t latest; /* latest `sent` before the step */
};

/* A state and the set of calls done that led to it, as hashes. A lower floor leaves more moves
 * open. */
struct tried {
	uint64_t a, b;
	int64_t floor;
};

/* A remaining call needs its task's version to be at most this before it. */
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
	uint32_t *took;        /* by part: the name of `took` */
	uint64_t *salt;        /* by part: for the hash of the set of calls done */
	uint32_t *next, *prev; /* linked list of the parts that remain; n is its head */
	uint32_t left;         /* how many parts must still happen */
	bool *is_done;
	uint32_t *spares; /* parts that need not have happened, by `sent` */
	size_t n_spares;
	bool *removed;      /* by task: it may have been removed, so its versions may start again */
	struct need *needs; /* of each task, ascending; first[t]: index of the first of task t */
	/* low: all needs before it are done; place: index in needs of each part */
	uint32_t *first, *low, *place;
	/* the current path */
	struct frame *path;
	size_t depth, room_path;
	struct undo *undos;
	size_t n_undos, room_undos;
	uint64_t done_hash, state_hash;
	int64_t floor, latest;
	/* the current level and its moves */
	bool *stuck; /* by task: is a call on this task among those that must come next? */
	struct move *moves;
	size_t n_moves, room_moves;
	int64_t ready_by; /* the time of the earliest answer among the calls that may come next */
	uint32_t past;    /* the first call that was sent after ready_by; n: none */
	struct tried *tried; /* the memory of tried states */
	size_t n_tried, room_tried;
	/* Times that answers show, sorted. spans: by how much a call's time may precede a time that
	 * an answer shows. */
	struct hint *hints;
	int64_t *times;
	size_t n_hints;
	int64_t spans[SPANS];
	size_t n_spans;
	bool guessing; /* not every possible time is tried, so a "no" is not certain */
	/* work done, and its limit, which ends the search; a step with a large state counts more */
	size_t steps, limit;
	/* the deepest point that the search reached */
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

static inline bool linear_must(const struct part *p)
{
	return p->ans && !p->spare;
}

/* linear.c */

/* Does the family fit into the model's fixed limits of tasks, and of depends and labels on each? */
bool search_fits(const struct family *f);
void search_set_up(struct search *s);

/* linear_moves.c */

/* Lists the calls that must happen and may come next. */
void moves_list_musts(struct search *s);
/* Lists the calls that must happen and may come next. With `spares`: lists the calls that may come next and need not
 * have happened. */
void moves_list(struct search *s, bool spares);
/* The lowest version of the task that a remaining call other than `but` needs. */
int64_t need_lowest(struct search *s, uint32_t task, uint32_t but);

/* linear_moves.c */

uint64_t hash_mix(uint64_t h);
/* Takes the step `mv`: `try` becomes the state. */
void path_push(struct search *s, const struct move *mv, size_t pick, bool spare);
struct frame path_pop(struct search *s);
/* Was this state reached before, with the same calls done and no later store time? If not, records it. */
bool path_tried(struct search *s);

#endif
