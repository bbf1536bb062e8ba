/*
 * The clock. All processes on one machine share one clock, through an anchor in a file beside the repository
 * (store/local/local_clock.h). A jump of the wall clock therefore neither frees nor extends a lock.
 *
 * Machines do not share a clock. A lock that another machine set is live until two conditions hold: this
 * machine's clock is `skew` past the lock's expiry, and a whole lease has passed since this machine first saw
 * the lock. The holder, on the machine that set the lock, counts it as lost at its expiry. The record names
 * the machine that set the lock (`clock`: its boot id and offset). pawl only shows the later expiry to the
 * policy, and never writes it back.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/when.h"
#include "format/task_form.h"
#include "store/git/git.h"

#define CLOCK_FILE_MAX 256
#define SAME_MS 100 /* clocks that differ by less count as the same */
#define SEEN_MAX (1u << 20)
#define TTL_MAX (INT64_C(366) * 24 * 3600 * 1000)
/* largest difference between two machines' clocks, unless the URI has `skew` */
#define SKEW_MS 60000

#define CLOCK_FILE "clock" /* in the folder `pawl` */

/* The file holds "BOOT WALL TIME-SINCE-BOOT". */
static void clock_read(struct git *s)
{
	char bytes[CLOCK_FILE_MAX];
	struct anchor found = { 0 };
	int fd = beneath_open(s->top, "pawl/" CLOCK_FILE, O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	struct str text = n < 0 ? STR("") : str_n(bytes, (size_t)n), boot = str_cut(&text, ' ');

	if (fd >= 0)
		close(fd);
	if (boot.n >= sizeof(found.boot_id) || !str_to_i64(str_cut(&text, ' '), &found.wall) ||
	    !str_to_i64(str_trim(text), &found.boot))
		return;
	if (boot.n)
		memcpy(found.boot_id, boot.p, boot.n);
	s->anchor = found;
}

static void clock_write(struct git *s)
{
	struct arena a = { 0 };
	int dir = git_folder(s->top, "pawl", false);

	if (dir >= 0) {
		(void)fs_write_atomic_at(dir, CLOCK_FILE,
					 arena_printf(&a, "%s %lld %lld\n", s->anchor.boot_id,
						      (long long)s->anchor.wall,
						      (long long)s->anchor.boot),
					 0666);
		close(dir);
	}
	arena_free(&a);
}

/* The gate lets only one of several processes write a new anchor. */
void git_clock_open(struct git *s)
{
	struct anchor own;

	clock_read(s);
	own = s->anchor;
	if (!localclock_renew(&s->clock, &own, 0))
		return;
	if (s->base.env.mode == STORE_READ || s->gate.fd < 0 ||
	    gate_lock(&s->gate, s->base.env.opt.timeout_ms, s->base.env.opt.who)) {
		s->anchor = own;
		return;
	}
	clock_read(s);
	if (localclock_renew(&s->clock, &s->anchor, 0))
		clock_write(s);
	gate_unlock(&s->gate);
}

static int64_t git_clock_offset(const struct git *s)
{
	return s->anchor.wall - s->anchor.boot;
}

/* Names the clock: this boot, and how its time was set. Each clone has its own clock. */
static struct str git_clock_name(const struct git *s, struct arena *a)
{
	return arena_printf(a, "%s+%lld", s->clock.boot_id, (long long)git_clock_offset(s));
}

static bool git_clock_same(const struct git *s, struct str name)
{
	struct str boot = str_cut(&name, '+');
	int64_t n;

	return str_is(boot, s->clock.boot_id) && str_to_i64(name, &n) &&
	       n - git_clock_offset(s) <= SAME_MS && git_clock_offset(s) - n <= SAME_MS;
}

/* Reads the anchor first, because another process may have set the clock. */
void git_clock_change(struct git *s)
{
	const struct query later = { .pick = PICK_LATER, .waiting = LANES_WAITING },
			   held = { .held = true };
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

/* --- clock skew between machines ---------------------------------------------------------------- */

bool git_clock_skew(struct git *s, struct str text)
{
	s->skew = SKEW_MS;
	return !text.n || (duration_parse(text, &s->skew) && s->skew >= 0);
}

/* Sets the lock's expiry and the fields that follow from it. */
static void set_end(struct record *r, struct task *t, int64_t end, struct arena *a)
{
	if (r->ix.eligible_at == t->lock.expires_at)
		r->ix.eligible_at = end;
	t->lock.expires_at = end;
	r->hot = task_part(t, HOT, a);
}

static bool has_lock(const struct record *r, struct task *t, struct arena *a)
{
	*t = (struct task){ 0 };
	return r->ix.holder.n && str_starts(r->key, STR("task/")) &&
	       task_unpack(r->hot, t, a) == 0 && t->lock.holder.n && t->lock.expires_at;
}

/* --- when this machine first saw a lock --------------------------------------------------------- */

/* The file is not in the cache folder, which programs may clear. NULL: the user has no state folder, so each
 * read counts as the first. */
static const char *seen_path(struct arena *a)
{
	const char *dir = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");

	return dir && fs_make_dirs(dir, 0700) == 0 ? fs_join(a, str_c(dir), STR("git-locks-seen"))
						   : NULL;
}

/* Each line is "COMMIT TIME BOOT". */
static int64_t seen_before(struct git *s, struct str hex, struct arena *a)
{
	const char *path = seen_path(a);
	struct str text;
	int64_t at;

	if (!path || fs_read(a, path, SEEN_MAX, &text))
		return 0;
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_eq(str_cut(&line, ' '), hex) && str_to_i64(str_cut(&line, ' '), &at) &&
		    str_is(line, s->clock.boot_id))
			return at;
	}
	return 0;
}

