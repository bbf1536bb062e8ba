/*
 * git_folder: the folders of a repository as descriptors. The files that pawl itself makes there (below `pawl`, and
 * refs) are opened, renamed and removed below these, so that no link which somebody planted leads a write elsewhere.
 */
#ifndef STORE_GIT_FOLDER_H
#define STORE_GIT_FOLDER_H

#include "store/git/git.h"

#define GIT_LOCKS_FOLDER "pawl/locks"

/* Sets s->top and s->refs for the repository DIR: 0 or -errno. Other tools make `refs` a link in a clone of the
 * user's: that is followed, in a foreign repository it is not. */
int git_folders_open(struct git *s, const char *dir);
void git_folders_close(struct git *s);
/* The folder PATH below DIR, where no component may be a link; `make`: made if it is not there. -errno. */
int git_folder(int dir, const char *path, bool make);
/* Opens the gate NAME in the folder `pawl` of the repository TOP; 0 or -errno. */
int git_gate_open(struct gate *g, int top, const char *name);
/* Is it the device that has no room? */
bool git_errno_full(int err);
/* Fills in err for a file of this machine. */
int git_fail_errno(struct git *s, int err, const char *what);

#endif
