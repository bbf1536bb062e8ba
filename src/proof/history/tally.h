/*
 * tally: texts as small numbers, from 1 on, in the order in which they came.
 */
#ifndef HISTORY_TALLY_H
#define HISTORY_TALLY_H

#include "base/arena.h"

struct tally {
	struct str *v; /* v[0] is none */
	uint32_t *slots;
	uint32_t n, room;
	bool fold; /* the case of ASCII letters does not matter */
};

uint32_t tally_add(struct tally *t, struct str s);
uint32_t tally_find(const struct tally *t, struct str s); /* 0: not there */
void tally_free(struct tally *t);

#endif
