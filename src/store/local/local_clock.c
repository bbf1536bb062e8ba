/* The clock of a local store; local_clock.h explains the anchor. A new anchor never sets the time back before the old anchor or
 * before the latest time in the data. Only localclock_heal() may do that. */
#include <stdio.h>

#include "base/os.h"
#include "base/when.h"
#include "store/local/local_clock.h"

#define FUTURE 1000 /* ms; more than two processes' boot-time clocks can differ */

int localclock_usable(const struct store_env *env)
{
	if (env->opt.boot || env->opt.wall || timespace_known())
		return 0;
	return store_fail(
		env, STORE_UNSUPPORTED,
		"start pawl in a process of its own inside the namespace, with /proc mounted",
		"this process is in a time namespace, and pawl cannot read the offset of its clock");
}

static void set_boot_id(char *out, size_t room, struct str id)
{
	size_t n = id.n < room ? id.n : room - 1;

	if (n)
		memcpy(out, id.p, n);
	out[n] = '\0';
}

void localclock_init(struct localclock *c, const struct store_env *env)
{
	struct arena a = { 0 };

	c->wall = env->opt.wall ? env->opt.wall : os_wall_ms;
	c->boot = env->opt.boot ? env->opt.boot : os_boot_ms;
	if (env->opt.wall && !env->opt.boot) {
		/* A test that sets only the wall clock also sets the store's time by it, so an anchor from the real
		 * boot must not apply. */
		c->boot = env->opt.wall;
		set_boot_id(c->boot_id, sizeof(c->boot_id),
			    env->opt.boot_id.n ? env->opt.boot_id : STR("wall"));
		return;
	}
	set_boot_id(c->boot_id, sizeof(c->boot_id),
		    env->opt.boot_id.n ? env->opt.boot_id : os_boot_id(&a));
	arena_free(&a);
}

int64_t localclock_now(const struct localclock *c, const struct anchor *a)
{
	int64_t since = c->boot() - a->boot;

	return a->wall + (since > 0 ? since : 0);
}

bool localclock_fits(const struct localclock *c, const struct anchor *a)
{
	return strcmp(a->boot_id, c->boot_id) == 0 && a->boot <= c->boot() + FUTURE;
}

bool localclock_renew(const struct localclock *c, struct anchor *a, int64_t floor)
{
	int64_t wall;

	if (localclock_fits(c, a))
		return false;
	wall = c->wall();
	if (wall < a->wall)
		wall = a->wall;
	if (wall < floor)
		wall = floor;
	a->wall = wall;
	a->boot = c->boot();
	snprintf(a->boot_id, sizeof(a->boot_id), "%s", c->boot_id);
	return true;
}

int64_t localclock_ahead(const struct localclock *c, const struct anchor *a)
{
	return localclock_now(c, a) - c->wall();
}

bool localclock_strays(const struct localclock *c, const struct anchor *a)
{
	int64_t d = localclock_ahead(c, a);

	return d > LOCALCLOCK_STRAY || d < -LOCALCLOCK_STRAY;
}

void localclock_heal(const struct localclock *c, struct anchor *a)
{
	a->wall = c->wall();
	a->boot = c->boot();
}

void localclock_check(const struct localclock *c, const struct anchor *a, check_fn *fn, void *ctx)
{
	int64_t ahead = localclock_ahead(c, a);
	struct arena mem = { 0 };

	if (!localclock_strays(c, a)) {
		fn(ctx, CHECK_OK, "clock", STR("the queue's clock and the machine's agree"),
		   STR(""));
		return;
	}
	fn(ctx, CHECK_NOTE, "clock",
	   arena_printf(
		   &mem,
		   "the queue's clock is %s %s the machine's clock, which was set after the queue's "
		   "clock was started; leases and delays are not affected",
		   duration_text(&mem, ahead < 0 ? -ahead : ahead).p,
		   ahead < 0 ? "behind" : "ahead of"),
	   STR("nothing to do: pawl adjusts it at a change when no task is held or waits for a time"));
	arena_free(&mem);
}
