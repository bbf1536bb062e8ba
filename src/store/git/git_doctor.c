/*
 * For doctor: locks of refs and temporary folders that a dead process left in the repository. git makes REF.lock,
 * writes it and renames it within milliseconds, and leaves it behind if it is killed. Nobody can change that ref until
 * the lock is removed. A lock does not name its process, so pawl removes it only if it is old, if no process has it
 * open, and if no git process that could own it runs here.
 */
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

#define STALE_S 60 /* git itself holds such a lock for some milliseconds */
#define LOCK_BYTES 4096
#define PATH_BYTES 4096

/* --- does a process use it? ------------------------------------------------------------------------------ */

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

	/* it is another user's, unless it has ended meanwhile */
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

/* May a process hold the lock `file`? true if the system cannot tell. */
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
	bool far; /* a process of another machine may hold a lock */
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

/* Removes the lock only if it is still the file that was judged. */
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

/* `below`: a folder in the repository. A link in its place is not followed: the repository may come with a clone. */
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

/* On a branch, the locks of other branches belong to others. */
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
