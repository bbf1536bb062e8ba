/*
 * localclock: the clock of a store that lives on one machine.
 *
 * Within a boot it follows the boot-time clock, so a jump of the wall clock does not change the time that a
 * lease has left. An anchor, kept with the data, ties that clock to the calendar: (boot, time of day, time
 * since boot). The first process after another boot makes a new anchor from the wall clock, never earlier than
 * a time seen before. It also replaces an anchor that is later than the boot clock, because the time would stand still
 * until the boot clock reached it.
 */
#ifndef STORE_LOCAL_LOCAL_CLOCK_H
#define STORE_LOCAL_LOCAL_CLOCK_H

#include "store/store.h"

#define LOCALCLOCK_STRAY 1000 /* ms; doctor reports a greater difference between the clocks */

struct anchor {
	char boot_id[64];
	int64_t wall, boot; /* the same moment on both clocks */
};

struct localclock {
	int64_t (*wall)(void), (*boot)(void);
	char boot_id[64];
};

/* 0, or STORE_UNSUPPORTED: this process is in a time namespace whose offset it cannot read. Its time would
 * differ from every other process's time. */
int localclock_usable(const struct store_env *env);
void localclock_init(struct localclock *c, const struct store_env *env);
int64_t localclock_now(const struct localclock *c, const struct anchor *a);
/* Does the anchor belong to this boot, and is it not later than the boot clock? */
bool localclock_fits(const struct localclock *c, const struct anchor *a);
/* Makes a new anchor if `a` does not fit (localclock_fits). Returns true then, and the caller must save it. `floor` is
 * the latest time in the data. */
bool localclock_renew(const struct localclock *c, struct anchor *a, int64_t floor);
/* Store clock minus wall clock. */
int64_t localclock_ahead(const struct localclock *c, const struct anchor *a);
bool localclock_strays(const struct localclock *c, const struct anchor *a);
/* Sets the clock to the wall clock, because a machine may boot with a wrong time. Only for a store in which no record
 * is waiting for a time. */
void localclock_heal(const struct localclock *c, struct anchor *a);
/* Reports the difference between the clocks to doctor. */
void localclock_check(const struct localclock *c, const struct anchor *a, check_fn *fn, void *ctx);

#endif
