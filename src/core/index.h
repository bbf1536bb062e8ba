/*
 * index: the fields by which stores filter and sort tasks, as plain data. order.c computes and
 * compares them.
 */
#ifndef CORE_INDEX_H
#define CORE_INDEX_H

#include "base/str.h"

/* The lanes. Stores contain these numbers, so a number never changes. They are macros because
 * SQL contains them as text (LANE_TEXT in store/columns.h). */
#define LANE_NONE 0    /* not eligible, whatever the time is */
#define LANE_READY 1   /* eligible */
#define LANE_LATER 2   /* eligible from eligible_at on */
#define LANE_WAITING 3 /* waiting for dependencies; then as LANE_LATER */
/* Not a task: the record is absent from eligible_at on. With created_at, it stays so long that its end may move with the
 * clock: it does not keep a store from setting its clock. */
#define LANE_GOING 4
#define LANE_PARENT 5 /* waiting for sub-tasks; then as LANE_LATER */
#define LANE_BOTH 6   /* waiting for dependencies and sub-tasks */

#define LANE_BIT(lane) (1u << (lane))
/* The lanes of tasks that are waiting for other tasks. */
#define LANES_WAITING (LANE_BIT(LANE_WAITING) | LANE_BIT(LANE_PARENT) | LANE_BIT(LANE_BOTH))

static inline bool lane_waits(int lane)
{
	return lane == LANE_WAITING || lane == LANE_PARENT || lane == LANE_BOTH;
}

struct index {
	int lane;   /* LANE_ */
	int status; /* 0: not a task; else 1 to 15; stores do not interpret it */
	int class_rank, priority;
	int64_t eligible_at, updated_at, created_at;
	int64_t due;       /* 0: none */
	struct str id;     /* the last tie-break: index_id_cmp() */
	struct str holder; /* empty: no lock */
	struct str token;  /* hash of the lock's token; empty: no lock, or a foreign lock */
	struct str parent, type;
	struct strs labels, depends; /* depends and parent: keys */
};

/* The order of selection: class_rank, priority descending, due (none last), updated_at, id. */
int index_cmp(const struct index *a, const struct index *b);
/*
 * A key for the id whose bytes sort in natural order: t2 comes before t10. Runs of digits compare
 * as numbers, all other characters as bytes in lower case. Two keys are equal only if the ids are
 * equal ignoring case: among equal numbers, the spelling without leading zeros comes first. Empty
 * if the text is longer than ID_MAX.
 */
#define ID_KEY_MAX 512
struct str index_id_key(struct str id, char out[ID_KEY_MAX]);
/* The id order in every list: by key. */
int index_id_cmp(struct str a, struct str b);
bool index_eq(const struct index *a, const struct index *b);
/* Must readers treat the record as absent? The store may not have swept it yet. */
bool index_gone(const struct index *ix, int64_t now);

#endif
