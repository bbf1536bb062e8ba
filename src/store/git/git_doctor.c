/* doctor's checks of the repository and its queue. They read the commits themselves, because the memo could
 * hide damage, and they do not change the queue. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/when.h"
#include "store/git/git.h"
#include "store/git/transport/transport.h"

#define LOOSE_MANY 20000

struct report {
	struct git *s;
	check_fn *fn;
	void *ctx;
	struct arena a;
};

static void check_bad(struct report *r, const struct git_head *h)
{
	if (h->fault.n)
		r->fn(r->ctx, CHECK_BAD, "records", h->fault,
		      arena_printf(&r->a, "repair the file on the branch %s", r->s->only));
	else
		r->fn(r->ctx, CHECK_BAD, "records",
		      arena_printf(&r->a, "%.*s: commit %s is not a record of pawl", STRF(h->key),
				   git_hex(&r->a, &h->oid).p),
		      arena_printf(
			      &r->a,
			      "to remove it: git -C %s update-ref -d %s%s; to restore an earlier "
			      "commit: git update-ref REF COMMIT",
			      store_word(&r->a, str_c(r->s->remote)).p, r->s->prefix,
			      git_ref_of(&r->a, h->key).p));
}

static void check_queue(struct report *r)
{
	const struct git_view *v = &r->s->view;
	int64_t n = 0;
	size_t bad = 0;

	for (int i = 0; i < 16; i++)
		n += v->q.counts[i];
	r->fn(r->ctx, CHECK_OK, "store",
	      r->s->only ? arena_printf(&r->a, "%s, branch %s, %lld task%s", r->s->remote,
					r->s->only, (long long)n, n == 1 ? "" : "s")
			 : arena_printf(&r->a, "%s, %lld task%s, %zu with a ref of their own",
					r->s->remote, (long long)n, n == 1 ? "" : "s", v->n_refs),
	      STR(""));
	for (size_t i = 0; i < v->n; i++) {
		if (!v->heads[i]->bad)
			continue;
		bad++;
		check_bad(r, v->heads[i]);
	}
	if (v->n_strange)
		r->fn(r->ctx, CHECK_NOTE, "refs",
		      arena_printf(&r->a,
				   "%zu refs below %st/ do not have a name that pawl would give "
				   "them, and are ignored",
				   v->n_strange, r->s->prefix),
		      arena_printf(&r->a, "to list them: git ls-remote %s",
				   store_word(&r->a, str_c(r->s->remote)).p));
	if (!bad)
		r->fn(r->ctx, CHECK_OK, "records", STR("every record can be read"), STR(""));
	if (v->n_pending)
		r->fn(r->ctx, CHECK_NOTE, "changes",
		      arena_printf(&r->a, "%zu refs belong to an interrupted change", v->n_pending),
		      STR("the next change finishes it"));
	else
		r->fn(r->ctx, CHECK_OK, "changes", STR("every change is complete"), STR(""));
}

/* Counts the files in one of the 256 folders and estimates the total from it. */
static void check_loose(struct report *r)
{
	DIR *d = opendir(fs_join(&r->a, str_c(r->s->dir), STR("objects/17")));
	int64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	if (n * 256 > LOOSE_MANY)
		r->fn(r->ctx, CHECK_NOTE, "objects",
		      arena_printf(&r->a, "about %lld objects are loose files", (long long)n * 256),
		      arena_printf(&r->a, "git -C %s gc",
				   store_word(&r->a, str_c(r->s->remote)).p));
}

int git_check(struct store *base, check_fn *fn, void *ctx)
{
	struct report r = { .s = git_of(base), .fn = fn, .ctx = ctx };
	int rc;

	git_memo_doubt(r.s);
	rc = git_refresh(r.s);
	if (rc > 0)
		rc = git_absent(r.s);
	if (rc == 0)
		check_queue(&r);
	if (rc == 0 && r.s->dir) {
		git_stale_check(r.s, fn, ctx);
		check_loose(&r);
	}
	arena_free(&r.a);
	return rc;
}

/* --- repair ----------------------------------------------------------------------------------- */

