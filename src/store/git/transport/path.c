/*
 * The lane to a repository on this machine: by its files, without a process. A ref is changed as git does it:
 * REF.lock is made, the value is compared, the lock is renamed to REF. So others may push meanwhile with git.
 *
 * REF.lock is a hard link to a file in pawl/locks, and those who write this way take turns at pawl/gate: who
 * has the gate and finds a file in pawl/locks has found what one that died has left, and takes the locks away.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <git2/sys/repository.h>
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
#define SETTLED_NS 30000000 /* more than a tick of the kernel */

static char *in_repo(struct git *s, const char *name, struct arena *a)
{
	return fs_join(a, str_c(s->dir), str_c(name));
}

static int fail_errno(struct git *s, int err, const char *what)
{
	int fault = err == ENOSPC || err == EDQUOT                  ? STORE_FULL
		    : err == EACCES || err == EROFS || err == EPERM ? STORE_READONLY
								    : STORE_IO;

	return store_fail(&s->base.env, fault, "check the owner, mode and space of the repository",
			  "%s: %s: %s", s->remote, what, strerror(err));
}

/* --- opening ------------------------------------------------------------------------------------ */

/* libgit2 syncs objects only if told so by the repository's configuration. */
static int open_odb(struct git *s, struct arena *a)
{
	const char *objects = in_repo(s, "objects", a);
	git_odb_backend *loose;
	git_odb *odb = NULL;
	int rc = git_odb_new(&odb);

	if (rc == 0)
		rc = git_odb_backend_loose(&loose, objects, 1, !s->base.env.relaxed, 0, 0);
	if (rc == 0)
		rc = git_odb_add_backend(odb, loose, 99);
	if (rc == 0)
		rc = git_odb_add_disk_alternate(odb, objects);
	if (rc == 0)
		rc = git_repository_set_odb(s->repo, odb);
	s->odb = odb;
	return rc ? git_fail(s, STORE_IO, "its objects cannot be opened") : 0;
}

static int open_gate(struct git *s, struct arena *a)
{
	struct stat like;
	int rc;

	if (s->base.env.mode == STORE_READ)
		return 0;
	rc = fs_make_dirs(in_repo(s, "pawl/locks", a), 0777);
	if (rc == 0 && stat(in_repo(s, "objects", a), &like))
		rc = -errno;
	like.st_mode &= (mode_t)~0111;
	if (rc == 0)
		rc = gate_open(&s->gate, in_repo(s, "pawl/gate", a), &like);
	return rc ? fail_errno(s, -rc, "its gate cannot be opened") : 0;
}

