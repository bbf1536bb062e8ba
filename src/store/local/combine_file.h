/*
 * combine_file: the layout of the slots file, for combine.c and its tests. combine.h explains the states.
 */
#ifndef STORE_LOCAL_COMBINE_FILE_H
#define STORE_LOCAL_COMBINE_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "store/local/combine.h"

/* "pwc1" plus the size of the struct that a reply may hold: a program with another struct must not use the file. */
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
	uint32_t reply_sum; /* checksum of the reply; 0: there is none */
	uint64_t boot, batch;
	int64_t deadline;
	uint32_t call_sum; /* checksum of the call */
};

_Static_assert(sizeof(struct head) == 64, "other versions of pawl use the same layout");

struct combine_file {
	_Atomic uint32_t layout, top /* slots used so far */, expected, turn;
	_Atomic uint64_t number; /* this file's random number; 0: none yet */
	struct head head[COMBINE_SLOTS];
	struct {
		char call[COMBINE_CALL_MAX], reply[COMBINE_REPLY_MAX];
	} text[COMBINE_SLOTS];
};

_Static_assert(offsetof(struct combine_file, head) == 64,
	       "other versions of pawl use the same layout");

static inline uint64_t combine_sum_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x100000001b3u;
	return h ^ h >> 32;
}

/* Never 0, because a truncated file reads as zeros, even in the middle of a call or a reply. */
static inline uint32_t combine_sum(struct str bytes)
{
	uint64_t h = 0xcbf29ce484222325u ^ bytes.n; /* FNV-1a, a word at a time */
	size_t rest = bytes.n % sizeof(uint64_t), words = bytes.n - rest;
	uint64_t word;

	for (size_t i = 0; i < words; i += sizeof(word)) {
		memcpy(&word, bytes.p + i, sizeof(word)); /* a constant size: one instruction */
		h = combine_sum_word(h, word);
	}
	if (rest) {
		word = 0;
		memcpy(&word, bytes.p + words, rest);
		h = combine_sum_word(h, word);
	}
	return (uint32_t)h ? (uint32_t)h : 1;
}

#endif
