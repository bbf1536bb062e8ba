/*
 * mem: a store inside the process, for simulations and tests. Not durable, and for one thread only.
 *
 * "mem:" is a place of its own that goes away with its handle; "mem:NAME" is shared by every handle of
 * the process and stays until mem_reset(). Its clock is env.opt.boot on from the wall clock at the place's
 * start; with env.opt.wall alone that clock itself, so that a test can set it at will.
 */
#ifndef STORE_MEM_MEM_H
#define STORE_MEM_MEM_H

#include "store/store.h"

extern const struct store_ops store_mem;

/* Forgets all named places; those still open go when their last handle is closed. */
void mem_reset(void);

#endif
