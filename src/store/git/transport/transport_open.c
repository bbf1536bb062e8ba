/* Opens a repository on this machine, to use it by its files. pawl sets up the object database itself: writes
 * are synced, and git/git_objects.c reads loose objects. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <git2/sys/repository.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "store/git/git.h"

/* Uses the alternates that the repository names, unless it is foreign. */
static int add_others(struct git *s, git_odb *odb, const char *objects)
{
	git_odb_backend *packs;
	int rc;

	if (!s->foreign)
		return git_odb_add_disk_alternate(odb, objects);
	rc = git_odb_backend_pack(&packs, objects);
	return rc ? rc : git_odb_add_backend(odb, packs, 1);
}

/* Opens the objects so that writes are synced. libgit2 does that only if the repository's config says so. */
static int open_odb(struct git *s, struct arena *a)
{
	const char *objects = fs_join(a, str_c(s->dir), STR("objects"));
	git_odb_backend *loose;
	git_odb *odb = NULL;
	int rc = git_odb_new(&odb);

	if (rc == 0)
		rc = git_odb_backend_loose(&loose, objects, 1, !s->base.env.opt.relaxed, 0, 0);
	if (rc == 0)
		rc = git_odb_add_backend(odb, loose, 99);
	if (rc == 0)
		rc = add_others(s, odb, objects);
	if (rc == 0)
		rc = git_loose_add(odb, objects);
	if (rc == 0)
		rc = git_repository_set_odb(s->repo, odb);
	s->odb = odb;
	return rc ? git_fail(s, STORE_IO, "cannot open its objects") : 0;
}

static int open_gate(struct git *s)
{
	int rc;

	if (s->base.env.mode == STORE_READ)
		return 0;
	rc = git_gate_open(&s->gate, s->top, "gate");
	if (rc == 0)
		s->locks = git_folder(s->top, GIT_LOCKS_FOLDER, true);
	if (rc == 0 && s->locks < 0)
		rc = s->locks;
	return rc ? git_fail_errno(s, -rc, "cannot open its gate") : 0;
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
		return store_fail(&s->base.env, STORE_FOREIGN, "give the path of a git repository",
				  "%s is not a git repository", s->remote);
	return git_fail(s, STORE_UNREACHABLE, "cannot open it");
}

static int drop_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

/* Makes the repository under a temporary name, and renames it when it is complete. So a process that dies leaves no
 * incomplete repository in the way. GIT_EEXISTS: another process made it first. */
int git_make_repository(const char *path)
{
	git_repository_init_options o;
	git_repository *made = NULL;
	struct arena a = { 0 };
	const char *temp = arena_printf(&a, "%s.%08x", path, (unsigned)random_below(UINT32_MAX)).p;
	int rc;

	git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR |
		  GIT_REPOSITORY_INIT_NO_REINIT;
	rc = git_repository_init_ext(&made, temp, &o);
	git_repository_free(made);
	if (rc == 0 && rename(temp, path)) {
		rc = errno == ENOTEMPTY || errno == EEXIST ? GIT_EEXISTS : GIT_ERROR;
		(void)nftw(temp, drop_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
	arena_free(&a);
	return rc;
}

/* Refuses a branch that is checked out, because its index and worktree would not follow. git itself refuses
 * that, too. */
static int check_out(struct git *s, struct arena *a)
{
	git_reference *ref = NULL, *head = NULL;
	struct str full;
	bool used = false;

	if (!s->only || s->base.env.mode == STORE_READ || s->foreign)
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
				 "use a branch that only the queue uses",
				 "%s: the branch %s is checked out there", s->remote, s->only)
		    : 0;
}

static int open_there(struct git *s)
{
	return s->foreign ? git_foreign_open(s)
			  : git_repository_open_ext(&s->repo, s->remote,
						    GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
}

static int open_repository(struct git *s)
{
	int rc = s->foreign ? git_foreign_vet(s) : 0;

	if (rc)
		return rc;
	rc = open_there(s);
	if (rc == GIT_ENOTFOUND && s->base.env.mode == STORE_CREATE &&
	    (!fs_exists(s->remote) || is_empty(s->remote))) {
		rc = git_make_repository(s->remote);
		if (rc == 0 || rc == GIT_EEXISTS)
			rc = open_there(s);
	}
	return rc ? fail_place(s, rc) : 0;
}

int git_path_open(struct git *s)
{
	struct arena a = { 0 };
	int rc = open_repository(s);

	if (rc)
		return rc;
	s->dir = realpath(git_repository_commondir(s->repo), NULL);
	if (!s->dir)
		return git_fail_errno(s, errno, "cannot resolve its folder");
	rc = git_folders_open(s, s->dir);
	if (rc)
		rc = git_fail_errno(s, -rc, "cannot open its refs");
	if (rc == 0)
		rc = check_out(s, &a);
	if (rc == 0)
		rc = open_odb(s, &a);
	if (rc == 0)
		rc = open_gate(s);
	arena_free(&a);
	return rc;
}

void git_path_close(struct git *s)
{
	gate_close(&s->gate);
	if (s->locks >= 0)
		close(s->locks);
	git_folders_close(s);
	free(s->dir);
}
