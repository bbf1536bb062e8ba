/*
 * counts: counters that all processes of a place share, in a file that each of them maps. A process adds with one atomic
 * instruction. The file is never synced, so a loss of power may set the counters back; nothing depends on them. A
 * new file is all zeros.
 */
#ifndef STORE_LOCAL_BATCH_COUNTS_H
#define STORE_LOCAL_BATCH_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#define COUNTS_ROOM 20480

struct store_counts {
	/* the store's counters: commits that changed something, the changes in them, and the changes among these that came
	 * through a slot (combine.h) */
	_Atomic uint64_t commits, changes, handed;
	uint64_t unused[5];
	uint64_t room[COUNTS_ROOM / 8]; /* the caller's counters */
};

#endif