/*
 * Repairs the clone that the wire transport fetches into, if an object there is lost, truncated or
 * overwritten. The remote still has the object, so pawl moves the damaged one aside and fetches the whole
 * queue again, once.
 */

enum read { READ_WELL, READ_DAMAGED, READ_NOT };

static enum read try_object(struct git *s, const git_oid *oid)
{
	git_odb_object *obj = NULL;
	const git_error *e;
	int rc;

	if (!git_object_fits(s->odb, oid))
		return READ_WELL; /* it exists, but is too large to be pawl's */
	rc = git_odb_read(&obj, s->odb, oid);
	e = rc ? git_error_last() : NULL;

	git_odb_object_free(obj);
	if (rc == 0)
		return READ_WELL;
	/* a system error (no descriptors left, no permission) does not mean damage */
	return rc == GIT_ENOTFOUND || (e && e->klass == GIT_ERROR_OS) ? READ_NOT : READ_DAMAGED;
}

/* --- finding the damage ------------------------------------------------------------------------- */

static bool main_is_damaged(struct git *s, git_oid *out)
{
	struct arena a = { 0 };
	const char *name = arena_printf(&a, "%s%s", s->seen, git_main_ref(s).p).p;
	bool bad = git_reference_name_to_id(out, s->repo, name) == 0 &&
		   try_object(s, out) != READ_WELL;

	arena_free(&a);
	return bad;
}

/* After a read: do the refs name an object that cannot be read here? */
static bool is_damaged(struct git *s, int rc, git_oid *out)
{
	const struct git_view *v = &s->view;

	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		*out = v->heads[i]->oid;
		if (v->heads[i]->bad && !v->heads[i]->fault.n && !git_oid_is_zero(out) &&
		    try_object(s, out) != READ_WELL)
			return true;
	}
	return rc == STORE_CORRUPT && main_is_damaged(s, out);
}

/* --- repairing it ------------------------------------------------------------------------------- */

/* The new name begins like those of git's temporary files, which `git prune` removes. */
static void put_aside(struct git *s, const git_oid *oid)
{
	struct arena a = { 0 };
	const char *hex = git_hex(&a, oid).p;

	if (try_object(s, oid) == READ_DAMAGED)
		(void)!rename(
			arena_printf(&a, "%s/objects/%.2s/%s", s->local, hex, hex + 2).p,
			arena_printf(&a, "%s/objects/%.2s/tmp_obj_%s", s->local, hex, hex + 2).p);
	arena_free(&a);
}

static int fetch_anew(struct git *s)
{
	struct arena a = { 0 };
	struct git_refs seen;
	struct git_move *gone;
	int rc = git_seen_list(s, &seen, &a);

	if (rc == 0) {
		gone = arena_array(&a, struct git_move, seen.n);
		for (size_t i = 0; i < seen.n; i++)
			gone[i] = (struct git_move){ .name = seen.v[i].name, .old = seen.v[i].oid };
		git_seen_note(s, gone, seen.n);
		rc = s->layout->refresh(s);
	}
	arena_free(&a);
	return rc;
}

static int cannot_read(struct git *s, const git_oid *oid)
{
	struct arena a = { 0 };
	int rc = store_fail(
		&s->base.env, STORE_CORRUPT,
		s->no_fetch
			? "run the command without --cached: pawl then fetches the object again"
			: arena_printf(&a, "git -C %s fsck", store_word(&a, str_c(s->local)).p).p,
		"cannot read the object %s in %s", git_hex(&a, oid).p, s->local);

	arena_free(&a);
	return rc;
}

int git_repair(struct git *s, int rc)
{
	git_oid oid;

	if (s->transport != &git_transport_wire || !is_damaged(s, rc, &oid))
		return rc;
	if (!s->no_fetch) {
		for (size_t i = 0; i < s->view.n; i++)
			if (s->view.heads[i]->bad)
				put_aside(s, &s->view.heads[i]->oid);
		put_aside(s, &oid);
		rc = fetch_anew(s);
	}
	return is_damaged(s, rc, &oid) ? cannot_read(s, &oid) : rc;
}

/* --- stale ------------------------------------------------------------------------------------ */

