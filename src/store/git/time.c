/*
 * Locks of other machines. No clock is shared: one that another machine has set counts as live until this
 * machine's clock is `skew` past its end, and for the length of its lease after it was first seen here. Its
 * holder, on the machine that set it, counts it as lost at its end. Which machine has set it is in the record
 * (`clock`, the boot's name), and what is shown to the policy is never written back.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/when.h"
#include "format/task.h"
#include "store/git/git.h"
#include "store/task_index.h"

#define SEEN_MAX (1u << 20)
#define TTL_MAX (INT64_C(366) * 24 * 3600 * 1000)

/* The lock's end and all that comes from it. */
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

/* --- when it was seen first --------------------------------------------------------------------- */

/* In a folder that nobody clears, unlike a cache. NULL: there is none, so that each time is the first. */
static const char *seen_path(struct arena *a)
{
	const char *dir = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");

	return dir && fs_make_dirs(dir, 0700) == 0 ? fs_join(a, str_c(dir), STR("git-locks-seen"))
						   : NULL;
}

/* One line each: "COMMIT TIME BOOT". */
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
		(void)!ftruncate(fd, 0); /* those that are forgotten are seen again, later */
	line = arena_printf(a, "%.*s %lld %s\n", STRF(hex), (long long)now, s->clock.boot_id);
	if (fd >= 0)
		(void)!write(fd, line.p, line.n);
	if (fd >= 0)
		close(fd);
	return now;
}

/* --- in and out --------------------------------------------------------------------------------- */

void git_time_show(struct git *s, struct git_head *h, struct record *r, struct arena *a)
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

/* Whose clock the record's lock is by. */
struct str git_time_hide(struct git *s, const struct git_head *h, struct record *r, struct arena *a)
{
	struct task t;

	if (!h || !h->shown || !has_lock(r, &t, a) || t.lock.expires_at != h->shown)
		return git_clock_name(s, a);
	set_end(r, &t, h->end, a);
	return h->clock;
}
