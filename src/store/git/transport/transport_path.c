/*
 * The transport to a repository on this machine: it uses the files, without a process. It changes a ref as
 * git does: it makes REF.lock, compares the value, and renames the lock to REF. So others may push with git
 * at the same time.
 *
 * REF.lock is a hard link to a file in pawl/locks, and only the holder of pawl/gate writes there. So a file
 * that a new holder finds in pawl/locks was left by a process that died. The holder removes that file and its
 * lock.
 *
 * A push (path_push(), which is PUSHING in git/git_change.c) takes all locks before it moves the first ref. Each ref
 * goes through these states:
 *
 *     FREE
 *       |  write_own() writes the new value to pawl/locks, and syncs it
 *       v
 *     NOTED ---- link_lock() times out: another program has the lock -------> STORE_BUSY, applied 'n'
 *       |  link_lock() links the file to REF.lock
 *       v
 *     LOCKED --- is_there() says that the ref has moved; let_go() for all --> 1, run the change again
 *       |
 *       |  - - - every ref is LOCKED; from here on a fault is reported as applied '?' - - -
 *       |
 *       |  git_path_apply(), in order, the leader first: renames REF.lock to REF, or removes the ref; syncs the folder.
 *       |  A ref that must only stay in its place is not touched.
 *       v
 *     MOVED
 *       |  let_go() removes the file in pawl/locks
 *       v
 *     FREE
 *
 * If the process dies, the kernel frees the gate, and the next path_begin() calls take_away_all():
 *
 *     NOTED     it removes the file in pawl/locks.
 *     LOCKED    it also removes REF.lock, which is a link to that file. Until then git cannot change the ref.
 *     MOVED     it removes the file in pawl/locks. If the leader is MOVED and other refs are still LOCKED, it
 *               unlocks them, and layout->ready() makes their pending moves.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/git/git.h"

#define LOCK_TRIES 50
#define LOCK_WAIT_US 4000
#define SETTLED_NS 30000000 /* more than a kernel tick */

static char *in_repo(struct git *s, const char *name, struct arena *a)
{
	return fs_join(a, str_c(s->dir), str_c(name));
}

/* --- reading ------------------------------------------------------------------------------------ */