static int64_t first_seen(struct git *s, const git_oid *oid, struct arena *a)
{
	struct str hex = git_hex(a, oid), line;
	int64_t at = seen_before(s, hex, a), now = s->clock.boot();
	int fd, flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
	const char *path = seen_path(a);

	if (at)
		return at;
	fd = path ? open(path, flags, 0600) : -1;
	if (fd >= 0 && lseek(fd, 0, SEEK_END) > (off_t)SEEN_MAX / 2)
		/* a forgotten lock counts as first seen now, which only delays its expiry */
		(void)!ftruncate(fd, 0);
	line = arena_printf(a, "%.*s %lld %s\n", STRF(hex), (long long)now, s->clock.boot_id);
	if (fd >= 0)
		(void)!write(fd, line.p, line.n);
	if (fd >= 0)
		close(fd);
	return now;
}

/* --- expiry as shown, and as written ------------------------------------------------------------ */

void git_clock_show(struct git *s, struct git_head *h, struct record *r, struct arena *a)
{
	struct task t;
	int64_t end, seen;

	h->end = h->shown = 0;
	if (git_clock_same(s, h->clock) || !has_lock(r, &t, a))
		return;
	if (t.lock.ttl < 0 || t.lock.ttl > TTL_MAX)
		t.lock.ttl = TTL_MAX;
	seen = first_seen(s, &h->lease, a) - s->anchor.boot + s->anchor.wall;
	end = t.lock.expires_at > WHEN_MAX ? WHEN_MAX : t.lock.expires_at;
	end += s->skew;
	if (seen + t.lock.ttl > end)
		end = seen + t.lock.ttl;
	h->end = t.lock.expires_at;
	h->shown = end;
	set_end(r, &t, end, a);
}

/* Returns the clock that measures the record's lock. */
struct str git_clock_hide(struct git *s, const struct git_head *h, struct record *r,
			  struct arena *a)
{
	struct task t;

	if (!h || !h->shown || !has_lock(r, &t, a) || t.lock.expires_at != h->shown)
		return git_clock_name(s, a);
	set_end(r, &t, h->end, a);
	return h->clock;
}
