/*
 * counts: numbers that all processes at a place add to, each with one atomic instruction, in a file that they
 * all have in their memory. Never synced: a loss of power may set them back, and nothing depends on them. All
 * zeros is none so far.
 */
#ifndef STORE_LOCAL_COUNTS_H
#define STORE_LOCAL_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#define COUNTS_ROOM 20480

struct store_counts {
	/* what only a store sees: commits that changed something, the changes in them, and how many of those
	 * were made by another process than that of their caller */
	_Atomic uint64_t commits, changes, handed;
	uint64_t unused[5];
	uint64_t room[COUNTS_ROOM / 8]; /* whatever the caller counts */
};

#endif
