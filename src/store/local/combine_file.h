/*
 * combine_file: the slots as they are in the file, for combine.c and its tests.
 */
#ifndef STORE_LOCAL_COMBINE_FILE_H
#define STORE_LOCAL_COMBINE_FILE_H

#include <stdatomic.h>

#include "store/local/combine.h"

/* "pwc1", and the size of what a reply may hold as it is: another one is another program's. */
#define COMBINE_LAYOUT (0x70776331u + (uint32_t)sizeof(struct store_error))

enum slot_state { SLOT_IDLE = 0, SLOT_PENDING = 1, SLOT_NUDGED = 2, SLOT_TAKEN = 3, SLOT_DONE = 4 };
#define STATE(word) ((enum slot_state)((word)&7))
#define GENERATION(word) ((word) & ~7u)
#define WITH(word, state) (GENERATION(word) | (state))
#define NEXT(word, state) (GENERATION((word) + 8) | (state))

struct head {
	_Alignas(64) _Atomic uint32_t word;
	_Atomic uint32_t sleeping;
	uint32_t queue, call_n, reply_n;
	uint32_t end; /* enum combine_end */
	int32_t rc;
	uint32_t reply_sum; /* of the reply's bytes; 0: not known, an older pawl wrote it */
	uint64_t boot, batch;
	int64_t deadline;
	uint32_t call_sum; /* the same of the call's */
};

_Static_assert(sizeof(struct head) == 64, "the file stays as older pawls know it");

struct combine_file {
	_Atomic uint32_t layout, top /* slots used so far */, expected, turn;
	struct head head[COMBINE_SLOTS];
	struct {
		char call[COMBINE_CALL_MAX], reply[COMBINE_REPLY_MAX];
	} text[COMBINE_SLOTS];
};

#endif
