/*
 * localclock: the clock of a store that lives on one machine.
 *
 * Within a boot it follows the boot-time clock, so a jump of the wall clock neither frees nor holds
 * anything. An anchor, kept with the data, ties that clock to the calendar: (boot, time of day, time
 * since boot). Another boot starts a new anchor from the wall clock, never behind what was seen before.
 * So does an anchor from the future of this boot: a pawl that knew nothing of time namespaces made it in one.
 */
#ifndef STORE_LOCAL_CLOCK_H
#define STORE_LOCAL_CLOCK_H

#include "store/store.h"

#define LOCALCLOCK_STRAY 1000 /* ms between store and wall clock from which on we speak of it */

struct anchor {
	char boot_id[64];
	int64_t wall, boot; /* the same moment on both clocks */
};

struct localclock {
	int64_t (*wall)(void), (*boot)(void);
	char boot_id[64];
};

/* 0, or STORE_UNSUPPORTED: this process is in a time namespace whose offset it cannot read. Its time would
 * differ from everybody else's. */
int localclock_usable(const struct store_env *env);
void localclock_init(struct localclock *c, const struct store_env *env);
int64_t localclock_now(const struct localclock *c, const struct anchor *a);
/* Is it of this boot? */
bool localclock_fits(const struct localclock *c, const struct anchor *a);
/* Makes a new anchor if `a` is of another boot: true, and it has to be saved. `floor` is the latest time
 * known from the data. */
bool localclock_renew(const struct localclock *c, struct anchor *a, int64_t floor);
/* Store clock minus wall clock. */
int64_t localclock_ahead(const struct localclock *c, const struct anchor *a);
bool localclock_strays(const struct localclock *c, const struct anchor *a);
/* A machine may have booted with a wrong clock. Only for a store in which nothing waits for a time. */
void localclock_heal(const struct localclock *c, struct anchor *a);
/* What doctor says of it. */
void localclock_check(const struct localclock *c, const struct anchor *a, check_fn *fn, void *ctx);

#endif
