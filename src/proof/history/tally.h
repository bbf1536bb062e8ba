/*
 * tally: numbers texts from 1, in the order of their arrival.
 */
#ifndef PROOF_HISTORY_TALLY_H
#define PROOF_HISTORY_TALLY_H

#include "base/arena.h"

struct tally {
	struct str *v; /* v[0] is unused */
	uint32_t *slots;
	uint32_t n, room;
	bool fold;           /* ignore the case of ASCII letters */
	struct arena *arena; /* owns the table; NULL: free it with tally_free() */
};

uint32_t tally_add(struct tally *t, struct str s);
uint32_t tally_find(const struct tally *t, struct str s); /* 0: not found */
void tally_free(struct tally *t);

#endif
