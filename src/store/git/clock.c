/*
 * The clock. Nobody shares one across machines; on one machine all processes do, by an anchor in a file beside
 * the repository (localclock.h), so that a jump of the wall clock frees and holds nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/git/git.h"

#define CLOCK_FILE_MAX 256
#define SAME_MS 100 /* clocks that differ by less are one */

static const char *clock_path(struct git *s, struct arena *a)
{
	return fs_join(a, str_c(s->dir ? s->dir : s->local), STR("pawl/clock"));
}

/* "BOOT WALL TIME-SINCE-BOOT" */
static void clock_read(struct git *s)
{
	struct arena a = { 0 };
	struct anchor found = { 0 };
	struct str text, boot;

	if (fs_read(&a, clock_path(s, &a), CLOCK_FILE_MAX, &text) == 0) {
		boot = str_cut(&text, ' ');
		if (boot.n < sizeof(found.boot_id) &&
		    str_to_i64(str_cut(&text, ' '), &found.wall) &&
		    str_to_i64(str_trim(text), &found.boot)) {
			if (boot.n)
				memcpy(found.boot_id, boot.p, boot.n);
			s->anchor = found;
		}
	}
	arena_free(&a);
}

static void clock_write(struct git *s)
{
	struct arena a = { 0 };

	(void)fs_write_atomic(clock_path(s, &a),
			      arena_printf(&a, "%s %lld %lld\n", s->anchor.boot_id,
					   (long long)s->anchor.wall, (long long)s->anchor.boot),
			      0666);
	arena_free(&a);
}

/* One of several that come at once makes it. */
void git_clock_open(struct git *s)
{
	struct anchor own;

	clock_read(s);
	own = s->anchor;
	if (!localclock_renew(&s->clock, &own, 0))
		return;
	if (s->base.env.mode == STORE_READ || s->gate.fd < 0 ||
	    gate_lock(&s->gate, s->base.env.timeout_ms, s->base.env.who)) {
		s->anchor = own;
		return;
	}
	clock_read(s);
	if (localclock_renew(&s->clock, &s->anchor, 0))
		clock_write(s);
	gate_unlock(&s->gate);
}

static int64_t offset(const struct git *s)
{
	return s->anchor.wall - s->anchor.boot;
}

struct str git_clock_name(const struct git *s, struct arena *a)
{
	return arena_printf(a, "%s+%lld", s->clock.boot_id, (long long)offset(s));
}

bool git_clock_same(const struct git *s, struct str name)
{
	struct str boot = str_cut(&name, '+');
	int64_t n;

	return str_is(boot, s->clock.boot_id) && str_to_i64(name, &n) && n - offset(s) <= SAME_MS &&
	       offset(s) - n <= SAME_MS;
}

/* Another process may have set it. */
void git_clock_change(struct git *s)
{
	const struct query later = { .pick = PICK_LATER, .waiting = true }, held = { .held = true };
	int64_t now;

	clock_read(s);
	now = localclock_now(&s->clock, &s->anchor);
	if (!localclock_strays(&s->clock, &s->anchor) || mem_queue_count(&s->view.q, &later, now) ||
	    mem_queue_count(&s->view.q, &held, now))
		return;
	localclock_heal(&s->clock, &s->anchor);
	clock_write(s);
}

int64_t git_now(struct store *base)
{
	struct git *s = git_of(base);

	return s->changing ? s->now : localclock_now(&s->clock, &s->anchor);
}
