/*
 * git_trust: which repositories are the user's own, and which are foreign.
 *
 * Git never checks out a path with the component ".git". So a repository in a folder of that name is the
 * user's own: `git clone`, `git init` or the user made it, and its remotes and settings count. Any other
 * repository inside a worktree is foreign, because it may have come with the clone. pawl uses a foreign
 * repository by its files only: pawl runs none of its hooks, reads none of its settings, and follows no link
 * and no alternate in it.
 */
#ifndef STORE_GIT_TRUST_H
#define STORE_GIT_TRUST_H

#include "store/git/git.h"

/* Is the repository at PATH foreign? PATH need not exist yet. */
bool git_is_foreign(const char *path);
/* Can pawl use the foreign repository at s->remote safely? 0, or a fault. 0 if it does not exist. */
int git_foreign_vet(struct git *s);
/* Opens the foreign repository without its settings: 0, or a code of libgit2. */
int git_foreign_open(struct git *s);
/* The user's own repository around `dir`; NULL: there is none. `skipped`: there is a foreign one. */
git_repository *git_own_repository(const char *dir, bool *skipped);

#endif
