/*
 * git_trust: whose word a repository is.
 *
 * Git never checks out a path with the component ".git". So a repository in a folder of that name is the user's own:
 * `git clone`, `git init` or the user made it, and its remotes and settings count. Any other repository inside of a
 * worktree is foreign, since it may have come with the clone. Pawl uses a foreign one by its files only: it runs no
 * hooks of it, reads no setting of it, and follows no link and no alternate in it.
 */
#ifndef STORE_GIT_TRUST_H
#define STORE_GIT_TRUST_H

#include "store/git/git.h"

/* Is the repository at PATH foreign? PATH may be one that does not exist yet. */
bool git_is_foreign(const char *path);
/* Can the foreign repository at s->remote be used safely? 0, or a fault. One that is not there can. */
int git_foreign_vet(struct git *s);
/* Opens it, without its settings: 0, or a code of libgit2. */
int git_foreign_open(struct git *s);
/* The user's own repository that `dir` is in; NULL: there is none. `skipped` tells whether a foreign one is there. */
git_repository *git_own_repository(const char *dir, bool *skipped);

#endif
