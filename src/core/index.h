/*
 * index: the part of a task that stores filter and sort by, as plain data. order.c computes it and has the order.
 */
#ifndef CORE_INDEX_H
#define CORE_INDEX_H

#include "base/str.h"

/* Stores keep it by its number. */
enum lane {
	LANE_NONE = 0,    /* not on offer */
	LANE_READY = 1,   /* on offer */
	LANE_LATER = 2,   /* on offer from eligible_at on */
	LANE_WAITING = 3, /* would be on offer from eligible_at on, if its dependencies were done */
	LANE_GOING = 4    /* not a task: forgotten at eligible_at */
};

struct index {
	int lane;   /* enum lane */
	int status; /* 0: not a task; else 1 to 15, meaning nothing here */
	int class_rank, priority;
	int64_t eligible_at, updated_at, created_at;
	int64_t due;       /* 0: none */
	struct str id;     /* the last tie-break, compared as bytes */
	struct str holder; /* empty: no lock */
	struct str token;  /* hash of the lock's token, empty: no lock of ours */
	struct str parent, type;
	struct strs labels, depends; /* depends and parent: keys */
};

/* The order of selection: class_rank, then priority descending, then updated_at, then id. */
int index_cmp(const struct index *a, const struct index *b);
/*
 * The id in a form whose bytes sort in natural order: runs of digits compare as numbers, all else as bytes in lower
 * case. t2 comes before t10. Keys are equal only for ids that are equal in any case: of equal numbers, the one
 * without leading zeros comes first. Empty for a text that is longer than an id.
 */
#define ID_KEY_MAX 512
struct str index_id_key(struct str id, char out[ID_KEY_MAX]);
bool index_eq(const struct index *a, const struct index *b);
/* Is the record forgotten, though a store may still have it? */
bool index_gone(const struct index *ix, int64_t now);

#endif