static int64_t change_time(const char *path, struct stat *st)
{
	if (stat(path, st)) {
		*st = (struct stat){ 0 };
		return 0;
	}
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* A ref that moves changes its folder's time. A very recent time cannot be trusted, because a second move may
 * leave it as it is. */
static void stamps_take(struct git *s, struct git_stamps *out)
{
	struct arena a = { 0 };
	struct timespec now;
	struct stat st;
	int64_t settled;

	clock_gettime(CLOCK_REALTIME, &now);
	settled = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - SETTLED_NS;
	out->time[0] = change_time(in_repo(s, s->prefix, &a), &st);
	out->time[1] = change_time(in_repo(s, arena_printf(&a, "%st", s->prefix).p, &a), &st);
	out->time[2] = change_time(in_repo(s, GIT_PACKED, &a), &st);
	out->size = st.st_size;
	out->ino = (int64_t)st.st_ino;
	out->good = out->time[0] < settled && out->time[1] < settled && out->time[2] < settled;
	arena_free(&a);
}

static bool path_same(struct git *s)
{
	struct git_stamps now = { 0 };

	if (!s->stamps.good)
		return false;
	stamps_take(s, &now);
	return memcmp(now.time, s->stamps.time, sizeof(now.time)) == 0 &&
	       now.size == s->stamps.size && now.ino == s->stamps.ino;
}

static int path_list(struct git *s, struct git_refs *out, struct arena *a)
{
	int rc;

	stamps_take(s, &s->stamps);
	rc = git_refs_list(s, s->prefix, out, a);
	s->stamps.good &= rc == 0;
	return rc ? git_fail_errno(s, -rc, "cannot read its refs") : 0;
}

/* --- locks -------------------------------------------------------------------------------------- */

/* A ref (or packed-refs) and its lock. `lock` and `ref` are names in the folder `dir`; `own` is
 * pawl's own lock file for the ref, in pawl/locks. */
struct held {
	const struct git_move *move;
	int dir;            /* -1: not opened */
	const char *folder; /* below s->refs; NULL: s->top */
	const char *own, *lock, *ref;
	bool made, locked; /* pawl's own file exists; the lock exists */
};

static struct held held_ref(struct git *s, const struct git_move *m, struct arena *a)
{
	struct str full = git_full(s, m->name, a), folder = fs_dirname(full), name = full;

	(void)str_cut_prefix(&folder, STR("refs/"));
	name = str_n(full.p + fs_dirname(full).n + 1, full.n - fs_dirname(full).n - 1);
	return (struct held){ .move = m,
			      .dir = -1,
			      .folder = arena_cstr(a, folder),
			      .own = git_name(a, full).p,
			      .lock = arena_printf(a, "%.*s.lock", STRF(name)).p,
			      .ref = arena_cstr(a, name) };
}

static bool same_file(int x_dir, const char *x, int y_dir, const char *y)
{
	struct stat a, b;

	return fstatat(x_dir, x, &a, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(a.st_mode) &&
	       fstatat(y_dir, y, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* Removes the ref's lock if it is a link to pawl's file `name`. */
static void take_lock(struct git *s, const char *name, struct str ref, struct arena *a)
{
	const char *lock = arena_printf(a, "%.*s.lock", STRF(ref)).p;
	struct str folder = fs_dirname(str_c(lock));
	int dir;

	if (!str_cut_prefix(&folder, STR("refs/"))) {
		if (same_file(s->locks, name, s->top, lock))
			unlinkat(s->top, lock, 0);
		return;
	}
	dir = git_folder(s->refs, arena_cstr(a, folder), false);
	lock += fs_dirname(str_c(lock)).n + 1;
	if (dir >= 0 && same_file(s->locks, name, dir, lock))
		unlinkat(dir, lock, 0);
	if (dir >= 0)
		close(dir);
}

/* Accepts only regular files with a name that pawl gives: pawl must not remove anything else there. */
static bool is_own(struct git *s, const char *name, struct str *ref, struct arena *a)
{
	struct stat st;

	return git_unname(a, str_c(name), ref) && str_is(git_name(a, *ref), name) &&
	       (str_starts(*ref, STR("refs/")) || str_is(*ref, GIT_PACKED)) &&
	       fstatat(s->locks, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Removes a dead process's files. Only the holder of the gate may call this. */
static void take_away(struct git *s, const char *name)
{
	struct arena a = { 0 };
	struct str ref;

	if (is_own(s, name, &ref, &a)) {
		take_lock(s, name, ref, &a);
		unlinkat(s->locks, name, 0);
	}
	arena_free(&a);
}

static void take_away_all(struct git *s)
{
	int fd = git_folder(s->top, GIT_LOCKS_FOLDER, false);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			take_away(s, e->d_name);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

/* Opens the folder again if somebody has removed it. */
static int refresh_locks(struct git *s)
{
	struct stat st;

	if (fstat(s->locks, &st) == 0 && st.st_nlink > 0)
		return 0;
	close(s->locks);
	s->locks = git_folder(s->top, GIT_LOCKS_FOLDER, true);
	return s->locks < 0 ? s->locks : 0;
}

static int path_begin(struct git *s)
{
	int rc = gate_lock(&s->gate, s->base.env.opt.timeout_ms, s->base.env.opt.who);

	if (rc == -ETIMEDOUT)
		return gate_busy(&s->gate, &s->base.env, s->remote);
	if (rc)
		return git_fail_errno(s, -rc, "cannot lock its gate");
	rc = refresh_locks(s);
	if (rc) {
		gate_unlock(&s->gate);
		return git_fail_errno(s, -rc, "cannot use its folder pawl/locks");
	}
	take_away_all(s);
	return 0;
}

static void path_end(struct git *s)
{
	gate_unlock(&s->gate);
}

/* --- writing ------------------------------------------------------------------------------------ */

static int make_own(struct git *s, struct held *h)
{
	int fd = openat(s->locks, h->own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0666);

	h->made = fd >= 0;
	if (fd < 0)
		return -errno;
	return fd;
}

static int write_own(struct git *s, struct held *h)
{
	char text[GIT_OID_HEXSZ + 2];
	int fd = make_own(s, h), rc;

	if (fd < 0)
		return fd;
	git_oid_tostr(text, sizeof(text), &h->move->to);
	text[GIT_OID_HEXSZ] = '\n';
	rc = fs_write_all(fd, str_n(text, GIT_OID_HEXSZ + 1));
	/* a ref that does not move needs only the lock's name, not its content */
	if (rc == 0 && !s->base.env.opt.relaxed && !git_oid_equal(&h->move->old, &h->move->to) &&
	    fdatasync(fd))
		rc = -errno;
	close(fd);
	return rc;
}

static void close_folder(struct held *h)
{
	if (h->dir >= 0 && h->folder)
		close(h->dir);
	h->dir = -1;
}

/* Waits a little if a git process has the lock. */
static int link_lock(struct git *s, struct held *h)
{
	int rc = 0;

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (h->dir < 0)
			h->dir = h->folder ? git_folder(s->refs, h->folder, true) : s->top;
		if (h->dir < 0)
			return h->dir;
		rc = linkat(s->locks, h->own, h->dir, h->lock, 0) ? -errno : 0;
		if (rc == -ENOENT) /* its folder is gone: git removes empty ones */
			close_folder(h);
		else if (rc != -EEXIST)
			return rc;
		else
			usleep(LOCK_WAIT_US);
	}
	return rc ? rc : -EEXIST;
}

static bool is_there(struct git *s, const struct held *h, struct arena *a)
{
	git_oid now = { 0 };
	int rc = git_reference_name_to_id(&now, s->repo, git_full(s, h->move->name, a).p);

	if (rc && rc != GIT_ENOTFOUND)
		return false;
	return git_oid_equal(&now, &h->move->old);
}

static int git_path_hold(struct git *s, struct held *h, struct arena *a)
{
	int rc = write_own(s, h);

	if (rc == 0)
		rc = link_lock(s, h);
	h->locked = rc == 0;
	if (rc == -EEXIST)
		return store_fail(&s->base.env, STORE_BUSY,
				  "to see whether the lock is stale: pawl doctor",
				  "%s: another program has locked %s", s->remote,
				  arena_cstr(a, git_full(s, h->move->name, a)));
	if (rc)
		return git_fail_errno(s, -rc, "cannot lock a ref");
	return is_there(s, h, a) ? 0 : 1;
}

static void git_path_unlock(struct git *s, struct held *h)
{
	if (h->locked)
		unlinkat(h->dir, h->lock, 0);
	if (h->made)
		unlinkat(s->locks, h->own, 0);
	h->locked = h->made = false;
}

static void let_go(struct git *s, struct held *h)
{
	git_path_unlock(s, h);
	close_folder(h);
}

static int sync_folder(struct git *s, const struct held *h)
{
	if (s->base.env.opt.relaxed || fsync(h->dir) == 0)
		return 0;
	/* some file systems do not support fsync on a folder */
	return errno == EINVAL ? 0 : -errno;
}

/* --- packed-refs -------------------------------------------------------------------------------- */

/* Writes the file without the ref, and without the line after it that peels a tag. False: the ref is not in
 * the file. */
static bool git_path_without(struct str text, struct str full, struct buf *out)
{
	bool found = false, behind = false;

	while (text.n) {
		struct str line = str_cut(&text, '\n'), name = line;

		(void)str_cut(&name, ' ');
		if (line.n && line.p[0] != '#' && str_eq(name, full)) {
			found = behind = true;
			continue;
		}
		if (!behind || !str_starts(line, STR("^"))) {
			buf_adds(out, line);
			buf_addc(out, '\n');
			behind = false;
		}
	}
	return found;
}

static int read_packed(struct git *s, struct str *out, struct arena *a)
{
	return fs_read(a, in_repo(s, GIT_PACKED, a), GIT_PACKED_MAX, out);
}

/* Reads the file again under the lock, because another process may have packed refs since. */
static int write_packed(struct git *s, const struct held *p, struct str full, struct arena *a)
{
	struct buf b = BUF_MAX(GIT_PACKED_MAX);
	struct str text;
	int fd, rc = read_packed(s, &text, a);

	if (rc || !git_path_without(text, full, &b) || b.full) {
		rc = rc == -ENOENT ? 0 : b.full ? -EFBIG : rc;
		buf_free(&b);
		return rc;
	}
	fd = openat(s->locks, p->own, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	rc = fd < 0 ? -errno : fs_write_all(fd, buf_str(&b));
	if (rc == 0 && !s->base.env.opt.relaxed && fdatasync(fd))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	buf_free(&b);
	if (rc == 0 && renameat(p->dir, p->lock, p->dir, p->ref))
		rc = -errno;
	return rc;
}

/* Removes the packed ref, whatever its value, because the loose ref took precedence. This must happen
 * before the loose ref goes, or the old value would come back. */
static int drop_packed(struct git *s, const struct held *h, struct arena *a)
{
	struct str full = git_full(s, h->move->name, a), text;
	struct buf b = BUF_MAX(GIT_PACKED_MAX);
	struct held p = {
		.dir = -1, .own = GIT_PACKED, .lock = GIT_PACKED ".lock", .ref = GIT_PACKED
	};
	int fd, rc = read_packed(s, &text, a);
	bool there = rc == 0 && git_path_without(text, full, &b);

	buf_free(&b);
	if (!there)
		return rc == -ENOENT ? 0 : rc;
	fd = make_own(s, &p);
	if (fd < 0)
		return fd;
	close(fd);
	rc = link_lock(s, &p);
	p.locked = rc == 0;
	if (rc == 0)
		rc = write_packed(s, &p, full, a);
	let_go(s, &p);
	return rc;
}

/* --- moving ------------------------------------------------------------------------------------- */

static int git_path_apply(struct git *s, struct held *h, struct arena *a)
{
	const struct git_move *m = h->move;
	int rc = 0;

	if (git_oid_equal(&m->old, &m->to))
		return 0;
	if (git_oid_is_zero(&m->to)) {
		rc = drop_packed(s, h, a);
		if (rc == 0 && unlinkat(h->dir, h->ref, 0) && errno != ENOENT)
			rc = -errno;
		git_path_unlock(s, h);
		if (rc == 0)
			rc = sync_folder(s, h);
	} else if (renameat(h->dir, h->lock, h->dir, h->ref)) {
		rc = -errno;
	} else {
		h->locked = false;
		rc = sync_folder(s, h);
	}
	return rc ? git_fail_errno(s, -rc, "cannot write a ref") : 0;
}

static int path_push(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };
	struct held *held = arena_array(&a, struct held, n);
	int rc = 0;
	size_t i, taken = 0;

	for (i = 0; rc == 0 && i < n; i++) {
		taken++;
		held[i] = held_ref(s, &moves[i], &a);
		rc = git_path_hold(s, &held[i], &a);
	}
	for (i = 0; rc == 0 && i < n; i++) {
		rc = git_path_apply(s, &held[i], &a);
		if (rc < 0)
			s->base.env.err->applied = '?';
	}
	for (i = 0; i < taken; i++)
		let_go(s, &held[i]);
	arena_free(&a);
	if (rc == 0)
		gate_announce(&s->gate, (const uint32_t[GATE_NOTES]){ 0 });
	return rc;
}

static void path_drop(struct git *s, const struct git_move *moves, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)path_push(s, &moves[i], 1);
}

static bool path_guards(const struct git *s)
{
	(void)s;
	return true;
}

const struct git_transport git_transport_path = {
	.begin = path_begin,
	.end = path_end,
	.same = path_same,
	.list = path_list,
	.push = path_push,
	.drop = path_drop,
	.guards = path_guards,
};
