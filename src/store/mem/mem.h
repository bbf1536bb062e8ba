/*
 * mem: a store inside the process, for simulations and tests. Not durable, and for one thread only.
 *
 * "mem:" is a private place that ends with its handle. All handles of the process share "mem:NAME", which stays
 * until mem_reset(). The clock starts at the wall clock when the place is made, and advances with env.opt.boot. With
 * env.opt.wall alone, the clock is env.opt.wall, so that a test can set any time.
 */
#ifndef STORE_MEM_MEM_H
#define STORE_MEM_MEM_H

#include "store/store.h"

extern const struct store_ops store_mem;

/* Forgets all named places; an open place ends when its last handle is closed. */
void mem_reset(void);

#endif