static bool is_empty(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e = NULL;

	while (d && (e = readdir(d)) && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")))
		;
	if (d)
		closedir(d);
	return d && !e;
}

static int fail_place(struct git *s, int rc)
{
	if (rc == GIT_ENOTFOUND && !fs_exists(s->remote))
		return git_absent(s);
	if (rc == GIT_ENOTFOUND)
		return store_fail(&s->base.env, STORE_FOREIGN, "name a git repository",
				  "%s is no git repository", s->remote);
	return git_fail(s, STORE_UNREACHABLE, "cannot be opened");
}

static int make_repository(struct git *s)
{
	git_repository_init_options o;

	git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR |
		  GIT_REPOSITORY_INIT_NO_REINIT;
	return git_repository_init_ext(&s->repo, s->remote, &o);
}

/* Its index and work tree would not know. Git itself refuses that, too. */
static int check_out(struct git *s, struct arena *a)
{
	git_reference *ref = NULL, *head = NULL;
	struct str full;
	bool used = false;

	if (!s->only || s->base.env.mode == STORE_READ)
		return 0;
	full = git_full(s, str_c(s->only), a);
	if (git_reference_lookup(&ref, s->repo, full.p) == 0)
		used = git_branch_is_checked_out(ref) == 1;
	else if (!git_repository_is_bare(s->repo) &&
		 git_reference_lookup(&head, s->repo, "HEAD") == 0)
		used = git_reference_type(head) == GIT_REFERENCE_SYMBOLIC &&
		       str_is(full, git_reference_symbolic_target(head));
	git_reference_free(ref);
	git_reference_free(head);
	return used ? store_fail(&s->base.env, STORE_UNSUPPORTED,
				 "name a branch for the queue alone",
				 "%s: the branch %s is checked out there", s->remote, s->only)
		    : 0;
}

int git_path_open(struct git *s)
{
	struct arena a = { 0 };
	int rc = git_repository_open_ext(&s->repo, s->remote, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);

	if (rc == GIT_ENOTFOUND && s->base.env.mode == STORE_CREATE &&
	    (!fs_exists(s->remote) || is_empty(s->remote))) {
		rc = make_repository(s);
		if (rc == GIT_EEXISTS) /* another was quicker */
			rc = git_repository_open_ext(&s->repo, s->remote,
						     GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
	}
	if (rc)
		return fail_place(s, rc);
	s->dir = realpath(git_repository_commondir(s->repo), NULL);
	if (!s->dir)
		return fail_errno(s, errno, "its folder");
	rc = check_out(s, &a);
	if (rc == 0)
		rc = open_odb(s, &a);
	if (rc == 0)
		rc = open_gate(s, &a);
	arena_free(&a);
	return rc;
}

void git_path_close(struct git *s)
{
	gate_close(&s->gate);
	free(s->dir);
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

/* A ref that moves leaves a new time on its folder, unless that was touched just before. */
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
	rc = git_refs_list(s, s->dir, s->prefix, out, a);
	s->stamps.good &= rc == 0;
	return rc ? fail_errno(s, -rc, "its refs cannot be read") : 0;
}

/* --- locks -------------------------------------------------------------------------------------- */

struct held {
	const struct git_move *move;
	char *own, *lock, *ref;
	bool locked;
};

static bool same_file(const char *x, const char *y)
{
	struct stat a, b;

	return lstat(x, &a) == 0 && lstat(y, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* What one that died has left: only whoever has the gate may look. */
static void take_away(struct git *s, const char *name)
{
	struct arena a = { 0 };
	const char *own = in_repo(s, arena_printf(&a, "pawl/locks/%s", name).p, &a);
	struct str ref;

	if (git_unname(&a, str_c(name), &ref) &&
	    (str_starts(ref, STR("refs/")) || str_is(ref, GIT_PACKED))) {
		const char *lock = in_repo(s, arena_printf(&a, "%.*s.lock", STRF(ref)).p, &a);

		if (same_file(own, lock))
			unlink(lock);
	}
	unlink(own);
	arena_free(&a);
}

static void take_away_all(struct git *s)
{
	struct arena a = { 0 };
	DIR *d = opendir(in_repo(s, "pawl/locks", &a));
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			take_away(s, e->d_name);
	if (d)
		closedir(d);
	arena_free(&a);
}

static int path_begin(struct git *s)
{
	int rc = gate_lock(&s->gate, s->base.env.timeout_ms, s->base.env.who);

	if (rc == -ETIMEDOUT)
		return gate_busy(&s->gate, &s->base.env, s->remote);
	if (rc)
		return fail_errno(s, -rc, "its gate cannot be locked");
	take_away_all(s);
	return 0;
}

static void path_end(struct git *s)
{
	gate_unlock(&s->gate);
}

/* --- writing ------------------------------------------------------------------------------------ */

static int write_own(struct git *s, const struct held *h)
{
	char text[GIT_OID_HEXSZ + 2];
	int fd = open(h->own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), rc;

	if (fd < 0)
		return -errno;
	git_oid_tostr(text, sizeof(text), &h->move->to);
	text[GIT_OID_HEXSZ] = '\n';
	rc = fs_write_all(fd, str_n(text, GIT_OID_HEXSZ + 1));
	/* of one that stays where it is only the name counts */
	if (rc == 0 && !s->base.env.relaxed && !git_oid_equal(&h->move->old, &h->move->to) &&
	    fdatasync(fd))
		rc = -errno;
	close(fd);
	return rc;
}

/* Somebody's git may be at it: that does not last. */
static int link_lock(const struct held *h)
{
	int rc = 0;

	for (int i = 0; i < LOCK_TRIES; i++) {
		rc = link(h->own, h->lock) ? -errno : 0;
		if (rc == -ENOENT) { /* its folder: git removes empty ones */
			struct arena a = { 0 };

			rc = fs_make_dirs(arena_cstr(&a, fs_dirname(str_c(h->lock))), 0777);
			arena_free(&a);
			if (rc)
				return rc;
		} else if (rc != -EEXIST) {
			return rc;
		} else {
			usleep(LOCK_WAIT_US);
		}
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

static int hold(struct git *s, struct held *h, struct arena *a)
{
	struct str full = git_full(s, h->move->name, a);
	int rc;

	h->ref = in_repo(s, full.p, a);
	h->lock = arena_cstr(a, arena_printf(a, "%s.lock", h->ref));
	h->own = in_repo(s, arena_printf(a, "pawl/locks/%.*s", STRF(git_name(a, full))).p, a);
	rc = write_own(s, h);
	if (rc == 0)
		rc = link_lock(h);
	h->locked = rc == 0;
	if (rc == -EEXIST)
		return store_fail(&s->base.env, STORE_BUSY,
				  "pawl doctor says whether it was left behind",
				  "%s: another program has locked %.*s", s->remote, STRF(full));
	if (rc)
		return fail_errno(s, -rc, "a ref cannot be locked");
	return is_there(s, h, a) ? 0 : 1;
}

static void let_go(struct held *h)
{
	if (h->locked)
		unlink(h->lock);
	if (h->own)
		unlink(h->own);
}

static int sync_folder(struct git *s, const struct held *h, struct arena *a)
{
	if (s->base.env.relaxed)
		return 0;
	return fs_sync_dir(arena_cstr(a, fs_dirname(str_c(h->ref))));
}

/* --- packed-refs -------------------------------------------------------------------------------- */

/* The file without the ref, and without the line behind it that says what a tag is of. False: it is not there. */
static bool without(struct str text, struct str full, struct buf *out)
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

/* With the lock: others may have packed meanwhile. */
static int write_packed(struct git *s, const struct held *p, struct str full, struct arena *a)
{
	struct buf b = BUF_MAX(GIT_PACKED_MAX);
	struct str text;
	int fd, rc = fs_read(a, p->ref, GIT_PACKED_MAX, &text);

	if (rc || !without(text, full, &b) || b.full) {
		rc = rc == -ENOENT ? 0 : b.full ? -EFBIG : rc;
		buf_free(&b);
		return rc;
	}
	fd = open(p->own, O_WRONLY | O_TRUNC | O_CLOEXEC);
	rc = fd < 0 ? -errno : fs_write_all(fd, buf_str(&b));
	if (rc == 0 && !s->base.env.relaxed && fdatasync(fd))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	buf_free(&b);
	if (rc == 0 && rename(p->lock, p->ref))
		rc = -errno;
	return rc;
}

/* Whatever its value there: what is loose has counted. Before that goes, or the old value would come back. */
static int drop_packed(struct git *s, const struct held *h, struct arena *a)
{
	struct str full = git_full(s, h->move->name, a), text;
	struct buf b = BUF_MAX(GIT_PACKED_MAX);
	struct held p = { .own = in_repo(s, "pawl/locks/" GIT_PACKED, a),
			  .lock = in_repo(s, GIT_PACKED ".lock", a),
			  .ref = in_repo(s, GIT_PACKED, a) };
	int fd, rc = fs_read(a, p.ref, GIT_PACKED_MAX, &text);
	bool there = rc == 0 && without(text, full, &b);

	buf_free(&b);
	if (!there)
		return rc == -ENOENT ? 0 : rc;
	fd = open(p.own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	close(fd);
	rc = link_lock(&p);
	p.locked = rc == 0;
	if (rc == 0)
		rc = write_packed(s, &p, full, a);
	let_go(&p);
	return rc;
}

/* --- moving ------------------------------------------------------------------------------------- */

static int apply(struct git *s, struct held *h, struct arena *a)
{
	const struct git_move *m = h->move;
	int rc = 0;

	if (git_oid_equal(&m->old, &m->to))
		return 0;
	if (git_oid_is_zero(&m->to)) {
		rc = drop_packed(s, h, a);
		if (rc == 0 && unlink(h->ref) && errno != ENOENT)
			rc = -errno;
		let_go(h);
		h->locked = false;
		if (rc == 0)
			rc = sync_folder(s, h, a);
	} else if (rename(h->lock, h->ref)) {
		rc = -errno;
	} else {
		h->locked = false;
		rc = sync_folder(s, h, a);
	}
	return rc ? fail_errno(s, -rc, "a ref cannot be written") : 0;
}

static int path_push(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };
	struct held *held = arena_array(&a, struct held, n);
	int rc = 0;
	size_t i;

	for (i = 0; rc == 0 && i < n; i++) {
		held[i].move = &moves[i];
		rc = hold(s, &held[i], &a);
	}
	for (i = 0; rc == 0 && i < n; i++) {
		rc = apply(s, &held[i], &a);
		if (rc < 0)
			s->base.env.err->applied = '?';
	}
	for (i = 0; i < n; i++)
		let_go(&held[i]);
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

const struct git_lane git_lane_path = {
	.begin = path_begin,
	.end = path_end,
	.same = path_same,
	.list = path_list,
	.push = path_push,
	.drop = path_drop,
	.guards = path_guards,
};