/*
 * For doctor: ref locks that a dead process left in the repository. git makes REF.lock, writes it and renames it
 * within milliseconds, and leaves it behind if it is killed. Nobody can change that ref until the lock is removed.
 * A lock does not name its process. So pawl removes it only if it is old, no process has it open, and no git process
 * that could own it is running here.
 */

#define STALE_S 60 /* git itself holds a ref lock for milliseconds */
#define LOCK_BYTES 4096
#define PATH_BYTES 4096

/* --- is a process using it? ------------------------------------------------------------------------------ */

struct process {
	const char *pid; /* "4711" */
	bool git;        /* it runs git */
	bool stopped;    /* a stopped pawl may be between two steps of a change */
};

/* Reads "4711 (git) S …". false: the process has ended, even if its parent does not know it yet (Z). */
static bool process_read(int proc, const char *pid, struct process *out)
{
	struct arena a = { 0 };
	char text[300] = "", *name, *end;
	int fd = openat(proc, arena_printf(&a, "%s/stat", pid).p, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	arena_free(&a);
	name = n > 0 ? strchr(text, '(') : NULL;
	end = name ? strrchr(name, ')') : NULL;
	if (!end || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X')
		return false;
	*out = (struct process){ .pid = pid, .git = !strncmp(name + 1, "git", 3) };
	out->stopped = !strncmp(name + 1, "pawl", 4) && (end[2] == 'T' || end[2] == 't');
	return true;
}

static bool is_below(struct str path, struct str dir)
{
	return str_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

/* Does the link lead to the file, or for a process that could own a lock, into the repository? */
static bool link_points(int dir, const char *name, const struct process *p, const char *file,
			const char *repo)
{
	char to[PATH_BYTES];
	ssize_t n = readlinkat(dir, name, to, sizeof(to));

	if (n < 0)
		return false;
	return (file && str_eq(str_n(to, (size_t)n), str_c(file))) ||
	       ((p->git || p->stopped) && is_below(str_n(to, (size_t)n), str_c(repo)));
}

static bool process_uses(int proc, const struct process *p, const char *file, const char *repo)
{
	struct arena a = { 0 };
	const char *cwd = arena_printf(&a, "%s/cwd", p->pid).p;
	int fd = openat(proc, arena_printf(&a, "%s/fd", p->pid).p,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool hidden = fd < 0 && errno != ENOENT && (p->git || p->stopped), uses;
	struct process now;

	/* the process belongs to another user, unless it has ended since it was listed */
	uses = hidden && process_read(proc, p->pid, &now);
	uses |= link_points(proc, cwd, p, NULL, repo);
	while (!uses && d && (e = readdir(d)))
		uses = e->d_name[0] != '.' && link_points(dirfd(d), e->d_name, p, file, repo);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	arena_free(&a);
	return uses;
}

/* Can a process be holding the lock `file`? true if the system cannot tell. */
static bool may_be_held(const char *file, const char *repo)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	bool held = !d, any = false;

	while (!held && d && (e = readdir(d))) {
		struct process p;
		int64_t pid;

		if (!str_to_i64(str_c(e->d_name), &pid) || pid == getpid() ||
		    !process_read(dirfd(d), e->d_name, &p))
			continue;
		any = true;
		held = process_uses(dirfd(d), &p, file, repo);
	}
	if (d)
		closedir(d);
	return held || !any;
}

/* --- locks ------------------------------------------------------------------------------------------------ */

struct stale {
	struct git *s;
	check_fn *fn; /* NULL: repair */
	void *ctx;
	const struct repair_sink *sink;
	struct arena a;
	bool far; /* a process on another machine may hold a lock */
	size_t n;
	int failed; /* -errno */
};

static int save_lock(struct stale *x, int dir, const char *name, const char *path)
{
	struct repair_part part = { "content", STR("") };
	int fd = beneath_open(dir, name, O_RDONLY, 0), r;

	if (fd < 0)
		return fd;
	r = fs_read_fd(&x->a, fd, LOCK_BYTES, &part.bytes);
	close(fd);
	if (r == 0)
		r = x->sink->keep(x->sink->ctx, "lock of a ref", str_c(path),
				  "a dead process left it", &part, 1);
	return r ? r : x->sink->settle(x->sink->ctx);
}

/* Removes the lock only if it is still the file that was checked. */
static int remove_lock(struct stale *x, int dir, const char *name, const char *path,
		       const struct stat *decided)
{
	struct stat st;
	int r = save_lock(x, dir, name, path);

	if (r)
		return r;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_ino != decided->st_ino ||
	    st.st_mtim.tv_nsec != decided->st_mtim.tv_nsec || st.st_mtime != decided->st_mtime)
		return 0;
	return unlinkat(dir, name, 0) && errno != ENOENT ? -errno : 0;
}

static void tell_lock(struct stale *x, const char *path, int64_t age, bool held)
{
	x->n++;
	x->fn(x->ctx, CHECK_BAD, "locks",
	      arena_printf(&x->a, "%s has existed for %s: nobody can change its ref", path,
			   duration_text(&x->a, age * 1000).p),
	      held ? arena_printf(&x->a, "if no git process uses the repository: rm %s",
				  store_word(&x->a, str_c(path)).p)
		   : STR(CHECK_REPAIRS
			 "save and remove this lock, which no process here can hold"));
}

static void check_lock(struct stale *x, int dir, const char *folder, const char *name)
{
	const char *path = fs_join(&x->a, str_c(folder), str_c(name));
	struct stat st;
	int64_t age;
	bool held;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	age = time(NULL) - st.st_mtime;
	if (age < STALE_S)
		return;
	held = x->far || !S_ISREG(st.st_mode) || may_be_held(path, x->s->dir);
	if (x->fn)
		tell_lock(x, path, age, held);
	else if (!held && !x->failed)
		x->failed = remove_lock(x, dir, name, path, &st);
}

/* `below`: a folder in the repository. pawl does not follow a link in its place, because the repository may have come
 * with a clone. */
static void search_in(struct stale *x, const char *below, const char *only, int depth)
{
	const char *folder = fs_join(&x->a, str_c(x->s->dir), str_c(below));
	DIR *d = beneath_list(x->s->dir, below);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		struct str name = str_c(e->d_name);

		if (name.p[0] == '.' || (only && !str_is(name, only)))
			continue;
		if (str_ends(name, STR(".lock")))
			check_lock(x, dirfd(d), folder, e->d_name);
		else if (depth)
			search_in(x, fs_join(&x->a, str_c(below), name), NULL, depth - 1);
	}
	if (d)
		closedir(d);
}

static struct stale stale_of(struct git *s)
{
	return (struct stale){ .s = s, .far = os_network_fs(s->dir) != NULL };
}

/* A queue on a branch checks only that branch's lock: the other branches are not pawl's. */
static void check_all(struct stale *x)
{
	struct str prefix = str_c(x->s->prefix);
	const char *refs;

	while (prefix.n && prefix.p[prefix.n - 1] == '/')
		prefix.n--;
	refs = arena_cstr(&x->a, prefix);
	if (x->s->only)
		search_in(x, refs, arena_printf(&x->a, "%s.lock", x->s->only).p, 0);
	else
		search_in(x, refs, NULL, 1);
	search_in(x, "", "packed-refs.lock", 0);
}

void git_stale_check(struct git *s, check_fn *fn, void *ctx)
{
	struct stale x = stale_of(s);

	x.fn = fn;
	x.ctx = ctx;
	check_all(&x);
	if (!x.n)
		fn(ctx, CHECK_OK, "locks", STR("no ref has a stale lock"), STR(""));
	arena_free(&x.a);
}

int git_repair_blocks(struct store *base, enum repair_step step, const struct repair_sink *sink)
{
	struct git *s = git_of(base);
	struct stale x;

	if (step != REPAIR_BLOCKS || !s->dir)
		return 0;
	x = stale_of(s);
	x.sink = sink;
	check_all(&x);
	arena_free(&x.a);
	return x.failed ? store_fail(&base->env, STORE_IO, NULL,
				     "a stale lock in %s cannot be removed: %s", s->remote,
				     strerror(-x.failed))
			: 0;
}
