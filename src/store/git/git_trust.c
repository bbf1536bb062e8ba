/* Decides which repositories are the user's own, and checks a foreign one before pawl opens it. A gap here
 * would let a repository that came with a clone run programs as the user or redirect pawl's writes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <git2/sys/repository.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/git/git.h"

#define GITFILE_MAX 4096
#define CONFIG_MAX (1u << 20)
#define DEPTH_MAX 24 /* folders below each other; refs are not as deep */

/* --- the position of a repository --------------------------------------------------------------- */

static bool has_dot_git(struct str path)
{
	while (path.n)
		if (str_is(str_cut(&path, '/'), ".git"))
			return true;
	return false;
}

/* Is `path` the folder `top`, or below it? */
static bool is_in(struct str path, struct str top)
{
	return str_cut_prefix(&path, top) && (!path.n || path.p[0] == '/');
}

/* The repository that FOLDER/.git is or names; NULL: there is no .git. */
static const char *dot_git(struct str folder, struct arena *a)
{
	const char *path = fs_join(a, folder, STR(".git")), *real;
	struct str text;
	struct stat st;

	if (lstat(path, &st))
		return NULL;
	if (S_ISREG(st.st_mode) && fs_read(a, path, GITFILE_MAX, &text) == 0 &&
	    str_cut_prefix(&text, STR("gitdir:"))) {
		text = str_trim(text);
		path = text.n && text.p[0] == '/' ? arena_cstr(a, text) : fs_join(a, folder, text);
	}
	real = fs_real(a, path);
	return real ? real : path;
}

static bool holds_queue(struct str folder, struct arena *a)
{
	struct stat st;

	return lstat(fs_join(a, folder, STR(".pawl")), &st) == 0;
}

/*
 * Checks all folders above. If a .git there names this very repository, the repository is that folder's own
 * (a bare repository with worktrees beside it). A folder with a queue counts as a worktree, because folders
 * from elsewhere do not arrive only through git.
 */
static bool in_a_tree(struct str repository, struct arena *a)
{
	struct str up = repository;
	bool own = false;

	while (up.n > 1) {
		const char *named;

		up = fs_dirname(up);
		named = dot_git(up, a);
		if (named && !is_in(repository, str_c(named)))
			return true;
		own |= named != NULL;
		if (!own && holds_queue(up, a))
			return true;
	}
	return false;
}

bool git_is_foreign(const char *path)
{
	struct arena a = { 0 };
	const char *real = fs_real(&a, path), *named;
	bool foreign;

	named = real ? dot_git(str_c(real), &a) : NULL;
	if (named)
		real = named;
	foreign = real && !has_dot_git(str_c(real)) && in_a_tree(str_c(real), &a);
	arena_free(&a);
	return foreign;
}

/* --- the user's own repository ------------------------------------------------------------------ */

/* The folder above the foreign repository around `dir`; the search continues there. NULL: `dir` is not inside
 * it, because somebody made `dir` a worktree of it. */
static const char *git_trust_above(const char *dir, const char *repository, struct arena *a)
{
	const char *here = fs_real(a, dir), *there = fs_real(a, repository);

	if (!here || !there || !is_in(str_c(here), str_c(there)))
		return NULL;
	return arena_cstr(a, fs_dirname(str_c(there)));
}

git_repository *git_own_repository(const char *dir, bool *skipped)
{
	struct arena a = { 0 };
	git_repository *repo = NULL;
	git_buf found = { 0 };
	const char *from = dir ? dir : ".";

	*skipped = false;
	while (from && git_repository_discover(&found, from, 0, NULL) == 0) {
		if (!git_is_foreign(found.ptr)) {
			if (git_repository_open_ext(&repo, from, 0, NULL))
				repo = NULL;
			break;
		}
		*skipped = true;
		from = git_trust_above(from, found.ptr, &a);
		git_buf_dispose(&found);
	}
	git_buf_dispose(&found);
	arena_free(&a);
	return repo;
}

/* --- a foreign repository ----------------------------------------------------------------------- */

struct vet {
	struct git *s;
	struct arena a;
	struct str bad; /* a link or special file, which pawl refuses */
};

static void vet_folder(struct vet *v, int fd, const char *path, int depth);

static void vet_entry(struct vet *v, int dir, const char *name, const char *path, int depth)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISDIR(st.st_mode) && depth)
		vet_folder(v, beneath_open(dir, name, O_RDONLY | O_DIRECTORY, 0), path, depth - 1);
	else if (!S_ISREG(st.st_mode))
		v->bad = str_c(path);
}

/* Closes fd. */
static void vet_folder(struct vet *v, int fd, const char *path, int depth)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && !v->bad.n && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || e->d_type == DT_REG)
			continue;
		vet_entry(v, dirfd(d), e->d_name, arena_printf(&v->a, "%s/%s", path, e->d_name).p,
			  depth);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	else
		v->bad = str_c(path);
}

static int git_trust_refuse(struct vet *v, const char *why, struct str what)
{
	return store_fail(
		&v->s->base.env, STORE_UNSUPPORTED,
		"if you made this repository, move it out of the worktree and use its new path; "
		"if not, do not use it",
		"%s is inside a worktree, so pawl does not trust it: %.*s%s", v->s->remote,
		STRF(what), why);
}

/* Extensions change the meaning of the files. Their presence is all that pawl reads in a foreign config. */
static bool has_extensions(int top, struct arena *a)
{
	int fd = beneath_open(top, "config", O_RDONLY, 0);
	char *text = arena_alloc(a, CONFIG_MAX);
	ssize_t n = fd < 0 ? 0 : read(fd, text, CONFIG_MAX);

	if (fd >= 0)
		close(fd);
	return n < 0 || n == CONFIG_MAX ||
	       str_has_nocase(str_n(text, (size_t)n), STR("[extensions"));
}

static int vet_files(struct vet *v, int top)
{
	static const char *const used[] = { "HEAD", "config", "packed-refs", "objects",
					    "refs", "logs",   "pawl" };
	static const char *const elsewhere[] = { "commondir", "objects/info/alternates" };
	struct stat st;

	for (size_t i = 0; !v->bad.n && i < sizeof(used) / sizeof(*used); i++)
		vet_entry(v, top, used[i], used[i], DEPTH_MAX);
	if (v->bad.n)
		return git_trust_refuse(v, " is a link or a special file", v->bad);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (fstatat(top, elsewhere[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return git_trust_refuse(v, " names another folder", str_c(elsewhere[i]));
	return has_extensions(top, &v->a)
		       ? git_trust_refuse(v, "", STR("its config names extensions"))
		       : 0;
}

int git_foreign_vet(struct git *s)
{
	struct vet v = { .s = s };
	const char *net = os_network_fs(s->remote);
	int top = beneath_dir(s->remote, ""), rc;

	if (top < 0)
		rc = 0; /* it does not exist yet: the call that opens it reports that */
	else if (net)
		rc = git_trust_refuse(&v, ", where its files cannot be used directly",
				      arena_printf(&v.a, "it is on %s", net));
	else
		rc = vet_files(&v, top);
	if (top >= 0)
		close(top);
	arena_free(&v.a);
	return rc;
}

/* libgit2 reads no settings when it opens a bare repository. The empty config keeps it from reading them later. */
int git_foreign_open(struct git *s)
{
	git_config *none = NULL;
	int rc = git_repository_open_bare(&s->repo, s->remote);

	if (rc == 0)
		rc = git_config_new(&none);
	if (rc == 0)
		rc = git_repository_set_config(s->repo, none);
	git_config_free(none);
	return rc;
}
